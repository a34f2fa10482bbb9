/*
 * A judge without memory: at its first allocation, its second, and so on. It either finds what it would have found, or
 * says that it could not find out; it never says that the result is bad, or another one.
 */
#include "lib/own.h"
#include "steward/patch.h"
#include "tests/steward/trial.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 5000 };

static int left_to_do; /* allocations until one fails; 0: none does */
static bool met;

static bool fails(void)
{
	if (left_to_do == 0 || --left_to_do > 0)
		return false;
	met = true;
	errno = ENOMEM;
	return true;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

void *__wrap_malloc(size_t n)
{
	return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	return fails() ? NULL : __real_realloc(p, n);
}

static struct said *decide(const struct given *base, const struct given *after, size_t n, int nth, enum err *e)
{
	own_fd int up = bundle_new("up"), left = bundle_new("left"), out = bundle_new("out");
	struct said *s = calloc(1, sizeof *s);
	const char *allow[] = {"a.py", "d/**"};
	struct judge_rules rules = {.allow = allow, .nallow = 2, .extensions = trial_extensions, .nextensions = 4};
	assert_non_null(s);
	bundles_sources(up, base, n);
	bundles_ran(left, true, 0, false, false);
	bundles_entries(left, after, n);
	bundles_claim(left, "{\"summary\":\"did it\",\"status\":\"completed\"}");
	bundles_collected(left, (uint32_t)n, true);
	left_to_do = nth;
	met = false;
	*e = judge_decide(up, left, &rules, out);
	left_to_do = 0;
	if (*e == ERR_OK)
		trial_hear(out, s);
	return s;
}

static void sweep(const struct given *base, const struct given *after, size_t n)
{
	enum err e;
	struct said *right = decide(base, after, n, 0, &e);
	int nth = 1, lacked = 0;
	assert_int_equal(e, ERR_OK);
	do {
		struct said *s = decide(base, after, n, nth, &e);
		if (e != ERR_OK)
			assert_int_equal(e, ERR_RESOURCES_EXHAUSTED);
		lacked += e != ERR_OK;
		if (e == ERR_OK) {
			assert_int_equal(s->accepted, right->accepted);
			assert_int_equal(s->code, right->code);
			assert_int_equal(s->n, right->n);
			assert_string_equal(s->patch, right->patch);
		}
		trial_end(s);
	} while (met && ++nth < MOST);
	print_message("%d allocations, %d of them were needed\n", nth - 1, lacked);
	assert_true(nth > 10 && nth < MOST && lacked > 10);
	trial_end(right);
}

static void t_accepted(void **state)
{
	static const struct given base[] = {{"a.py", "1\n2\n3\n"}, {"b.py", "x\n"}, {"d/c.py", "y\n"}};
	static const struct given after[] = {{"a.py", "1\ntwo\n3\n"}, {"b.py", "x\n"}, {"d/c.py", "z\n"}};
	(void)state;
	sweep(base, after, 3);
}

static void t_refused(void **state)
{
	static const struct given base[] = {{"a.py", "1\n"}, {"b.py", "x\n"}};
	static const struct given after[] = {{"a.py", "2\n"}, {"b.py", "y\n"}};
	(void)state;
	sweep(base, after, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_accepted), cmocka_unit_test(t_refused)};
	if (!patch_init())
		return 1;
	int failed = cmocka_run_group_tests_name("a judge without memory", tests, NULL, NULL);
	patch_end();
	return failed;
}
