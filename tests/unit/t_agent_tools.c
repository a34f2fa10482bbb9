/* The agent's tools, token files and request, over a real folder. Nothing here needs a gateway. */
#include "agent/check.h"
#include "agent/tokenfile.h"
#include "agent/tools.h"
#include "agent/tree.h"
#include "lib/own.h"
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static const char request[] = "{\"task_id\":\"run-1\",\"instruction\":\"x\",\"allowed_paths\":[\"a.py\",\"sub/**\"],"
			      "\"verification\":[{\"name\":\"check-1\",\"argv\":[\"sh\",\"-c\",\"test -e sub/done\"]}],"
			      "\"limits\":{\"max_steps\":5,\"wall_time_seconds\":100,\"max_patch_bytes\":1000},"
			      "\"model\":\"m\",\"gateway_url\":\"http://127.0.0.1:9/internal/v1\","
			      "\"permissions\":{\"search\":\"deny\",\"write_file\":\"ask\",\"read_file\":\"perhaps\"}}";

struct bench {
	char folder[64];
	struct task task;
	struct guards guards;
	struct tools tools;
};

static void put_file(int root, const char *path, const char *text)
{
	int fd = openat(root, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static int set_up(void **state)
{
	static struct bench b;
	memset(&b, 0, sizeof b);
	strcpy(b.folder, "/tmp/t_agent_XXXXXX");
	assert_non_null(mkdtemp(b.folder));
	int root = open(b.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(root >= 0);
	put_file(root, "a.py", "one\ntwo\none\n");
	put_file(root, "b.py", "two\n");
	put_file(root, "raw", "\xff\xfe");
	assert_int_equal(mkdirat(root, "sub", 0755), 0);
	assert_int_equal(mkdirat(root, ".git", 0755), 0);
	put_file(root, ".git/config", "two\n");
	assert_int_equal(symlinkat("/etc", root, "sub/out"), 0);
	assert_int_equal(symlinkat("/etc/passwd", root, "sub/link"), 0);
	assert_int_equal(mkfifoat(root, "sub/pipe", 0666), 0);
	assert_null(task_parse(&b.task, request, sizeof request - 1));
	guards_init(&b.guards, &b.task, 0);
	b.guards.deadline_ms = UINT64_MAX;
	b.tools = (struct tools){root, &b.task, &b.guards};
	*state = &b;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *b = *state;
	char command[128];
	task_free(&b->task);
	close(b->tools.root);
	snprintf(command, sizeof command, "rm -rf '%s'", b->folder);
	return system(command);
}

/* Runs a tool and compares what it says; text NULL: only whether it worked. */
static void expect(struct bench *b, enum tool tool, const char *args, bool ok, const char *text)
{
	own_arena struct arena arena;
	struct tool_answer answer = {0};
	arena_init(&arena, 1000000);
	buf_init(&answer.text, 1000000);
	const struct json *v = json_parse(&arena, args, strlen(args), JSON_DEPTH, 1000, NULL);
	const char *wrong = tool_arguments(tool, v);
	if (wrong != NULL)
		buf_adds(&answer.text, wrong);
	else
		tool_run(&b->tools, tool, v, &answer);
	const char *said = buf_cstr(&answer.text);
	if (answer.ok != ok || (text != NULL && strstr(said, text) == NULL))
		fail_msg("%s %s: %s, \"%s\"", tool_names[tool], args, answer.ok ? "worked" : "refused", said);
	buf_free(&answer.text);
}

static void t_look(void **state)
{
	struct bench *b = *state;
	expect(b, TOOL_LIST_FILES, "{}", true, "a.py (12 bytes)\nb.py (4 bytes)\nraw (2 bytes)\n");
	expect(b, TOOL_READ_FILE, "{\"path\":\"a.py\"}", true, "one\ntwo\none\n");
	expect(b, TOOL_READ_FILE, "{\"path\":\"none\"}", false, "no such file");
	expect(b, TOOL_READ_FILE, "{\"path\":\"sub\"}", false, "folder");
	expect(b, TOOL_READ_FILE, "{\"path\":\"raw\"}", false, "not text");
	expect(b, TOOL_READ_FILE, "{\"path\":\"sub/link\"}", false, "link");
	expect(b, TOOL_READ_FILE, "{\"path\":\"sub/out/passwd\"}", false, "link");
	expect(b, TOOL_READ_FILE, "{\"path\":\"sub/pipe\"}", false, "not a regular file");
	expect(b, TOOL_READ_FILE, "{\"path\":\"/etc/passwd\"}", false, "relative");
	expect(b, TOOL_READ_FILE, "{\"path\":\"../etc/passwd\"}", false, "relative");
	expect(b, TOOL_READ_FILE, "{\"path\":\".git/config\"}", false, "relative");
	expect(b, TOOL_READ_FILE, "{\"path\":7}", false, "wrong type");
	expect(b, TOOL_READ_FILE, "{}", false, "missing");
	expect(b, TOOL_READ_FILE, "{\"path\":\"a.py\",\"mode\":\"x\"}", false, "does not know");
	expect(b, TOOL_READ_FILE, "[]", false, "object");
	expect(b, TOOL_SEARCH, "{\"pattern\":\"two\"}", true, "a.py:2: two\nb.py:1: two\n");
	expect(b, TOOL_SEARCH, "{\"pattern\":\"three\"}", true, "nothing");
	expect(b, TOOL_SEARCH, "{\"pattern\":\"\"}", false, NULL);
}

static void t_write(void **state)
{
	struct bench *b = *state;
	expect(b, TOOL_WRITE_FILE, "{\"path\":\"b.py\",\"content\":\"x\"}", false, "allowed paths");
	expect(b, TOOL_WRITE_FILE, "{\"path\":\"sub/link\",\"content\":\"x\"}", false, "link");
	expect(b, TOOL_WRITE_FILE, "{\"path\":\"sub/out/x\",\"content\":\"x\"}", false, NULL);
	expect(b, TOOL_WRITE_FILE, "{\"path\":\"sub/pipe\",\"content\":\"x\"}", false, NULL);
	expect(b, TOOL_WRITE_FILE, "{\"path\":\"sub/.git/x\",\"content\":\"x\"}", false, "relative");
	expect(b, TOOL_WRITE_FILE, "{\"path\":\"sub/d/e/f.py\",\"content\":\"new\"}", true, "3 bytes");
	expect(b, TOOL_READ_FILE, "{\"path\":\"sub/d/e/f.py\"}", true, "new");
	expect(b, TOOL_WRITE_FILE, "{\"path\":\"a.py\",\"content\":\"\"}", true, "0 bytes");
	expect(b, TOOL_EDIT_FILE, "{\"path\":\"a.py\",\"old\":\"x\",\"new\":\"y\"}", false, "does not occur");
	expect(b, TOOL_WRITE_FILE, "{\"path\":\"a.py\",\"content\":\"aaa b\"}", true, NULL);
	expect(b, TOOL_EDIT_FILE, "{\"path\":\"a.py\",\"old\":\"aa\",\"new\":\"y\"}", false, "more than once");
	expect(b, TOOL_EDIT_FILE, "{\"path\":\"a.py\",\"old\":\"\",\"new\":\"y\"}", false, "empty");
	expect(b, TOOL_EDIT_FILE, "{\"path\":\"a.py\",\"old\":\"b\",\"new\":\"cc\"}", true, NULL);
	expect(b, TOOL_READ_FILE, "{\"path\":\"a.py\"}", true, "aaa cc");
	expect(b, TOOL_EDIT_FILE, "{\"path\":\"b.py\",\"old\":\"two\",\"new\":\"y\"}", false, "allowed paths");
	char big[1200];
	memset(big, 'x', sizeof big);
	memcpy(big, "{\"path\":\"a.py\",\"content\":\"", 26);
	strcpy(big + sizeof big - 3, "\"}");
	expect(b, TOOL_WRITE_FILE, big, false, "patch");
}

static void t_checks(void **state)
{
	struct bench *b = *state;
	expect(b, TOOL_RUN_CHECK, "{\"name\":\"check-2\"}", false, "no check");
	expect(b, TOOL_RUN_CHECK, "{\"name\":\"check-1\"}", false, "failed with exit code 1");
	assert_int_equal(guards_open_check(&b->guards, &b->task), 0);
	expect(b, TOOL_WRITE_FILE, "{\"path\":\"sub/done\",\"content\":\"\"}", true, NULL);
	expect(b, TOOL_RUN_CHECK, "{\"name\":\"check-1\"}", true, "passed");
	assert_int_equal(guards_open_check(&b->guards, &b->task), 1);
	/* A write opens every check again. */
	expect(b, TOOL_WRITE_FILE, "{\"path\":\"sub/more\",\"content\":\"\"}", true, NULL);
	assert_int_equal(guards_open_check(&b->guards, &b->task), 0);
}

static void run(int root, const char *script, uint64_t ms, size_t most, struct check_end *end, struct buf *out)
{
	struct task_check check = {"c", {"sh", "-c", script, NULL}};
	buf_init(out, 1000000);
	*end = check_run(&check, root, ms, most, out);
	assert_true(end->started);
}

static void t_check_walls(void **state)
{
	struct bench *b = *state;
	struct check_end end;
	struct buf out;
	setenv("PINFOLD_TEST_LEAK", "leaked", 1);
	run(b->tools.root, "env; pwd; ls /proc/self/fd | wc -l; cat", 60000, 10000, &end, &out);
	assert_int_equal(end.status, 0);
	assert_null(strstr(buf_cstr(&out), "PINFOLD"));
	assert_non_null(strstr(buf_cstr(&out), "HOME=/tmp"));
	assert_non_null(strstr(buf_cstr(&out), b->folder));
	assert_non_null(strstr(buf_cstr(&out), "\n4\n")); /* three, and the one that ls reads */
	buf_free(&out);
	/* Time: the whole group is ended, the grandchild that keeps the pipe too. */
	run(b->tools.root, "echo before; sleep 1000 & sleep 1000", 2000, 10000, &end, &out);
	assert_true(end.timed_out);
	assert_string_equal(buf_cstr(&out), "before\n");
	buf_free(&out);
	/* What stays behind after the check has ended does not hold us up. */
	run(b->tools.root, "sleep 1000 & echo gone", 60000, 10000, &end, &out);
	assert_false(end.timed_out);
	assert_string_equal(buf_cstr(&out), "gone\n");
	buf_free(&out);
	/* Output: first and last part. */
	run(b->tools.root, "echo first; yes | head -c 500000; echo last", 60000, 4000, &end, &out);
	assert_true(end.truncated && end.status == 0);
	assert_true(out.n < 4200);
	assert_int_equal(strncmp(buf_cstr(&out), "first\n", 6), 0);
	assert_non_null(strstr(buf_cstr(&out), "left out"));
	assert_string_equal(buf_cstr(&out) + out.n - 5, "last\n");
	buf_free(&out);
	run(b->tools.root, "printf 'a\\033[31m\\000b'; kill -9 $$", 60000, 4000, &end, &out);
	assert_int_equal(end.status, -9);
	assert_string_equal(buf_cstr(&out), "a?[31m?b");
	buf_free(&out);
}

static void t_tokens(void **state)
{
	struct bench *b = *state;
	int root = b->tools.root;
	own_secret struct secret s = {0};
	assert_non_null(tokenfile_take(root, "none", &s));
	assert_string_equal(tokenfile_take(root, "sub/link", &s), "a link");
	assert_string_equal(tokenfile_take(root, "sub/pipe", &s), "not a regular file");
	assert_string_equal(tokenfile_take(root, "a.py", &s), "its mode is not 0600");
	static const struct {
		const char *text, *why;
	} bad[] = {{"", "empty"},
		   {"tok\n", "white space around it"},
		   {" tok", "white space around it"},
		   {"\xc0\x80", "not text"}};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		put_file(root, "token", bad[i].text);
		assert_int_equal(fchmodat(root, "token", 0600, 0), 0);
		assert_string_equal(tokenfile_take(root, "token", &s), bad[i].why);
	}
	if (geteuid() == 0) {
		put_file(root, "token", "tok");
		assert_int_equal(fchownat(root, "token", 4711, 4711, 0), 0);
		assert_string_equal(tokenfile_take(root, "token", &s), "it belongs to someone else");
		assert_int_equal(fchownat(root, "token", 0, 0, 0), 0);
	}
	static char large[8194];
	memset(large, 'x', sizeof large - 1);
	put_file(root, "token", large);
	assert_string_equal(tokenfile_take(root, "token", &s), "larger than 8,192 bytes");
	put_file(root, "token", "tok.en");
	assert_null(tokenfile_take(root, "token", &s));
	assert_int_equal(s.n, 6);
	assert_memory_equal(s.p, "tok.en", 6);
	assert_int_equal(faccessat(root, "token", F_OK, 0), -1); /* read once */
}

static void t_request(void **state)
{
	struct bench *b = *state;
	assert_int_equal(b->task.permission[TOOL_SEARCH], PERMIT_DENY);
	assert_int_equal(b->task.permission[TOOL_WRITE_FILE], PERMIT_ASK);
	assert_int_equal(b->task.permission[TOOL_READ_FILE], PERMIT_DENY); /* a word nobody knows */
	assert_int_equal(b->task.permission[TOOL_EDIT_FILE], PERMIT_ALLOW);
	assert_int_equal(b->task.max_steps, 5);
	assert_int_equal(b->task.max_output, 200000);
	/* Each replacement spoils the request. */
	static const char *const spoilt[][2] = {
	    {"\"run-1\"", "\"run/1\""},
	    {"\"a.py\"", "\"../a\""},
	    {"http://127", "file://127"},
	    {"\"max_steps\":5", "\"max_steps\":0"},
	    {"[\"sh\"", "[7,\"sh\""},
	    {"\"model\"", "\"nodel\""},
	    {"internal/v1\"", "internal/v1/\""},
	};
	for (size_t i = 0; i < sizeof spoilt / sizeof spoilt[0]; i++) {
		char text[1000];
		const char *at = strstr(request, spoilt[i][0]);
		assert_non_null(at);
		snprintf(text, sizeof text, "%.*s%s%s", (int)(at - request), request, spoilt[i][1],
			 at + strlen(spoilt[i][0]));
		struct task t;
		if (task_parse(&t, text, strlen(text)) == NULL)
			fail_msg("taken: %s", text);
		task_free(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(t_look, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(t_write, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(t_checks, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(t_check_walls, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(t_tokens, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(t_request, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
