/*
 * Strict JSON in. The only includer of yajl, and only of its callbacks: its tree functions recurse and it
 * accepts what RFC 8259 does not (lone surrogates, NUL, form feeds as blanks, repeated keys, any depth),
 * so a pass of our own runs first and limits are kept while parsing. Trusts nothing in the text.
 * Nothing here recurses.
 */
#include "lib/json.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

enum { PAIRWISE = 16, DEPTH_CEILING = 1024 };

struct frame {
	struct json *container, *last;
	const char *key; /* read, its value still to come */
};

struct parse {
	struct arena *a;
	struct frame *stack;
	unsigned depth, max_depth;
	size_t nodes, max_nodes;
	struct json *root;
	const char *why;
};

static int stop(struct parse *p, const char *why)
{
	p->why = why;
	return 0;
}

/* Makes a node and hangs it where it belongs; NULL with p->why. */
static struct json *add(struct parse *p, enum json_type type)
{
	if (p->nodes >= p->max_nodes) {
		p->why = "too many values";
		return NULL;
	}
	struct json *v = arena_get(p->a, sizeof *v);
	if (v == NULL) {
		p->why = "too large";
		return NULL;
	}
	p->nodes++;
	v->type = type;
	if (p->depth == 0) {
		p->root = v;
		return v;
	}
	struct frame *f = &p->stack[p->depth - 1];
	v->key = f->key;
	f->key = NULL;
	if (f->last == NULL)
		f->container->child = v;
	else
		f->last->next = v;
	f->last = v;
	f->container->count++;
	return v;
}

static int add_text(struct parse *p, enum json_type type, const char *s, size_t n)
{
	struct json *v = add(p, type);
	if (v == NULL)
		return 0;
	v->text = arena_dup(p->a, s, n);
	v->len = n;
	return v->text != NULL ? 1 : stop(p, "too large");
}

static int on_null(void *ctx)
{
	return add(ctx, JSON_NULL) != NULL;
}

static int on_bool(void *ctx, int truth)
{
	struct json *v = add(ctx, JSON_BOOL);
	if (v == NULL)
		return 0;
	v->truth = truth != 0;
	return 1;
}

static int on_number(void *ctx, const char *s, size_t n)
{
	return add_text(ctx, JSON_NUMBER, s, n);
}

static int on_string(void *ctx, const unsigned char *s, size_t n)
{
	return add_text(ctx, JSON_STRING, (const char *)s, n);
}

static int open_container(struct parse *p, enum json_type type)
{
	if (p->depth >= p->max_depth)
		return stop(p, "nested too deeply");
	struct json *v = add(p, type);
	if (v == NULL)
		return 0;
	p->stack[p->depth++] = (struct frame){.container = v};
	return 1;
}

static int on_open_object(void *ctx)
{
	return open_container(ctx, JSON_OBJECT);
}

static int on_open_array(void *ctx)
{
	return open_container(ctx, JSON_ARRAY);
}

static int on_close_array(void *ctx)
{
	struct parse *p = ctx;
	p->depth--;
	return 1;
}

static int on_key(void *ctx, const unsigned char *s, size_t n)
{
	struct parse *p = ctx;
	const char *key = arena_dup(p->a, (const char *)s, n);
	if (key == NULL)
		return stop(p, "too large");
	p->stack[p->depth - 1].key = key;
	return 1;
}

