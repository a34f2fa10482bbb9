/*
 * The runner in check boxes: that a check sees the changes, all of them, and nothing else; that it fails where it
 * should.
 */
#include "tests/runner/run_box.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const diff_check[] = {"git", "diff", "--check", NULL};
static const char *const unittest[] = {"python3", "-m", "unittest", "discover", NULL};

static int repaired(bool repair)
{
	int up = up_new();
	up_source(up, "calc.py", "def add(a, b):\n    return a - b\n");
	up_source(up, "test_calc.py",
		  "import unittest, calc\nclass T(unittest.TestCase):\n    def test_add(self):\n"
		  "        self.assertEqual(calc.add(1, 2), 3)\n");
	up_source(up, "old/gone.txt", "x\n");
	up_source(up, "was", "file\n");
	up_source_end(up, 4);
	if (repair) {
		up_changed(up, "calc.py", false, "def add(a, b):\n    return a + b\n");
		up_changed(up, "was/now.sh", true, "#!/bin/sh\necho ran\n"); /* a file that became a folder */
		up_changed(up, "old", false, "a folder that became a file\n");
		up_removed(up, "was");
		up_removed(up, "old/gone.txt");
	}
	return up;
}

static void checks_see_the_changes(void **s)
{
	(void)s;
	static const char *const status[] = {"sh", "-c", "git status --porcelain; was/now.sh; env | sort; id -u", NULL};
	struct found f;
	int up = repaired(true);
	up_check(up, "check-1", ENDLESS, 10000, diff_check);
	up_check(up, "check-2", ENDLESS, 10000, unittest);
	up_check(up, "check-3", ENDLESS, 10000, status);
	up_go(up, 2, 0, 0, 0);
	assert_int_equal(box_all(&f, up), 0);
	assert_int_equal(f.checked_n, 3);
	assert_string_equal(f.checked[0].name, "check-1");
	assert_true(f.checked[0].started);
	assert_int_equal(f.checked[0].status, 0);
	assert_int_equal(f.checked[1].status, 0);
	assert_true(holds(f.checked[1].output, "Ran 1 test"));
	box_assert_output(f.checked[2].output,
			  " M calc.py\n A old\nD  old/gone.txt\nD  was\n A was/now.sh\n?? __pycache__/\nran\n"
			  "GIT_CONFIG_GLOBAL=/dev/null\nGIT_CONFIG_NOSYSTEM=1\nHOME=/tmp\nLANG=C.UTF-8\n"
			  "PATH=/usr/local/bin:/usr/bin:/bin\nPWD=/workspace/source\nTMPDIR=/tmp\n1000\n");
	assert_int_equal(f.entries_n + f.collected_n + f.ran_n + f.broken_n, 0);
	found_free(&f);
}

/* A file that is new is a change like any other to the check that looks at changes. */
static void new_files_are_looked_at(void **s)
{
	(void)s;
	static const char *const paths[] = {"new.py", "old/sub/new.py", "was/new.txt"};
	static const struct {
		const char *text;
		int status;
	} texts[] = {{"x = 1\n", 0}, {"x = 1 \n", 2}, {"x = 1\n\n\n", 2}, {"<<<<<<< ours\n", 2}, {"", 0}};
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
			struct found f;
			int up = repaired(false);
			if (i == 2)
				up_removed(up, "was");
			up_changed(up, paths[i], false, texts[k].text);
			up_check(up, "check-1", ENDLESS, 10000, diff_check);
			up_go(up, 2, 0, 0, 0);
			assert_int_equal(box_all(&f, up), 0);
			assert_int_equal(f.checked_n, 1);
			if (f.checked[0].status != texts[k].status)
				fail_msg("%s %zu: %d", paths[i], k, (int)f.checked[0].status);
			found_free(&f);
		}
	}
}

