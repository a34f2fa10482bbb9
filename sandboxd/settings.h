/* The configuration: parsed by an unprivileged child, checked here. Ends the program when it is not acceptable. */
#ifndef SANDBOXD_SETTINGS_H
#define SANDBOXD_SETTINGS_H
#include "gen/conf_msg.h"

enum { SETTINGS_ROLES = 5, SETTINGS_SECRETS = 64 };

/* What root needs of it; the texts lead into storage. */
struct settings {
	struct cf_global global;
	uint32_t shared_gid, nroles, nsecrets;
	struct cf_role roles[SETTINGS_ROLES];
	struct cf_secret secrets[SETTINGS_SECRETS];
	uint8_t *storage;
};

/* Fills s and returns the sealed memfd that every child gets too. */
int settings_load(struct settings *s);
/* NULL: there is none of that name. */
const struct cf_role *settings_role(const struct settings *s, const char *name);
/* A pipe, full and closed for writing, with the secrets of this role as lib/secret.h says. -1 after logging. */
int settings_secrets(const struct settings *s, const char *role);
#endif
