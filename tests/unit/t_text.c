/*
 * The three steps of cleaning over every code point, cuts at every cap, and what holds for any text. Cases of each
 * statement are in tests/vectors (t_text_vectors).
 */
#include "lib/die.h"
#include "lib/json.h"
#include "lib/text.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define DOTS "\xe2\x80\xa6"

static size_t put(char *out, uint32_t c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	for (size_t i = n - 1; i > 0; i--) {
		out[i] = (char)(0x80 | (c & 0x3f));
		c >>= 6;
	}
	out[0] = (char)((0xf00 >> n & 0xff) | c);
	return n;
}

static bool stays(uint32_t c, enum text_kind kind)
{
	own_buf struct buf b;
	char s[8] = "<";
	buf_init(&b, 64);
	size_t n = 1 + put(s + 1, c);
	s[n++] = '>';
	bool changed = text_clean(&b, s, n, kind, 64);
	assert_int_equal(changed, b.n != n);
	if (changed)
		assert_memory_equal(b.p, "<>", 2);
	else
		assert_memory_equal(b.p, s, n);
	return !changed;
}

static bool listed(uint32_t c)
{
	return c <= 0x1f || (c >= 0x7f && c <= 0x9f) || c == 0x200e || c == 0x200f || c == 0x061c ||
	       (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || (c >= 0x200b && c <= 0x200d) ||
	       c == 0x2060 || c == 0xfeff || (c >= 0xe0000 && c <= 0xe007f);
}

/* D-57, and the separators of D-56: what no line has. There is more of what Unicode says shows nothing. */
static bool hides(uint32_t c)
{
	static const uint32_t ends[][2] = {{0xad, 0xad},     {0x34f, 0x34f},     {0x115f, 0x1160},  {0x17b4, 0x17b5},
					   {0x180b, 0x180f}, {0x2028, 0x2029},   {0x2061, 0x2064},  {0x206a, 0x206f},
					   {0x3164, 0x3164}, {0xfdd0, 0xfdef},   {0xfe00, 0xfe0f},  {0xffa0, 0xffa0},
					   {0xfff9, 0xfffb}, {0x1d173, 0x1d17a}, {0xe0100, 0xe01ef}};
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
		if (c >= ends[i][0] && c <= ends[i][1])
			return true;
	return (c & 0xfffe) == 0xfffe;
}

/* Letters, marks and signs of blocks that are full. */
static bool written(uint32_t c)
{
	static const uint32_t ends[][2] = {{0x20, 0x7e},       {0xa0, 0xac},       {0xae, 0x34e},     {0x350, 0x377},
					   {0x400, 0x52f},     {0x2190, 0x23ff},   {0x2500, 0x27ff},  {0x3041, 0x3096},
					   {0x4e00, 0x9fff},   {0xac00, 0xd7a3},   {0xe000, 0xf8ff},  {0xfffc, 0xfffd},
					   {0x1d400, 0x1d454}, {0x1f600, 0x1f64f}, {0x20000, 0x2a6d6}};
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
		if (c >= ends[i][0] && c <= ends[i][1])
			return true;
	return false;
}

static void t_every_character(void **state)
{
	(void)state;
	for (uint32_t c = 0; c <= 0x10ffff; c++) {
		if (c >= 0xd800 && c <= 0xdfff)
			continue;
		bool body = stays(c, TEXT_BODY), line = stays(c, TEXT_LINE);
		if (body != (!listed(c) || c == '\n' || c == '\t'))
			fail_msg("U+%04X in body text", c);
		if (line && (listed(c) || hides(c)))
			fail_msg("U+%04X in one line", c);
		if (!line && written(c))
			fail_msg("U+%04X went", c);
	}
}

static void t_labels(void **state)
{
	(void)state;
	static const uint32_t gone[] = {0xad,   0x34f,  0x115f,  0x1160,   0x17b4,  0x17b5,  0x180b,  0x180f, 0x2028,
					0x2029, 0x2061, 0x2064,  0x2065,   0x206a,  0x206f,  0x3164,  0xfe00, 0xfe0f,
					0xffa0, 0xfff9, 0xfffb,  0x1d173,  0x1d17a, 0xe0100, 0xe01ef, 0xfffe, 0xffff,
					0xfdd0, 0xfdef, 0x1fffe, 0x10ffff, '\n',    '\t',    '\r'};
	static const uint32_t kept[] = {' ', 'a', 0xa0, 0xac, 0xae, 0xe9, 0x300, 0x4e2d, 0xfffc, 0xfffd, 0x1f600};
	for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++)
		if (stays(gone[i], TEXT_LINE))
			fail_msg("U+%04X stayed", gone[i]);
	for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
		if (!stays(kept[i], TEXT_LINE))
			fail_msg("U+%04X went", kept[i]);
	/* Variation selectors of emoji survive in body text. */
	assert_true(stays(0xfe0f, TEXT_BODY));
}

