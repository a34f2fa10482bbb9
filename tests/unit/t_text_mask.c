/*
 * Masks of secrets, for any text: what is masked stays so, nothing grows, what goes out is what came in but for the
 * marks, no character that cleaning takes keeps a secret from being seen, and no text takes more than one look at each
 * byte (a text of a megabyte for each way to look twice: whoever does needs hours). Cases are in
 * tests/vectors/masks.jsonl.
 */
#include "lib/text.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MARK "[masked]"

static uint32_t dice(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33);
}

/* What secrets are made of, and what stands between. */
static void any_text(uint64_t *seed, struct buf *out)
{
	static const char *const parts[] = {"sk-",         "ghp_",     "AKIA",
					    "AIza",        "eyJ",      "pfa_",
					    "xoxb-",       "token",    "password",
					    "api_key",     "=",        ":",
					    "\"",          "\\\"",     "'",
					    " ",           "\n",       "\t",
					    "Bearer ",     "bearer",   ".",
					    "-",           "_",        "(",
					    "[",           MARK,       "$(x)",
					    ";",           "--",       "-----END ",
					    "-----BEGIN ", "RSA ",     "PRIVATE KEY-----",
					    "hunter22",    "abcdefgh", "ABCDEFGH",
					    "1234567",     "\xc3\xa9", "masked",
					    "]",           "/",        "==",
					    "=>",          "\\"};
	unsigned n = dice(seed) % 14;
	for (unsigned i = 0; i < n; i++) {
		const char *p = parts[dice(seed) % (sizeof parts / sizeof *parts)];
		for (unsigned times = dice(seed) % 5 == 0 ? dice(seed) % 9 : 1; times > 0; times--)
			buf_adds(out, p);
	}
}

/* Is in the text that out is, with each mark standing for eight bytes or more? */
static bool fits(const char *in, size_t n, const char *out, size_t m)
{
	size_t i = 0, o = 0;
	while (o < m && i < n && out[o] == in[i])
		i++, o++;
	if (i == n && o == m)
		return true;
	if (m - o < 8)
		return false;
	/* The first difference is in or before the end of a mark. */
	for (size_t back = 0; back <= 8 && back <= o && back <= i; back++)
		if (m - (o - back) >= 8 && memcmp(out + o - back, MARK, 8) == 0)
			for (size_t skip = 8; i - back + skip <= n; skip++)
				if (fits(in + i - back + skip, n - (i - back + skip), out + o - back + 8,
					 m - (o - back + 8)))
					return true;
	return false;
}

static void t_any(void **state)
{
	(void)state;
	uint64_t seed = 107;
	unsigned some = 0;
	for (unsigned i = 0; i < 60000; i++) {
		own_buf struct buf in, one, two;
		buf_init(&in, 1 << 16), buf_init(&one, 1 << 16), buf_init(&two, 1 << 16);
		any_text(&seed, &in);
		const char *text = buf_cstr(&in);
		bool masked = text_mask(&one, text, in.n);
		const char *got = buf_cstr(&one);
		some += masked;
		assert_true(one.n <= in.n);
		assert_int_equal(masked, strcmp(text, got) != 0);
		if (!fits(text, in.n, got, one.n))
			fail_msg("%s became %s", text, got);
		if (text_mask(&two, got, one.n))
			fail_msg("%s became %s, and that %s", text, got, buf_cstr(&two));
	}
	assert_in_range(some, 600, 59000);
}