static void checks_fail_where_they_should(void **s)
{
	(void)s;
	static const char *const hang[] = {"sh", "-c", "trap '' TERM; setsid sleep 1000 & sleep 1000", NULL};
	static const char *const self[] = {"sh", "-c", "echo last words; kill -9 $$", NULL};
	static const char *const leaves[] = {"sh", "-c", "setsid sh -c 'sleep 0.2; touch left; sleep 1000' & exit 0",
					     NULL};
	static const char *const looks[] = {"sh", "-c", "sleep 0.5; ls left; ps -e -o comm= | sort | uniq -c", NULL};
	static const char *const none[] = {"no-such-program", NULL};
	struct found f;
	int up = repaired(false);
	up_changed(up, "calc.py", false, "x = 1 \n");
	up_check(up, "check-1", ENDLESS, 10000, diff_check);
	up_check(up, "check-2", ENDLESS, 10000, unittest);
	up_check(up, "check-3", 1, 10000, hang);
	up_check(up, "check-4", ENDLESS, 10000, self);
	up_check(up, "check-5", ENDLESS, 10000, leaves);
	up_check(up, "check-6", ENDLESS, 10000, looks);
	up_check(up, "check-7", ENDLESS, 10000, none);
	up_go(up, 2, 0, 0, 0);
	assert_int_equal(box_all(&f, up), 0);
	assert_int_equal(f.checked_n, 7);
	assert_int_equal(f.checked[0].status, 2);
	assert_true(holds(f.checked[0].output, "trailing whitespace"));
	assert_int_equal(f.checked[1].status, 1);
	assert_true(f.checked[2].timed_out);
	assert_int_equal(f.checked[2].status, -9);
	assert_int_equal(f.checked[3].status, -9);
	assert_false(f.checked[3].timed_out);
	box_assert_output(f.checked[3].output, "last words\n");
	assert_int_equal(f.checked[4].status, 0);
	assert_true(holds(f.checked[5].output, "cannot access 'left'"));
	assert_false(holds(f.checked[5].output, "sleep 1000"));
	assert_false(f.checked[6].started);
	found_free(&f);
}

static void a_stop_skips_the_other_checks(void **s)
{
	(void)s;
	static const char *const hang[] = {"sleep", "1000", NULL};
	struct box_run b;
	struct found f;
	int up = repaired(false);
	up_check(up, "check-1", ENDLESS, 10000, hang);
	up_check(up, "check-2", ENDLESS, 10000, unittest);
	up_go(up, 2, 0, 0, 0);
	box_start(&b, up);
	box_wait_output(&b);
	kill(b.pid, SIGTERM);
	assert_int_equal(box_wait(&b), 0);
	found_read(&f, b.result);
	assert_int_equal(f.checked_n, 2);
	assert_false(f.checked[1].started);
	found_free(&f);
	box_done(&b);
}

/* An upload cannot make git run a program, not even with a folder that looks like a repository. */
static void sources_run_nothing(void **s)
{
	(void)s;
	static const char *const argv[] = {"/bin/sh", "-c", "ls /tmp; git show --stat --format=%s | head -1; true",
					   NULL};
	static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
	struct found f;
	int up = up_new();
	up_source(up, "bare/HEAD", "ref: refs/heads/main\n");
	up_source(up, "bare/config", "[core]\n\tfsmonitor = touch /tmp/ran\n\tbare = false\n\tworktree = /workspace\n");
	up_source(up, "bare/objects/x", "");
	up_source(up, "bare/refs/x", "");
	up_source_end(up, 4);
	up_request(up, "{}");
	up_agent(up, ENDLESS, 10000, argv, env);
	up_go(up, 1, 100, 1000000, 100000);
	assert_int_equal(box_all(&f, up), 0);
	assert_memory_equal(f.ran.output.p, "base\n", 5);
	found_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(checks_see_the_changes),        cmocka_unit_test(new_files_are_looked_at),
	    cmocka_unit_test(checks_fail_where_they_should), cmocka_unit_test(a_stop_skips_the_other_checks),
	    cmocka_unit_test(sources_run_nothing),
	};
	if (geteuid() != 0) {
		puts("1..0 # SKIP these tests make namespaces: run them as root");
		return 77;
	}
	return cmocka_run_group_tests_name("checks", tests, NULL, NULL);
}
