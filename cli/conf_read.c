/*
 * Configuration files in, typed messages out. Trusts nothing in them: every value is bounded by its row of
 * spec/conf.tab, again by the codec, and again by conf_load() in each process.
 */
#include "cli/conf_read.h"

#include <dirent.h>
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/conf_value.h"
#include "gen/conf_msg.h"
#include "lib/chan.h"
#include "lib/conf.h"
#include "lib/log_to.h"
#include "lib/num.h"
#include "lib/place.h"
#include "lib/token.h"

enum { ARENA_MOST = 64 << 20, WHOLE_MEMFD = 24 << 20, NAME_MOST = 64 /* of a secret */ };

struct out {
	struct conf_files *f;
	struct conf_notes *notes;
	int fd;
	size_t written;
	/* The secrets that were written: several providers may have one key. */
	struct told {
		const char *name, *role;
		bool signs;
	} told[CONF_SECRETS];
	unsigned ntold;
};

static uint8_t frame[CF_MAXFRAME];

static void emit(struct out *o, size_t n, const struct conf_block *b, const char *what)
{
	if (n == 0 && b->title[0] != '\0' && !id_valid(b->title))
		return; /* names() says so, once */
	if (n == 0)
		conf_wrong(o->notes, b->at, "%s %s: a value does not fit into its message", what, b->title);
	else if (o->fd >= 0 && (o->written += n) > WHOLE_MEMFD)
		conf_wrong(o->notes, b->at, "the whole is too large");
	else if (o->fd >= 0 && !bundle_add(o->fd, frame, n))
		conf_wrong(o->notes, b->at, "cannot write: %s", strerror(errno));
}

#define EMIT(o, b, message, m) emit((o), cf_put_##message(frame, sizeof frame, 0, (m)), (b), #message)

/* --- what several settings mean together ----------------------------------------------------- */

static void secret(struct out *o, const struct conf_block *b, struct conf_place at, const char *name, const char *role,
		   uint32_t least)
{
	static const char twice[] =
	    "secret \"%s\" is named for two purposes: each signing secret has a file of its own";
	struct cf_secret m = {.name = name, .role = role, .least = least};

	/* A signing secret is nobody else's. */
	if (strcmp(name, "vapid") == 0 && strcmp(role, "push") != 0)
		conf_fault(o->notes, b, at, twice, name);
	for (unsigned i = 0; i < o->ntold; i++) {
		struct told *t = &o->told[i];
		if (strcmp(t->name, name) != 0 || strcmp(t->role, role) != 0)
			continue;
		/* What signs tokens must not be what a provider is sent, nor both the old secret and the next. */
		if (t->signs || least > 0)
			conf_fault(o->notes, b, at, twice, name);
		return;
	}
	if (o->ntold == CONF_SECRETS) {
		conf_fault(o->notes, b, at, "more than %d secrets are named", CONF_SECRETS);
		return;
	}
	o->told[o->ntold++] = (struct told){name, role, least > 0};
	EMIT(o, b, secret, &m);
}

/* The secrets that a block names, each for the roles of its row. Those of the machine sign. */
static void secrets(struct out *o, const struct conf_block *b)
{
	for (size_t i = 0; i < CONF_ROWS; i++) {
		const struct conf_row *r = &conf_rows[i];
		struct conf_place at;
		unsigned n;
		if (r->type != CONF_SECRET || strcmp(r->section, b->section) != 0)
			continue;
		const char *const *words = conf_words(o->notes, b, r, &n, &at);
		char *save = NULL, *roles = arena_dup(o->notes->arena, r->words, strlen(r->words));
		if (n == 0 || words[0][0] == '\0' || words[0][0] == '.' || strchr(words[0], '/') != NULL ||
		    strlen(words[0]) > r->wide)
			continue;
		for (char *role = strtok_r(roles, ",", &save); role != NULL; role = strtok_r(NULL, ",", &save))
			secret(o, b, at, words[0], role, r->message == CF_GLOBAL ? TOKEN_SECRET_MIN : 0);
	}
}

