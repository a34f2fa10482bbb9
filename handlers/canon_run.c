/*
 * Rebuilds the body of POST /v1/runs from what the schema let through. Trusts the schema for types and
 * plain bounds; everything that needs the tenant, two fields at once, or bytes is decided here.
 * Never allocates, never keeps a caller's string that was not checked by its rule.
 */
#include "handlers/canon_run.h"
#include "gen/schema.h"
#include "handlers/archive.h"
#include "lib/num.h"
#include "lib/path.h"
#include "lib/schema.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct work {
	const struct conf *conf;
	const struct conf_tenant *tenant;
	const struct json *body;
	struct canon_run *out;
	char *field;
};

__attribute__((format(printf, 3, 4))) static enum err at(struct work *k, enum err e, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(k->field, CANON_FIELD, fmt, ap);
	va_end(ap);
	return e;
}

static bool blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static enum err take_instruction(struct work *k)
{
	const struct json *v = json_get(k->body, "instruction");
	const char *s = v->text;
	size_t n = v->len;
	while (n > 0 && blank(s[n - 1]))
		n--;
	while (n > 0 && blank(*s))
		s++, n--;
	if (n == 0 || utf8_count(s, n) > CANON_INSTRUCTION)
		return at(k, ERR_INVALID_INSTRUCTION, "instruction");
	k->out->instruction = s;
	k->out->instruction_n = n;
	return ERR_OK;
}

static enum err take_profile(struct work *k)
{
	const struct json *name = json_get(k->body, "modelProfile"), *model = json_get(k->body, "model");
	k->out->profile = conf_profile(k->conf, name != NULL ? name->text : k->tenant->t.default_profile);
	if (k->out->profile == NULL || !conf_profile_allowed(k->tenant, k->out->profile->name))
		return at(k, ERR_MODEL_PROFILE_NOT_ALLOWED, "modelProfile");
	if (model != NULL && strcmp(model->text, k->out->profile->model) != 0)
		return at(k, ERR_MODEL_NOT_ALLOWED, "model");
	return ERR_OK;
}

static enum err take_agent(struct work *k)
{
	const struct json *name = json_get(k->body, "agent");
	k->out->agent = conf_agent(k->conf, name != NULL ? name->text : k->tenant->t.default_agent);
	bool allowed = k->out->agent != NULL && conf_agent_allowed(k->tenant, k->out->agent->name);
	if (!allowed)
		return at(k, ERR_AGENT_NOT_ALLOWED, "agent");
	/* Either word may be taken back while the agent stays in the tenant's list. */
	return conf_env_allowed(k->conf, k->tenant, k->out->agent) ? ERR_OK
								   : at(k, ERR_ENV_CREDENTIALS_NOT_ALLOWED, "agent");
}

/* Files, or the source that is there in place of them; what is in a source is looked at when it is unpacked. */
static enum err take_source(struct work *k)
{
	const struct json *source = json_get(k->body, "source"), *files = json_get(k->body, "files");
	if (source == NULL)
		return files != NULL ? ERR_OK : at(k, ERR_INVALID_FILES, "files");
	if (files != NULL || !archive_id(source->text, k->out->source_sha))
		return at(k, ERR_INVALID_SOURCE, "source");
	k->out->source = source->text;
	return ERR_OK;
}

static enum err take_files(struct work *k)
{
	struct canon_run *c = k->out;
	const struct json *files = json_get(k->body, "files");
	size_t total = 0;
	for (const struct json *f = files != NULL ? files->child : NULL; f != NULL; f = f->next) {
		uint32_t i = c->nfiles;
		const struct json *path = json_get(f, "path"), *content = json_get(f, "content");
		if (i == CANON_FILES)
			return at(k, ERR_INVALID_FILES, "files");
		if (!path_valid(path->text, path->len))
			return at(k, ERR_INVALID_SOURCE_PATH, "files[%u].path", i);
		if (!path_extension_in(path->text, k->tenant->t.extensions, k->tenant->t.extensions_n))
			return at(k, ERR_UNSUPPORTED_SOURCE_TYPE, "files[%u].path", i);
		for (uint32_t j = 0; j < i; j++) {
			if (strcmp(c->files[j].path, path->text) == 0)
				return at(k, ERR_DUPLICATE_SOURCE_PATH, "files[%u].path", i);
			if (path_conflict(c->files[j].path, path->text))
				return at(k, ERR_CONFLICTING_SOURCE_PATH, "files[%u].path", i);
		}
		if (content->len > CANON_FILE_BYTES)
			return at(k, ERR_SOURCE_FILE_TOO_LARGE, "files[%u].content", i);
		total += content->len;
		if (total > CANON_TREE_BYTES)
			return at(k, ERR_SOURCE_TREE_TOO_LARGE, "files");
		c->files[i].path = path->text;
		c->files[i].content = content->text;
		c->files[i].n = content->len;
		c->nfiles++;
	}
	return ERR_OK;
}

static enum err take_allowed(struct work *k)
{
	struct canon_run *c = k->out;
	for (const struct json *v = json_get(k->body, "allowedPaths")->child; v != NULL; v = v->next) {
		uint32_t i = c->nallowed;
		bool bound = c->source != NULL;
		if (i == CANON_ALLOWED)
			return at(k, ERR_INVALID_ALLOWED_PATHS, "allowedPaths");
		if (!path_allow_valid(v->text, v->len))
			return at(k, ERR_INVALID_ALLOWED_PATH, "allowedPaths[%u]", i);
		for (uint32_t j = 0; j < i; j++)
			if (strcmp(c->allowed[j], v->text) == 0)
				return at(k, ERR_DUPLICATE_ALLOWED_PATH, "allowedPaths[%u]", i);
		for (uint32_t j = 0; j < c->nfiles; j++)
			bound = bound || path_allow_covers(v->text, c->files[j].path);
		if (!bound)
			return at(k, ERR_UNBOUND_ALLOWED_PATH, "allowedPaths[%u]", i);
		c->allowed[c->nallowed++] = v->text;
	}
	return ERR_OK;
}