static int by_key(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* 1: all keys differ, 0: one is repeated, -1: no memory. Sorts when there are many: an object of ten
 * thousand keys must not cost their square. */
static int keys_differ(const struct json *object)
{
	if (object->count <= PAIRWISE) {
		for (const struct json *a = object->child; a != NULL; a = a->next)
			for (const struct json *b = a->next; b != NULL; b = b->next)
				if (strcmp(a->key, b->key) == 0)
					return 0;
		return 1;
	}
	const char **keys = malloc(object->count * sizeof *keys);
	if (keys == NULL)
		return -1;
	size_t n = 0;
	for (const struct json *v = object->child; v != NULL; v = v->next)
		keys[n++] = v->key;
	qsort(keys, n, sizeof *keys, by_key);
	int differ = 1;
	for (size_t i = 1; i < n && differ == 1; i++)
		if (strcmp(keys[i - 1], keys[i]) == 0)
			differ = 0;
	free(keys);
	return differ;
}

static int on_close_object(void *ctx)
{
	struct parse *p = ctx;
	int differ = keys_differ(p->stack[--p->depth].container);
	if (differ == 1)
		return 1;
	return stop(p, differ == 0 ? "the same key twice" : "too large");
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_bool,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_open_object,
    .yajl_map_key = on_key,
    .yajl_end_map = on_close_object,
    .yajl_start_array = on_open_array,
    .yajl_end_array = on_close_array,
};

/* The value of four hexadecimal digits, or -1. */
static int hex4(const uint8_t *p, size_t n)
{
	if (n < 4)
		return -1;
	int v = 0;
	for (int i = 0; i < 4; i++) {
		int c = p[i];
		int d = c >= '0' && c <= '9'   ? c - '0'
			: c >= 'a' && c <= 'f' ? c - 'a' + 10
			: c >= 'A' && c <= 'F' ? c - 'A' + 10
					       : -1;
		if (d < 0)
			return -1;
		v = v << 4 | d;
	}
	return v;
}

/* Checks the escape that begins at p[0] == '\\'. Its length, or 0 with *why. */
static size_t escape(const uint8_t *p, size_t n, const char **why)
{
	if (n < 2 || p[1] != 'u')
		return 2; /* which letters may follow is yajl's business */
	int first = hex4(p + 2, n - 2);
	if (first < 0) {
		*why = "not JSON";
		return 0;
	}
	if (first == 0) {
		*why = "a NUL in a string";
		return 0;
	}
	if (first < 0xd800 || first > 0xdfff)
		return 6;
	int second = n >= 12 && p[6] == '\\' && p[7] == 'u' ? hex4(p + 8, n - 8) : -1;
	if (first > 0xdbff || second < 0xdc00 || second > 0xdfff) {
		*why = "half of a surrogate pair";
		return 0;
	}
	return 12;
}

/* What yajl lets through: control bytes, escapes of NUL and of lone surrogates. NULL, or why not. */
static const char *first_pass(const uint8_t *p, size_t n, size_t *at)
{
	if (!utf8_valid(p, n, at))
		return "not UTF-8";
	const char *why = NULL;
	bool inside = false;
	for (size_t i = 0; i < n;) {
		*at = i;
		uint8_t c = p[i];
		if (c < 0x20 && (inside || (c != '\t' && c != '\n' && c != '\r')))
			return "a control byte";
		size_t step = 1;
		if (c == '"')
			inside = !inside;
		else if (inside && c == '\\')
			step = escape(p + i, n - i, &why);
		if (step == 0)
			return why;
		i += step;
	}
	return NULL;
}

/*
 * yajl's own memory. It uses what it is given without looking, and would die of a NULL: so all that it can want for a
 * text of n bytes is there before it begins. Beyond it (which is not to be) each piece is one of malloc's.
 */
enum { POOL_ALIGN = 16, POOL_LEAST = 32768 };
struct pool {
	uint8_t *p;
	size_t n, at;
};

/* Each piece begins behind its size. */
static void *pool_get(void *ctx, size_t n)
{
	struct pool *pool = ctx;
	size_t whole = POOL_ALIGN + (n + POOL_ALIGN - 1) / POOL_ALIGN * POOL_ALIGN;
	uint8_t *p = whole <= pool->n - pool->at ? pool->p + pool->at : malloc(whole);
	if (p == NULL)
		return NULL;
	if (whole <= pool->n - pool->at)
		pool->at += whole;
	memcpy(p, &n, sizeof n);
	return p + POOL_ALIGN;
}

static void pool_give(void *ctx, void *piece)
{
	const struct pool *pool = ctx;
	uint8_t *p = piece;
	if (p != NULL && (p < pool->p || p >= pool->p + pool->n))
		free(p - POOL_ALIGN);
}

static void *pool_grow(void *ctx, void *piece, size_t n)
{
	size_t had = 0;
	void *more = pool_get(ctx, n);
	if (piece == NULL || more == NULL)
		return more;
	memcpy(&had, (uint8_t *)piece - POOL_ALIGN, sizeof had);
	memcpy(more, piece, had < n ? had : n);
	pool_give(ctx, piece);
	return more;
}

/* Its buffer for one string doubles from 2,048 bytes on; the rest are stacks of a byte a level. */
static bool pool_open(struct pool *pool, size_t n)
{
	*pool = (struct pool){.n = n > SIZE_MAX / 8 ? 0 : 4 * n + POOL_LEAST};
	pool->p = pool->n > 0 ? malloc(pool->n) : NULL;
	return pool->p != NULL;
}

/* NULL, or why it is not acceptable. */
static const char *parse(struct parse *p, const uint8_t *s, size_t n, size_t *at)
{
	const char *why = first_pass(s, n, at);
	if (why != NULL)
		return why;
	p->stack = arena_get(p->a, (p->max_depth + 1u) * sizeof *p->stack);
	struct pool pool;
	if (p->stack == NULL || !pool_open(&pool, n))
		return "too large";
	yajl_alloc_funcs memory = {.malloc = pool_get, .realloc = pool_grow, .free = pool_give, .ctx = &pool};
	yajl_handle h = yajl_alloc(&callbacks, &memory, p);
	if (h == NULL) {
		free(pool.p);
		return "too large";
	}
	yajl_status status = yajl_parse(h, s, n);
	*at = yajl_get_bytes_consumed(h);
	if (status == yajl_status_ok)
		status = yajl_complete_parse(h);
	yajl_free(h);
	free(pool.p);
	if (status != yajl_status_ok)
		return p->why != NULL ? p->why : "not JSON";
	return p->root == NULL || p->depth != 0 ? "not JSON" : NULL;
}

struct json *json_parse(struct arena *a, const void *p, size_t n, unsigned max_depth, size_t max_nodes,
			struct json_fault *fault)
{
	struct parse state = {.a = a, .max_depth = max_depth, .max_nodes = max_nodes};
	size_t at = 0;
	errno = 0;
	if (state.max_depth > DEPTH_CEILING)
		state.max_depth = DEPTH_CEILING;
	const char *why = parse(&state, p, n, &at);
	if (why == NULL)
		return state.root;
	if (errno == EOVERFLOW) /* of the arena: the caller's bound */
		errno = 0;
	if (fault != NULL)
		*fault = (struct json_fault){.why = why, .at = at};
	return NULL;
}

const struct json *json_get(const struct json *object, const char *key)
{
	if (object == NULL || object->type != JSON_OBJECT)
		return NULL;
	const struct json *v = object->child;
	while (v != NULL && strcmp(v->key, key) != 0)
		v = v->next;
	return v;
}

bool json_int(const struct json *v, int64_t min, int64_t max, int64_t *out)
{
	if (v == NULL || v->type != JSON_NUMBER || v->len == 0)
		return false;
	bool negative = v->text[0] == '-';
	size_t i = negative ? 1 : 0;
	size_t digits = v->len - i;
	if (digits == 0 || (v->text[i] == '0' && (digits > 1 || negative)))
		return false;
	int64_t value = 0;
	for (; i < v->len; i++) {
		if (v->text[i] < '0' || v->text[i] > '9')
			return false;
		int64_t digit = v->text[i] - '0';
		if (__builtin_mul_overflow(value, INT64_C(10), &value) ||
		    __builtin_add_overflow(value, negative ? -digit : digit, &value))
			return false;
	}
	if (value < min || value > max)
		return false;
	*out = value;
	return true;
}