/* Characters that are taken, anywhere: the same text, and the same masks. */
static void t_split(void **state)
{
	(void)state;
	static const char *const texts[] = {
	    "x sk-aaaaaaaaaaaaaaaaaaaa y",
	    "password=hunter22 z",
	    "\"token\": \"hunter22\"",
	    "Bearer aaaaaaaaaaaaaaaaaaaaaaaa",
	    "eyJaaaaaaaaaa.bbbbbbbbbb.cccc",
	    "-----BEGIN PRIVATE KEY-----aaaaaaaaaaaaaaaaaaaaaa-----END PRIVATE KEY-----"};
	static const char *const gone[] = {"\xe2\x80\x8b", "\x1b", "\xe2\x80\xae", "\x7f", "\xf3\xa0\x81\x81", "\r"};
	static const enum text_field fields[] = {TEXT_F_PREVIEW, TEXT_F_TITLE, TEXT_F_EVENT};
	for (size_t t = 0; t < sizeof texts / sizeof *texts; t++)
		for (size_t f = 0; f < sizeof fields / sizeof *fields; f++) {
			own_buf struct buf want;
			bool masked;
			buf_init(&want, 4096);
			assert_true(text_field_masked(&want, fields[f], texts[t], strlen(texts[t]), &masked) && masked);
			assert_non_null(strstr(buf_cstr(&want), MARK));
			for (size_t g = 0; g < sizeof gone / sizeof *gone; g++)
				for (size_t at = 0; at <= strlen(texts[t]); at++) {
					own_buf struct buf in, got;
					buf_init(&in, 4096), buf_init(&got, 4096);
					buf_add(&in, texts[t], at);
					buf_adds(&in, gone[g]);
					buf_adds(&in, texts[t] + at);
					assert_true(text_field_masked(&got, fields[f], (char *)in.p, in.n, &masked) &&
						    masked);
					assert_string_equal(buf_cstr(&got), buf_cstr(&want));
				}
		}
}

/* No cut leaves the beginning of a secret, and none of a field is longer than its cap. */
static void t_cut(void **state)
{
	(void)state;
	for (size_t before = 150; before < 230; before++) {
		own_buf struct buf in, got, plain;
		bool masked;
		buf_init(&in, 4096), buf_init(&got, 4096), buf_init(&plain, 4096);
		for (size_t i = 0; i < before; i++)
			buf_addc(&in, i % 7 == 6 ? ' ' : 'x');
		buf_adds(&in, " password=hunter22hunter22hunter22");
		assert_true(text_field_masked(&got, TEXT_F_TITLE, (char *)in.p, in.n, &masked) && masked);
		assert_true(got.n <= text_row(TEXT_F_TITLE)->cap);
		assert_null(strstr(buf_cstr(&got), "hunter"));
		/* Without a secret it is text_field(). */
		buf_reset(&got);
		(void)text_field(&plain, TEXT_F_TITLE, (char *)in.p, before);
		assert_int_equal(text_field_masked(&got, TEXT_F_TITLE, (char *)in.p, before, &masked), before > 200);
		assert_false(masked);
		assert_string_equal(buf_cstr(&got), buf_cstr(&plain));
	}
}

static void t_long(void **state)
{
	(void)state;
	static const char *const parts[] = {"eyJaaaaaaaa-",
					    "eyJ",
					    "eyJaaaaaaaa.",
					    "token=",
					    "token ",
					    "a_token-",
					    "token:",
					    "bearer ",
					    "Bearer aaaa ",
					    "sk-",
					    "sk-a ",
					    "AKIA",
					    "-----BEGIN ",
					    "-----BEGIN A",
					    "-----BEGIN PRIVATE KEY-----",
					    "-----BEGIN PRIVATE KEY-----aaaaaaaaaaaa ",
					    "a",
					    " ",
					    "\"",
					    "\\",
					    "--token ",
					    "=",
					    "token(",
					    "a-token=aaaa(",
					    "-----",
					    ".",
					    "_"};
	for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
		own_buf struct buf in, out;
		buf_init(&in, 1 << 20), buf_init(&out, 1 << 20);
		while (!buf_failed(&in))
			buf_adds(&in, parts[p]);
		(void)text_mask(&out, (char *)in.p, in.n);
		assert_true(!buf_failed(&out) && out.n <= in.n);
	}
}

/* Want of memory is not taken for a text without secrets. */
static void t_room(void **state)
{
	(void)state;
	own_buf struct buf small;
	buf_init(&small, 4);
	(void)text_mask(&small, "password=hunter22", 17);
	assert_true(buf_failed(&small));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_any), cmocka_unit_test(t_split), cmocka_unit_test(t_cut),
					   cmocka_unit_test(t_long), cmocka_unit_test(t_room)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
