/*
 * Canonical JSON out: no white space, one spelling of each string. Whatever bytes come in, what goes out
 * is strict UTF-8 on one line. Misuse (unbalanced brackets, too deep) fails the buffer.
 */
#include "lib/json.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { JW_LEVELS = 64 };

void jw_init(struct jw *w, struct buf *b)
{
	*w = (struct jw){.b = b};
}

static void before_value(struct jw *w)
{
	if (w->comma[w->depth])
		buf_addc(w->b, ',');
	w->comma[w->depth] = true;
}

void jw_open(struct jw *w, char bracket)
{
	if (w->depth >= JW_LEVELS) {
		buf_fail(w->b, EINVAL);
		return;
	}
	before_value(w);
	buf_addc(w->b, bracket);
	w->comma[++w->depth] = false;
}

void jw_close(struct jw *w, char bracket)
{
	if (w->depth == 0) {
		buf_fail(w->b, EINVAL);
		return;
	}
	w->depth--;
	buf_addc(w->b, bracket);
}

/* How one code point must be written, or NULL if as it is. */
static const char *escaped(uint32_t c, char room[8])
{
	switch (c) {
	case '"':
		return "\\\"";
	case '\\':
		return "\\\\";
	case '\b':
		return "\\b";
	case '\f':
		return "\\f";
	case '\n':
		return "\\n";
	case '\r':
		return "\\r";
	case '\t':
		return "\\t";
	default:
		break;
	}
	if (c >= 0x20 && c != 0x7f && c != 0x2028 && c != 0x2029)
		return NULL;
	snprintf(room, 8, "\\u%04x", c & 0xffffu);
	return room;
}

static void quoted(struct buf *b, const char *s, size_t n)
{
	size_t plain = 0; /* start of what is copied unchanged */
	if (b->why != 0)
		return; /* whoever goes on to write does not go on to work */
	if (n == 0)
		s = ""; /* an empty buffer has no address */
	buf_addc(b, '"');
	for (size_t i = 0; i < n;) {
		char room[8];
		uint32_t code = 0;
		size_t len = utf8_next(s + i, n - i, &code);
		const char *instead = len == 0 ? "\xef\xbf\xbd" : escaped(code, room);
		if (len == 0)
			len = 1;
		if (instead != NULL) {
			buf_add(b, s + plain, i - plain);
			buf_adds(b, instead);
			plain = i + len;
		}
		i += len;
	}
	buf_add(b, s + plain, n - plain);
	buf_addc(b, '"');
}

void jw_key(struct jw *w, const char *key)
{
	before_value(w);
	quoted(w->b, key, strlen(key));
	buf_addc(w->b, ':');
	w->comma[w->depth] = false;
}

void jw_strn(struct jw *w, const char *s, size_t n)
{
	before_value(w);
	quoted(w->b, s, n);
}

void jw_buf(struct jw *w, const struct buf *text)
{
	if (buf_failed(text))
		buf_fail(w->b, errno);
	else
		jw_strn(w, (const char *)text->p, text->n);
}

void jw_str(struct jw *w, const char *s)
{
	jw_strn(w, s, strlen(s));
}

void jw_int(struct jw *w, int64_t v)
{
	before_value(w);
	buf_addf(w->b, "%lld", (long long)v);
}

void jw_bool(struct jw *w, bool v)
{
	before_value(w);
	buf_adds(w->b, v ? "true" : "false");
}

void jw_null(struct jw *w)
{
	before_value(w);
	buf_adds(w->b, "null");
}

void jw_raw(struct jw *w, const void *json, size_t n)
{
	before_value(w);
	buf_add(w->b, json, n);
}

void jw_kstr(struct jw *w, const char *key, const char *s)
{
	jw_key(w, key);
	jw_str(w, s);
}

void jw_kint(struct jw *w, const char *key, int64_t v)
{
	jw_key(w, key);
	jw_int(w, v);
}

void jw_kbool(struct jw *w, const char *key, bool v)
{
	jw_key(w, key);
	jw_bool(w, v);
}

void jw_kstrs(struct jw *w, const char *key, const char *const *v, size_t n)
{
	if (key != NULL)
		jw_key(w, key);
	jw_open(w, '[');
	for (size_t i = 0; i < n; i++)
		jw_str(w, v[i]);
	jw_close(w, ']');
}

/* Writes v without its members. */
static void one(struct jw *w, const struct json *v)
{
	switch (v->type) {
	case JSON_NULL:
		jw_null(w);
		break;
	case JSON_BOOL:
		jw_bool(w, v->truth);
		break;
	case JSON_NUMBER:
		jw_raw(w, v->text, v->len);
		break;
	case JSON_STRING:
		jw_strn(w, v->text, v->len);
		break;
	case JSON_ARRAY:
	case JSON_OBJECT:
		jw_open(w, v->type == JSON_ARRAY ? '[' : '{');
		break;
	}
}

void json_write(struct buf *b, const struct json *v)
{
	const struct json *above[JW_LEVELS];
	struct jw w;
	jw_init(&w, b);
	while (b->why == 0) {
		bool container = v->type == JSON_ARRAY || v->type == JSON_OBJECT;
		if (container && w.depth == JW_LEVELS) {
			buf_fail(b, EINVAL);
			return;
		}
		one(&w, v);
		const struct json *next = v->next;
		if (container) {
			above[w.depth - 1] = v;
			next = v->child;
		} else if (w.depth == 0) {
			return;
		}
		while (next == NULL) {
			v = above[w.depth - 1];
			jw_close(&w, v->type == JSON_ARRAY ? ']' : '}');
			if (w.depth == 0)
				return;
			next = v->next;
		}
		v = next;
		if (v->key != NULL)
			jw_key(&w, v->key);
	}
}

void jw_json(struct jw *w, const struct json *v)
{
	before_value(w);
	json_write(w->b, v);
}
