/* Frames of event streams and the FastCGI records that carry them: no text breaks a frame, no cut a record. */
#include "fcgi/stream.h"
#include "handlers/sse.h"
#include "handlers/stream.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint32_t state = 12345;

/* The same on each run. */
static uint32_t dice(uint32_t n)
{
	state = state * 1664525u + 1013904223u;
	return (state >> 8) % n;
}

/* What a client makes of a stream: the specification's parser, by lines that end in CR, LF or both. */
struct seen {
	unsigned events, others;
	char id[32], event[80];
	struct buf data;
	bool any;
};

static void take_line(struct seen *s, const uint8_t *p, size_t n)
{
	static const char *const names[] = {"id: ", "event: ", "data: "};
	if (n == 0) {
		s->events += s->any;
		s->any = false;
		return;
	}
	for (size_t i = 0; i < 3; i++) {
		size_t k = strlen(names[i]);
		if (n < k || memcmp(p, names[i], k) != 0)
			continue;
		p += k, n -= k;
		if (i < 2) {
			char *to = i == 0 ? s->id : s->event;
			assert_true(to[0] == '\0' && n < (i == 0 ? sizeof s->id : sizeof s->event));
			memcpy(to, p, n);
			to[n] = '\0';
		} else {
			if (s->any)
				buf_addc(&s->data, '\n');
			s->any = true;
			buf_add(&s->data, p, n);
		}
		return;
	}
	s->others++;
}

static void parse(struct seen *s, const struct buf *b)
{
	size_t from = 0;
	*s = (struct seen){0};
	buf_init(&s->data, 1 << 20);
	for (size_t i = 0; i < b->n; i++) {
		if (b->p[i] != '\n' && b->p[i] != '\r')
			continue;
		take_line(s, b->p + from, i - from);
		if (b->p[i] == '\r' && i + 1 < b->n && b->p[i + 1] == '\n')
			i++;
		from = i + 1;
	}
	assert_int_equal(from, b->n);
}

/* The text with each end of line as LF: what may be told of it. */
static size_t plain(char *to, const char *p, size_t n)
{
	size_t k = 0;
	for (size_t i = 0; i < n; i++) {
		if (p[i] == '\r' && i + 1 < n && p[i + 1] == '\n')
			continue;
		to[k++] = p[i] == '\r' ? '\n' : p[i];
	}
	return k;
}

static void any_text_is_one_frame(void **unused)
{
	(void)unused;
	static const char *const bits[] = {"\n",       "\r", "\r\n", "\n\n",     "data: x",      "id: 9",
					   "event: e", ":",  " ",    "retry: 1", "\xe2\x80\xa8", "\x01",
					   "\xff",     "{",  "\"",   "a",        ": heartbeat",  "\x85"};
	for (unsigned round = 0; round < 5000; round++) {
		char text[400] = {0}, want[400];
		for (uint32_t k = dice(20); k > 0; k--)
			strcat(text, bits[dice(sizeof bits / sizeof *bits)]);
		struct st_event ev = {.sequence = round + 1,
				      .created_at = 1,
				      .event_id = "e",
				      .type = dice(4) > 0 ? "agent.step" : text,
				      .data = {(const uint8_t *)text, (uint32_t)strlen(text)}};
		own_buf struct buf b, line;
		buf_init(&b, 1 << 20);
		buf_init(&line, 1 << 20);
		/* Two, so that the second could be part of the first. */
		assert_true(sse_event(&b, &line, "run-1", &ev));
		size_t one = b.n;
		assert_true(sse_event(&b, &line, "run-1", &ev));
		struct seen s;
		struct buf first = {.p = b.p, .n = one};
		parse(&s, &first);
		assert_int_equal(s.events, 1);
		assert_int_equal(s.others, 0);
		assert_int_equal(atoi(s.id), round + 1);
		assert_true(strcmp(s.event, ev.type) == 0 || s.event[0] == '\0');
		size_t n = plain(want, (const char *)line.p, line.n - 1);
		assert_int_equal(s.data.n, n);
		assert_memory_equal(s.data.p, want, n);
		buf_free(&s.data);
		assert_int_equal(b.n, 2 * one);
	}
}

static void a_frame_is_as_it_is_written(void **unused)
{
	(void)unused;
	struct st_event ev = {.sequence = 7,
			      .created_at = 5,
			      .event_id = "e-7",
			      .type = "run.phase",
			      .data = {(const uint8_t *)"{\"a\":1}", 7}};
	own_buf struct buf b, line;
	buf_init(&b, 4096);
	buf_init(&line, 4096);
	assert_true(sse_event(&b, &line, "r", &ev));
	assert_string_equal(buf_cstr(&b),
			    "id: 7\nevent: run.phase\ndata: "
			    "{\"event_type\":\"run.phase\",\"run_id\":\"r\",\"task_id\":\"r\",\"sequence\":7,"
			    "\"created_at\":5,\"event_id\":\"e-7\",\"data\":{\"a\":1}}\n\n");
	buf_reset(&b);
	b.cap = 20;
	assert_false(sse_event(&b, &line, "r", &ev));
}