/* The one that "pinfold secret rotate" makes, where the file names no other; it may be missing, and signs. */
static void next_secret(struct out *o, const struct conf_block *b, const struct cf_global *g)
{
	const char *now = g->run_token_secret != NULL ? g->run_token_secret : "";
	const char *name = arena_printf(o->notes->arena, "%s" SECRET_NEXT, now);

	if (name == NULL || *now == '\0' || strlen(name) > NAME_MOST ||
	    (g->run_token_secret_next != NULL && *g->run_token_secret_next != '\0'))
		return;
	secret(o, b, b->at, name, "gateway", 0);
	if (o->ntold > 0)
		o->told[o->ntold - 1].signs = true;
}

/* "name" of a user, or "UID:GID". */
static void role(struct out *o, const struct conf_block *b, const struct conf_row *r)
{
	struct cf_role m = {.name = r->name};
	struct conf_place at;
	unsigned n;
	const char *const *words = conf_words(o->notes, b, r, &n, &at);
	const char *v = n > 0 ? words[0] : "", *colon = strchr(v, ':');
	uint64_t uid = 0, gid = 0;

	if (colon == NULL || !num_u64(v, (size_t)(colon - v), 1, 4294967294u, &uid) ||
	    !num_u64(colon + 1, strlen(colon + 1), 1, 4294967294u, &gid)) {
		const struct passwd *pw = colon == NULL ? getpwnam(v) : NULL;
		if (pw == NULL) {
			conf_fault(o->notes, b, at,
				   "%s: there is no user \"%s\": create it (see pinfold-sandboxd(8)) or write UID:GID",
				   r->name, v);
			return;
		}
		uid = pw->pw_uid;
		gid = pw->pw_gid;
	}
	m.uid = (uint32_t)uid;
	m.gid = (uint32_t)gid;
	if (uid == 0 || gid == 0)
		conf_fault(o->notes, b, at, "%s must not run as root: give it a user of its own", r->name);
	else
		EMIT(o, b, role, &m);
}

/* --- sections -------------------------------------------------------------------------------- */

/* The same as conf_load() says, with the line. */
static void log_place(struct out *o, const struct conf_block *b, const struct cf_global *g)
{
	struct conf_place at = b->at;

	for (const struct conf_said *s = b->said; s != NULL; s = s->next)
		if (strncmp(s->row->name, "log_", 4) == 0 && s->line > 0)
			at.line = s->line;
	if (g->log_path[0] != '\0' && g->log_path[0] != '/')
		conf_fault(o->notes, b, at, "log_path must be an absolute path, not \"%s\"", g->log_path);
	else if (g->log_path[0] == '\0' && g->log_to == LOG_TO_FILE)
		conf_fault(o->notes, b, at, "log_path must be an absolute path, and be there with log_to = file");
	else if (g->log_to != LOG_TO_FILE && strlen(g->log_path) > 107)
		conf_fault(o->notes, b, at, "log_path is longer than 107 bytes, which a socket's path may have");
}

static void take_machine(struct out *o, const struct conf_block *b)
{
	struct cf_global g = {.run_dir = place_dir(PLACE_RUN),
			      .state_dir = place_dir(PLACE_STATE),
			      .log_dir = place_dir(PLACE_LOG),
			      .libexec_dir = place_dir(PLACE_LIBEXEC)};
	struct cf_push push = {0};

	conf_fill(o->notes, b, CF_GLOBAL, &g);
	conf_fill(o->notes, b, CF_PUSH, &push);
	log_place(o, b, &g);
	EMIT(o, b, global, &g);
	EMIT(o, b, push, &push);
	secrets(o, b);
	next_secret(o, b, &g);
	secret(o, b, b->at, "vapid", "push", 0);
}

static void take_users(struct out *o, const struct conf_block *b)
{
	struct cf_shared_gid shared = {0};

	for (size_t i = 0; i < CONF_ROWS; i++)
		if (conf_rows[i].type == CONF_ROLE)
			role(o, b, &conf_rows[i]);
	conf_fill(o->notes, b, CF_SHARED_GID, &shared);
	EMIT(o, b, shared_gid, &shared);
}

