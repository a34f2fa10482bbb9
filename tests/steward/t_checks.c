/* What a check came to, from how it ended and what it printed; and what should make one look twice. */
#include "steward/checks.h"
#include "steward/flags.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RULE "----------------------------------------------------------------------\n"
#define SAYS(run, failed, skipped)         \
	{                                  \
		true, run, failed, skipped \
	}
#define SILENT                 \
	{                      \
		false, 0, 0, 0 \
	}

static const char *const unittest[] = {"python3", "-m", "unittest", "discover"};
static const char *const pytest[] = {"python3", "-m", "pytest", "-q"};
static const char *const versioned[] = {"/usr/bin/python3.11", "-m", "pytest", "-q"};
static const char *const compile[] = {"python3", "-m", "compileall", "-q"};
static const char *const git[] = {"git", "diff", "--check", NULL};
static const char *const cargo[] = {"cargo", "test", "--offline", "-q"};
static const char *const other[] = {"make", "check", NULL, NULL};

struct row {
	const char *const *argv;
	int32_t status;
	const char *output;
	enum outcome want;
	struct check_counts counts;
};

static void judge_rows(const struct row *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t argc = 0;
		while (argc < 4 && v[i].argv[argc] != NULL)
			argc++;
		struct check_counts c;
		struct check_end end = {.started = true,
					.status = v[i].status,
					.output = v[i].output,
					.n = strlen(v[i].output),
					.sources = 1};
		enum outcome got = checks_judge(v[i].argv, argc, &end, &c);
		const struct check_counts *w = &v[i].counts;
		if (got != v[i].want || c.known != w->known || c.run != w->run || c.failed != w->failed ||
		    c.skipped != w->skipped)
			fail_msg("row %zu: %s, %srun %u, failed %u, skipped %u", i, outcome_names[got],
				 c.known ? "" : "not known, ", c.run, c.failed, c.skipped);
	}
}

