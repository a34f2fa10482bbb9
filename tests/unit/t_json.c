/* Strict JSON: what must be refused, what must come through unchanged, and what is written. */
#include "lib/json.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

enum { ARENA = 64 << 20, NODES = 100000 };

static const char *why_not(const char *text, size_t n, unsigned depth, size_t nodes)
{
	struct json_fault fault = {0};
	own_arena struct arena a;
	arena_init(&a, ARENA);
	char *copy = malloc(n ? n : 1);
	assert_non_null(copy);
	memcpy(copy, text, n);
	bool ok = json_parse(&a, copy, n, depth, nodes, &fault) != NULL;
	free(copy);
	if (!ok)
		assert_non_null(fault.why);
	return ok ? NULL : fault.why;
}

static bool accepts(const char *text)
{
	return why_not(text, strlen(text), JSON_DEPTH, NODES) == NULL;
}

/* Parses and writes again. */
static void becomes(const char *text, const char *want)
{
	own_arena struct arena a;
	own_buf struct buf b;
	arena_init(&a, ARENA);
	buf_init(&b, ARENA);
	struct json *v = json_parse(&a, text, strlen(text), JSON_DEPTH, NODES, NULL);
	if (v == NULL)
		fail_msg("refused: %s", text);
	json_write(&b, v);
	assert_string_equal(buf_cstr(&b), want);
}

static void t_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {
	    "",
	    " ",
	    "{",
	    "}",
	    "{\"a\":1",
	    "{\"a\":1}}",
	    "{\"a\":1}{\"a\":1}",
	    "{} x",
	    "[1,]",
	    "[,1]",
	    "{\"a\":1,}",
	    "{a:1}",
	    "{'a':1}",
	    "[1 2]",
	    "01",
	    "-",
	    "+1",
	    ".5",
	    "1.",
	    "1e",
	    "0x1",
	    "NaN",
	    "Infinity",
	    "tru",
	    "nul",
	    "True",
	    "\"",
	    "\"a",
	    "\"\\q\"",
	    "\"\\u12\"",
	    "\"\\u12g4\"",
	    "\"\x01\"",
	    "\"\n\"",
	    "\x0c{}",
	    "\x0b{}",
	    "{}\x0c",
	    "/* c */ {}",
	    "{} // c",
	    "\xef\xbb\xbf{}",
	    /* the same key twice, in any spelling */
	    "{\"a\":1,\"a\":1}",
	    "{\"a\":1,\"\\u0061\":2}",
	    "[{\"b\":{\"x\":1,\"y\":2,\"x\":3}}]",
	    /* NUL and half pairs */
	    "\"\\u0000\"",
	    "{\"a\\u0000b\":1}",
	    "\"\\ud800\"",
	    "\"\\udc00\"",
	    "\"\\ud800x\"",
	    "\"\\ud800\\u0041\"",
	    "\"\\ud800\\ud800\"",
	    "\"\\udc00\\ud800\"",
	    "\"\\uD800\\n\"",
	    "{\"\\udfff\":1}",
	    /* not UTF-8 */
	    "\"\xc0\xaf\"",
	    "\"\xed\xa0\x80\"",
	    "\"\xed\xbf\xbf\"",
	    "\"\xf5\x80\x80\x80\"",
	    "\"\xf4\x90\x80\x80\"",
	    "\"\xe0\x80\xaf\"",
	    "\"\xf0\x80\x80\xaf\"",
	    "\"\x80\"",
	    "\"\xc3\"",
	    "\"\xe2\x82\"",
	    "\"\xff\"",
	    "\xff{}",
	    "{}\xff",
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (accepts(bad[i]))
			fail_msg("case %zu was accepted: %s", i, bad[i]);
	assert_string_equal(why_not("{}\0", 3, 8, 8), "a control byte");
	assert_string_equal(why_not("\"\0\"", 3, 8, 8), "a control byte");
	assert_string_equal(why_not("{\"a\":1,\"a\":1}", 13, 8, 8), "the same key twice");
	assert_string_equal(why_not("\"\\ud800\"", 8, 8, 8), "half of a surrogate pair");
}