static void take_provider(struct out *o, const struct conf_block *b)
{
	struct cf_provider m = {.name = b->title};

	conf_fill(o->notes, b, CF_PROVIDER, &m);
	EMIT(o, b, provider, &m);
	secrets(o, b);
}

static void take_profile(struct out *o, const struct conf_block *b)
{
	struct cf_profile m = {.name = b->title};

	conf_fill(o->notes, b, CF_PROFILE, &m);
	EMIT(o, b, profile, &m);
}

/* The keys of an agent go to its boxes, and to the gateway, which knows by them whose call it is and looks for them in
 * what the agent says. */
static void agent_keys(struct out *o, const struct conf_block *b, const struct cf_agent *a)
{
	struct conf_key keys[CONF_KEYS];
	const char *why = conf_keys(a, keys);

	if (why != NULL) {
		conf_fault(o->notes, b, b->at, "%s", why);
		return;
	}
	for (uint32_t i = 0; i < a->credentials_n; i++) {
		bool before = false;
		for (uint32_t k = 0; k < i; k++)
			before = before || strcmp(keys[k].secret, keys[i].secret) == 0;
		if (before)
			continue;
		secret(o, b, b->at, keys[i].secret, "gateway", 0);
		secret(o, b, b->at, keys[i].secret, arena_printf(o->notes->arena, "%s%s", CONF_BOX_ROLE, a->name),
		       CONF_KEY_LEAST);
	}
}

static void take_agent(struct out *o, const struct conf_block *b)
{
	struct cf_agent m = {.name = b->title};

	conf_fill(o->notes, b, CF_AGENT, &m);
	if (m.file_bytes == 0 || m.file_bytes > m.workspace_bytes)
		m.file_bytes = m.workspace_bytes;
	EMIT(o, b, agent, &m);
	agent_keys(o, b, &m);
}

static void take_tenant(struct out *o, const struct conf_block *b)
{
	/* What a tenant may run where its file names no check. */
	static const struct cf_tenant_check defaults[] = {
	    {.argv_n = 3, .argv = {"git", "diff", "--check"}},
	    {.argv_n = 4, .argv = {"python3", "-m", "pytest", "-q"}},
	    {.argv_n = 5, .argv = {"python3", "-m", "compileall", "-q", "."}},
	    {.argv_n = 4, .argv = {"python3", "-m", "unittest", "discover"}},
	};
	struct cf_tenant m = {.name = b->title};
	unsigned checks = 0;

	conf_fill(o->notes, b, CF_TENANT, &m);
	EMIT(o, b, tenant, &m);
	for (const struct conf_block *c = b->inner; c != NULL; c = c->next) {
		struct cf_tenant_check e = {.tenant = b->title};
		conf_fill(o->notes, c, CF_TENANT_CHECK, &e);
		if (++checks > CONF_CHECKS)
			conf_fault(o->notes, b, c->at, "more than %d checks", CONF_CHECKS);
		EMIT(o, c, tenant_check, &e);
	}
	for (size_t k = 0; checks == 0 && k < sizeof defaults / sizeof *defaults; k++) {
		struct cf_tenant_check e = defaults[k];
		e.tenant = b->title;
		EMIT(o, b, tenant_check, &e);
	}
}

static const struct {
	const char *section;
	void (*take)(struct out *, const struct conf_block *);
	unsigned most;
} takers[] = {{"machine", take_machine, 1},
	      {"users", take_users, 1},
	      {"provider", take_provider, CONF_PROVIDERS},
	      {"model_profile", take_profile, CONF_PROFILES},
	      {"agent", take_agent, CONF_AGENTS},
	      {"tenant", take_tenant, CONF_TENANTS}};

/* --- names and what they refer to ------------------------------------------------------------ */

static const struct conf_block *named(const struct conf_files *f, const char *section, const char *title)
{
	for (const struct conf_block *b = f->blocks; b != NULL; b = b->next)
		if (strcmp(b->section, section) == 0 && strcmp(b->title, title) == 0)
			return b;
	return NULL;
}