static void cleans(const char *in, enum text_kind kind, size_t cap, const char *want, bool changed)
{
	own_buf struct buf b;
	buf_init(&b, 4096);
	assert_int_equal(text_clean(&b, in, strlen(in), kind, cap), changed);
	assert_string_equal(buf_cstr(&b), want);
}

static void t_order(void **state)
{
	(void)state;
	/* What is removed does not count towards the cap. */
	cleans("\x1b[2Jab\xe2\x80\x8b"
	       "c",
	       TEXT_LINE, 6, "[2Jabc", true);
	cleans("abc\xe2\x80\xae", TEXT_LINE, 3, "abc", true);
	cleans("a\r\nb\tc", TEXT_BODY, 10, "a\nb\tc", true);
	cleans("a\nb\tc", TEXT_BODY, 10, "a\nb\tc", false);
	cleans("a\nb\tc", TEXT_LINE, 10, "abc", true);
	cleans("", TEXT_LINE, 10, "", false);
	cleans("\xe2\x80\x8b\x01", TEXT_LINE, 10, "", true);
	cleans("a\xff"
	       "b",
	       TEXT_LINE, 10, "ab", true);
	/* A family emoji falls apart into its members, whole. */
	cleans("\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9", TEXT_BODY, 8, "\xf0\x9f\x91\xa8\xf0\x9f\x91\xa9", true);
}

static void t_cuts(void **state)
{
	(void)state;
	cleans("abcdefgh", TEXT_LINE, 8, "abcdefgh", false);
	cleans("abcdefghi", TEXT_LINE, 8, "abcde" DOTS, true);
	cleans("abcd", TEXT_LINE, 3, DOTS, true);
	cleans("abcd", TEXT_LINE, 2, "ab", true);
	cleans("abcd", TEXT_LINE, 0, "", true);
	cleans("\xc3\xa9\xc3\xa9", TEXT_LINE, 3, DOTS, true);
	cleans("\xc3\xa9\xc3\xa9", TEXT_LINE, 1, "", true);
	cleans("\xe2\x82\xac", TEXT_LINE, 3, "\xe2\x82\xac", false);
	static const char *const texts[] = {"aaaaaaaaaa",
					    "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9",
					    "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac",
					    "\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80",
					    "\xf0\x9f\x87\xab\xf0\x9f\x87\xb7\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa",
					    "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z\xc3\xa9\xe2\x82\xac"};
	for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++)
		for (size_t cap = 0; cap <= 24; cap++) {
			own_buf struct buf b;
			size_t n = strlen(texts[t]), at;
			buf_init(&b, 64);
			buf_adds(&b, "kept:");
			bool changed = text_clean(&b, texts[t], n, TEXT_BODY, cap);
			assert_memory_equal(b.p, "kept:", 5);
			size_t len = b.n - 5;
			assert_true(len <= cap);
			assert_true(utf8_valid(b.p + 5, len, &at));
			assert_int_equal(changed, n > cap);
			if (changed && cap >= 3)
				assert_memory_equal(b.p + b.n - 3, DOTS, 3);
			/* No character less than would fit. */
			if (changed && cap >= 3)
				assert_true(len + 4 > cap);
		}
}

/* --- what holds for any text --- */
static uint32_t dice(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33);
}

/* Characters of all sorts, some bytes that are none. */
static size_t any_text(uint64_t *seed, char *out, size_t room)
{
	static const uint32_t special[] = {'\n',    '\t',    '\r',   0x1b,   0x7f,   0x9b,  0xad,   0x200b,
					   0x200d,  0x202e,  0x2066, 0xfeff, 0xfe0f, 0x301, 0x20dd, 0x1d165,
					   0xe0041, 0xe0101, 0xfff9, 0x2028, 0xfffe, 0x378};
	size_t n = 0, most = dice(seed) % room;
	while (n + 4 <= most) {
		uint32_t roll = dice(seed) % 16, c = 'a' + dice(seed) % 26;
		if (roll < 4)
			c = special[dice(seed) % (sizeof special / sizeof special[0])];
		else if (roll < 7)
			c = dice(seed) % 0x3000;
		else if (roll == 7)
			c = 0x1f300 + dice(seed) % 0x400;
		if (roll == 8)
			out[n++] = (char)dice(seed);
		else
			n += put(out + n, c);
	}
	return n;
}

