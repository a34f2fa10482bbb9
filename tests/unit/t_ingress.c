/* The request target's parser, the gate over FastCGI records, and the stages of a body. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fcgi/gate.h"
#include "fcgi/ingress.h"
#include "handlers/body.h"

static const struct {
	const char *uri;
	enum uri_verdict verdict;
	const char *path, *query;
} targets[] = {
    {"/", URI_UNKNOWN, NULL, NULL},
    {"/a", URI_OK, "/a", NULL},
    {"/a?", URI_OK, "/a", ""},
    {"/a?b=c?d", URI_OK, "/a", "b=c?d"},
    {"/%61/%2D%2e%5F%7e", URI_OK, "/a/-._~", NULL},
    {"/...", URI_OK, "/...", NULL},
    {"/a/..b/c.", URI_OK, "/a/..b/c.", NULL},
    {"/a;b:c@d", URI_OK, "/a;b:c@d", NULL},
    {"/a/", URI_UNKNOWN, NULL, NULL},
    {"/a%20b", URI_ODD, "/a b", NULL},
    {"/a%20b/", URI_UNKNOWN, NULL, NULL},
    {"/%252e%252e", URI_ODD, "/%2e%2e", NULL},
    {"/%25", URI_ODD, "/%", NULL},
    {"/\xc3\xa4?x", URI_ODD, "/\xc3\xa4", "x"},
    {"/%C3%A4", URI_ODD, "/\xc3\xa4", NULL},
    {"/%C3", URI_MALFORMED, NULL, NULL},
    {"/%C3%A4/../x", URI_MALFORMED, NULL, NULL},
    {"", URI_MALFORMED, NULL, NULL},
    {"*", URI_MALFORMED, NULL, NULL},
    {"a", URI_MALFORMED, NULL, NULL},
    {"http://h/a", URI_MALFORMED, NULL, NULL},
    {"//a", URI_MALFORMED, NULL, NULL},
    {"/a//b", URI_MALFORMED, NULL, NULL},
    {"/.", URI_MALFORMED, NULL, NULL},
    {"/..", URI_MALFORMED, NULL, NULL},
    {"/./a", URI_MALFORMED, NULL, NULL},
    {"/a/../b", URI_MALFORMED, NULL, NULL},
    {"/a/%2e%2E/b", URI_MALFORMED, NULL, NULL},
    {"/a/.%2e", URI_MALFORMED, NULL, NULL},
    {"/a%2fb", URI_MALFORMED, NULL, NULL},
    {"/a%5Cb", URI_MALFORMED, NULL, NULL},
    {"/a\\b", URI_MALFORMED, NULL, NULL},
    {"/%00", URI_MALFORMED, NULL, NULL},
    {"/%0d%0a", URI_MALFORMED, NULL, NULL},
    {"/%7f", URI_MALFORMED, NULL, NULL},
    {"/a b", URI_MALFORMED, NULL, NULL},
    {"/a\x01", URI_MALFORMED, NULL, NULL},
    {"/a#b", URI_MALFORMED, NULL, NULL},
    {"/%", URI_MALFORMED, NULL, NULL},
    {"/%4", URI_MALFORMED, NULL, NULL},
    {"/%4g", URI_MALFORMED, NULL, NULL},
    {"/a?b c", URI_MALFORMED, NULL, NULL},
    {"/a?\x80", URI_MALFORMED, NULL, NULL},
    {"/a?b#c", URI_MALFORMED, NULL, NULL},
};

static void test_targets(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
		char path[INGRESS_PATH], again[INGRESS_PATH];
		const char *query;
		enum uri_verdict v = uri_parse(targets[i].uri, path, &query);
		if (v != targets[i].verdict)
			fail_msg("%s: %d", targets[i].uri, (int)v);
		if (v != URI_OK && v != URI_ODD)
			continue;
		assert_string_equal(path, targets[i].path);
		if (targets[i].query == NULL)
			assert_null(query);
		else
			assert_string_equal(query, targets[i].query);
		if (v == URI_ODD)
			continue;
		/* One more canonicalisation changes nothing. */
		assert_int_equal(uri_parse(path, again, &query), URI_OK);
		assert_string_equal(path, again);
	}
}

