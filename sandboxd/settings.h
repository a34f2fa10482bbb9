/* The configuration: parsed by an unprivileged child, checked here. Ends the program when it is not acceptable. */
#ifndef SANDBOXD_SETTINGS_H
#define SANDBOXD_SETTINGS_H
#include "gen/conf_msg.h"
#include "sandboxd/children.h"

enum { SETTINGS_ROLES = 5, SETTINGS_SECRETS = 64 };

/* What root needs of it; the texts lead into storage. */
struct settings {
	struct cf_global global;
	uint32_t shared_gid, nroles, nsecrets;
	struct cf_role roles[SETTINGS_ROLES];
	struct cf_secret secrets[SETTINGS_SECRETS];
	uint8_t *storage;
};

/* What children are given, each a sealed memfd: the configuration, and each child's secrets as lib/secret.h says. One
 * that is started again is given the same, whatever became of the files. */
struct given {
	int conf, secrets[CHILD__COUNT];
};

/* Makes what settings_load() fills; false with errno. given_close() in any case. */
bool given_open(struct given *g);
void given_close(struct given *g);
/* Reads the files into s and g, or ends the program with what is wrong. */
void settings_load(struct settings *s, const struct given *g);
/* Reads, now, the keys of an agent's boxes (SECRET's role "agent/NAME") as they are given. -1 after logging. */
int settings_keys(const struct given *g, const char *agent);
/* NULL: there is none of that name. */
const struct cf_role *settings_role(const struct settings *s, const char *name);
#endif
