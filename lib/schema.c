/*
 * Walks a body along the rows of its table. Depth is the table's, never the body's: what no row describes
 * is not entered. Of several faults the first in this order is named: unknown keys of an object, then its
 * rows in table order, each with all that is below it.
 */
#include "lib/schema.h"
#include <stdio.h>
#include <string.h>

struct walk {
	const struct schema_row *rows;
	char *field; /* SCHEMA_FIELD bytes: the place being looked at */
};

static enum err check_value(const struct walk *w, const struct schema_row *row, const struct json *v, size_t at);

/* Appends to the place; cut at a whole character when it does not fit. The new length. */
static size_t place_add(const struct walk *w, size_t at, const char *text)
{
	size_t n = utf8_fit(text, strlen(text), SCHEMA_FIELD - 1 - at);
	memcpy(w->field + at, text, n);
	w->field[at + n] = 0;
	return at + n;
}

static size_t place_key(const struct walk *w, size_t at, const char *key)
{
	if (at > 0)
		at = place_add(w, at, ".");
	return place_add(w, at, key);
}

/* The name of a row right below `parent` ("" for the body), NULL for any other row. */
static const char *child_name(const struct schema_row *row, const char *parent)
{
	size_t n = strlen(parent);
	const char *name = row->field;
	if (n > 0) {
		if (strncmp(name, parent, n) != 0 || name[n] != '.')
			return NULL;
		name += n + 1;
	}
	return strpbrk(name, ".[") == NULL ? name : NULL;
}

static bool known(const struct walk *w, const char *parent, const char *key)
{
	for (const struct schema_row *r = w->rows; r->field != NULL; r++) {
		const char *name = child_name(r, parent);
		if (name != NULL && strcmp(name, key) == 0)
			return true;
	}
	return false;
}

static enum err check_members(const struct walk *w, const char *parent, const struct json *object, size_t at,
			      bool any_key)
{
	for (const struct json *v = object->child; v != NULL && !any_key; v = v->next)
		if (!known(w, parent, v->key)) {
			place_key(w, at, v->key);
			return ERR_UNKNOWN_FIELD;
		}
	for (const struct schema_row *r = w->rows; r->field != NULL; r++) {
		const char *name = child_name(r, parent);
		if (name == NULL)
			continue;
		const struct json *v = json_get(object, name);
		if (v == NULL && !r->required)
			continue;
		size_t here = place_key(w, at, name);
		enum err e = v == NULL ? r->error : check_value(w, r, v, here);
		if (e != ERR_OK)
			return e;
		w->field[at] = 0;
	}
	return ERR_OK;
}

static enum err check_elements(const struct walk *w, const struct schema_row *row, const struct json *array, size_t at)
{
	size_t n = strlen(row->field);
	const struct schema_row *each = w->rows;
	while (each->field != NULL && (strncmp(each->field, row->field, n) != 0 || strcmp(each->field + n, "[]") != 0))
		each++;
	if (each->field == NULL)
		return ERR_OK;
	size_t i = 0;
	for (const struct json *v = array->child; v != NULL; v = v->next, i++) {
		char index[32];
		snprintf(index, sizeof index, "[%zu]", i);
		enum err e = check_value(w, each, v, place_add(w, at, index));
		if (e != ERR_OK)
			return e;
	}
	w->field[at] = 0;
	return ERR_OK;
}

static bool within(const struct schema_row *row, size_t n)
{
	int64_t count = n > (size_t)INT64_MAX ? INT64_MAX : (int64_t)n;
	return count >= row->min && count <= row->max;
}

static enum err check_string(const struct schema_row *row, const struct json *v)
{
	if (v->type != JSON_STRING || memchr(v->text, 0, v->len) != NULL)
		return row->error;
	if (row->maxbytes != 0 && v->len > row->maxbytes)
		return row->too_large != ERR_OK ? row->too_large : row->error;
	return within(row, utf8_count(v->text, v->len)) ? ERR_OK : row->error;
}

static enum err check_value(const struct walk *w, const struct schema_row *row, const struct json *v, size_t at)
{
	int64_t number;
	switch (row->type) {
	case SCHEMA_STRING:
		return check_string(row, v);
	case SCHEMA_INTEGER:
		return json_int(v, row->min, row->max, &number) ? ERR_OK : row->error;
	case SCHEMA_BOOL:
		return v->type == JSON_BOOL ? ERR_OK : row->error;
	case SCHEMA_ARRAY:
		if (v->type != JSON_ARRAY || !within(row, v->count))
			return row->error;
		return check_elements(w, row, v, at);
	case SCHEMA_OBJECT:
	case SCHEMA_MAP:
		if (v->type != JSON_OBJECT || !within(row, v->count))
			return row->error;
		return check_members(w, row->field, v, at, row->type == SCHEMA_MAP);
	case SCHEMA_ANY:
		break;
	}
	return ERR_OK;
}

enum err schema_check(const struct schema *s, const struct json *body, char field[SCHEMA_FIELD])
{
	struct walk w = {.rows = s->rows, .field = field};
	field[0] = 0;
	if (body == NULL || body->type != JSON_OBJECT)
		return ERR_INVALID_JSON_OBJECT;
	return check_members(&w, "", body, 0, false);
}
