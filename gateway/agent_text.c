/*
 * The single place where what an agent says is cleaned (C-60...C-66): the data of its events and questions, on the way
 * to the store. What goes in is parsed JSON, what comes out is written anew by spec/text.tab; nothing behind it sees
 * the agent's own bytes. Of a question it is also said what was changed, since who decides must know (C-65, K1).
 */
#include "gateway/gateway.h"
#include "lib/digest.h"
#include "lib/text.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_MAX = 32, TEXT_MAX = 1000000 };
/* Members of data that only this file writes. */
static const char sequence_key[] = "agent_sequence", shortened_key[] = "text_shortened";

struct cleaning {
	struct jw *w;
	enum agent_says what;
	bool mask;        /* what looks like a secret */
	bool linked;      /* a link has its address */
	bool changed;     /* in the member that is being written */
	bool masked;      /* the same */
	struct buf marks; /* rows of text_shortened */
	struct jw m;
};

static void clean(struct cleaning *c, const struct json *v, unsigned depth);

static void write_text(struct cleaning *c, const struct json *v, enum text_field f)
{
	struct buf b own_buf = {0};

	bool masked = false;

	buf_init(&b, TEXT_MAX);
	/* An id is never changed: it would be another's. */
	if (c->mask && f != TEXT_F_REQUEST_ID ? text_field_masked(&b, f, v->text, v->len, &masked)
					      : text_field(&b, f, v->text, v->len))
		c->changed = true;
	c->masked |= masked;
	jw_buf(c->w, &b);
}

/* A key that cleaning would change is left out with its value: two keys must not become one. */
static bool key_clean(struct cleaning *c, const char *key)
{
	struct buf b own_buf = {0};
	buf_init(&b, TEXT_MAX);
	bool changed = text_field(&b, TEXT_F_KEY, key, strlen(key));
	if (buf_failed(&b))
		buf_fail(c->w->b, errno);
	c->changed |= changed;
	return !changed;
}

/* One that every reader can hold. JSON allows others, and there are parsers that fail at them: whoever reads the
 * run's events would fail at every later one as well. */
static bool number_plain(const struct json *v)
{
	return v->len <= NUMBER_MAX && isfinite(strtod(v->text, NULL));
}

/* Depth is bounded by the parser. */
static void clean(struct cleaning *c, const struct json *v, unsigned depth)
{
	switch (v->type) {
	case JSON_NULL:
		jw_null(c->w);
		break;
	case JSON_BOOL:
		jw_bool(c->w, v->truth);
		break;
	case JSON_NUMBER:
		if (!number_plain(v))
			buf_fail(c->w->b, EINVAL); /* refuses the line */
		jw_raw(c->w, v->text, v->len);
		break;
	case JSON_STRING:
		write_text(c, v,
			   depth == 1 && v->key ? text_field_of(v->key, c->what == AGENT_QUESTION) : TEXT_F_EVENT);
		break;
	case JSON_ARRAY:
		jw_open(c->w, '[');
		for (const struct json *e = v->child; e; e = e->next)
			clean(c, e, depth + 1);
		jw_close(c->w, ']');
		break;
	case JSON_OBJECT:
		jw_open(c->w, '{');
		for (const struct json *m = v->child; m; m = m->next)
			if (key_clean(c, m->key)) {
				jw_key(c->w, m->key);
				clean(c, m, depth + 1);
			}
		jw_close(c->w, '}');
		break;
	}
}

static bool has_words(const struct json *v, enum text_field f)
{
	struct buf b own_buf = {0};
	buf_init(&b, TEXT_MAX);
	if (v->type != JSON_STRING)
		return true;
	text_field(&b, f, v->text, v->len);
	return buf_failed(&b) || text_words((const char *)b.p, b.n);
}

