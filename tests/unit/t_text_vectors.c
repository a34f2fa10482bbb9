/*
 * tests/vectors/text.jsonl (C-61...C-68, D-54...D-59), links.jsonl (C-69, D-60) and agent_data.jsonl (C-60, C-65,
 * C-66), masks.jsonl (C-107, D-61), each line one case of the statement it names. A text is a string, or a list whose
 * pairs are a string and how often it stands there.
 */
#include "gateway/gateway.h"
#include "lib/own.h"
#include "lib/text.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 1 << 20 };

static void expand(const struct json *v, struct buf *out)
{
	int64_t times;
	if (v->type == JSON_STRING)
		buf_add(out, v->text, v->len);
	for (const struct json *e = v->type == JSON_ARRAY ? v->child : NULL; e != NULL; e = e->next) {
		if (e->type == JSON_STRING)
			buf_add(out, e->text, e->len);
		else if (json_int(e->child->next, 1, MOST, &times))
			while (times-- > 0)
				buf_add(out, e->child->text, e->child->len);
	}
}

static void bytes_of(const struct json *row, struct buf *out)
{
	const struct json *hex = json_get(row, "hex");
	unsigned byte;
	if (hex == NULL)
		expand(json_get(row, "in"), out);
	for (size_t i = 0; hex != NULL && sscanf(hex->text + i, "%2x", &byte) == 1; i += 2)
		buf_addc(out, (char)byte);
}

static bool truth(const struct json *row, const char *key)
{
	return json_get(row, key)->truth;
}

static void text_row_is(const struct json *row)
{
	own_buf struct buf in, want, got, again;
	buf_init(&in, MOST), buf_init(&want, MOST), buf_init(&got, MOST), buf_init(&again, MOST);
	bytes_of(row, &in);
	if (json_get(row, "words") != NULL) {
		assert_int_equal(text_words((char *)in.p, in.n), truth(row, "words"));
		return;
	}
	expand(json_get(row, "out"), &want);
	const char *name = json_get(row, "field")->text;
	enum text_field f = 0;
	while (f < TEXT_F__COUNT && strcmp(text_row(f)->name, name) != 0)
		f++;
	assert_true(f < TEXT_F__COUNT);
	bool changed = text_field(&got, f, (char *)in.p, in.n);
	assert_string_equal(buf_cstr(&got), buf_cstr(&want));
	assert_int_equal(changed, truth(row, "changed"));
	assert_true(got.n <= text_row(f)->cap);
	assert_false(text_field(&again, f, (char *)got.p, got.n));
}

static void link_row_is(const struct json *row)
{
	own_buf struct buf in, want, got, host;
	buf_init(&in, MOST), buf_init(&want, MOST), buf_init(&got, MOST), buf_init(&host, MOST);
	bytes_of(row, &in);
	const struct json *out = json_get(row, "out");
	/* Its end is where it says, whatever stands behind. */
	size_t n = in.n;
	buf_adds(&in, "99999@evil.example");
	bool ok = text_link(&got, &host, (char *)in.p, n);
	if (ok != (out->type != JSON_NULL))
		fail_msg("%.*s", (int)n, (char *)in.p);
	if (!ok) {
		assert_int_equal(got.n + host.n, 0);
		return;
	}
	expand(out, &want);
	assert_string_equal(buf_cstr(&got), buf_cstr(&want));
	assert_string_equal(buf_cstr(&host), json_get(row, "host")->text);
	/* What comes out is a link, the same. */
	own_buf struct buf again;
	buf_init(&again, MOST);
	assert_true(text_link(&again, NULL, (char *)got.p, got.n));
	assert_string_equal(buf_cstr(&again), buf_cstr(&got));
}

static void data_row_is(const struct json *row)
{
	own_buf struct buf got, want;
	buf_init(&got, MOST), buf_init(&want, MOST);
	const struct json *in = json_get(row, "in"), *id = json_get(row, "id");
	const char *says = json_get(row, "says")->text;
	enum agent_says what = *says == 'q' ? AGENT_QUESTION : *says == 'l' ? AGENT_LINK : AGENT_EVENT;
	bool kept = agent_data(&got, in->type == JSON_OBJECT ? in : NULL, 7, what, json_get(row, "mask") != NULL,
			       id->type == JSON_STRING ? id->text : NULL);
	assert_int_equal(!kept, truth(row, "dropped"));
	assert_int_equal(buf_failed(&got), json_get(row, "refused") != NULL);
	if (buf_failed(&got))
		return;
	if (!kept)
		return;
	json_write(&want, json_get(row, "out"));
	assert_string_equal(buf_cstr(&got), buf_cstr(&want));
}

static void mask_row_is(const struct json *row)
{
	own_buf struct buf in, want, got, again;
	buf_init(&in, MOST), buf_init(&want, MOST), buf_init(&got, MOST), buf_init(&again, MOST);
	expand(json_get(row, "in"), &in);
	expand(json_get(row, "out"), &want);
	bool masked = text_mask(&got, (char *)in.p, in.n);
	assert_string_equal(buf_cstr(&got), buf_cstr(&want));
	assert_int_equal(masked, in.n != want.n || memcmp(in.p, want.p, in.n) != 0);
	assert_false(text_mask(&again, (char *)got.p, got.n) && (again.n != got.n || memcmp(again.p, got.p, got.n)));
	assert_string_equal(buf_cstr(&again), buf_cstr(&want));
}

/* Calls row with each line. */
static void each(const char *name, void (*row)(const struct json *), unsigned least)
{
	char path[4096];
	const char *top = getenv("srcdir");
	unsigned n = 0;
	own_free char *line = NULL;
	size_t room = 0;
	snprintf(path, sizeof path, "%s/tests/vectors/%s", top != NULL ? top : ".", name);
	FILE *f = fopen(path, "r");
	if (f == NULL)
		fail_msg("%s cannot be read", path);
	for (ssize_t len; (len = getline(&line, &room, f)) > 0; n++) {
		own_arena struct arena a;
		arena_init(&a, 64 << 20);
		const struct json *v = json_parse(&a, line, (size_t)len - 1, JSON_DEPTH, 10000, NULL);
		if (v == NULL)
			fail_msg("%s:%u is no JSON", name, n + 1);
		print_message("%s:%u\n", name, n + 1);
		row(v);
	}
	fclose(f);
	assert_true(n >= least);
}

static void t_texts(void **state)
{
	(void)state;
	each("text.jsonl", text_row_is, 380);
}

static void t_links(void **state)
{
	(void)state;
	each("links.jsonl", link_row_is, 90);
}

static void t_data(void **state)
{
	(void)state;
	each("agent_data.jsonl", data_row_is, 38);
}

static void t_masks(void **state)
{
	(void)state;
	each("masks.jsonl", mask_row_is, 80);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_texts), cmocka_unit_test(t_links),
					   cmocka_unit_test(t_data), cmocka_unit_test(t_masks)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
