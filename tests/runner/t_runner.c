/*
 * The runner: what it unpacks, how it launches, that nothing survives, what it says of a broken upload.
 */
#include "gen/errors.h"
#include "tests/runner/run_box.h"
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void script(struct found *f, const char *text)
{
	assert_int_equal(box_all(f, up_script(text, ENDLESS)), 0);
	assert_int_equal(f->ran_n, 1);
	assert_int_equal(f->collected_n, 1);
}

/* --- what the agent finds ------------------------------------------------------------------------- */

static void agent_finds_its_workspace(void **s)
{
	(void)s;
	static const char *const argv[] = {
	    "/bin/sh", "-c",
	    "id -u; id -G; pwd -P; umask; cat sub/dir/b.py; git log --format=%s%an; git status --porcelain; "
	    "cd ..; stat -c '%a %u %n' source source/a.txt source/sub request.json .t; cat .t request.json; "
	    "git -C source config --get-regexp 'core.*path|filter|alias'; ls -A",
	    NULL};
	static const char *const env[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", NULL};
	struct found f;
	int up = up_new();
	up_source(up, "a.txt", "one\n");
	up_source(up, "sub/dir/b.py", "two\n");
	up_source(up, ".gitignore", "a.txt\n");
	up_source_end(up, 3);
	up_request(up, "{\"x\":1}");
	up_token(up, ".t", "tok\n");
	up_agent(up, ENDLESS, 10000, argv, env);
	up_go(up, 1, 100, 1000000, 100000);
	assert_int_equal(box_all(&f, up), 0);
	box_assert_output(f.ran.output,
			  "1000\n1000\n/workspace/source\n0022\ntwo\nbasePinfold\n"
			  "755 1000 source\n644 1000 source/a.txt\n755 1000 source/sub\n444 1000 request.json\n"
			  "600 1000 .t\ntok\n{\"x\":1}.t\nrequest.json\nsource\n");
	assert_true(f.ran.started && !f.ran.timed_out && !f.ran.stopped && !f.ran.truncated);
	assert_int_equal(f.entries_n, 3);
	assert_true(f.collected.complete);
	found_free(&f);
}

static void agent_finds_its_own_files(void **s)
{
	(void)s;
	static const char *const argv[] = {"/bin/sh", "-c",
					   "cd ..; find home -printf '%m %U %p\\n' | sort; cat home/.a/b", NULL};
	static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
	static const char *const elsewhere[] = {"request.json",    "source/.git/config", "home",
						"homely/a",        "home/../source/a",   "/home/a",
						"home/.git/config"};
	struct found f;
	int up = up_new();
	up_source(up, "a.txt", "one\n");
	up_source_end(up, 1);
	up_request(up, "{}");
	up_file(up, "home/.a/b", "mine\n");
	up_agent(up, ENDLESS, 10000, argv, env);
	up_go(up, 1, 100, 1000000, 100000);
	assert_int_equal(box_all(&f, up), 0);
	box_assert_output(f.ran.output, "600 1000 home/.a/b\n755 1000 home\n755 1000 home/.a\nmine\n");
	found_free(&f);
	for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) {
		up = up_new();
		up_source(up, "a.txt", "one\n");
		up_source_end(up, 1);
		up_request(up, "{}");
		up_file(up, elsewhere[i], "mine\n");
		up_agent(up, ENDLESS, 10000, argv, env);
		up_go(up, 1, 100, 1000000, 100000);
		box_all(&f, up);
		assert_int_equal(f.broken_n, 1);
		assert_int_equal(f.ran_n, 0);
		found_free(&f);
	}
}

static void agent_gets_nothing_else(void **s)
{
	(void)s;
	struct found f;
	script(&f, "env | sort; ls /proc/self/fd | head -c 100; readlink /proc/self/fd/0; "
		   "grep -E '^(Cap|NoNewPrivs|Groups|SigIgn|SigBlk)' /proc/self/status; "
		   "cat /proc/1/environ; kill -9 1; ls /proc/1/fd; cat </proc/1/mem; "
		   "[ $$ = $(ps -o sid= -p $$) ] && echo session; echo out >/dev/stdout; echo err >/dev/stderr");
	/* ls has its own descriptor 3. */
	static const char begin[] = "ONLY=this\nPATH=/usr/bin:/bin\nPWD=/workspace/source\n0\n1\n2\n3\n/dev/null\n";
	assert_true(f.ran.output.n > sizeof begin);
	assert_memory_equal(f.ran.output.p, begin, sizeof begin - 1);
	static const char *const must[] = {"CapInh:\t0000000000000000",
					   "CapPrm:\t0000000000000000",
					   "CapEff:\t0000000000000000",
					   "CapAmb:\t0000000000000000",
					   "NoNewPrivs:\t1",
					   "SigBlk:\t0000000000000000",
					   "SigIgn:\t0000000000000000",
					   "Groups:\t \n",
					   "out\n",
					   "err\n"};
	for (size_t i = 0; i < sizeof must / sizeof *must; i++) {
		if (!holds(f.ran.output, must[i]))
			fail_msg("<%s> is missing in <%.*s>", must[i], (int)f.ran.output.n,
				 (const char *)f.ran.output.p);
	}
	assert_false(holds(f.ran.output, "SECRET"));
	assert_int_equal(f.ran.status, 0);
	found_free(&f);
}