static const uint8_t *text_of(size_t n)
{
	uint8_t *p = malloc(n + 1);
	assert_non_null(p);
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)dice(256);
	return p;
}

/* Writes n bytes in pieces of whatever size the peer takes, and reads the records again. */
static void records(uint32_t n, uint32_t piece)
{
	const uint8_t *p = text_of(n);
	uint32_t all = stream_framed(n), sent = 0, at = 0, got = 0;
	uint8_t *out = malloc(all + 1);
	assert_non_null(out);
	while (sent < all) {
		uint8_t head[8];
		struct iovec parts[2];
		size_t k = stream_parts(0x1234, p, n, sent, head, parts);
		uint32_t takes = piece == 0 ? 1 + dice(70000) : piece;
		assert_true(k >= 1);
		for (size_t i = 0; i < k && takes > 0; i++) {
			uint32_t m = parts[i].iov_len < takes ? (uint32_t)parts[i].iov_len : takes;
			assert_true(m > 0 && sent + m <= all);
			memcpy(out + sent, parts[i].iov_base, m);
			sent += m, takes -= m;
		}
	}
	while (at < all) {
		static const uint8_t head[4] = {1, 6, 0x12, 0x34};
		uint32_t len = (uint32_t)(out[at + 4] << 8 | out[at + 5]);
		assert_memory_equal(out + at, head, 4);
		assert_true(len > 0 && out[at + 6] == 0 && at + 8 + len <= all && got + len <= n);
		assert_memory_equal(out + at + 8, p + got, len);
		at += 8 + len, got += len;
	}
	assert_int_equal(got, n);
	free(out);
	free((void *)(uintptr_t)p);
}

static void any_cut_is_whole_records(void **unused)
{
	(void)unused;
	static const uint32_t sizes[] = {1,     2,     7,     8,      9,      300,    65527, 65528,
					 65529, 65535, 65536, 131055, 131056, 131057, 200000};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		for (unsigned round = 0; round < 20; round++)
			records(sizes[i], 0);
		records(sizes[i], UINT32_MAX);
		if (sizes[i] < 400)
			records(sizes[i], 1);
	}
	records(65530, 1);
	records(131060, 5);
}

static void cursors(void **unused)
{
	(void)unused;
	assert_int_equal(stream_cursor(NULL, NULL), 0);
	assert_int_equal(stream_cursor("7", NULL), 7);
	assert_int_equal(stream_cursor("7", "9"), 7);
	assert_int_equal(stream_cursor(NULL, "9"), 9);
	assert_true(stream_cursor("9223372036854775807", NULL) == INT64_MAX);
	static const char *const none[] = {"",
					   "-1",
					   "+1",
					   " 1",
					   "1 ",
					   "01",
					   "00",
					   "1x",
					   "0x1",
					   "1e3",
					   "1.0",
					   "9223372036854775808",
					   "99999999999999999999",
					   "a"};
	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		assert_int_equal(stream_cursor(none[i], "9"), 0);
		assert_int_equal(stream_cursor(NULL, none[i]), 0);
	}
}

static void wanted(void **unused)
{
	(void)unused;
	static const struct {
		const char *stream, *accept;
		bool want;
	} rows[] = {
	    {"1", NULL, true},
	    {"true", "*/*", true},
	    {"0", "text/event-stream", false},
	    {"false", NULL, false},
	    {NULL, NULL, false},
	    {NULL, "", false},
	    {NULL, "text/event-stream", true},
	    {NULL, "TEXT/EVENT-STREAM", true},
	    {NULL, "text/html,text/event-stream;q=0.5", true},
	    {NULL, "text/event-stream ; charset=utf-8", true},
	    {NULL, "text/event-stream;q=0", false},
	    {NULL, "text/event-stream;q=0.000", false},
	    {NULL, "text/event-stream; q=0.001", true},
	    {NULL, "text/event-stream;q=0, text/event-stream", true},
	    {NULL, "text/event-streamx", false},
	    {NULL, "xtext/event-stream", false},
	    {NULL, "text/*, */*", false},
	    {NULL, ",,, text/event-stream,", true},
	    {NULL, "text/plain;x=text/event-stream", false},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct arrival in = {.accept = rows[i].accept};
		if (stream_wanted(&in, rows[i].stream) != rows[i].want)
			fail_msg("%s, %s", rows[i].stream != NULL ? rows[i].stream : "-",
				 rows[i].accept != NULL ? rows[i].accept : "-");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_frame_is_as_it_is_written), cmocka_unit_test(any_text_is_one_frame),
	    cmocka_unit_test(any_cut_is_whole_records), cmocka_unit_test(cursors), cmocka_unit_test(wanted)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
