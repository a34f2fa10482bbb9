/*
 * Strict JSON in (sole includer of yajl, callbacks only), canonical JSON out.
 * In: RFC 8259, our own UTF-8 pass, no NUL, no lone surrogates, no duplicate keys, bounded depth and
 * node count, exact end. Numbers are integers only where json_int says so.
 */
#ifndef LIB_JSON_H
#define LIB_JSON_H
#include "lib/buf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };
enum { JSON_DEPTH = 32, JSON_DEPTH_MODEL = 64 };

struct json {
	enum json_type type;
	bool truth;
	const char *key;  /* in an object; NUL-terminated, NULL elsewhere */
	const char *text; /* JSON_STRING: decoded UTF-8 with a NUL behind; JSON_NUMBER: as it was spelt */
	size_t len;
	size_t count; /* members of an array or object */
	struct json *child, *next;
};

struct json_fault {
	const char *why; /* a static phrase */
	size_t at;       /* byte offset, where known */
};

/* Everything lives in the arena. NULL: not acceptable; fault (may be NULL) says why. errno is 0 then where the text is
 * at fault, and says what was lacking otherwise (lib/lack.h). */
struct json *json_parse(struct arena *a, const void *p, size_t n, unsigned max_depth, size_t max_nodes,
			struct json_fault *fault);
/* Strict UTF-8 (RFC 3629). False: *at is the first bad byte. */
bool utf8_valid(const void *p, size_t n, size_t *at);
size_t utf8_count(const char *p, size_t n); /* code points of valid text */
/* How much of n bytes of valid text most bytes can hold, without half a character. */
size_t utf8_fit(const char *p, size_t n, size_t most);
/* The code point at p, of at most n bytes: its length in bytes, or 0 where there is no valid one. */
size_t utf8_next(const char *p, size_t n, uint32_t *code);
const struct json *json_get(const struct json *object, const char *key);
/* True only for a plain integer (no fraction, no exponent, no -0) within [min, max]. */
bool json_int(const struct json *v, int64_t min, int64_t max, int64_t *out);
/* Writes v again in canonical form (no white space, shortest escapes). */
void json_write(struct buf *b, const struct json *v);

/* Writer: commas and nesting are kept by the writer itself; at most 64 levels. */
struct jw {
	struct buf *b;
	uint8_t depth;
	bool comma[65];
};
void jw_init(struct jw *w, struct buf *b);
void jw_open(struct jw *w, char bracket);  /* '{' or '[' */
void jw_close(struct jw *w, char bracket); /* '}' or ']' */
void jw_key(struct jw *w, const char *key);
void jw_str(struct jw *w, const char *s);
void jw_strn(struct jw *w, const char *s, size_t n); /* n bytes of valid UTF-8; anything else becomes U+FFFD */
/* What text holds. A buffer that failed (it has no memory for a part of it) fails the writer's: a text that is
 * shorter than it should be must not be taken for the whole. */
void jw_buf(struct jw *w, const struct buf *text);
void jw_int(struct jw *w, int64_t v);
void jw_bool(struct jw *w, bool v);
void jw_null(struct jw *w);
void jw_raw(struct jw *w, const void *json, size_t n); /* text that is JSON already */
void jw_json(struct jw *w, const struct json *v);      /* as json_write, without its key */
/* Short forms with a key. */
void jw_kstr(struct jw *w, const char *key, const char *s);
void jw_kint(struct jw *w, const char *key, int64_t v);
void jw_kbool(struct jw *w, const char *key, bool v);
/* A list of n strings; key NULL: as an element. */
void jw_kstrs(struct jw *w, const char *key, const char *const *v, size_t n);
#endif