static void children_join_the_group(void **s)
{
	(void)s;
	struct box_run b;
	char got[64] = "";
	box_start(&b, up_script("true", ENDLESS));
	assert_int_equal(box_wait(&b), 0);
	assert_true(pread(b.group, got, sizeof got - 1, 0) > 0);
	assert_string_equal(got, "00000"); /* unpack, three times git, the agent */
	box_done(&b);
}

static void exit_codes_and_signals(void **s)
{
	(void)s;
	static const struct {
		const char *script;
		int status;
	} cases[] = {{"exit 0", 0},      {"exit 1", 1},        {"exit 255", 255},
		     {"kill -9 $$", -9}, {"kill -15 $$", -15}, {"kill -11 $$", -11}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct found f;
		script(&f, cases[i].script);
		assert_true(f.ran.started);
		assert_int_equal(f.ran.status, cases[i].status);
		found_free(&f);
	}
}

static void a_program_that_is_missing(void **s)
{
	(void)s;
	static const char *const argv[] = {"/no/such", NULL}, *const env[] = {NULL};
	struct found f;
	int up = up_new();
	up_source_end(up, 0);
	up_request(up, "{}");
	up_agent(up, ENDLESS, 10000, argv, env);
	up_go(up, 1, 10, 1000, 1000);
	assert_int_equal(box_all(&f, up), 0);
	assert_false(f.ran.started);
	assert_true(holds(f.ran.output, "starting its program: No such file"));
	assert_int_equal(f.collected_n, 1);
	found_free(&f);
}

static void output_is_capped(void **s)
{
	(void)s;
	struct found f;
	script(&f,
	       "echo begin; head -c 100000000 /usr/bin/python3.11 >/dev/null; yes | head -c 50000000; echo end >&2");
	assert_true(f.ran.truncated);
	assert_int_equal(f.ran.output.n, 10000);
	assert_memory_equal(f.ran.output.p, "begin\ny\n", 8);
	assert_int_equal(f.ran.status, 0);
	/* The end of it is there too, behind a mark, and in its order. */
	assert_memory_equal(f.ran.output.p + 10000 - 6, "y\nend\n", 6);
	assert_true(holds(f.ran.output, "\n[... more was printed than is kept ...] "));
	found_free(&f);
	/* Every length around the buffer's: nothing is lost that fits, and the end is always the end. */
	for (int more = -2; more <= 3; more++) {
		char text[200];
		snprintf(text, sizeof text, "head -c %d /dev/zero | tr '\\0' x; printf abcdef", 9994 + more);
		script(&f, text);
		assert_int_equal(f.ran.truncated, more > 0);
		assert_int_equal(f.ran.output.n, more > 0 ? 10000 : 10000 + more);
		assert_memory_equal(f.ran.output.p + f.ran.output.n - 7, "xabcdef", 7);
		assert_int_equal(holds(f.ran.output, "more was printed"), more > 0);
		found_free(&f);
	}
	/* A lap and a half around the half that is written again and again. */
	script(&f, "seq 1 4000");
	assert_memory_equal(f.ran.output.p, "1\n2\n3\n", 6);
	assert_memory_equal(f.ran.output.p + 10000 - 15, "3998\n3999\n4000\n", 15);
	found_free(&f);
}

/* --- nothing survives ----------------------------------------------------------------------------- */

static void wall_time_ends_it(void **s)
{
	(void)s;
	struct found f;
	assert_int_equal(box_all(&f, up_script("trap '' TERM INT HUP; echo x >made; while :; do sleep 1; done", 1)), 0);
	assert_true(f.ran.timed_out && !f.ran.stopped);
	assert_int_equal(f.ran.status, -9);
	assert_true(f.ran.duration_ms >= 1000);
	assert_non_null(found_entry(&f, "made"));
	found_free(&f);
}

