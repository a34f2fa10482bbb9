/*
 * Decodes the configuration memfd. Trusts its seals (so that it cannot change while or after it is read),
 * not its contents: everything is bounded, names are unique, references lead somewhere.
 */
#include "lib/conf.h"
#include "lib/log_to.h"
#include "lib/num.h"
#include "lib/wire.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONF_SIZE_MAX = 32 * 1024 * 1024, CONF_ROOMS = 16 };

struct load {
	struct conf *c;
	bool global, shared, push, ended;
};

static const char *take_global(struct load *l, const uint8_t *f, size_t n)
{
	if (l->global)
		return "a second GLOBAL";
	l->global = true;
	return cf_get_global(f, n, &l->c->global) ? NULL : "malformed GLOBAL";
}

static const char *take_role(struct load *l, const uint8_t *f, size_t n)
{
	struct cf_role m;
	if (!cf_get_role(f, n, &m) || m.name[0] == 0)
		return "malformed ROLE";
	if (m.uid == 0 || m.uid == UINT32_MAX || m.gid == UINT32_MAX)
		return "a role may not be root";
	if (conf_role(l->c, m.name) != NULL)
		return "two roles of one name";
	if (l->c->nroles == CONF_ROLES)
		return "too many roles";
	l->c->roles[l->c->nroles++] = m;
	return NULL;
}

static const char *take_shared_gid(struct load *l, const uint8_t *f, size_t n)
{
	struct cf_shared_gid m;
	if (!cf_get_shared_gid(f, n, &m) || l->shared)
		return "malformed SHARED_GID";
	l->shared = true;
	l->c->shared_gid = m.gid;
	return NULL;
}

static bool file_name(const char *s)
{
	return s[0] != 0 && s[0] != '.' && strchr(s, '/') == NULL;
}

static const char *take_secret(struct load *l, const uint8_t *f, size_t n)
{
	struct cf_secret m;
	if (!cf_get_secret(f, n, &m))
		return "malformed SECRET";
	if (!file_name(m.name))
		return "a secret's name is not a file name";
	for (uint32_t i = 0; i < l->c->nsecrets; i++)
		if (strcmp(l->c->secrets[i].name, m.name) == 0 && strcmp(l->c->secrets[i].role, m.role) == 0)
			return "a secret goes to one role twice";
	if (l->c->nsecrets == CONF_SECRETS)
		return "too many secrets";
	l->c->secrets[l->c->nsecrets++] = m;
	return NULL;
}

/* The arrays were allocated for as many as there are frames of the kind. */
static const char *take_tenant(struct load *l, const uint8_t *f, size_t n)
{
	struct conf_tenant *t = &l->c->tenants[l->c->ntenants];
	if (!cf_get_tenant(f, n, &t->t))
		return "malformed TENANT";
	if (conf_tenant(l->c, t->t.name) != NULL)
		return "two tenants of one name";
	if (t->t.max_approval_wait_seconds == 0)
		t->t.max_approval_wait_seconds = CONF_APPROVAL_WAIT_MOST;
	l->c->ntenants++;
	return NULL;
}

static const char *take_tenant_check(struct load *l, const uint8_t *f, size_t n)
{
	struct cf_tenant_check m;
	if (!cf_get_tenant_check(f, n, &m) || m.argv_n == 0)
		return "malformed TENANT_CHECK";
	for (uint32_t i = 0; i < l->c->ntenants; i++) {
		struct conf_tenant *t = &l->c->tenants[i];
		if (strcmp(t->t.name, m.tenant) != 0)
			continue;
		if (t->nchecks == CONF_CHECKS)
			return "too many checks of one tenant";
		t->checks[t->nchecks++] = m;
		return NULL;
	}
	return "a check of an unknown tenant";
}

static const char *take_provider(struct load *l, const uint8_t *f, size_t n)
{
	struct cf_provider m;
	if (!cf_get_provider(f, n, &m))
		return "malformed PROVIDER";
	if (conf_provider(l->c, m.name) != NULL)
		return "two providers of one name";
	l->c->providers[l->c->nproviders++] = m;
	return NULL;
}