static void t_unittest(void **state)
{
	(void)state;
	static const struct row v[] = {
	    {unittest, 0, "..\n" RULE "Ran 2 tests in 0.001s\n\nOK\n", OUTCOME_PASSED, SAYS(2, 0, 0)},
	    {unittest, 0, ".\n" RULE "Ran 1 test in 0.001s\n\nOK\n", OUTCOME_PASSED, SAYS(1, 0, 0)},
	    {unittest, 0, "\n" RULE "Ran 0 tests in 0.000s\n\nOK\n", OUTCOME_NO_TESTS, SAYS(0, 0, 0)},
	    {unittest, 5, "\n" RULE "Ran 0 tests in 0.000s\n\nNO TESTS RAN\n", OUTCOME_NO_TESTS, SAYS(0, 0, 0)},
	    {unittest, 5, RULE "Ran 0 tests in 0.000s\n\nNO TESTS RAN (skipped=1)\n", OUTCOME_NO_TESTS, SAYS(0, 0, 1)},
	    /* what was skipped did not run */
	    {unittest, 0, "ss\n" RULE "Ran 2 tests in 0.000s\n\nOK (skipped=2)\n", OUTCOME_NO_TESTS, SAYS(0, 0, 2)},
	    {unittest, 0, ".s\n" RULE "Ran 2 tests in 0.000s\n\nOK (skipped=1)\n", OUTCOME_PASSED, SAYS(1, 0, 1)},
	    /* ... but a skipped class is not among the tests run */
	    {unittest, 0, ".ss\n" RULE "Ran 2 tests in 0.000s\n\nOK (skipped=2)\n", OUTCOME_PASSED, SAYS(1, 0, 2)},
	    {unittest, 0, ".....ss\n" RULE "Ran 2 tests in 0.000s\n\nOK (skipped=2)\n", OUTCOME_NO_TESTS,
	     SAYS(0, 0, 2)},
	    {unittest, 0, "s\n" RULE "Ran 0 tests in 0.000s\n\nOK (skipped=1)\n", OUTCOME_NO_TESTS, SAYS(0, 0, 1)},
	    {unittest, 1,
	     "FE.xus\n=====\nFAIL: test (t.T)\n" RULE
	     "Ran 6 tests in 12.5s\n\nFAILED (failures=1, errors=1, skipped=1, expected failures=1, "
	     "unexpected successes=1)\n",
	     OUTCOME_FAILED, SAYS(5, 3, 1)},
	    {unittest, 1, "E\n" RULE "Ran 0 tests in 0.0s\n\nFAILED (errors=1)\n", OUTCOME_FAILED, SAYS(1, 1, 0)},
	    /* text of the program behind it; the last such lines count, and only whole ones */
	    {unittest, 0, RULE "Ran 3 tests in 0.1s\n\nOK\nhello\nRan away\n", OUTCOME_PASSED, SAYS(3, 0, 0)},
	    {unittest, 0, "Ran 7 tests in 1.0s\n\nOK\n" RULE "Ran 0 tests in 0.000s\n\nOK\n", OUTCOME_NO_TESTS,
	     SAYS(0, 0, 0)},
	    {unittest, 0, "x Ran 7 tests in 1.0s\n\nOK\n", OUTCOME_NO_TESTS, SILENT},
	    {unittest, 0, "[... more was printed than is kept ...] Ran 7 tests in 1.0s\n\nOK\n", OUTCOME_NO_TESTS,
	     SILENT},
	    {unittest, 0, "Ran 7 tests in 1.0s of the past\n\nOK\n", OUTCOME_NO_TESTS, SILENT},
	    {unittest, 0, "Ran 7 tests in 1.0s\nOK\n", OUTCOME_NO_TESTS, SAYS(0, 0, 0)},
	    {unittest, 0, "Ran 7 tests in 1.0s\n\nOK (skipped=)\n", OUTCOME_NO_TESTS, SAYS(0, 0, 0)},
	    {unittest, 0, "Ran 7 tests in 1.0s\n\nOK (skipped=1\n", OUTCOME_NO_TESTS, SAYS(0, 0, 0)},
	    {unittest, 0, "Ran 99999999999 tests in 1.0s\n\nOK\n", OUTCOME_NO_TESTS, SILENT},
	    {unittest, 0, "Ran -1 tests in 1.0s\n\nOK\n", OUTCOME_NO_TESTS, SILENT},
	    {unittest, 0, "", OUTCOME_NO_TESTS, SILENT},
	    {unittest, 0, "Ran 1 test in 0.0s\n\nFAILED (failures=1)\n", OUTCOME_FAILED, SAYS(1, 1, 0)},
	    {unittest, 1, "Traceback", OUTCOME_FAILED, SILENT},
	    {unittest, 1, "Ran 2 tests in 0.1s\n\nOK\n", OUTCOME_FAILED, SAYS(2, 0, 0)},
	    {unittest, -9, "Ran 2 tests in 0.1s\n\nOK\n", OUTCOME_KILLED, SAYS(2, 0, 0)},
	};
	judge_rows(v, sizeof v / sizeof *v);
}