/* While sandboxd says so, its clock stands still; and goes on from there. */
static void waiting_is_no_wall_time(void **s)
{
	(void)s;
	struct box_run b;
	struct found f;
	static const uint8_t stands = 1, goes = 0;
	box_start(&b, up_script("sleep 5; touch lived; while :; do sleep 1; done", 3));
	box_wait_output(&b);
	assert_int_equal(write(b.control, &stands, 1), 1);
	usleep(6000000);
	assert_int_equal(write(b.control, &stands, 1), 1);
	assert_int_equal(write(b.control, &goes, 1), 1);
	assert_int_equal(box_wait(&b), 0);
	found_read(&f, b.result);
	assert_true(f.ran.timed_out && !f.ran.stopped);
	assert_non_null(found_entry(&f, "lived"));
	assert_true(f.ran.duration_ms >= 3000 + 5000);
	found_free(&f);
	box_done(&b);
	/* A stop does not wait for it. */
	box_start(&b, up_script("while :; do sleep 1; done", ENDLESS));
	box_wait_output(&b);
	assert_int_equal(write(b.control, &stands, 1), 1);
	kill(b.pid, SIGTERM);
	assert_int_equal(box_wait(&b), 0);
	found_read(&f, b.result);
	assert_true(f.ran.stopped && !f.ran.timed_out);
	found_free(&f);
	box_done(&b);
}

static void a_pipe_held_open_does_not_block(void **s)
{
	(void)s;
	struct found f;
	script(&f, "setsid sleep 1000 & (trap '' TERM; exec setsid sleep 1000) & "
		   "(setsid sh -c 'sh -c \"kill -STOP \\$\\$\" & sleep 1000' &) ; echo said");
	box_assert_output(f.ran.output, "said\n");
	assert_int_equal(f.ran.status, 0);
	found_free(&f);
}

static void closing_its_output_is_not_the_end(void **s)
{
	(void)s;
	struct found f;
	script(&f, "echo said; exec >&- 2>&-; sleep 0.3; exit 7");
	assert_int_equal(f.ran.status, 7);
	found_free(&f);
}

static void a_fork_storm_is_ended(void **s)
{
	(void)s;
	struct found f;
	/* Descendants that leave the session, fork again and again, and would write for ever. */
	static const char storm[] = "import os,sys,time\n"
				    "n=0\n"
				    "def grow():\n"
				    "    while True:\n"
				    "        try:\n"
				    "            if os.fork()==0:\n"
				    "                os.setsid()\n"
				    "                if os.fork()!=0: os._exit(0)\n"
				    "            open('beat','a').write('x')\n"
				    "            time.sleep(0.01)\n"
				    "        except OSError: pass\n"
				    "import resource\n"
				    "resource.setrlimit(resource.RLIMIT_NPROC,(200,200))\n"
				    "grow()\n";
	char text[2000];
	snprintf(text, sizeof text, "cat >storm.py <<'EOF'\n%sEOF\nexec python3 storm.py", storm);
	assert_int_equal(box_all(&f, up_script(text, 2)), 0);
	assert_true(f.ran.timed_out);
	assert_non_null(found_entry(&f, "beat"));
	found_free(&f);
}

/* Lower for the agent than for the runner, for good; and what the agent ran into is told. */
static void limits_of_a_process(void **s)
{
	(void)s;
	struct found f;
	up_limits = (struct up_limits){.open_files = 32, .file_bytes = 4096000};
	script(&f, "exec 2>/dev/null; ulimit -Hn; ulimit -Sn; ulimit -n 33 && echo raised; ulimit -Hf; head -c 5000000 "
		   "/dev/zero >big");
	box_assert_output(f.ran.output, "32\n32\n8000\n");
	assert_int_equal(f.ran.status, 128 + SIGXFSZ);
	assert_int_equal(f.ran.reached, 0);
	found_free(&f);
	up_limits = (struct up_limits){0};
	script(&f, "ulimit -Hf; head -c 300000000 /dev/zero >../big");
	assert_int_equal(f.ran.reached, 1);
	found_free(&f);
	script(&f, "cat /dev/zero >../big; rm ../big; true");
	assert_int_equal(f.ran.status, 0); /* what it has removed again is its own affair, if it was quick */
	found_free(&f);
}