static const char *take_profile(struct load *l, const uint8_t *f, size_t n)
{
	struct cf_profile m;
	if (!cf_get_profile(f, n, &m))
		return "malformed PROFILE";
	if (conf_profile(l->c, m.name) != NULL)
		return "two profiles of one name";
	l->c->profiles[l->c->nprofiles++] = m;
	return NULL;
}

static const char *take_agent(struct load *l, const uint8_t *f, size_t n)
{
	struct cf_agent m;
	if (!cf_get_agent(f, n, &m) || m.argv_n == 0)
		return "malformed AGENT";
	if (conf_agent(l->c, m.name) != NULL)
		return "two agents of one name";
	l->c->agents[l->c->nagents++] = m;
	return NULL;
}

static const char *take_push(struct load *l, const uint8_t *f, size_t n)
{
	if (l->push || !cf_get_push(f, n, &l->c->push))
		return "malformed PUSH";
	l->push = true;
	return NULL;
}

static const char *take_end(struct load *l, const uint8_t *f, size_t n)
{
	struct cf_end m;
	l->ended = true;
	return cf_get_end(f, n, &m) ? NULL : "malformed END";
}

static const char *(*const takers[CONF_ROOMS])(struct load *, const uint8_t *, size_t) = {
    [CF_GLOBAL] = take_global,     [CF_ROLE] = take_role,       [CF_SHARED_GID] = take_shared_gid,
    [CF_SECRET] = take_secret,     [CF_TENANT] = take_tenant,   [CF_TENANT_CHECK] = take_tenant_check,
    [CF_PROVIDER] = take_provider, [CF_PROFILE] = take_profile, [CF_AGENT] = take_agent,
    [CF_PUSH] = take_push,         [CF_END] = take_end,
};

/* The next frame of the storage. 1, 0 at the end, -1 malformed. */
static int next_frame(struct wire_bytes *rest, struct wire_bytes *frame, uint16_t *number)
{
	bool bad = false;
	uint64_t op;
	if (!wire_list_next(rest, frame, &bad))
		return bad ? -1 : 0;
	return frame->n <= CF_MAXFRAME && wire_peek(frame->p, frame->n, number, &op) && *number < CONF_ROOMS &&
		       takers[*number] != NULL
		   ? 1
		   : -1;
}

static const char *make_room(struct conf *c, struct wire_bytes all)
{
	uint32_t count[CONF_ROOMS] = {0};
	struct wire_bytes frame;
	uint16_t number;
	int r;
	while ((r = next_frame(&all, &frame, &number)) == 1)
		count[number]++;
	if (r != 0)
		return "malformed frame";
	if (count[CF_TENANT] > CONF_TENANTS || count[CF_PROVIDER] > CONF_PROVIDERS ||
	    count[CF_PROFILE] > CONF_PROFILES || count[CF_AGENT] > CONF_AGENTS)
		return "too many tenants, providers, profiles or agents";
	/* One more than counted: calloc of nothing may be NULL. */
	c->tenants = calloc(count[CF_TENANT] + 1u, sizeof *c->tenants);
	c->providers = calloc(count[CF_PROVIDER] + 1u, sizeof *c->providers);
	c->profiles = calloc(count[CF_PROFILE] + 1u, sizeof *c->profiles);
	c->agents = calloc(count[CF_AGENT] + 1u, sizeof *c->agents);
	if (c->tenants == NULL || c->providers == NULL || c->profiles == NULL || c->agents == NULL)
		return "no memory";
	return NULL;
}

static bool secret_known(const struct conf *c, const char *name)
{
	for (uint32_t i = 0; i < c->nsecrets; i++)
		if (strcmp(c->secrets[i].name, name) == 0)
			return true;
	return false;
}