/* Is c one that this kind of text must not have? */
static bool forbidden(uint32_t c, enum text_kind kind)
{
	return (listed(c) && (kind == TEXT_LINE || (c != '\n' && c != '\t'))) || (kind == TEXT_LINE && hides(c));
}

static void holds(const char *s, size_t n, enum text_kind kind, size_t cap)
{
	own_buf struct buf all, one, two;
	size_t at;
	buf_init(&all, 1 << 20), buf_init(&one, 1 << 20), buf_init(&two, 1 << 20);
	/* Without a bound, what is left; with it, that or a part of it and the mark. */
	bool taken = text_clean(&all, s, n, kind, 1 << 20), changed = text_clean(&one, s, n, kind, cap);
	assert_true(one.n <= cap);
	assert_true(utf8_valid(one.p, one.n, &at));
	assert_int_equal(taken, all.n != n);
	assert_int_equal(changed, one.n != n || memcmp(one.n > 0 ? (char *)one.p : "", s, n) != 0);
	if (all.n <= cap)
		assert_true(one.n == all.n && (one.n == 0 || memcmp(one.p, all.p, one.n) == 0));
	else if (cap >= 3) {
		assert_memory_equal(one.p + one.n - 3, DOTS, 3);
		assert_memory_equal(one.p, all.p, one.n - 3);
	}
	for (size_t i = 0; i < one.n;) {
		uint32_t c = 0;
		i += utf8_next((char *)one.p + i, one.n - i, &c);
		if (forbidden(c, kind))
			fail_msg("U+%04X is left", c);
	}
	assert_false(text_clean(&two, (char *)one.p, one.n, kind, cap));
	assert_true(two.n == one.n && (one.n == 0 || memcmp(one.p, two.p, one.n) == 0));
}

static void t_any(void **state)
{
	(void)state;
	char text[600];
	uint64_t seed = 60;
	for (unsigned i = 0; i < 20000; i++) {
		size_t n = any_text(&seed, text, sizeof text);
		size_t cap = dice(&seed) % 4 == 0 ? dice(&seed) % 12 : dice(&seed) % 700;
		holds(text, n, TEXT_LINE, cap);
		holds(text, n, TEXT_BODY, cap);
	}
}

/* A letter that loses some of its marks is another letter: it loses all. */
static void t_marks(void **state)
{
	(void)state;
	cleans("abce\xcc\x81xxxx", TEXT_LINE, 9, "abce" DOTS, true);
	cleans("abce\xcc\x81xxx", TEXT_LINE, 9, "abce\xcc\x81xxx", false);
	cleans("\xcc\x81\xcc\x81\xcc\x81\xcc\x81", TEXT_BODY, 6, DOTS, true);
	/* What stands before is not this text's. */
	own_buf struct buf b;
	buf_init(&b, 64);
	buf_adds(&b, "e\xcc\x81");
	assert_true(text_clean(&b, "\xcc\x81\xcc\x81\xcc\x81", 6, TEXT_LINE, 5));
	assert_string_equal(buf_cstr(&b), "e\xcc\x81" DOTS);
}

static void t_fields(void **state)
{
	(void)state;
	assert_int_equal(text_field_of("reason", false), TEXT_F_REASON);
	assert_int_equal(text_field_of("title", true), TEXT_F_TITLE);
	/* Elsewhere a title is a string like any other; and nothing that is no member's name is looked up. */
	assert_int_equal(text_field_of("title", false), TEXT_F_EVENT);
	static const char *const others[] = {"key", "option", "url", "summary", "status", "event", "", "reasons"};
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		assert_int_equal(text_field_of(others[i], true), TEXT_F_EVENT);
}