/* The clock of the group's processor time is the test's: it goes ahead by a second each 20 ms. */
static void processor_time_ends_it(void **s)
{
	(void)s;
	struct box_run b;
	struct found f;
	up_limits = (struct up_limits){.cpu_seconds = 10};
	int upload = up_script("sleep 600 & wait", ENDLESS);
	up_limits = (struct up_limits){0};
	box_start(&b, upload);
	pid_t clock = fork();
	if (clock == 0)
		for (unsigned used = 1;; used++) {
			dprintf(b.cpu, "usage_usec %010u\nuser_usec 1\n", used * 1000000);
			lseek(b.cpu, 0, SEEK_SET);
			usleep(20000);
		}
	assert_int_equal(box_wait(&b), 0);
	kill(clock, SIGKILL);
	waitpid(clock, NULL, 0);
	found_read(&f, b.result);
	box_done(&b);
	assert_int_equal(f.ran.reached, 4);
	assert_false(f.ran.timed_out);
	assert_int_equal(f.collected_n, 1);
	found_free(&f);
}

static void stop_is_asked_first(void **s)
{
	(void)s;
	struct box_run b;
	struct found f;
	box_start(&b,
		  up_script("trap 'echo asked >asked; exit 3' TERM; touch up; while :; do sleep 0.05; done", ENDLESS));
	box_wait_output(&b);
	usleep(500000); /* let the shell set its trap; too early only means that the default ends it */
	kill(b.pid, SIGTERM);
	assert_int_equal(box_wait(&b), 0);
	found_read(&f, b.result);
	assert_true(f.ran.stopped && !f.ran.timed_out);
	if (found_entry(&f, "up"))
		assert_true(f.ran.status == 3 || f.ran.status == -15);
	assert_int_equal(f.collected_n, 1);
	found_free(&f);
	box_done(&b);
}

static void stop_is_not_declined(void **s)
{
	(void)s;
	struct box_run b;
	struct found f;
	box_start(&b, up_script("trap '' TERM; touch up; while :; do sleep 1; done", ENDLESS));
	box_wait_output(&b);
	kill(b.pid, SIGTERM);
	assert_int_equal(box_wait(&b), 0);
	found_read(&f, b.result);
	assert_true(f.ran.stopped);
	assert_int_equal(f.collected_n, 1);
	found_free(&f);
	box_done(&b);
}

static void stop_before_the_start(void **s)
{
	(void)s;
	struct box_run b;
	struct found f;
	box_start(&b, up_script("sleep 1000", ENDLESS));
	for (int i = 0; i < 50; i++) { /* from the first instruction on, repeatedly */
		kill(b.pid, SIGTERM);
		usleep(1000);
	}
	assert_int_equal(box_wait(&b), 0);
	found_read(&f, b.result);
	assert_int_equal(f.ran_n, 1);
	assert_true(f.ran.stopped);
	assert_int_equal(f.collected_n, 1);
	found_free(&f);
	box_done(&b);
}

static void the_end_of_the_parent_ends_it(void **s)
{
	(void)s;
	struct box_run b;
	box_start(&b, up_script("trap '' TERM; while :; do sleep 1; done", ENDLESS));
	box_wait_output(&b);
	close(b.control);
	b.control = -1;
	assert_int_equal(box_wait(&b), 1);
	box_done(&b);
}

/* --- broken uploads ------------------------------------------------------------------------------- */

static void refused(int up, const char *why)
{
	struct found f;
	assert_int_equal(box_all(&f, up), 1);
	assert_int_equal(f.broken_n, 1);
	assert_int_equal(f.broken.code, ERR_SANDBOX_SETUP_FAILED);
	if (!strstr(f.broken.detail, why))
		fail_msg("detail is <%s>, expected <%s>", f.broken.detail, why);
	assert_int_equal(f.ran_n + f.entries_n + f.collected_n + f.checked_n, 0);
	found_free(&f);
}

static const char *const truth[] = {"true", NULL}, *const no_env[] = {NULL};

static void cut_uploads(void **s)
{
	(void)s;
	refused(up_new(), "ends too early");
	int up = up_script("true", ENDLESS);
	struct stat st;
	assert_int_equal(fstat(up, &st), 0);
	assert_int_equal(ftruncate(up, st.st_size - 1), 0);
	refused(up, "cut or malformed");
	up = up_script("true", ENDLESS);
	assert_int_equal(ftruncate(up, 7), 0);
	refused(up, "cut or malformed");
	up = up_script("true", ENDLESS);
	assert_int_equal(pwrite(up, "\xff\xff\xff\xff", 4, 0), 4);
	refused(up, "cut or malformed");
	up = up_script("true", ENDLESS);
	assert_true(bundle_add(up, "x", 1));
	refused(up, "cut or malformed");
	up = up_script("true", ENDLESS);
	assert_int_equal(pwrite(up, "\x7f", 1, 5), 1); /* the low byte of the first frame's number */
	refused(up, "out of place");
	up = up_script("true", ENDLESS);
	assert_int_equal(pwrite(up, "\x7f", 1, 18), 1); /* inside the first path's length */
	refused(up, "malformed");
}

