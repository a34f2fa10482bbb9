/*
 * Reads the upload bundle: every frame checked for its place, its fields and its paths.
 * It trusts nothing in it: the sources come from a caller. It never touches a file and keeps no token.
 */
#include "runner/plan.h"
#include "lib/path.h"
#include <string.h>

enum state { START, BASE, TOKENS, BRIDGED, READY, CHANGES, CHECKS, FILES, PARTS, PARTS_END, END };

/* Which frame may come where; everything else is refused. */
static const struct step {
	uint8_t state;
	uint8_t number;
	uint8_t next;
} steps[] = {
    {START, BN_SOURCE, FILES},   {START, BN_PROGRAM, FILES},      {FILES, BN_SOURCE, FILES},
    {FILES, BN_PROGRAM, FILES},  {START, BN_SOURCE_END, BASE},    {FILES, BN_SOURCE_END, BASE},
    {START, BN_ARCHIVE, PARTS},  {PARTS, BN_ARCHIVE, PARTS},      {PARTS, BN_UNPACK, PARTS_END},
    {PARTS_END, BN_GO, END},     {BASE, BN_REQUEST, TOKENS},      {TOKENS, BN_TOKEN, TOKENS},
    {TOKENS, BN_FILE, TOKENS},   {TOKENS, BN_CREDENTIAL, TOKENS}, {TOKENS, BN_AGENT, READY},
    {READY, BN_GO, END},         {TOKENS, BN_BRIDGE, BRIDGED},    {BRIDGED, BN_AGENT, READY},
    {BASE, BN_CHANGED, CHANGES}, {BASE, BN_REMOVED, CHANGES},     {BASE, BN_CHECK, CHECKS},
    {BASE, BN_GO, END},          {CHANGES, BN_CHANGED, CHANGES},  {CHANGES, BN_REMOVED, CHANGES},
    {CHANGES, BN_CHECK, CHECKS}, {CHANGES, BN_GO, END},           {CHECKS, BN_CHECK, CHECKS},
    {CHECKS, BN_GO, END},
};

bool upload_open(struct upload *u, int fd)
{
	*u = (struct upload){.state = START};
	if (bundle_open(&u->frames, fd, BN_MAXFRAME))
		return true;
	u->why = "the upload cannot be read";
	return false;
}

void upload_close(struct upload *u)
{
	bundle_close(&u->frames);
}

static bool place(struct upload *u, uint16_t number, uint8_t *before)
{
	*before = u->state;
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		if (steps[i].state == u->state && steps[i].number == number) {
			u->state = steps[i].next;
			return true;
		}
	}
	return false;
}

static bool path_fine(const char *p)
{
	return path_valid(p, strlen(p));
}

/* A token's file is one name in /workspace that is none of the names used there otherwise. */
static bool token_name(const char *p)
{
	static const char *const taken[] = {"source", "request.json", "response.json", PLAN_HOME};
	for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
		if (!strcmp(p, taken[i]))
			return false;
	}
	return path_fine(p) && !strchr(p, '/');
}

/* Below the agent's home, and nowhere else. */
static bool settings_name(const char *p)
{
	return !strncmp(p, PLAN_HOME "/", sizeof PLAN_HOME);
}

/* Decodes the frame; NULL, or why it is refused. before is the state in which it came. */
static const char *decode(struct upload *u, uint8_t before, const uint8_t *f, size_t n, struct item *it)
{
	static const char malformed[] = "a frame of the upload is malformed", badpath[] = "a path is not allowed";
	switch (it->number) {
	case BN_SOURCE:
		u->files++;
		return !bn_get_source(f, n, &it->source) ? malformed : path_fine(it->source.path) ? NULL : badpath;
	case BN_PROGRAM:
		u->files++;
		return !bn_get_program(f, n, &it->program) ? malformed : path_fine(it->program.path) ? NULL : badpath;
	case BN_SOURCE_END:
		if (!bn_get_source_end(f, n, &it->source_end))
			return malformed;
		return it->source_end.files == u->files ? NULL : "the number of sources does not match";
	case BN_CHANGED:
		return !bn_get_changed(f, n, &it->changed) ? malformed : path_fine(it->changed.path) ? NULL : badpath;
	case BN_REMOVED:
		return !bn_get_removed(f, n, &it->removed) ? malformed : path_fine(it->removed.path) ? NULL : badpath;
	case BN_REQUEST:
		return bn_get_request(f, n, &it->request) ? NULL : malformed;
	case BN_TOKEN:
		return !bn_get_token(f, n, &it->token) ? malformed
		       : token_name(it->token.file)    ? NULL
						       : "a token's name is not allowed";
	case BN_FILE:
		return !bn_get_file(f, n, &it->file)                              ? malformed
		       : path_fine(it->file.path) && settings_name(it->file.path) ? NULL
										  : badpath;
	case BN_CREDENTIAL:
		if (!bn_get_credential(f, n, &it->credential) || it->credential.made_up > KEY_UNSET)
			return malformed;
		if (!*it->credential.file == !*it->credential.variable || strchr(it->credential.variable, '='))
			return "a key is neither a variable nor a file, or both";
		return !*it->credential.file || token_name(it->credential.file) ? NULL : "a key's name is not allowed";
	case BN_BRIDGE:
		return !bn_get_bridge(f, n, &it->bridge) ? malformed
		       : it->bridge.argv_n               ? NULL
							 : "the bridge has no program";
	case BN_AGENT:
		return !bn_get_agent(f, n, &it->agent) ? malformed
		       : it->agent.argv_n              ? NULL
						       : "the agent has no program";
	case BN_CHECK:
		if (!bn_get_check(f, n, &it->check))
			return malformed;
		if (++u->checks > PLAN_CHECKS)
			return "too many checks";
		return it->check.argv_n ? NULL : "a check has no program";
	case BN_ARCHIVE:
		return bn_get_archive(f, n, &it->archive) ? NULL : malformed;
	case BN_UNPACK:
		return bn_get_unpack(f, n, &it->unpack) ? NULL : malformed;
	case BN_GO:
		if (!bn_get_go(f, n, &it->go))
			return malformed;
		return it->go.kind == (before == READY       ? PLAN_WORK
				       : before == PARTS_END ? PLAN_UNPACK
							     : PLAN_CHECK)
			   ? NULL
			   : "the kind of box does not match";
	default:
		return "an unknown frame is in the upload";
	}
}

