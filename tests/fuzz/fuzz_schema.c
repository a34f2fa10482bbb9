/*
 * libFuzzer target: any JSON against every table of spec/schema.tab. What is accepted has nothing unknown at
 * the top and everything required; what is refused names a place that can be said again.
 */
#include "gen/schema.h"
#include "lib/schema.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static const struct schema_row *row_of(const struct schema *s, const char *key)
{
	for (const struct schema_row *r = s->rows; r->field != NULL; r++)
		if (strcmp(r->field, key) == 0)
			return r;
	return NULL;
}

static void check_value(const struct schema_row *r, const struct json *v)
{
	static const enum json_type types[] = {
	    [SCHEMA_STRING] = JSON_STRING,  [SCHEMA_OBJECT] = JSON_OBJECT, [SCHEMA_ARRAY] = JSON_ARRAY,
	    [SCHEMA_INTEGER] = JSON_NUMBER, [SCHEMA_BOOL] = JSON_BOOL,     [SCHEMA_MAP] = JSON_OBJECT};
	int64_t n = (int64_t)v->count;
	if (r->type == SCHEMA_ANY)
		return;
	must(v->type == types[r->type]);
	if (v->type == JSON_BOOL)
		return;
	if (v->type == JSON_STRING) {
		must(r->maxbytes == 0 || v->len <= r->maxbytes);
		n = (int64_t)utf8_count(v->text, v->len);
	} else if (v->type == JSON_NUMBER) {
		must(json_int(v, INT64_MIN, INT64_MAX, &n));
	}
	must(n >= r->min && n <= r->max);
}

/* Follows a row's path from v, by words of its own. */
static void follow(const struct schema_row *r, const char *path, const struct json *v)
{
	char name[64];
	if (*path == '\0') {
		check_value(r, v);
	} else if (strncmp(path, "[]", 2) == 0) {
		for (const struct json *e = v->child; e != NULL; e = e->next)
			follow(r, path + 2, e);
	} else {
		path += *path == '.';
		size_t n = strcspn(path, ".[");
		must(n < sizeof name);
		memcpy(name, path, n);
		name[n] = '\0';
		const struct json *member = json_get(v, name);
		if (member != NULL)
			follow(r, path + n, member);
		else
			must(!r->required || path[n] != '\0');
	}
}

static void accepted(const struct schema *s, const struct json *body)
{
	must(body->type == JSON_OBJECT);
	for (const struct json *v = body->child; v != NULL; v = v->next)
		must(row_of(s, v->key) != NULL);
	for (const struct schema_row *r = s->rows; r->field != NULL; r++)
		follow(r, r->field, body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	own_arena struct arena a;
	arena_init(&a, 16 << 20);
	const struct json *body = json_parse(&a, data, size, JSON_DEPTH_MODEL, 20000, NULL);
	for (size_t i = 0; body != NULL && schema_all[i] != NULL; i++) {
		char field[SCHEMA_FIELD];
		memset(field, 'x', sizeof field);
		enum err e = schema_check(schema_all[i], body, field);
		size_t n = strnlen(field, sizeof field);
		must(n < sizeof field && utf8_valid(field, n, NULL));
		if (e == ERR_OK)
			accepted(schema_all[i], body);
		must(e != ERR_OK || n == 0);
	}
	return 0;
}