static void wrong_orders(void **s)
{
	(void)s;
	int up = up_new();
	up_source(up, "a.txt", "");
	up_source_end(up, 2);
	refused(up, "number of sources");
	up = up_new();
	up_request(up, "{}");
	refused(up, "out of place");
	up = up_script("true", ENDLESS);
	up_go(up, 1, 1, 1, 1);
	refused(up, "out of place");
	up = up_new();
	up_source_end(up, 0);
	up_request(up, "{}");
	up_check(up, "check-1", 1, 1, truth);
	refused(up, "out of place");
	up = up_new();
	up_source_end(up, 0);
	up_changed(up, "a.txt", false, "");
	up_agent(up, 1, 1, truth, no_env);
	refused(up, "out of place");
	up = up_new();
	up_source_end(up, 0);
	up_go(up, 1, 1, 1, 1);
	refused(up, "kind of box");
	up = up_new();
	up_source_end(up, 0);
	up_request(up, "{}");
	up_agent(up, 1, 1, truth, no_env);
	up_go(up, 2, 1, 1, 1);
	refused(up, "kind of box");
	up = up_new();
	up_source_end(up, 0);
	up_request(up, "{}");
	up_agent(up, 1, 1, no_env, no_env);
	refused(up, "no program");
}

static void bad_names(void **s)
{
	(void)s;
	static const char *const paths[] = {"../a", "/a", "a/../b", ".git/config", "a/.GIT/x", "a//b",
					    "a\nb", "-a", ""};
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		int up = up_new();
		up_source(up, paths[i], "");
		refused(up, "path is not allowed");
		up = up_new();
		up_source_end(up, 0);
		up_removed(up, paths[i]);
		refused(up, "path is not allowed");
	}
	static const char *const tokens[] = {"source", "request.json", "a/b", "..", "", "response.json"};
	for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
		int up = up_new();
		up_source_end(up, 0);
		up_request(up, "{}");
		up_token(up, tokens[i], "x");
		refused(up, "token's name");
	}
}

static void names_that_collide(void **s)
{
	(void)s;
	static const char *const pairs[][2] = {{"a.txt", "a.txt"}, {"a", "a/b"}, {"a/b", "a"}};
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		int up = up_new();
		up_source(up, pairs[i][0], "");
		up_source(up, pairs[i][1], "");
		up_source_end(up, 2);
		up_request(up, "{}");
		up_agent(up, 1, 1, truth, no_env);
		up_go(up, 1, 1, 1, 1);
		refused(up, "unpacking ended with 1: cannot write a");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(agent_finds_its_workspace),
	    cmocka_unit_test(agent_finds_its_own_files),
	    cmocka_unit_test(agent_gets_nothing_else),
	    cmocka_unit_test(children_join_the_group),
	    cmocka_unit_test(exit_codes_and_signals),
	    cmocka_unit_test(a_program_that_is_missing),
	    cmocka_unit_test(output_is_capped),
	    cmocka_unit_test(waiting_is_no_wall_time),
	    cmocka_unit_test(wall_time_ends_it),
	    cmocka_unit_test(a_pipe_held_open_does_not_block),
	    cmocka_unit_test(closing_its_output_is_not_the_end),
	    cmocka_unit_test(a_fork_storm_is_ended),
	    cmocka_unit_test(limits_of_a_process),
	    cmocka_unit_test(processor_time_ends_it),
	    cmocka_unit_test(stop_is_asked_first),
	    cmocka_unit_test(stop_is_not_declined),
	    cmocka_unit_test(stop_before_the_start),
	    cmocka_unit_test(the_end_of_the_parent_ends_it),
	    cmocka_unit_test(cut_uploads),
	    cmocka_unit_test(wrong_orders),
	    cmocka_unit_test(bad_names),
	    cmocka_unit_test(names_that_collide),
	};
	if (geteuid() != 0) {
		puts("1..0 # SKIP these tests make namespaces: run them as root");
		return 77;
	}
	return cmocka_run_group_tests_name("runner", tests, NULL, NULL);
}