static const struct cf_tenant_check *find_check(const struct conf_tenant *t, const struct json *argv)
{
	for (uint32_t i = 0; i < t->nchecks; i++) {
		const struct cf_tenant_check *c = &t->checks[i];
		uint32_t n = 0;
		const struct json *v = argv->child;
		while (v != NULL && n < c->argv_n && strcmp(v->text, c->argv[n]) == 0)
			v = v->next, n++;
		if (v == NULL && n == c->argv_n)
			return c;
	}
	return NULL;
}

static enum err take_checks(struct work *k)
{
	struct canon_run *c = k->out;
	for (const struct json *v = json_get(k->body, "checks")->child; v != NULL; v = v->next) {
		uint32_t i = c->nchecks;
		if (i == CANON_CHECKS)
			return at(k, ERR_INVALID_CHECKS, "checks");
		const struct cf_tenant_check *found = find_check(k->tenant, v);
		if (found == NULL)
			return at(k, ERR_CHECK_ARGV_NOT_ALLOWED, "checks[%u]", i);
		for (uint32_t j = 0; j < i; j++)
			if (c->checks[j] == found)
				return at(k, ERR_DUPLICATE_CHECK, "checks[%u]", i);
		c->checks[c->nchecks++] = found;
	}
	return ERR_OK;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static enum err take_limits(struct work *k)
{
	const struct json *limits = json_get(k->body, "limits");
	const struct cf_tenant *t = &k->tenant->t;
	/* Tokens in files have one life, which must be longer than the run. */
	uint32_t wall = k->out->agent->token_wire ? t->max_wall_seconds : least(t->max_wall_seconds, CANON_FILES_WALL);
	const struct {
		const char *name;
		uint32_t *to;
		uint32_t min, max, value;
		enum err error;
	} rows[] = {
	    {"maxSteps", &k->out->max_steps, 1, t->max_steps, CANON_DEFAULT_STEPS, ERR_INVALID_MAX_STEPS},
	    {"wallTimeSeconds", &k->out->wall_seconds, 1, wall, CANON_DEFAULT_WALL, ERR_INVALID_WALL_TIME},
	    {"approvalWaitSeconds", &k->out->approval_wait_seconds, 0, t->max_approval_wait_seconds,
	     CANON_DEFAULT_APPROVAL, ERR_INVALID_APPROVAL_WAIT},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct json *v = limits != NULL ? json_get(limits, rows[i].name) : NULL;
		int64_t n = least(rows[i].value, rows[i].max);
		if (v != NULL && !json_int(v, rows[i].min, rows[i].max, &n))
			return at(k, rows[i].error, "limits.%s", rows[i].name);
		*rows[i].to = (uint32_t)n;
	}
	k->out->max_requests = k->out->max_steps + k->out->agent->extra_requests;
	return ERR_OK;
}

static bool tool_name(const char *s, size_t n)
{
	if (n < 1 || n > 64)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!((s[i] >= 'a' && s[i] <= 'z') || (i > 0 && ((s[i] >= '0' && s[i] <= '9') || s[i] == '_'))))
			return false;
	return true;
}

static const char *permission_value(const struct json *v)
{
	static const char *const words[] = {"allow", "ask", "deny"};
	if (v->type != JSON_STRING)
		return NULL;
	for (size_t i = 0; i < 3; i++)
		if (strcmp(v->text, words[i]) == 0)
			return words[i];
	return NULL;
}

static int by_tool(const void *a, const void *b)
{
	const struct canon_permission *x = a, *y = b;
	return strcmp(x->tool, y->tool);
}

static enum err take_permissions(struct work *k)
{
	struct canon_run *c = k->out;
	const struct json *map = json_get(k->body, "permissions");
	for (const struct json *v = map != NULL ? map->child : NULL; v != NULL; v = v->next) {
		/* A key's inner NUL cuts it short here as it does in every later use, so strlen is the right length. */
		bool named = tool_name(v->key, strlen(v->key));
		const char *word = permission_value(v);
		if (!named || c->npermissions == CANON_PERMISSIONS)
			return at(k, ERR_INVALID_PERMISSIONS, "permissions");
		if (word == NULL)
			return at(k, ERR_INVALID_PERMISSIONS, "permissions.%s", v->key);
		c->permissions[c->npermissions].tool = v->key;
		c->permissions[c->npermissions++].value = word;
	}
	/* The order of a JSON object's keys says nothing, so the canonical form has one of its own. */
	qsort(c->permissions, c->npermissions, sizeof c->permissions[0], by_tool);
	return ERR_OK;
}

enum err canon_run(const struct conf *conf, const struct conf_tenant *tenant, const struct json *body,
		   struct canon_run *out, char field[CANON_FIELD])
{
	static enum err (*const steps[])(struct work *) = {take_instruction, take_profile, take_agent,
							   take_source,      take_files,   take_allowed,
							   take_checks,      take_limits,  take_permissions};
	struct work k = {conf, tenant, body, out, field};
	_Static_assert((int)CANON_FIELD >= (int)SCHEMA_FIELD, "a schema's field fits");
	memset(out, 0, sizeof *out);
	field[0] = '\0';
	enum err e = schema_check(&schema_run_create, body, field);
	for (size_t i = 0; e == ERR_OK && i < sizeof steps / sizeof *steps; i++)
		e = steps[i](&k);
	return e;
}