static void t_pytest(void **state)
{
	(void)state;
	static const struct row v[] = {
	    {pytest, 0, ".                    [100%]\n1 passed in 0.01s\n", OUTCOME_PASSED, SAYS(1, 0, 0)},
	    {versioned, 0, "ss      [100%]\n2 skipped in 0.01s\n", OUTCOME_NO_TESTS, SAYS(0, 0, 2)},
	    {pytest, 5, "\nno tests ran in 0.00s\n", OUTCOME_NO_TESTS, SAYS(0, 0, 0)},
	    {pytest, 5, "3 deselected in 0.02s\n", OUTCOME_NO_TESTS, SAYS(0, 0, 0)},
	    {pytest, 0, "3 deselected in 0.02s\n", OUTCOME_NO_TESTS, SAYS(0, 0, 0)},
	    {pytest, 1,
	     "F.\nE       assert 1\n1 failed, 2 passed, 1 skipped, 1 xfailed, 1 xpassed, 2 warnings, 1 error in 61.20s "
	     "(0:01:01)\n",
	     OUTCOME_FAILED, SAYS(6, 2, 1)},
	    {pytest, 2, "2 errors in 0.10s\n", OUTCOME_FAILED, SAYS(2, 2, 0)},
	    {pytest, 4, "ERROR: usage\n", OUTCOME_FAILED, SILENT},
	    {pytest, 0, "==== 3 passed, 1 warning in 0.01s ====\n", OUTCOME_PASSED, SAYS(3, 0, 0)},
	    {pytest, 0, "\033[32m\033[32m\033[1m2 passed\033[0m\033[32m in 0.01s\033[0m\033[0m\n", OUTCOME_PASSED,
	     SAYS(2, 0, 0)},
	    /* quieter still: no summary */
	    {pytest, 0, "..s.                  [ 50%]\n....                  [100%]\n", OUTCOME_PASSED, SAYS(7, 0, 1)},
	    {pytest, 0, "sss                   [100%]\n", OUTCOME_NO_TESTS, SAYS(0, 0, 3)},
	    {pytest, 0, "", OUTCOME_NO_TESTS, SILENT},
	    {pytest, 0, "1 passed", OUTCOME_NO_TESTS, SILENT},
	    {pytest, 0, "E       [1]\nx 1 passed in 0.1s\n1 passed in the rain\n7 dwarfs in 0.1s\n", OUTCOME_NO_TESTS,
	     SILENT},
	    {pytest, 0, "1 failed in 0.1s\n", OUTCOME_FAILED, SAYS(1, 1, 0)},
	    {pytest, -11, "", OUTCOME_KILLED, SILENT},
	};
	judge_rows(v, sizeof v / sizeof *v);
}

#define OF " measured; 0 filtered out; finished in 0.00s\n"

static void t_cargo(void **state)
{
	(void)state;
	static const struct row v[] = {
	    {cargo, 0, "running 1 test\n.\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0" OF, OUTCOME_PASSED,
	     SAYS(1, 0, 0)},
	    {cargo, 0, "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n", OUTCOME_PASSED,
	     SAYS(1, 0, 0)},
	    /* a library, its tests and those of its documentation */
	    {cargo, 0,
	     "test result: ok. 2 passed; 0 failed; 1 ignored; 1" OF
	     "test result: ok. 3 passed; 0 failed; 0 ignored; 0" OF
	     "test result: ok. 0 passed; 0 failed; 0 ignored; 0" OF,
	     OUTCOME_PASSED, SAYS(6, 0, 1)},
	    {cargo, 101, "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0" OF, OUTCOME_FAILED, SAYS(3, 1, 0)},
	    {cargo, 0, "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0" OF, OUTCOME_FAILED, SAYS(3, 1, 0)},
	    {cargo, 0, "test result: ok. 0 passed; 0 failed; 0 ignored; 0" OF, OUTCOME_NO_TESTS, SAYS(0, 0, 0)},
	    {cargo, 0, "test result: ok. 0 passed; 0 failed; 4 ignored; 0" OF, OUTCOME_NO_TESTS, SAYS(0, 0, 4)},
	    {cargo, 0, "", OUTCOME_NO_TESTS, SILENT},
	    {cargo, 101, "error: could not compile", OUTCOME_FAILED, SILENT},
	    {cargo, 0, "x test result: ok. 1 passed; 0 failed; 0 ignored; 0" OF, OUTCOME_NO_TESTS, SILENT},
	    {cargo, 0, "test result: ok. 1 passed; 0 failed; 0 ignored\n", OUTCOME_NO_TESTS, SILENT},
	    {cargo, 0, "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out, it says\n",
	     OUTCOME_NO_TESTS, SILENT},
	    {cargo, -9, "test result: ok. 1 passed; 0 failed; 0 ignored; 0" OF, OUTCOME_KILLED, SAYS(1, 0, 0)},
	};
	judge_rows(v, sizeof v / sizeof *v);
}

