/*
 * Every row of every JSON body as promised.tab has it, against the real walker (and, for a run's body, the whole
 * canonicaliser): a body is made in which everything is as small as may be and one field stands at its bound, which
 * is taken, or one past it, left out or of another type, which is refused with that field's error.
 */
#include "gen/schema.h"
#include "handlers/canon_run.h"
#include "lib/schema.h"
#include "tests/unit/promised.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 64, NONE = -1 };

struct row {
	char field[100], type[16], error[64], too_large[64];
	bool required;
	long min, max; /* NONE: no bound */
	size_t maxbytes;
};

static struct row rows[ROWS];
static size_t nrows;
static char body_name[64];
static unsigned passed, failed;

static bool understand(char *line, struct row *r, char name[64])
{
	char range[64];
	memset(r, 0, sizeof *r);
	snprintf(name, 64, "%s", promised_word(&line));
	snprintf(r->field, sizeof r->field, "%s", promised_word(&line));
	snprintf(r->type, sizeof r->type, "%s", promised_word(&line));
	snprintf(range, sizeof range, "%s", promised_word(&line));
	if (strcmp(range, "required") == 0) {
		r->required = true;
		snprintf(range, sizeof range, "%s", promised_word(&line));
	}
	char *dots = strstr(range, "..");
	if (dots == NULL)
		return false;
	r->min = range[0] == '-' && range[1] == '.' ? NONE : strtol(range, NULL, 10);
	r->max = dots[2] == '-' ? NONE : strtol(dots + 2, NULL, 10);
	(void)promised_word(&line);
	r->maxbytes = strtoul(promised_word(&line), NULL, 10);
	snprintf(r->error, sizeof r->error, "%s", promised_word(&line));
	snprintf(r->too_large, sizeof r->too_large, "%s", promised_word(&line));
	return r->error[0] != '\0';
}

/* What is to be odd about one row; everything else is as small as may be. */
struct odd {
	const struct row *row;
	enum how { COUNT, BYTES, VALUE, ABSENT, RAW, UNKNOWN } how;
	long n;
	const char *raw;
};

static char *text;
static size_t used;

static void add(const char *s)
{
	size_t n = strlen(s);
	memcpy(text + used, s, n + 1);
	used += n;
}

static bool child_of(const struct row *r, const char *parent, const char **name)
{
	size_t n = strlen(parent);
	const char *rest = r->field + (n > 0 ? n + 1 : 0);
	if (n > 0 && (strncmp(r->field, parent, n) != 0 || r->field[n] != '.'))
		return false;
	*name = rest;
	return strpbrk(rest, ".[") == NULL;
}

/* Does the place of the odd row lie inside this field? */
static bool within(const struct odd *o, const char *field)
{
	size_t n = strlen(field);
	return o->row != NULL && strncmp(o->row->field, field, n) == 0 && o->row->field[n] != '\0';
}

static const struct row *row_of(const char *field)
{
	for (size_t i = 0; i < nrows; i++)
		if (strcmp(rows[i].field, field) == 0)
			return &rows[i];
	return NULL;
}

static void value(const struct odd *o, const struct row *r, bool first);

/* The members of an object or a map; extra: how many there are to be at least. */
static void members(const struct odd *o, const char *field, long count, bool first)
{
	long n = 0;
	add("{");
	for (size_t i = 0; i < nrows; i++) {
		const char *name;
		const struct row *r = &rows[i];
		bool here = first && (o->row == r || within(o, r->field));
		if (!child_of(r, field, &name) || !(r->required || here) || (here && o->row == r && o->how == ABSENT))
			continue;
		add(n++ > 0 ? ",\"" : "\"");
		add(name);
		add("\":");
		value(o, r, first);
	}
	for (; n < count; n++) {
		char key[32];
		snprintf(key, sizeof key, "%s\"k%ld\":1", n > 0 ? "," : "", n);
		add(key);
	}
	add("}");
}

static void elements(const struct odd *o, const struct row *r, long count, bool first)
{
	char field[110];
	snprintf(field, sizeof field, "%s[]", r->field);
	const struct row *each = row_of(field);
	add("[");
	for (long i = 0; i < count; i++) {
		if (i > 0)
			add(",");
		if (each != NULL)
			value(o, each, first && i == 0);
		else
			add("1");
	}
	add("]");
}

/* n characters, or n bytes of as few characters as may be. */
static void string(long n, bool bytes)
{
	add("\"");
	for (; bytes && n >= 4; n -= 4)
		add("\xf0\x9f\x98\x80");
	memset(text + used, 'a', (size_t)n);
	used += (size_t)n;
	add("\"");
}

static void value(const struct odd *o, const struct row *r, bool first)
{
	bool here = first && o->row == r;
	long least = r->min == NONE ? 0 : r->min, n = here && o->how == COUNT ? o->n : least;
	char number[32];
	if (here && o->how == RAW) {
		add(o->raw);
	} else if (strcmp(r->type, "string") == 0) {
		string(here && o->how == BYTES ? o->n : n, here && o->how == BYTES);
	} else if (strcmp(r->type, "array") == 0) {
		elements(o, r, first && within(o, r->field) && n == 0 ? 1 : n, first);
	} else if (strcmp(r->type, "object") == 0 || strcmp(r->type, "map") == 0) {
		members(o, r->field, here && o->how == UNKNOWN ? 99 : n, first);
	} else if (strcmp(r->type, "integer") == 0) {
		snprintf(number, sizeof number, "%ld", here && o->how == VALUE ? o->n : least);
		add(number);
	} else {
		add("true");
	}
}