/* Is it said that the secret goes to the role prefix+name? */
static bool secret_goes(const struct conf *c, const char *secret, const char *prefix, const char *name)
{
	for (uint32_t i = 0; i < c->nsecrets; i++) {
		const struct cf_secret *s = &c->secrets[i];
		if (strcmp(s->name, secret) == 0 && strncmp(s->role, prefix, strlen(prefix)) == 0 &&
		    strcmp(s->role + strlen(prefix), name) == 0)
			return true;
	}
	return false;
}

/* Says which name refers to nothing; of the one configuration that a process loads. */
static const char *nowhere(const char *kind, const char *name, const char *what, const char *missing)
{
	static char why[400];

	snprintf(why, sizeof why, "%s %s: there is no %s \"%s\"", kind, name, what, missing);
	return why;
}

static const char *check_references(const struct conf *c)
{
	for (uint32_t i = 0; i < c->nsecrets; i++) {
		const char *role = c->secrets[i].role;
		bool box = strncmp(role, CONF_BOX_ROLE, sizeof CONF_BOX_ROLE - 1) == 0;
		const struct cf_agent *a = box ? conf_agent(c, role + sizeof CONF_BOX_ROLE - 1) : NULL;
		if (box ? a == NULL || !a->env_mode : conf_role(c, role) == NULL)
			return "a secret for an unknown role";
	}
	for (uint32_t i = 0; i < c->nagents; i++) {
		const struct cf_agent *a = &c->agents[i];
		struct conf_key keys[CONF_KEYS];
		const char *why = conf_keys(a, keys);
		if (why != NULL)
			return why;
		for (uint32_t k = 0; k < a->credentials_n; k++)
			if (!secret_goes(c, keys[k].secret, "gateway", "") ||
			    !secret_goes(c, keys[k].secret, CONF_BOX_ROLE, a->name))
				return nowhere("agent", a->name, "secret", keys[k].secret);
	}
	for (uint32_t i = 0; i < c->nproviders; i++)
		if (c->providers[i].secret[0] != 0 && !secret_known(c, c->providers[i].secret))
			return nowhere("provider", c->providers[i].name, "secret", c->providers[i].secret);
	for (uint32_t i = 0; i < c->nprofiles; i++)
		if (conf_provider(c, c->profiles[i].provider) == NULL)
			return nowhere("model_profile", c->profiles[i].name, "provider", c->profiles[i].provider);
	for (uint32_t i = 0; i < c->ntenants; i++) {
		const struct cf_tenant *t = &c->tenants[i].t;
		if (conf_agent(c, t->default_agent) == NULL)
			return nowhere("tenant", t->name, "agent", t->default_agent);
		if (conf_profile(c, t->default_profile) == NULL)
			return nowhere("tenant", t->name, "model_profile", t->default_profile);
		for (uint32_t k = 0; k < t->profiles_n; k++)
			if (conf_profile(c, t->profiles[k]) == NULL)
				return nowhere("tenant", t->name, "model_profile", t->profiles[k]);
		for (uint32_t k = 0; k < t->agents_n; k++)
			if (conf_agent(c, t->agents[k]) == NULL)
				return nowhere("tenant", t->name, "agent", t->agents[k]);
	}
	return NULL;
}

static const char *decode(struct conf *c, struct wire_bytes all)
{
	struct load l = {.c = c};
	struct wire_bytes frame;
	uint16_t number;
	const char *why = make_room(c, all);
	while (why == NULL && next_frame(&all, &frame, &number) == 1)
		why = l.ended ? "something after END" : takers[number](&l, frame.p, frame.n);
	if (why != NULL)
		return why;
	if (!l.ended || !l.global || !l.shared)
		return "END, GLOBAL or SHARED_GID is missing";
	/* A socket's name is no longer than the kernel has room for. */
	const struct cf_global *g = &c->global;
	if (g->log_path[0] != '\0' ? g->log_path[0] != '/' || (g->log_to != LOG_TO_FILE && strlen(g->log_path) > 107)
				   : g->log_to == LOG_TO_FILE)
		return "log_path must be an absolute path, and be there with log_to = file";
	return check_references(c);
}

