/*
 * The reader of server-sent events: each stream comes whole, byte by byte and cut at every place in two, and is read
 * the same; bounds; what stays across connections.
 */
#include "cli/sse.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What was told, one "type|id|data;" an event. */
static void note(void *user, const struct sse_event *e)
{
	assert_int_equal(strlen(e->type) > 0 && e->data[e->n] == '\0', 1);
	buf_addf(user, "%s|%s|", e->type, e->id);
	buf_add(user, e->data, e->n);
	buf_addc(user, ';');
}

struct row {
	const char *stream;
	size_t n; /* 0: strlen */
	const char *told;
	unsigned retry;
};

static const struct row rows[] = {
    {"data: a\n\n", 0, "message||a;", 0},
    {"event: run.started\nid: 7\ndata: {\"a\":1}\n\n", 0, "run.started|7|{\"a\":1};", 0},
    /* ends of lines, one kind or mixed */
    {"data: a\r\n\r\ndata: b\r\n\r\n", 0, "message||a;message||b;", 0},
    {"data: a\r\rdata: b\r\r", 0, "message||a;message||b;", 0},
    {"data: a\r\ndata: b\r\n\ndata: c\r\n\r", 0, "message||a\nb;message||c;", 0},
    {"data: a\n\r\ndata: b\n\n", 0, "message||a;message||b;", 0},
    {"data: a\r\n\n", 0, "message||a;", 0},
    /* one blank after the colon belongs to it */
    {"data:a\n\ndata:  b\n\ndata\n\ndata:\n\ndata: \n\n", 0, "message||a;message|| b;message||;message||;message||;",
     0},
    {"data: a\ndata: b\ndata:\n\n", 0, "message||a\nb\n;", 0},
    {"data: a:b: c\n\n", 0, "message||a:b: c;", 0},
    /* comments, unknown fields, fields that only look like one */
    {": heartbeat\n\n:\n\ndata: a\n: x\ndata: b\n\n", 0, "message||a\nb;", 0},
    {"Data: a\ndata : b\n data: c\nx: y\ndatax: z\n\ndata: d\n\n", 0, "message||d;", 0},
    /* nothing without data; its type does not stay, its id does */
    {"event: x\n\ndata: a\n\n", 0, "message||a;", 0},
    {"id: 5\n\ndata: a\n\n", 0, "message|5|a;", 0},
    /* ids stay until another, an empty one takes it away, NUL and length are no id */
    {"id: 1\ndata: a\n\ndata: b\n\nid: 2\ndata: c\n\n", 0, "message|1|a;message|1|b;message|2|c;", 0},
    {"id: 1\ndata: a\n\nid\ndata: b\n\nid: 3\ndata: c\n\nid:\ndata: d\n\n", 0,
     "message|1|a;message||b;message|3|c;message||d;", 0},
    {"id: 1\ndata: a\n\nid: 2\0\ndata: b\n\n", 31, "message|1|a;message|1|b;", 0},
    {"id: 1\nid: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\ndata: a\n\n", 0, "message|1|a;", 0},
    {"id: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\ndata: a\n\n", 0,
     "message|xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx|a;", 0},
    /* retry: digits alone */
    {"retry: 2000\n\n", 0, "", 2000},
    {"retry: 2000\nretry: 1x\nretry: -1\nretry: \nretry\nretry: 99999999999999999999\n\n", 0, "", 2000},
    /* a mark of byte order, once and at the start */
    {"\xef\xbb\xbf"
     "data: a\n\n",
     0, "message||a;", 0},
    {"\xef\xbb\xbf\xef\xbb\xbf"
     "data: a\n\n"
     "data: b\n\xef\xbb\xbf"
     "data: c\n\n",
     0, "message||b;", 0},
    {"\xef\xbb\xbf\ndata: a\n\n", 0, "message||a;", 0},
    /* what is cut off is none */
    {"data: a", 0, "", 0},
    {"data: a\n", 0, "", 0},
    {"data: a\n\ndata: b\nid: 9\n", 0, "message||a;", 0},
    {"event: a\nevent: b\ndata: c\n\n", 0, "b||c;", 0},
    {"event: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\ndata: c\n\n", 0, "message||c;", 0},
    {"", 0, "", 0},
};