static void refer(struct out *o, const struct conf_block *b, const struct conf_row *r)
{
	const char *titles[CONF_TENANTS];
	struct conf_place at;
	size_t known = 0;
	unsigned n;
	const char *const *words = conf_words(o->notes, b, r, &n, &at);

	for (const struct conf_block *x = o->f->blocks; x != NULL; x = x->next)
		if (strcmp(x->section, r->words) == 0 && known < CONF_TENANTS)
			titles[known++] = x->title;
	for (unsigned i = 0; i < n; i++) {
		if (!id_valid(words[i]) || named(o->f, r->words, words[i]) != NULL)
			continue;
		const char *near = conf_nearest(words[i], titles, known);
		conf_fault(o->notes, b, at, "there is no %s \"%s\"%s%s%s", r->words, words[i],
			   near != NULL ? "; is \"" : "", near != NULL ? near : "", near != NULL ? "\" meant?" : "");
	}
}

static void names(struct out *o)
{
	for (const struct conf_block *b = o->f->blocks; b != NULL; b = b->next) {
		bool titled = strcmp(b->section, "machine") != 0 && strcmp(b->section, "users") != 0;
		const struct conf_block *first = named(o->f, b->section, b->title);
		if (titled && !id_valid(b->title))
			conf_wrong(o->notes, b->at,
				   "%s \"%s\": a name has 1 to 128 of the characters A-Z a-z 0-9 . _ - and no other "
				   "characters",
				   b->section, b->title);
		else if (titled && first != b)
			conf_wrong(o->notes, b->at, "a second %s \"%s\": the first is in %s:%u", b->section, b->title,
				   first->at.file, first->at.line);
		for (size_t i = 0; i < CONF_ROWS; i++) {
			const struct conf_row *r = &conf_rows[i];
			if ((r->type == CONF_NAME || r->type == CONF_NAMES) && strcmp(r->section, b->section) == 0)
				refer(o, b, r);
		}
	}
}

/* --- files ----------------------------------------------------------------------------------- */

static int is_conf(const struct dirent *d)
{
	size_t n = strlen(d->d_name);

	return d->d_name[0] != '.' && n > 5 && strcmp(d->d_name + n - 5, ".conf") == 0;
}

/* What somebody may have meant to be read. Who put a file aside says so behind its name: a.conf.off, a.conf.dpkg-old.
 */
static int is_stray(const struct dirent *d)
{
	static const char *const aside[] = {".conf", "README", "~", ".bak", ".orig", ".example"};

	for (size_t i = 0; i < sizeof aside / sizeof *aside; i++)
		if (strstr(d->d_name, aside[i]) != NULL)
			return 0;
	return d->d_name[0] != '.' && d->d_type != DT_DIR;
}

static void tell_strays(struct conf_files *f, const char *dir)
{
	char file[2048];
	struct dirent **list;
	int n = scandir(dir, &list, is_stray, alphasort);

	for (int i = 0; i < n; i++) {
		snprintf(file, sizeof file, "%s/%s", dir, list[i]->d_name);
		conf_worth(&f->notes, (struct conf_place){file, 0},
			   "is not read, since its name does not end in .conf");
		free(list[i]);
	}
	if (n >= 0)
		free(list);
}

static void read_folder(struct conf_files *f, const char *dir, struct conf_block ***end)
{
	char file[2048];
	struct dirent **list;
	int n = scandir(dir, &list, is_conf, alphasort);

	if (n < 0) {
		conf_wrong(&f->notes, (struct conf_place){dir, 0}, "cannot be read: %s", strerror(errno));
		f->whole = false;
		return;
	}
	for (int i = 0; i < n; i++) {
		snprintf(file, sizeof file, "%s/%s", dir, list[i]->d_name);
		f->whole = conf_parse(&f->notes, file, CONF_PART, end) && f->whole;
		free(list[i]);
	}
	free(list);
	tell_strays(f, dir);
}