static void t_others(void **state)
{
	(void)state;
	static const struct row v[] = {
	    {git, 0, "", OUTCOME_PASSED, SILENT},
	    {git, 5, "", OUTCOME_FAILED, SILENT},
	    {git, -9, "", OUTCOME_KILLED, SILENT},
	    {git, 0, "Ran 0 tests in 0.1s\n\nOK\n", OUTCOME_PASSED, SILENT},
	    {other, 0, "2 skipped in 0.1s\n", OUTCOME_PASSED, SILENT},
	    {other, 2, "", OUTCOME_FAILED, SILENT},
	    {compile, 0, "", OUTCOME_PASSED, SILENT},
	    {compile, 1, "SyntaxError", OUTCOME_FAILED, SILENT},
	};
	judge_rows(v, sizeof v / sizeof *v);
	struct check_counts c;
	struct check_end end = {.started = true, .output = "", .sources = 0};
	assert_int_equal(checks_judge(compile, 4, &end, &c), OUTCOME_NO_TESTS);
	end = (struct check_end){.started = true, .status = -9, .timed_out = true, .output = "", .sources = 1};
	assert_int_equal(checks_judge(compile, 4, &end, &c), OUTCOME_TIMEOUT);
	assert_int_equal(checks_judge(unittest, 4, &end, &c), OUTCOME_TIMEOUT);
	end = (struct check_end){.output = "Ran 2 tests in 0.1s\n\nOK\n", .n = 24, .sources = 1};
	assert_int_equal(checks_judge(unittest, 4, &end, &c), OUTCOME_FAILED);
	assert_false(c.known);
	assert_true(checks_of_changes(git, 3));
	assert_false(checks_of_changes(git, 2) || checks_of_changes(other, 2) || checks_of_changes(unittest, 4));
}

/* Bytes of any kind: no reading beyond the end, no wrong count from a line without end. */
static void t_any_bytes(void **state)
{
	(void)state;
	uint32_t seed = 1;
	for (int round = 0; round < 3000; round++) {
		static const char *const bits[] = {"Ran ",       "7",  " tests in ", "0.1s",   "\n",   "OK",
						   " (skipped=", ")",  "\033[",      "m",      ".",    "s",
						   " passed",    ", ", " in ",       "[100%]", "\xff", "="};
		size_t n = 0, most = (size_t)round % 300;
		char *text = malloc(most + 1);
		assert_non_null(text);
		for (;;) {
			seed = seed * 1664525 + 1013904223;
			const char *bit = bits[(seed >> 16) % (sizeof bits / sizeof *bits)];
			if (n + strlen(bit) > most)
				break;
			memcpy(text + n, bit, strlen(bit));
			n += strlen(bit);
		}
		char *exact = malloc(n > 0 ? n : 1); /* so that a sanitizer sees a byte too many */
		assert_non_null(exact);
		memcpy(exact, text, n);
		struct check_end end = {.started = true, .output = exact, .n = n};
		struct check_counts c;
		enum outcome u = checks_judge(unittest, 4, &end, &c);
		assert_true(u == OUTCOME_NO_TESTS || c.run > 0);
		u = checks_judge(pytest, 4, &end, &c);
		assert_true(u == OUTCOME_NO_TESTS || c.run > 0);
		free(exact);
		free(text);
	}
}