/* Heap copies of each piece, so that a read past one is seen. */
static bool feed(struct sse *s, const char *p, size_t n, struct buf *told)
{
	char *copy = malloc(n + 1);
	assert_non_null(copy);
	memcpy(copy, p, n);
	char *tight = realloc(copy, n > 0 ? n : 1);
	bool ok = sse_feed(s, tight, n, note, told);
	free(tight);
	return ok;
}

static void reads(const struct row *r, size_t cut, size_t step)
{
	struct sse s = {0};
	own_buf struct buf told;
	size_t n = r->n > 0 ? r->n : strlen(r->stream);

	buf_init(&told, 1 << 20);
	sse_begin(&s);
	if (step > 0) {
		for (size_t i = 0; i < n; i += step)
			assert_true(feed(&s, r->stream + i, i + step < n ? step : n - i, &told));
	} else {
		assert_true(feed(&s, r->stream, cut, &told));
		assert_true(feed(&s, r->stream + cut, n - cut, &told));
	}
	assert_string_equal(buf_cstr(&told), r->told);
	assert_int_equal(s.retry, r->retry);
	sse_free(&s);
}

static void t_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		size_t n = rows[i].n > 0 ? rows[i].n : strlen(rows[i].stream);
		for (size_t cut = 0; cut <= n; cut++)
			reads(&rows[i], cut, 0);
		for (size_t step = 1; step <= 5; step++)
			reads(&rows[i], 0, step);
	}
}

static void t_connections(void **state)
{
	(void)state;
	struct sse s = {0};
	own_buf struct buf told;

	buf_init(&told, 1 << 20);
	sse_begin(&s);
	assert_true(feed(&s, "retry: 9\nid: 4\ndata: a\n\nid: 5\nevent: x\ndata: lo", 46, &told));
	/* The half event and its id are gone with its connection; the next begins afresh. */
	sse_begin(&s);
	assert_string_equal(s.id, "4");
	assert_int_equal(s.retry, 9);
	assert_true(feed(&s,
			 "\xef\xbb\xbf"
			 "data: b\n\n",
			 12, &told));
	assert_string_equal(buf_cstr(&told), "message|4|a;message|4|b;");
	/* The LF behind a CR that ended the last connection is none of this one's. */
	assert_true(feed(&s, "data: c\r", 8, &told));
	sse_begin(&s);
	assert_true(feed(&s, "\ndata: d\n\n", 10, &told));
	assert_string_equal(buf_cstr(&told), "message|4|a;message|4|b;message|4|d;");
	sse_free(&s);
}

/* "data: " and this many bytes. */
static bool long_line(size_t n, const char *end, struct buf *told)
{
	struct sse s = {0};
	char *p = malloc(n + 16);
	assert_non_null(p);
	memcpy(p, "data: ", 6);
	memset(p + 6, 'x', n);
	memcpy(p + 6 + n, end, strlen(end));
	sse_begin(&s);
	bool ok = true;
	for (size_t i = 0, all = 6 + n + strlen(end); i < all; i += 65536)
		ok = sse_feed(&s, p + i, all - i < 65536 ? all - i : 65536, note, told);
	/* Once failed it stays so. */
	assert_true(ok || !sse_feed(&s, "\n\ndata: b\n\n", 11, note, told));
	sse_free(&s);
	free(p);
	return ok;
}

static void t_bounds(void **state)
{
	(void)state;
	own_buf struct buf told;

	buf_init(&told, 4 << 20);
	assert_true(long_line(SSE_EVENT_MAX - 6, "\n\n", &told));
	assert_int_equal(told.n, SSE_EVENT_MAX - 6 + sizeof "message||;" - 1);
	buf_reset(&told);
	assert_false(long_line(SSE_EVENT_MAX - 5, "\n\n", &told));
	assert_false(long_line(3 * SSE_EVENT_MAX, "", &told));
	assert_int_equal(told.n, 0);
	/* Many lines are as long as one. */
	struct sse s = {0};
	sse_begin(&s);
	unsigned taken = 0;
	while (taken < SSE_EVENT_MAX && sse_feed(&s, "data: 0123456789\n", 17, note, &told))
		taken++;
	assert_in_range(taken, SSE_EVENT_MAX / 11 - 1, SSE_EVENT_MAX / 11 + 1);
	assert_false(sse_feed(&s, "\n", 1, note, &told));
	assert_int_equal(told.n, 0);
	sse_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_rows), cmocka_unit_test(t_connections),
					   cmocka_unit_test(t_bounds)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