static void test_long_targets(void **state)
{
	(void)state;
	char uri[3 * INGRESS_PATH], path[INGRESS_PATH];
	const char *query;
	memset(uri, 'a', sizeof uri);
	uri[0] = '/';
	uri[INGRESS_PATH - 1] = '\0';
	assert_int_equal(uri_parse(uri, path, &query), URI_OK);
	/* The longest that fits is read like any other. */
	uri[INGRESS_PATH - 2] = '\xc3';
	assert_int_equal(uri_parse(uri, path, &query), URI_MALFORMED);
	uri[INGRESS_PATH - 2] = 'a';
	uri[INGRESS_PATH - 1] = 'a';
	uri[INGRESS_PATH] = '\0';
	assert_int_equal(uri_parse(uri, path, &query), URI_UNKNOWN);
	memcpy(uri + INGRESS_PATH, "/../b", 6);
	assert_int_equal(uri_parse(uri, path, &query), URI_MALFORMED);
}

/* BEGIN (responder, keep) and PARAMS A=b, then one byte of STDIN's header. */
static const uint8_t whole[] = {1, 1, 0, 1, 0, 8, 0,   0,   0, 1, 1, 0, 0, 0, 0, 0, 1, 4, 0, 1,
				0, 4, 2, 0, 1, 1, 'A', 'b', 0, 0, 1, 4, 0, 1, 0, 0, 0, 0, 1};

static void test_gate(void **state)
{
	(void)state;
	struct gate *g = malloc(sizeof *g);
	for (size_t n = 0; n < sizeof whole - 1; n++)
		assert_int_equal(gate_read(g, whole, n), GATE_MORE);
	assert_int_equal(gate_read(g, whole, sizeof whole), GATE_WHOLE);
	assert_int_equal(g->used, sizeof whole - 1);
	assert_int_equal(g->nparams, 1);
	assert_string_equal(g->params[0].name, "A");
	assert_string_equal(g->params[0].value, "b");
	assert_true(g->keep);
	/* Reading the input cannot block only where its end is there. */
	static const struct {
		uint8_t tail[24];
		size_t n;
		bool complete;
	} inputs[] = {{{1, 5, 0, 1, 0, 0, 0, 0}, 0, false},
		      {{1, 5, 0, 1, 0, 0, 0, 0}, 7, false},
		      {{1, 5, 0, 1, 0, 0, 0, 0}, 8, true},
		      {{1, 5, 0, 1, 0, 0, 1, 0}, 8, false},
		      {{1, 5, 0, 1, 0, 0, 1, 0}, 9, true},
		      {{1, 5, 0, 2, 0, 0, 0, 0}, 8, false},
		      {{1, 8, 0, 1, 0, 0, 0, 0}, 8, false},
		      {{1, 5, 0, 1, 0, 2, 0, 0, 'x', 'y'}, 10, false},
		      {{1, 5, 0, 1, 0, 2, 1, 0, 'x', 'y', 0, 1, 5, 0, 1, 0, 0, 0, 0}, 18, false},
		      {{1, 5, 0, 1, 0, 2, 1, 0, 'x', 'y', 0, 1, 5, 0, 1, 0, 0, 0, 0}, 19, true}};
	for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
		uint8_t all[sizeof whole + sizeof inputs[i].tail];
		memcpy(all, whole, sizeof whole - 1);
		memcpy(all + sizeof whole - 1, inputs[i].tail, inputs[i].n);
		assert_int_equal(gate_read(g, all, sizeof whole - 1 + inputs[i].n), GATE_WHOLE);
		assert_int_equal(g->complete, inputs[i].complete);
	}
	/* Each byte of each header, wrong: never more parameters than were sent, never a crash. */
	for (size_t at = 0; at < sizeof whole; at++)
		for (unsigned v = 0; v < 256; v++) {
			uint8_t copy[sizeof whole];
			memcpy(copy, whole, sizeof whole);
			copy[at] = (uint8_t)v;
			if (gate_read(g, copy, sizeof copy) == GATE_WHOLE)
				assert_true(g->nparams <= 2);
		}
	free(g);
}