static void t_paths(void **state)
{
	(void)state;
	static const struct {
		const char *path;
		enum flag want;
	} v[] = {
	    {"calc.py", FLAG_NONE},
	    {"src/attest.py", FLAG_NONE},
	    {"src/contest/x.py", FLAG_NONE},
	    {"src/unittest.py", FLAG_NONE},
	    {"protest.py", FLAG_NONE},
	    {"test_calc.py", FLAG_TEST_FILE},
	    {"testcalc.py", FLAG_TEST_FILE},
	    {"src/calc_test.py", FLAG_TEST_FILE},
	    {"tests/data.json", FLAG_TEST_FILE},
	    {"src/test/helper.py", FLAG_TEST_FILE},
	    {"src/test_suite/a.py", FLAG_TEST_FILE},
	    {"web/a.test.js", FLAG_TEST_FILE},
	    {"tests/conftest.py", FLAG_CHECK_SETUP},
	    {"conftest.py", FLAG_CHECK_SETUP},
	    {"pytest.ini", FLAG_CHECK_SETUP},
	    {"setup.cfg", FLAG_CHECK_SETUP},
	    {"pyproject.toml", FLAG_CHECK_SETUP},
	    {"sitecustomize/__init__.py", FLAG_CHECK_SETUP},
	    {"unittest.py", FLAG_CHECK_SETUP},
	    {"unittest/__main__.py", FLAG_CHECK_SETUP},
	    {"_pytest/x.py", FLAG_CHECK_SETUP},
	    {"", FLAG_NONE},
	};
	for (size_t i = 0; i < sizeof v / sizeof *v; i++)
		if (flags_of_path(v[i].path) != v[i].want)
			fail_msg("%s: %s", v[i].path, flag_names[flags_of_path(v[i].path)]);
}

static void expect_flags(const struct run *r, size_t i, const char *want, bool compare)
{
	own_buf struct buf b;
	struct jw w;
	buf_init(&b, 10000);
	jw_init(&w, &b);
	flags_write(&w, r, i);
	assert_string_equal(buf_cstr(&b), want);
	assert_int_equal(flags_compare(r, i), compare);
}

static void t_flags(void **state)
{
	(void)state;
	struct run *r = calloc(1, sizeof *r);
	assert_non_null(r);
	r->rq.nchecks = 2;
	r->rq.checks[0] = (struct request_check){.argc = 4};
	memcpy(r->rq.checks[0].argv, unittest, sizeof unittest);
	r->rq.checks[1] = (struct request_check){.argc = 3};
	memcpy(r->rq.checks[1].argv, git, sizeof git);
	struct check_result *c = &r->checks[0];
	c->outcome = r->checks[1].outcome = OUTCOME_PASSED;
	c->counts = (struct check_counts)SAYS(3, 0, 0);
	expect_flags(r, 0, "[]", false);
	expect_flags(r, 1, "[{\"flag\":\"nothing_changed\"}]", false);
	r->changes[r->nchanges++].path = "calc.py";
	expect_flags(r, 0, "[]", false);
	expect_flags(r, 1, "[]", false);
	c->counts.skipped = 1;
	expect_flags(r, 0, "[]", true);
	c->counts.skipped = 0;
	const struct cf_agent doubt = {0}, always = {.upload_always = true};
	r->agent = &doubt;
	expect_flags(r, 0, "[]", false);
	r->agent = &always;
	expect_flags(r, 0, "[]", true);
	r->agent = NULL;
	r->changes[r->nchanges++].path = "conftest.py";
	r->changes[r->nchanges++].path = "tests/a.py";
	static const char both[] = "[{\"flag\":\"changed_check_setup\",\"path\":\"conftest.py\"},"
				   "{\"flag\":\"changed_test_file\",\"path\":\"tests/a.py\"}]";
	expect_flags(r, 0, both, true);
	expect_flags(r, 1, "[]", false);
	c->upload = (struct check_counts)SAYS(3, 3, 0);
	expect_flags(r, 0, both, true);
	c->upload.run = 4;
	expect_flags(r, 0,
		     "[{\"flag\":\"changed_check_setup\",\"path\":\"conftest.py\"},"
		     "{\"flag\":\"changed_test_file\",\"path\":\"tests/a.py\"},{\"flag\":\"fewer_tests\"}]",
		     true);
	c->outcome = OUTCOME_FAILED;
	assert_false(flags_compare(r, 0));
	free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_unittest),  cmocka_unit_test(t_pytest),
					   cmocka_unit_test(t_cargo),     cmocka_unit_test(t_others),
					   cmocka_unit_test(t_any_bytes), cmocka_unit_test(t_paths),
					   cmocka_unit_test(t_flags)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