/* The folder of this name beside the file, or else the installation's. */
static void folder_beside(char out[1024], const char *file, const char *name)
{
	const char *slash = file != NULL ? strrchr(file, '/') : NULL;

	snprintf(out, 1024, "%.*s%s", slash != NULL ? (int)(slash + 1 - file) : 0, file != NULL ? file : "", name);
	if (file == NULL || access(out, F_OK) != 0)
		snprintf(out, 1024, "%s/%s", place_dir(PLACE_SYSCONF), name);
}

void conf_files_read(struct conf_files *f, const char *file)
{
	static const char *const folders[] = {"providers.d", "profiles.d", "tenants.d"};
	struct conf_block **end = &f->blocks;
	char path[1024];

	memset(f, 0, sizeof *f);
	arena_init(&f->arena, ARENA_MOST);
	f->notes.arena = &f->arena;
	snprintf(path, sizeof path, "%s/pinfold.conf", place_dir(PLACE_SYSCONF));
	f->whole = conf_parse(&f->notes, file != NULL ? file : path, CONF_MAIN, &end);
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		folder_beside(path, file, folders[i]);
		read_folder(f, path, &end);
	}
}

void conf_files_free(struct conf_files *f)
{
	arena_free(&f->arena);
	memset(f, 0, sizeof *f);
}

/* The users' sections in one: each may set what another does not. */
static const struct conf_block *users(struct conf_files *f)
{
	struct conf_block *one = arena_get(&f->arena, sizeof *one);

	if (one == NULL)
		return NULL;
	*one = (struct conf_block){.section = "users", .title = "", .at = {"", 0}};
	struct conf_said **end = &one->said;
	for (const struct conf_block *b = f->blocks; b != NULL; b = b->next) {
		if (one->at.file[0] == '\0')
			one->at = b->at;
		for (const struct conf_said *s = strcmp(b->section, "users") == 0 ? b->said : NULL; s != NULL;
		     s = s->next) {
			struct conf_said *old = one->said;
			while (old != NULL && old->row != s->row)
				old = old->next;
			struct conf_said *copy = old == NULL ? arena_get(&f->arena, sizeof *copy) : NULL;
			if (old != NULL) { /* the last word is looked at as well */
				old->v = s->v;
				old->n = s->n;
				conf_wrong(&f->notes, (struct conf_place){b->at.file, s->line},
					   "users.%s stands here a second time, after line %u: which is meant?",
					   s->row->name, old->line);
			}
			if (copy == NULL)
				continue;
			*copy = *s;
			copy->next = NULL;
			*end = copy;
			end = &copy->next;
		}
	}
	return one;
}

bool conf_files_write(struct conf_files *f, int fd)
{
	struct out o = {.f = f, .notes = &f->notes, .fd = fd};
	static const struct conf_block all = {.section = "", .title = "", .at = {"", 0}};
	unsigned count[sizeof takers / sizeof *takers] = {0};

	for (size_t k = 0; k < sizeof takers / sizeof *takers; k++) {
		const struct conf_block *b = k == 1 && count[0] > 0 ? users(f) : f->blocks;
		for (; b != NULL; b = k == 1 && count[0] > 0 ? NULL : b->next) {
			if (strcmp(b->section, takers[k].section) != 0)
				continue;
			if (++count[k] == takers[k].most + 1)
				conf_wrong(o.notes, b->at, "more than %u of %s", takers[k].most, b->section);
			else if (count[k] <= takers[k].most)
				takers[k].take(&o, b);
		}
	}
	if (f->whole)
		names(&o);
	for (size_t k = 2; k < sizeof takers / sizeof *takers && f->whole && o.notes->errors == 0; k++)
		if (count[k] == 0)
			conf_wrong(
			    o.notes, (struct conf_place){place_dir(PLACE_SYSCONF), 0},
			    "needs at least one provider, model_profile, agent and tenant: run \"pinfold setup\"");
	struct cf_end end = {.nothing = 0};
	EMIT(&o, &all, end, &end);
	return o.notes->errors == 0;
}

bool conf_read(int fd)
{
	struct conf_files f;

	conf_files_read(&f, NULL);
	bool good = conf_files_write(&f, fd);
	conf_print(&f.notes, stderr);
	conf_files_free(&f);
	return good;
}