struct source {
	size_t left, at_once;
	bool breaks;
};

static long give(void *ctx, void *p, size_t n)
{
	struct source *s = ctx;
	if (s->left == 0)
		return s->breaks ? BODY_BROKEN : 0;
	size_t k = s->left < n ? s->left : n;
	k = k < s->at_once ? k : s->at_once;
	memset(p, 'x', k);
	s->left -= k;
	return (long)k;
}

static void test_bodies(void **state)
{
	(void)state;
	const struct route json = {.body = BODY_JSON, .body_limit = 1000};
	static const struct {
		const char *type, *encoding, *length;
		size_t sent;
		bool breaks;
		enum err want;
	} rows[] = {
	    {"application/json", NULL, "10", 10, false, ERR_OK},
	    {"application/json", "", "0010", 10, false, ERR_OK},
	    {"APPLICATION/json;charset=utf-8", "Identity", "10", 10, false, ERR_OK},
	    {"application/json ; Charset=\"UTF-8\" ", NULL, "10", 10, false, ERR_OK},
	    {"application/json", NULL, "1000", 1000, false, ERR_OK},
	    {"application/json", NULL, NULL, 0, false, ERR_OK},
	    {NULL, NULL, "10", 10, false, ERR_JSON_REQUIRED},
	    {"", NULL, "10", 10, false, ERR_JSON_REQUIRED},
	    {"application/jsonx", NULL, "10", 10, false, ERR_JSON_REQUIRED},
	    {"application/json;", NULL, "10", 10, false, ERR_JSON_REQUIRED},
	    {"application/json; charset=utf-80", NULL, "10", 10, false, ERR_JSON_REQUIRED},
	    {"application/json; charset=\"utf-8", NULL, "10", 10, false, ERR_JSON_REQUIRED},
	    {"application/json; a=b", NULL, "10", 10, false, ERR_JSON_REQUIRED},
	    {"text/json", NULL, "9999", 10, false, ERR_JSON_REQUIRED},
	    {"application/json", "gzip", "9999", 10, false, ERR_UNSUPPORTED_ENCODING},
	    {"application/json", NULL, "1001", 1001, false, ERR_REQUEST_TOO_LARGE},
	    {"application/json", NULL, "99999999999999999999", 1, false, ERR_REQUEST_TOO_LARGE},
	    {"application/json", NULL, "1000", 1001, false, ERR_REQUEST_TOO_LARGE},
	    {"application/json", NULL, "-1", 1, false, ERR_INVALID_REQUEST},
	    {"application/json", NULL, "1e3", 1, false, ERR_INVALID_REQUEST},
	    {"application/json", NULL, "+5", 5, false, ERR_INVALID_REQUEST},
	    {"application/json", NULL, "9", 10, false, ERR_LENGTH_MISMATCH},
	    {"application/json", NULL, "11", 10, false, ERR_LENGTH_MISMATCH},
	    {"application/json", NULL, "", 10, false, ERR_LENGTH_MISMATCH},
	    {"application/json", NULL, "10", 10, true, ERR_LENGTH_MISMATCH},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct source s = {rows[i].sent, 7, rows[i].breaks};
		struct arrival in = {.content_type = rows[i].type,
				     .content_encoding = rows[i].encoding,
				     .content_length = rows[i].length,
				     .body = {give, &s}};
		own_buf struct buf b;
		buf_init(&b, 1001);
		enum err e = body_admit(&in, &json);
		if (e == ERR_OK)
			e = body_read(&in, &json, &b);
		if (e != rows[i].want)
			fail_msg("row %zu: %s", i, err_code(e));
		if (e == ERR_OK)
			assert_int_equal(b.n, rows[i].sent);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_targets),
	    cmocka_unit_test(test_long_targets),
	    cmocka_unit_test(test_gate),
	    cmocka_unit_test(test_bodies),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