static void t_fit(void **state)
{
	(void)state;
	static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80";
	static const size_t want[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
	for (size_t most = 0; most < sizeof want / sizeof want[0]; most++)
		assert_int_equal(utf8_fit(text, 10, most), want[most]);
	assert_int_equal(utf8_fit("", 0, 0), 0);
}

static void t_log(void **state)
{
	(void)state;
	own_buf struct buf b;
	buf_init(&b, 256);
	text_log(&b, "a\n\x1b]52;c;x\x07\xc2\x85\x7f\0z", 16, 100);
	assert_string_equal(buf_cstr(&b), "a\\x0a\\x1b]52;c;x\\x07\\xc2\\x85\\x7f\\x00z");
	for (size_t cap = 0; cap < 12; cap++) {
		buf_reset(&b);
		text_log(&b, "ab\ncd\n", 6, cap);
		assert_true(b.n <= cap);
	}
	buf_reset(&b);
	text_log(&b, "abcdef", 6, 5);
	assert_string_equal(buf_cstr(&b), "ab...");
	/* A full buffer ends it. */
	own_buf struct buf small;
	buf_init(&small, 4);
	text_log(&small, "abcdef", 6, 100);
	assert_true(buf_failed(&small));
}

/* A daemon's log line with foreign text in it is one line of printable ASCII (L1). */
static void t_log_line(void **state)
{
	(void)state;
	char text[600], got[8192];
	uint64_t seed = 62;
	int fds[2], kept = dup(STDERR_FILENO);
	for (unsigned i = 0; i < 500; i++) {
		size_t n = any_text(&seed, text, sizeof text - 1);
		text[n] = 0;
		assert_int_equal(pipe(fds), 0);
		dup2(fds[1], STDERR_FILENO);
		log_warn("said: %s", text);
		dup2(kept, STDERR_FILENO);
		close(fds[1]);
		ssize_t len = read(fds[0], got, sizeof got - 1);
		close(fds[0]);
		assert_true(len > 0 && got[len - 1] == '\n');
		got[len - 1] = 0;
		assert_non_null(strstr(got, ": warn: said: "));
		for (const char *c = got; c < got + len - 1; c++)
			assert_in_range(*c, 0x20, 0x7e);
	}
	close(kept);
}

static void shown(const char *in, bool utf8, const char *screen, const char *json)
{
	own_buf struct buf one, two;
	buf_init(&one, 4096), buf_init(&two, 4096);
	text_screen(&one, in, strlen(in), utf8);
	assert_string_equal(buf_cstr(&one), screen);
	text_json(&two, in, strlen(in), utf8);
	assert_string_equal(buf_cstr(&two), json);
}

static void t_screen(void **state)
{
	(void)state;
	shown("\"plain\" \\n", true, "\"plain\" \\n", "\"plain\" \\n");
	shown("a\tb\nc\rd", true, "a\tb\\x0ac\\x0dd", "a b c d");
	shown("\x1b[2J\x7f", true, "\\x1b[2J\\x7f", "\\u001b[2J\\u007f");
	shown("\xc2\x9b\xe2\x80\xae", true, "\\xc2\\x9b\\xe2\\x80\\xae", "\\u009b\\u202e");
	shown("\xf3\xa0\x81\x81", true, "\\xf3\\xa0\\x81\\x81", "\\udb40\\udc41");
	shown("\xe4\xb8\xad\xf0\x9f\x98\x80", true, "\xe4\xb8\xad\xf0\x9f\x98\x80", "\xe4\xb8\xad\xf0\x9f\x98\x80");
	shown("\xe4\xb8\xad\xf0\x9f\x98\x80", false, "\\xe4\\xb8\\xad\\xf0\\x9f\\x98\\x80", "\\u4e2d\\ud83d\\ude00");
	shown("\xff\xc3", true, "\\xff\\xc3", "\\ufffd\\ufffd");
	/* Nothing but what shows, whatever comes. */
	char text[600];
	uint64_t seed = 61;
	for (unsigned i = 0; i < 5000; i++) {
		size_t n = any_text(&seed, text, sizeof text);
		own_buf struct buf b, again;
		buf_init(&b, 1 << 14), buf_init(&again, 1 << 14);
		bool utf8 = i % 2 == 0;
		text_screen(&b, text, n, utf8);
		for (size_t at = 0; at < b.n;) {
			uint32_t c = 0;
			size_t len = utf8_next((char *)b.p + at, b.n - at, &c);
			assert_true(len > 0 && (utf8 || len == 1) && (c == '\t' || !forbidden(c, TEXT_LINE)));
			at += len;
		}
		text_json(&again, (char *)b.p, b.n, utf8);
		assert_int_equal(again.n, b.n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_every_character),
					   cmocka_unit_test(t_labels),
					   cmocka_unit_test(t_order),
					   cmocka_unit_test(t_cuts),
					   cmocka_unit_test(t_any),
					   cmocka_unit_test(t_marks),
					   cmocka_unit_test(t_fields),
					   cmocka_unit_test(t_fit),
					   cmocka_unit_test(t_log),
					   cmocka_unit_test(t_log_line),
					   cmocka_unit_test(t_screen)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
