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

/* The top level only, in words of its own. */
static void accepted(const struct schema *s, const struct json *body)
{
	static const enum json_type types[] = {
	    [SCHEMA_STRING] = JSON_STRING,  [SCHEMA_OBJECT] = JSON_OBJECT, [SCHEMA_ARRAY] = JSON_ARRAY,
	    [SCHEMA_INTEGER] = JSON_NUMBER, [SCHEMA_BOOL] = JSON_BOOL,     [SCHEMA_MAP] = JSON_OBJECT};
	must(body->type == JSON_OBJECT);
	for (const struct json *v = body->child; v != NULL; v = v->next) {
		const struct schema_row *r = row_of(s, v->key);
		must(r != NULL && (r->type == SCHEMA_ANY || v->type == types[r->type]));
		must(v->type != JSON_STRING || r->maxbytes == 0 || v->len <= r->maxbytes);
		must(v->type != JSON_ARRAY || r->max == INT64_MAX || v->count <= (uint64_t)r->max);
	}
	for (const struct schema_row *r = s->rows; r->field != NULL; r++)
		must(!r->required || strpbrk(r->field, ".[") != NULL || json_get(body, r->field) != NULL);
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