/* Reads the whole sealed file. NULL or why not. */
static const char *read_sealed(int fd, void **storage, uint32_t *size)
{
	enum { SEALS = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK };
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & SEALS) != SEALS)
		return "the configuration is not a sealed memfd";
	if (fstat(fd, &st) != 0 || st.st_size <= 0 || st.st_size > CONF_SIZE_MAX)
		return "the configuration has an impossible size";
	size_t n = (size_t)st.st_size;
	uint8_t *p = malloc(n);
	if (p == NULL)
		return "no memory";
	*storage = p;
	*size = (uint32_t)n;
	for (size_t at = 0; at < n;) {
		ssize_t got = pread(fd, p + at, n - at, (off_t)at);
		if (got <= 0)
			return "the configuration cannot be read";
		at += (size_t)got;
	}
	return NULL;
}

const char *conf_load(struct conf *c, int fd)
{
	uint32_t size = 0;
	memset(c, 0, sizeof *c);
	c->push = (struct cf_push){.contact = "", .ca_file = ""};
	const char *why = read_sealed(fd, &c->storage, &size);
	if (why == NULL)
		why = decode(c, (struct wire_bytes){.p = c->storage, .n = size});
	if (why != NULL)
		conf_free(c);
	return why;
}

void conf_free(struct conf *c)
{
	free(c->tenants);
	free(c->providers);
	free(c->profiles);
	free(c->agents);
	free(c->storage);
	memset(c, 0, sizeof *c);
}

const char *conf_run_secret(const struct conf *c)
{
	return *c->global.run_token_secret != '\0' ? c->global.run_token_secret : "run-token";
}

const struct cf_role *conf_role(const struct conf *c, const char *name)
{
	for (uint32_t i = 0; i < c->nroles; i++)
		if (strcmp(c->roles[i].name, name) == 0)
			return &c->roles[i];
	return NULL;
}

const struct conf_tenant *conf_tenant(const struct conf *c, const char *name)
{
	for (uint32_t i = 0; i < c->ntenants; i++)
		if (strcmp(c->tenants[i].t.name, name) == 0)
			return &c->tenants[i];
	return NULL;
}

static bool among(const char *name, const char *by_default, const char *const *names, uint32_t n)
{
	bool found = n == 0 || strcmp(name, by_default) == 0;
	for (uint32_t i = 0; i < n && !found; i++)
		found = strcmp(name, names[i]) == 0;
	return found;
}

bool conf_profile_allowed(const struct conf_tenant *t, const char *name)
{
	return among(name, t->t.default_profile, t->t.profiles, t->t.profiles_n);
}

bool conf_agent_allowed(const struct conf_tenant *t, const char *name)
{
	return among(name, t->t.default_agent, t->t.agents, t->t.agents_n);
}

bool conf_env_allowed(const struct conf *c, const struct conf_tenant *t, const struct cf_agent *a)
{
	return !a->env_mode || (c->global.allow_env_credentials && t->t.env_credentials);
}

const struct cf_profile *conf_profile(const struct conf *c, const char *name)
{
	for (uint32_t i = 0; i < c->nprofiles; i++)
		if (strcmp(c->profiles[i].name, name) == 0)
			return &c->profiles[i];
	return NULL;
}

const struct cf_provider *conf_provider(const struct conf *c, const char *name)
{
	for (uint32_t i = 0; i < c->nproviders; i++)
		if (strcmp(c->providers[i].name, name) == 0)
			return &c->providers[i];
	return NULL;
}

const struct cf_agent *conf_agent(const struct conf *c, const char *name)
{
	for (uint32_t i = 0; i < c->nagents; i++)
		if (strcmp(c->agents[i].name, name) == 0)
			return &c->agents[i];
	return NULL;
}