int upload_next(struct upload *u, struct item *it)
{
	const uint8_t *f;
	size_t n;
	uint64_t op;
	uint8_t before;
	int more = bundle_next(&u->frames, &f, &n);
	if (more == 0 && u->state != END)
		u->why = "the upload ends too early";
	else if (more < 0 || (more > 0 && !wire_peek(f, n, &it->number, &op)))
		u->why = "the upload is cut or malformed";
	else if (more > 0 && !place(u, it->number, &before))
		u->why = "a frame of the upload is out of place";
	else if (more > 0)
		u->why = decode(u, before, f, n, it);
	return u->why ? -1 : more;
}

static bool keep(struct arena *a, const char *const *from, uint32_t n, const char **to)
{
	for (uint32_t i = 0; i < n; i++) {
		to[i] = arena_dup(a, from[i], strlen(from[i]));
		if (!to[i])
			return false;
	}
	to[n] = NULL;
	return true;
}

static bool keep_key(struct plan *p, const struct bn_credential *m)
{
	if (p->keys_n == PLAN_KEYS)
		return false;
	struct plan_key *k = &p->keys[p->keys_n++];
	*k = (struct plan_key){
	    .secret = arena_dup(&p->strings, m->secret, strlen(m->secret)),
	    .variable = arena_dup(&p->strings, m->variable, strlen(m->variable)),
	    .file = arena_dup(&p->strings, m->file, strlen(m->file)),
	    .plain = m->plain,
	    .made_up = m->made_up,
	    .value = {(const uint8_t *)arena_dup(&p->strings, (const char *)m->value.p, m->value.n), m->value.n}};
	return k->secret && k->variable && k->file && k->value.p;
}

static bool keep_item(struct plan *p, const struct item *it)
{
	if (it->number == BN_CREDENTIAL)
		return keep_key(p, &it->credential);
	if (it->number == BN_BRIDGE)
		return keep(&p->strings, it->bridge.argv, it->bridge.argv_n, p->bridge);
	if (it->number == BN_AGENT) {
		const struct bn_agent *m = &it->agent;
		p->agent.seconds = m->wall_seconds;
		p->agent.output_bytes = m->output_bytes;
		p->agent.cpu_seconds = m->cpu_seconds;
		p->agent.file_bytes = m->file_bytes;
		p->agent.open_files = m->open_files;
		return keep(&p->strings, m->argv, m->argv_n, p->agent.argv) &&
		       keep(&p->strings, m->env, m->env_n, p->agent.env);
	}
	if (it->number == BN_CHECK) {
		const struct bn_check *m = &it->check;
		struct command *c = &p->checks[p->checks_n++];
		c->seconds = m->seconds;
		c->output_bytes = m->output_bytes;
		c->cpu_seconds = m->cpu_seconds;
		c->file_bytes = m->file_bytes;
		c->open_files = m->open_files;
		c->name = arena_dup(&p->strings, m->name, strlen(m->name));
		return c->name && keep(&p->strings, m->argv, m->argv_n, c->argv);
	}
	if (it->number == BN_UNPACK) {
		p->agent.seconds = it->unpack.seconds;
		p->agent.cpu_seconds = it->unpack.cpu_seconds;
	}
	if (it->number == BN_GO) {
		p->go = it->go;
		p->kind = it->go.kind;
	}
	return true;
}

const char *plan_read(struct plan *p, int fd)
{
	memset(p, 0, sizeof *p);
	arena_init(&p->strings, 1000000);
	struct upload u;
	struct item it;
	if (!upload_open(&u, fd))
		return u.why;
	while (!u.why && upload_next(&u, &it) > 0) {
		if (!keep_item(p, &it))
			u.why = "the commands of the upload are too large";
	}
	upload_close(&u);
	return u.why;
}

void plan_free(struct plan *p)
{
	arena_free(&p->strings);
}
