/*
 * The configuration as every process sees it: decoded from the sealed memfd of conf.msg.
 */
#ifndef LIB_CONF_H
#define LIB_CONF_H
#include "gen/conf_msg.h"
#include <stdbool.h>
#include <stdint.h>

enum {
	CONF_ROLES = 8,
	CONF_SECRETS = 64,
	CONF_TENANTS = 256,
	CONF_CHECKS = 64,
	CONF_PROVIDERS = 32,
	CONF_PROFILES = 64,
	CONF_AGENTS = 96,                /* of which each may have its row in PROOFS of store.msg */
	CONF_APPROVAL_WAIT_MOST = 86400, /* seconds; of a tenant that says nothing else */
	CONF_KEYS = 8,                   /* of one agent */
	CONF_KEY_LEAST = 16,
	CONF_INLINE = 8000
};

/* mask_secrets: in questions alone; in all events; nowhere. */
enum { MASK_QUESTIONS, MASK_EVENTS, MASK_NONE };

struct conf_tenant {
	struct cf_tenant t;
	struct cf_tenant_check checks[CONF_CHECKS];
	uint32_t nchecks;
};

/* The role whose secrets are for an agent's boxes, before the agent's name. */
#define CONF_BOX_ROLE "agent/"
/* Where a key that is a file lies in a box, before its variable's name. */
#define CONF_KEY_FILE ".pinfold-key-"

/* Pointers lead into storage that conf_free releases. */
struct conf {
	struct cf_global global;
	struct cf_push push;
	struct cf_role roles[CONF_ROLES];
	struct cf_secret secrets[CONF_SECRETS];
	struct conf_tenant *tenants;
	struct cf_provider *providers;
	struct cf_profile *profiles;
	struct cf_agent *agents;
	uint32_t nroles, nsecrets, ntenants, nproviders, nprofiles, nagents;
	uint32_t shared_gid;
	void *storage;
};

/* Decodes fd. NULL, or why it is not acceptable (a phrase that stays until the next call). Everything is bounded; a
 * missing END, a second GLOBAL or a name that refers to nothing is refused. */
const char *conf_load(struct conf *c, int fd);
void conf_free(struct conf *c);
/* Behind a secret's name: the file of the one that is to follow it. */
#define SECRET_NEXT ".next"
/* The name of the secret that signs run tokens. */
const char *conf_run_secret(const struct conf *c);
const struct cf_role *conf_role(const struct conf *c, const char *name);
const struct conf_tenant *conf_tenant(const struct conf *c, const char *name);
const struct cf_profile *conf_profile(const struct conf *c, const char *name);
const struct cf_provider *conf_provider(const struct conf *c, const char *name);
const struct cf_agent *conf_agent(const struct conf *c, const char *name);
/* May a run of this tenant name it? What is named by default it may. */
bool conf_profile_allowed(const struct conf_tenant *t, const char *name);
bool conf_agent_allowed(const struct conf_tenant *t, const char *name);
/* The first setting that differs and that a running service cannot take up (change "restart" of spec/conf.tab), as
 * "max_boxes", "users: stored" or "agent NAME: pids"; NULL: a reload will do. The text stays until the next call. */
const char *conf_restart_needed(const struct conf *now, const struct conf *next);
/* A key that an agent with credential_mode = env gets in its box. Pointers lead into the conf. */
struct conf_key {
	char variable[65];
	const char *secret; /* the name of its file */
	bool file;          /* a file in /workspace that goes when it was read; else the variable itself */
};
/* conf_keys.c: what the credential_secret of an agent says, and whether its inline_config refers to what it has and to
 * nothing else. Fills a->credentials_n of out. NULL, or why not (a phrase that stays until the next call). */
const char *conf_keys(const struct cf_agent *a, struct conf_key out[CONF_KEYS]);
struct keymask;
/* The first agent whose profile holds one of these values itself; NULL: none does. */
const struct cf_agent *conf_key_itself(const struct conf *c, const struct keymask *k);
/* One reference in an inline configuration: {env:NAME} or {file:NAME}. */
struct conf_reference {
	const char *at; /* the brace; NULL: there is no more */
	size_t n;       /* up to the closing brace and with it */
	bool file, whole;
	char name[129];
};
/* The first at or behind text. whole: it has a closing brace and a name. */
struct conf_reference conf_reference(const char *text);
/* May a run of this tenant have an agent that gets real keys? Both the operator and the tenant have to have said so;
 * of an agent without any it always may. */
bool conf_env_allowed(const struct conf *c, const struct conf_tenant *t, const struct cf_agent *a);
/* SHA-256 over profile, provider, model, URL and secret name: what a capability is bound to. */
bool conf_fingerprint(const struct conf *c, const struct cf_profile *p, uint8_t out[32]);
/* The same of a run: that route, and what its agent may ask there. Of an agent of policy strict it is the route. */
bool conf_capability(const struct cf_agent *a, const uint8_t route[32], uint8_t out[32]);
#endif
