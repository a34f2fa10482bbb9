/* Sources of wrong credentials: what counts as one, a minute of one, and that a flood of others frees none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "handlers/source.h"

enum { MOST = 5, MINUTE = 60000 };

static void names(void **state)
{
	(void)state;
	static const char *const v[][2] = {
	    {"192.0.2.1", "192.0.2.1"},
	    {"::ffff:192.0.2.1", "192.0.2.1"},
	    {"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"},
	    {"2001:db8:1:2::", "2001:db8:1:2::/64"},
	    {"::1", "::/64"},
	    {"unix:", "an unknown address"},
	    {"192.0.2.1:80", "an unknown address"},
	    {"192.0.2.01", "an unknown address"},
	    {"", "an unknown address"},
	    {NULL, "an unknown address"},
	};
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		char text[SOURCE_TEXT];
		source_text(v[i][0], text);
		assert_string_equal(text, v[i][1]);
	}
}

static void minutes(void **state)
{
	(void)state;
	struct sources *s = sources_new(MOST);
	uint64_t now = 1;
	assert_non_null(s);
	for (int burst = 0; burst < 3; burst++, now += MINUTE) {
		for (int i = 0; i < 100; i++) {
			struct source_verdict v = sources_failed(s, "192.0.2.1", now + (uint64_t)i * 500);
			assert_int_equal(v.over, i >= MOST);
			assert_int_equal(v.first, i == MOST);
			assert_int_equal(v.seconds, 60 - i / 2);
		}
		assert_int_equal(sources_failed(s, "192.0.2.1", now + MINUTE - 1).seconds, 1);
	}
	assert_false(sources_failed(NULL, "192.0.2.1", now).over);
	free(s);
}

static void floods(void **state)
{
	(void)state;
	struct sources *s = sources_new(MOST);
	char address[64];
	unsigned blamed = 0;
	assert_non_null(s);
	for (int i = 0; i <= MOST; i++)
		(void)sources_failed(s, "192.0.2.1", 1);
	for (unsigned i = 0; i < 200000; i++) {
		(void)snprintf(address, sizeof address, "2001:db8:%x:%x::1", i >> 16, i & 0xffff);
		blamed += sources_failed(s, address, 2).over;
	}
	assert_int_equal(blamed, 0);
	assert_true(sources_failed(s, "192.0.2.1", 3).over);
	assert_false(sources_failed(s, "192.0.2.1", 1 + MINUTE).over);
	free(s);
}

/* Where nothing is set there is a bound all the same. */
static void unset(void **state)
{
	(void)state;
	struct sources *s = sources_new(0);
	assert_non_null(s);
	for (int i = 0; i < SOURCE_FAILURES; i++)
		assert_false(sources_failed(s, "192.0.2.1", 1).over);
	assert_true(sources_failed(s, "192.0.2.1", 1).over);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(minutes), cmocka_unit_test(floods),
					   cmocka_unit_test(unset)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