static void t_accepted(void **state)
{
	(void)state;
	becomes(" { \"a\" : [ 1 , -2.5e+3 , true , false , null , \"x\" ] , \"b\" : { } } ",
		"{\"a\":[1,-2.5e+3,true,false,null,\"x\"],\"b\":{}}");
	becomes("\"\\u0041\\ud83d\\ude00\\/\\u000a\\u00e9\"", "\"A\xf0\x9f\x98\x80/\\n\xc3\xa9\"");
	becomes("\"\\\\u0000 \\\\ud800\"", "\"\\\\u0000 \\\\ud800\"");
	becomes("\"\xe2\x80\xa8\x7f\"", "\"\\u2028\\u007f\"");
	becomes("1e400", "1e400");
	becomes("12", "12");
	becomes("null", "null");
	becomes("[]", "[]");
	becomes("[[],[[]],{\"a\":{}},1]", "[[],[[]],{\"a\":{}},1]");
	becomes("{\"\":1,\" \":2}", "{\"\":1,\" \":2}");
	becomes("\"\xef\xbf\xbf\xf4\x8f\xbf\xbf\"", "\"\xef\xbf\xbf\xf4\x8f\xbf\xbf\"");
}

static void t_depth(void **state)
{
	(void)state;
	size_t half = 262144;
	char *p = malloc(2 * half);
	assert_non_null(p);
	memset(p, '[', half);
	memset(p + half, ']', half);
	assert_string_equal(why_not(p, 2 * half, JSON_DEPTH, 1 << 20), "nested too deeply");
	assert_string_equal(why_not(p + half - 33, 66, 32, NODES), "nested too deeply");
	assert_null(why_not(p + half - 32, 64, 32, NODES));
	assert_null(why_not(p + half - 64, 128, JSON_DEPTH_MODEL, NODES));
	/* As deep as may be written again. */
	own_arena struct arena a;
	own_buf struct buf b;
	arena_init(&a, ARENA);
	buf_init(&b, ARENA);
	struct json *v = json_parse(&a, p + half - 64, 128, 64, NODES, NULL);
	json_write(&b, v);
	assert_int_equal(b.n, 128);
	assert_memory_equal(b.p, p + half - 64, 128);
	v = json_parse(&a, p + half - 65, 130, 100, NODES, NULL);
	assert_non_null(v);
	buf_reset(&b);
	json_write(&b, v);
	assert_true(buf_failed(&b));
	free(p);
}

static void t_many(void **state)
{
	(void)state;
	own_buf struct buf b;
	buf_init(&b, 8 << 20);
	buf_addc(&b, '{');
	for (int i = 0; i < 50000; i++)
		buf_addf(&b, "%s\"k%d\":%d", i ? "," : "", i, i);
	size_t open_end = b.n;
	buf_addc(&b, '}');
	assert_null(why_not((char *)b.p, b.n, 8, NODES));
	assert_string_equal(why_not((char *)b.p, b.n, 8, 50000), "too many values");
	b.n = open_end;
	buf_adds(&b, ",\"k25000\":0}");
	assert_string_equal(why_not((char *)b.p, b.n, 8, NODES), "the same key twice");
	/* An arena that is too small is a refusal, not a crash. */
	own_arena struct arena a;
	arena_init(&a, 10000);
	assert_null(json_parse(&a, b.p, b.n, 8, NODES, NULL));
}

static void t_no_leak(void **state)
{
	(void)state;
	struct rusage before, after;
	static const char *const broken[] = {"{\"a\":\"b\",\"c\":[1,2,\"\\n", "{\"a\":1}}", "[\"\\ud83d\\ude00\",1 2]"};
	for (int i = 0; i < 1000; i++)
		accepts(broken[i % 3]);
	getrusage(RUSAGE_SELF, &before);
	for (int i = 0; i < 10000; i++)
		assert_false(accepts(broken[i % 3]));
	getrusage(RUSAGE_SELF, &after);
#ifndef __SANITIZE_ADDRESS__
	if (getenv("PINFOLD_MEMCHECK") == NULL) /* whose own memory grows, and who looks for leaks itself */
		assert_true(after.ru_maxrss - before.ru_maxrss < 1024);
#endif
}

