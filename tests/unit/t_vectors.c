/* Published cases, from tests/vectors: HMAC-SHA-256 of RFC 4231, and what is UTF-8. */
#include "lib/digest.h"
#include "lib/json.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BYTES = 512 };

/* Hexadecimal, blanks between; "aa*20" is the byte twenty times. */
static size_t bytes_of(const char *s, uint8_t out[BYTES])
{
	size_t n = 0;
	unsigned byte, times;
	if (sscanf(s, "%2x*%u", &byte, &times) == 2) {
		assert_true(times <= BYTES);
		memset(out, (int)byte, times);
		return times;
	}
	for (; *s != 0; s += *s == ' ' ? 1 : 2)
		if (*s != ' ') {
			assert_true(n < BYTES && sscanf(s, "%2x", &byte) == 1);
			out[n++] = (uint8_t)byte;
		}
	return n;
}

/* Calls row with each line's columns; the number of lines. */
static unsigned each(const char *name, void (*row)(char **column))
{
	char path[4096], line[2000];
	const char *top = getenv("srcdir");
	unsigned n = 0;
	snprintf(path, sizeof path, "%s/tests/vectors/%s", top != NULL ? top : ".", name);
	FILE *f = fopen(path, "r");
	if (f == NULL)
		fail_msg("%s cannot be read", path);
	while (fgets(line, sizeof line, f) != NULL) {
		char *column[5] = {NULL}, *rest = line;
		if (line[0] == '#')
			continue;
		line[strcspn(line, "\n")] = 0;
		for (unsigned i = 0; i < 4; i++)
			column[i] = strsep(&rest, "\t");
		row(column);
		n++;
	}
	fclose(f);
	return n;
}

static void hmac_row(char **column)
{
	uint8_t key[BYTES], data[BYTES], code[BYTES], got[SHA256_SIZE];
	size_t k = bytes_of(column[1], key), n = bytes_of(column[2], data), c = bytes_of(column[3], code);
	assert_true(c == SHA256_SIZE || c == 16); /* case 5 gives half of it */
	assert_true(hmac_sha256(key, k, data, n, got));
	if (memcmp(got, code, c) != 0)
		fail_msg("RFC 4231 case %s", column[0]);
}

static void t_hmac(void **state)
{
	(void)state;
	assert_int_equal(each("rfc4231.tab", hmac_row), 7);
}

static void utf8_row(char **column)
{
	uint8_t text[BYTES];
	size_t n = bytes_of(column[2], text), at = 0;
	bool valid = strcmp(column[1], "yes") == 0;
	if (utf8_valid(text, n, &at) != valid || (valid ? at != n : at >= n))
		fail_msg("utf8.tab: %s", column[0]);
	/* Nothing behind the text belongs to it. */
	for (size_t i = 0; valid && i < n; i++) {
		uint32_t code;
		size_t len = utf8_next((char *)text + i, n - i, &code);
		assert_true(len <= n - i);
		if ((text[i] & 0xc0) == 0x80)
			assert_int_equal(len, 0);
		else if (len > 1)
			assert_int_equal(utf8_next((char *)text + i, len - 1, &code), 0);
	}
}

static void t_utf8(void **state)
{
	(void)state;
	assert_true(each("utf8.tab", utf8_row) > 80);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_hmac), cmocka_unit_test(t_utf8)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
