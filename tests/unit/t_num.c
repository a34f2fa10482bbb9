/* Exact numbers, ids, clocks, whole files; buffers and arenas. */
#include "lib/buf.h"
#include "lib/num.h"
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void t_numbers(void **state)
{
	(void)state;
	uint64_t v = 0;
	static const char *const bad[] = {"",
					  " 1",
					  "1 ",
					  "+1",
					  "-1",
					  "00",
					  "01",
					  "1x",
					  "0x1",
					  "1e3",
					  "18446744073709551616",
					  "99999999999999999999999"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (num_u64(bad[i], strlen(bad[i]), 0, UINT64_MAX, &v))
			fail_msg("accepted: %s", bad[i]);
	assert_true(num_u64("0", 1, 0, 0, &v) && v == 0);
	assert_true(num_u64("18446744073709551615", 20, 0, UINT64_MAX, &v) && v == UINT64_MAX);
	assert_true(num_u64("42x", 2, 42, 42, &v) && v == 42);
	assert_false(num_u64("41", 2, 42, 43, &v));
	assert_false(num_u64("44", 2, 42, 43, &v));
	assert_false(num_u64("1\0", 2, 0, 100, &v));
}

static void t_ids(void **state)
{
	(void)state;
	char s[130];
	assert_true(id_valid("a") && id_valid("0") && id_valid("A.b_c-9"));
	assert_false(id_valid("") || id_valid(".a") || id_valid("-a") || id_valid("_a") || id_valid("a/b") ||
		     id_valid("a b") || id_valid("a\n") || id_valid("\xc3\xa9") || id_valid("a%2f"));
	assert_false(id_valid_n("a\0b", 3));
	memset(s, 'a', sizeof s);
	s[128] = 0;
	assert_true(id_valid(s));
	s[128] = 'a';
	s[129] = 0;
	assert_false(id_valid(s));
	char u[UUID_LEN + 1], w[UUID_LEN + 1];
	uuid4(u);
	uuid4(w);
	assert_int_equal(strlen(u), UUID_LEN);
	assert_string_not_equal(u, w);
	assert_true(u[14] == '4' && strchr("89ab", u[19]) != NULL && id_valid(u));
	assert_true(clock_ms() > UINT64_C(1600000000000));
	uint64_t t = timer_ms();
	assert_true(timer_ms() >= t);
}

static void t_files(void **state)
{
	(void)state;
	char dir[] = "/tmp/pinfold-test-XXXXXX";
	size_t n = 0;
	assert_non_null(mkdtemp(dir));
	int d = open(dir, O_RDONLY | O_DIRECTORY);
	int fd = openat(d, "f", O_CREAT | O_WRONLY, 0600);
	assert_true(write_all(fd, "hello", 5));
	close(fd);
	char *p = file_read(d, "f", 5, &n);
	assert_non_null(p);
	assert_int_equal(n, 5);
	assert_string_equal(p, "hello");
	free(p);
	assert_null(file_read(d, "f", 4, &n));
	assert_int_equal(errno, EFBIG);
	assert_int_equal(symlinkat("f", d, "l"), 0);
	assert_null(file_read(d, "l", 5, &n));
	assert_int_equal(errno, ELOOP);
	assert_int_equal(mkfifoat(d, "p", 0600), 0);
	assert_null(file_read(d, "p", 5, &n));
	assert_int_equal(errno, EINVAL);
	assert_null(file_read(d, ".", 5, &n));
	assert_null(file_read(d, "none", 5, &n));
	assert_int_equal(errno, ENOENT);
	assert_false(write_all(-1, "x", 1));
	static const char *const names[] = {"f", "l", "p"};
	for (size_t i = 0; i < 3; i++)
		unlinkat(d, names[i], 0);
	close(d);
	rmdir(dir);
}

static void t_buffers(void **state)
{
	(void)state;
	own_buf struct buf b;
	buf_init(&b, 1000);
	assert_string_equal(buf_cstr(&b), "");
	for (int i = 0; i < 100; i++)
		buf_addf(&b, "%09d,", i);
	assert_int_equal(b.n, 1000);
	assert_int_equal(strlen(buf_cstr(&b)), 1000);
	assert_memory_equal(b.p + 990, "000000099,", 10);
	buf_addc(&b, 'x');
	/* The reason stays, whatever else happened since. */
	errno = ENOENT;
	buf_fail(&b, EINVAL);
	assert_true(buf_failed(&b));
	assert_int_equal(errno, EOVERFLOW);
	assert_null(buf_cstr(&b));
	buf_adds(&b, "");
	assert_true(buf_failed(&b));
	buf_reset(&b);
	buf_adds(&b, "again");
	assert_string_equal(buf_cstr(&b), "again");
	own_arena struct arena a;
	arena_init(&a, 1 << 20);
	unsigned char *last = NULL;
	for (size_t i = 1; i < 1000; i += 7) {
		unsigned char *p = arena_get(&a, i);
		assert_non_null(p);
		assert_int_equal((uintptr_t)p % 16, 0);
		for (size_t k = 0; k < i; k++)
			assert_int_equal(p[k], 0);
		memset(p, 0xff, i);
		assert_ptr_not_equal(p, last);
		last = p;
	}
	assert_string_equal(arena_printf(&a, "%s-%d", "x", 7), "x-7");
	assert_string_equal(arena_dup(&a, "abcdef", 3), "abc");
	assert_non_null(arena_get(&a, 500000));
	assert_null(arena_get(&a, 1 << 20));
	assert_null(arena_get(&a, SIZE_MAX));
	assert_null(arena_dup(&a, "", SIZE_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_numbers), cmocka_unit_test(t_ids),
					   cmocka_unit_test(t_files), cmocka_unit_test(t_buffers)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