static const struct schema *schema(void)
{
	for (const struct schema *const *s = schema_all; *s != NULL; s++)
		if (strcmp((*s)->name, body_name) == 0)
			return *s;
	return NULL;
}

static enum err canonical(const struct json *v)
{
	static struct conf_tenant tenant = {.t = {.name = "main"}};
	static struct conf conf = {.tenants = &tenant, .ntenants = 1};
	static struct canon_run run;
	char field[CANON_FIELD];
	return canon_run(&conf, &tenant, v, &run, field);
}

static void ask(struct odd o, const char *want, const char *what)
{
	own_arena struct arena a;
	char field[SCHEMA_FIELD];
	used = 0;
	members(&o, "", o.row == NULL && o.how == UNKNOWN ? 99 : 0, true);
	arena_init(&a, 32 << 20);
	struct json *v = json_parse(&a, text, used, JSON_DEPTH, 20000, NULL);
	enum err e = v == NULL || schema() == NULL ? ERR_INTERNAL_ERROR : schema_check(schema(), v, field);
	bool ok = strcmp(err_code(e), want) == 0;
	/* Later stages only see what the rows let through. */
	if (ok && e != ERR_OK && strcmp(body_name, "run_create") == 0)
		ok = canonical(v) == e;
	passed += ok, failed += !ok;
	if (!ok)
		printf("FAIL %s %s: %s: %s, not %s: %.150s\n", body_name, o.row != NULL ? o.row->field : "", what,
		       err_code(e), want, text);
}

static bool has_members(const struct row *r)
{
	const char *name;
	for (size_t i = 0; i < nrows; i++)
		if (rows[i].required && r->field[0] != '\0' && child_of(&rows[i], r->field, &name))
			return true;
	return false;
}

static void counted(const struct row *r, enum how how)
{
	if (r->min != NONE)
		ask((struct odd){r, how, r->min, NULL}, "ok", "at its least");
	/* A map has at least its required members, which are asked for by themselves. */
	if ((r->min > 0 && !has_members(r)) || (r->min != NONE && how == VALUE))
		ask((struct odd){r, how, r->min - 1, NULL}, r->error, "below its least");
	if (r->max != NONE) {
		ask((struct odd){r, how, r->max, NULL}, "ok", "at its most");
		ask((struct odd){r, how, r->max + 1, NULL}, r->error, "above its most");
	}
}

static void types(const struct row *r)
{
	static const struct {
		const char *types, *raw;
	} raw[] = {{"string", "\"x\""}, {"object,map", "{}"}, {"array", "[]"}, {"integer", "1"},
		   {"bool", "true"},    {"", "null"},         {"", "1.5"}};
	for (size_t i = 0; i < sizeof raw / sizeof raw[0]; i++)
		if (strcmp(r->type, "any") != 0 && !promised_in(raw[i].types, r->type))
			ask((struct odd){r, RAW, 0, raw[i].raw}, r->error, raw[i].raw);
}

static void one(const struct row *r)
{
	bool element = r->field[strlen(r->field) - 1] == ']';
	if (!element)
		ask((struct odd){r, ABSENT, 0, NULL}, r->required ? r->error : "ok", "left out");
	types(r);
	if (strcmp(r->type, "integer") == 0)
		counted(r, VALUE);
	else
		counted(r, COUNT);
	if (strcmp(r->type, "object") == 0)
		ask((struct odd){r, UNKNOWN, 0, NULL}, "unknown_field", "a key that is not known");
	if (strcmp(r->type, "string") == 0 && r->maxbytes != 0) {
		long past = (long)r->maxbytes + 1;
		bool long_too = r->max != NONE && past / 4 + past % 4 > r->max;
		ask((struct odd){r, BYTES, (long)r->maxbytes, NULL}, "ok", "as many bytes as may be");
		ask((struct odd){r, BYTES, past, NULL}, !long_too && r->too_large[0] != '\0' ? r->too_large : r->error,
		    "a byte too many");
	}
}

static void body(void)
{
	ask((struct odd){.row = NULL}, "ok", "the least body");
	ask((struct odd){.row = NULL, .how = UNKNOWN}, "unknown_field", "a key that is not known");
	for (size_t i = 0; i < nrows; i++)
		one(&rows[i]);
	nrows = 0;
}

int main(void)
{
	char name[64], *line;
	size_t at = 0, bodies = 0;
	text = malloc(8 << 20);
	if (text == NULL)
		return 1;
	while ((line = promised_next(&at, "body")) != NULL) {
		struct row r;
		if (!understand(line, &r, name) || nrows == ROWS) {
			printf("FAIL a line that cannot be read: %s\n", r.field);
			failed++;
			continue;
		}
		if (nrows > 0 && strcmp(name, body_name) != 0)
			body();
		snprintf(body_name, sizeof body_name, "%s", name);
		rows[nrows++] = r;
		bodies++;
	}
	if (bodies == 0)
		failed++;
	else
		body();
	free(text);
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
