/* Secrets: copies, comparison, and the stream in which they arrive. */
#include "lib/secret.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void t_copy(void **state)
{
	(void)state;
	struct secret s = {0};
	uint8_t big[SECRET_MAX + 1] = {1};
	assert_true(secret_set(&s, "abc", 3));
	assert_true(secret_set(&s, s.p, 2));
	assert_true(s.n == 2 && memcmp(s.p, "ab", 2) == 0);
	assert_true(secret_set(&s, big, SECRET_MAX));
	assert_false(secret_set(&s, big, SECRET_MAX + 1));
	assert_int_equal(s.n, SECRET_MAX);
	assert_true(secret_set(&s, NULL, 0));
	secret_wipe(&s);
	assert_null(s.p);
	secret_wipe(&s);
	wipe(big, sizeof big);
	assert_int_equal(big[0], 0);
}

static void t_equal(void **state)
{
	(void)state;
	uint8_t a[32], b[32];
	random_bytes(a, sizeof a);
	memcpy(b, a, sizeof b);
	assert_true(secret_equal(a, 32, b, 32));
	for (size_t i = 0; i < 256; i++) {
		b[i / 8] ^= (uint8_t)(1 << i % 8);
		assert_false(secret_equal(a, 32, b, 32));
		b[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	assert_false(secret_equal(a, 32, b, 31));
	assert_true(secret_equal(NULL, 0, NULL, 0));
}

static bool arrives(struct secrets *s, const void *stream, size_t n)
{
	int p[2];
	assert_int_equal(pipe(p), 0);
	assert_int_equal(write(p[1], stream, n), (ssize_t)n);
	close(p[1]);
	bool ok = secrets_read(s, p[0]);
	close(p[0]);
	return ok;
}

static void t_stream(void **state)
{
	(void)state;
	static const char two[] = "\x03"
				  "abc\0\x04key\n\x01x\0\x05key\r\n";
	static struct secrets s;
	size_t n = sizeof two - 1;
	assert_true(arrives(&s, two, n));
	assert_int_equal(s.n, 2);
	const struct secret *v = secrets_find(&s, "abc");
	assert_true(v != NULL && v->n == 3 && memcmp(v->p, "key", 3) == 0);
	v = secrets_find(&s, "x");
	assert_true(v != NULL && v->n == 3);
	assert_null(secrets_find(&s, "ab"));
	secrets_wipe(&s);
	assert_int_equal(s.n, 0);
	assert_true(arrives(&s, "", 0));
	/* Cut anywhere but between two. */
	for (size_t i = 1; i < n; i++) {
		bool whole = arrives(&s, two, i);
		assert_int_equal(whole, i == 10);
		assert_int_equal(s.n, whole ? 1 : 0);
		secrets_wipe(&s);
	}
	assert_false(arrives(&s,
			     "\x01x\0\x01"
			     "a\x01x\0\x01"
			     "b",
			     10));
	assert_false(arrives(&s,
			     "\0\0\x01"
			     "a",
			     4));
	assert_false(arrives(&s,
			     "\x02"
			     "x\0\0\x01"
			     "a",
			     6));
	uint8_t large[4 + 4097] = {1, 'x', 0x10, 0x01};
	assert_false(arrives(&s, large, sizeof large));
	large[3] = 0;
	assert_true(arrives(&s, large, sizeof large - 1));
	secrets_wipe(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_copy), cmocka_unit_test(t_equal),
					   cmocka_unit_test(t_stream)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