static void t_integers(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		bool ok;
		int64_t v;
	} cases[] = {
	    {"0", true, 0},
	    {"20", true, 20},
	    {"-1", true, -1},
	    {"9223372036854775807", true, INT64_MAX},
	    {"-9223372036854775808", true, INT64_MIN},
	    {"9223372036854775808", false, 0},
	    {"-9223372036854775809", false, 0},
	    {"99999999999999999999", false, 0},
	    {"-0", false, 0},
	    {"20.0", false, 0},
	    {"1e0", false, 0},
	    {"1E0", false, 0},
	    {"1e400", false, 0},
	    {"\"20\"", false, 0},
	    {"true", false, 0},
	    {"null", false, 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		own_arena struct arena a;
		int64_t v = 7;
		arena_init(&a, 4096);
		struct json *j = json_parse(&a, cases[i].text, strlen(cases[i].text), 1, 1, NULL);
		assert_non_null(j);
		if (json_int(j, INT64_MIN, INT64_MAX, &v) != cases[i].ok || v != (cases[i].ok ? cases[i].v : 7))
			fail_msg("%s", cases[i].text);
	}
	int64_t v;
	assert_false(json_int(NULL, 0, 1, &v));
}

static void t_members(void **state)
{
	(void)state;
	own_arena struct arena a;
	arena_init(&a, 65536);
	static const char text[] = "{\"a\":1,\"b\":[1,2]}";
	struct json *v = json_parse(&a, text, sizeof text - 1, 4, 8, NULL);
	assert_non_null(v);
	assert_int_equal(v->count, 2);
	assert_int_equal(json_get(v, "b")->count, 2);
	assert_null(json_get(v, "c"));
	assert_null(json_get(json_get(v, "b"), "a"));
	assert_null(json_get(NULL, "a"));
}

static void t_writer(void **state)
{
	(void)state;
	own_buf struct buf b;
	struct jw w;
	buf_init(&b, 4096);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "a\"", "\x01\x1f\b\f\t\r\n\"\\");
	jw_kint(&w, "n", INT64_MIN);
	jw_kbool(&w, "t", true);
	jw_key(&w, "l");
	jw_open(&w, '[');
	jw_null(&w);
	jw_raw(&w, "{\"x\":1}", 7);
	jw_strn(&w,
		"a\xff\xc0\xaf\xe2\x82"
		"b\0c",
		9);
	jw_strn(&w, NULL, 0);
	jw_close(&w, ']');
	jw_close(&w, '}');
	assert_string_equal(buf_cstr(&b),
			    "{\"a\\\"\":\"\\u0001\\u001f\\b\\f\\t\\r\\n\\\"\\\\\",\"n\":-9223372036854775808,"
			    "\"t\":true,\"l\":[null,{\"x\":1},\"a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
			    "\xef\xbf\xbd\xef\xbf\xbd"
			    "b\\u0000c\",\"\"]}");
	jw_close(&w, '}');
	assert_true(buf_failed(&b));
}

/* A text of which a part found no memory is no text. */
static void t_writer_of_buffers(void **state)
{
	(void)state;
	own_buf struct buf b, text;
	struct jw w;
	buf_init(&b, 4096);
	buf_init(&text, 4);
	jw_init(&w, &b);
	jw_buf(&w, &text);
	buf_adds(&text, "abcd");
	jw_buf(&w, &text);
	assert_string_equal(buf_cstr(&b), "\"\",\"abcd\"");
	buf_adds(&text, "e");
	jw_buf(&w, &text);
	assert_true(buf_failed(&b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_refused), cmocka_unit_test(t_accepted), cmocka_unit_test(t_depth),
	    cmocka_unit_test(t_many),    cmocka_unit_test(t_no_leak),  cmocka_unit_test(t_integers),
	    cmocka_unit_test(t_members), cmocka_unit_test(t_writer),   cmocka_unit_test(t_writer_of_buffers)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