/* A choice that shows no word is left out: nobody could tell what it stands for (C-66). */
static void write_option(struct cleaning *c, const struct json *option)
{
	const struct json *label = option->type == JSON_OBJECT ? json_get(option, "label") : option;

	if (label && !has_words(label, TEXT_F_OPTION)) {
		c->changed = true;
		return;
	}
	if (option->type == JSON_STRING) {
		write_text(c, option, TEXT_F_OPTION);
		return;
	}
	if (option->type != JSON_OBJECT) {
		clean(c, option, 3);
		return;
	}
	jw_open(c->w, '{');
	for (const struct json *m = option->child; m; m = m->next)
		if (key_clean(c, m->key)) {
			jw_key(c->w, m->key);
			if (m == label && m->type == JSON_STRING)
				write_text(c, m, TEXT_F_OPTION);
			else
				clean(c, m, 4);
		}
	jw_close(c->w, '}');
}

/* Members that are more than text: a question's choices, its title where it shows nothing (its id stands for it), and
 * a link's address. False: v is none of them. */
static bool write_special(struct cleaning *c, const struct json *v, const char *id)
{
	if (c->what == AGENT_LINK && v->type == JSON_STRING && strcmp(v->key, "url") == 0) {
		struct buf url own_buf = {0};
		buf_init(&url, TEXT_MAX);
		c->linked = text_link(&url, NULL, v->text, v->len);
		jw_buf(c->w, &url);
		return true;
	}
	if (c->what != AGENT_QUESTION)
		return false;
	if (strcmp(v->key, "title") == 0 && id && !has_words(v, TEXT_F_TITLE)) {
		jw_str(c->w, id);
		c->changed = true;
		return true;
	}
	if (strcmp(v->key, "options") != 0 || v->type != JSON_ARRAY)
		return false;
	jw_open(c->w, '[');
	for (const struct json *e = v->child; e; e = e->next)
		write_option(c, e);
	jw_close(c->w, ']');
	return true;
}

/* What a member was before: its length and its digest, so that who decides can hold the whole against them. field is
 * NULL where its name may not be told. */
static void mark(struct cleaning *c, const struct json *v, const char *field)
{
	uint8_t digest[SHA256_SIZE];
	char text[SHA256_HEX];

	jw_open(&c->m, '{');
	if (field)
		jw_kstr(&c->m, "field", field);
	if (field && v->type == JSON_STRING && sha256(v->text, v->len, digest)) {
		hex(digest, sizeof digest, text);
		jw_kint(&c->m, "bytes", (int64_t)v->len);
		jw_kstr(&c->m, "sha256", text);
	}
	if (c->masked)
		jw_kbool(&c->m, "masked", true);
	jw_close(&c->m, '}');
}

static void write_member(struct cleaning *c, const struct json *v, const char *id)
{
	if (strcmp(v->key, sequence_key) == 0 || strcmp(v->key, shortened_key) == 0)
		return;
	c->changed = c->masked = false;
	bool named = key_clean(c, v->key);
	if (named) {
		jw_key(c->w, v->key);
		if (!write_special(c, v, id))
			clean(c, v, 1);
	}
	/* An agent that cut its own question says so by "truncated". */
	if (c->changed || (named && v->type == JSON_BOOL && v->truth && strcmp(v->key, "truncated") == 0))
		mark(c, v, named ? v->key : NULL);
}

bool agent_data(struct buf *out, const struct json *data, int64_t sequence, enum agent_says what, bool mask,
		const char *id)
{
	struct jw w;
	struct cleaning c = {.w = &w, .what = what, .mask = mask};

	buf_init(&c.marks, TEXT_MAX);
	jw_init(&w, out);
	jw_init(&c.m, &c.marks);
	jw_open(&w, '{');
	jw_kint(&w, sequence_key, sequence);
	jw_open(&c.m, '[');
	for (const struct json *m = data ? data->child : NULL; m; m = m->next)
		write_member(&c, m, id);
	jw_close(&c.m, ']');
	if (buf_failed(&c.marks))
		buf_fail(out, errno);
	else if (what == AGENT_QUESTION && c.marks.n > sizeof "[]" - 1) {
		jw_key(&w, shortened_key);
		jw_raw(&w, c.marks.p, c.marks.n);
	}
	jw_close(&w, '}');
	buf_free(&c.marks);
	return what != AGENT_LINK || c.linked;
}
