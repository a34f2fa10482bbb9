/* Published vectors, and base64url in its one spelling. */
#include "lib/digest.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void t_hashes(void **state)
{
	(void)state;
	uint8_t d[SHA256_SIZE];
	char text[SHA256_HEX];
	uint64_t size = 0;
	assert_true(sha256("abc", 3, d));
	hex(d, sizeof d, text);
	assert_string_equal(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	/* RFC 4231, case 2. */
	assert_true(hmac_sha256("Jefe", 4, "what do ya want for nothing?", 28, d));
	hex(d, sizeof d, text);
	assert_string_equal(text, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	FILE *f = tmpfile();
	assert_non_null(f);
	for (int i = 0; i < 100000; i++)
		fputc('a', f);
	for (int i = 0; i < 900000; i++)
		fputc('a', f);
	fflush(f);
	assert_true(sha256_fd(fileno(f), d, &size));
	hex(d, sizeof d, text);
	assert_int_equal(size, 1000000);
	assert_string_equal(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	fclose(f);
	assert_false(sha256_fd(-1, d, &size));
}

static void t_round_trip(void **state)
{
	(void)state;
	uint8_t in[64] = {0}, out[64];
	char text[128];
	for (size_t n = 0; n < sizeof in; n++) {
		for (size_t i = 0; i < n; i++)
			in[i] = (uint8_t)(i * 37 + n);
		size_t len = b64url_encode(in, n, text, sizeof text);
		assert_int_equal(len, strlen(text));
		assert_int_equal(b64url_decode(text, len, out, sizeof out), n);
		assert_memory_equal(in, out, n);
		/* Room for exactly the text and its NUL, and one byte too little. */
		if (n > 0) {
			assert_int_equal(b64url_encode(in, n, text, len + 1), len);
			assert_int_equal(b64url_encode(in, n, text, len), 0);
			assert_int_equal(b64url_decode(text, len, out, n - 1), -1);
		}
	}
}

static void t_one_spelling(void **state)
{
	(void)state;
	static const char *const refused[] = {"A",
					      "AAAAA",
					      "AA==",
					      "AAA=",
					      "TW=u",
					      "====",
					      "AA\n",
					      " AAA",
					      "AA A",
					      "+AAA",
					      "/AAA",
					      "AB",
					      "A_",
					      "AAB",
					      "AA.A",
					      ("\xc3\xa9"
					       "AA"),
					      "AAA\n",
					      "AAAA="};
	uint8_t out[16];
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
		if (b64url_decode(refused[i], strlen(refused[i]), out, sizeof out) != -1)
			fail_msg("accepted: %s", refused[i]);
	assert_int_equal(b64url_decode("AA\0A", 4, out, sizeof out), -1);
	/* Of the 64 last characters of a 43-character text, those with the spare bits 00 are the ones. */
	char text[44];
	memset(text, 'A', 43);
	int accepted = 0;
	for (int c = 1; c < 256; c++) {
		uint8_t big[32];
		text[42] = (char)c;
		accepted += b64url_decode(text, 43, big, sizeof big) == 32;
	}
	assert_int_equal(accepted, 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_hashes), cmocka_unit_test(t_round_trip),
					   cmocka_unit_test(t_one_spelling)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
