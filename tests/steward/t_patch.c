/* The patches that the judge makes: real `git apply` must turn the upload into the result with each. */
#include "lib/own.h"
#include "steward/patch.h"
#include "tests/steward/trial.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- real git ----------------------------------------------------------------------------------- */

static void write_file(const char *dir, const struct given *g)
{
	char path[600];
	snprintf(path, sizeof path, "%s/%s", dir, g->path);
	for (char *p = strchr(path + strlen(dir) + 1, '/'); p != NULL; p = strchr(p + 1, '/')) {
		*p = '\0';
		assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
		*p = '/';
	}
	own_fd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, g->exec ? 0755 : 0644);
	struct wire_bytes b = bundles_bytes(g);
	assert_true(fd >= 0 && write(fd, b.p, b.n) == (ssize_t)b.n);
}

static void expect_file(const char *dir, const struct given *g)
{
	char path[600];
	static char got[200000];
	struct stat st;
	snprintf(path, sizeof path, "%s/%s", dir, g->path);
	own_fd int fd = open(path, O_RDONLY);
	if (fd < 0)
		fail_msg("%s is missing after git apply", g->path);
	struct wire_bytes b = bundles_bytes(g);
	assert_true(fstat(fd, &st) == 0);
	assert_int_equal(read(fd, got, sizeof got), b.n);
	assert_memory_equal(got, b.p, b.n);
	assert_int_equal((st.st_mode & 0100) != 0, g->exec);
}

static void run_in(const char *dir, const char *const *argv)
{
	int status;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (chdir(dir) == 0)
			execvp(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status != 0)
		fail_msg("%s %s ended with %d", argv[0], argv[1], status);
}

static bool listed(const struct given *v, const char *path)
{
	for (size_t i = 0; i < 8 && v[i].path != NULL; i++)
		if (strcmp(v[i].path, path) == 0)
			return true;
	return false;
}

static void apply(const struct trial *t, const struct said *s)
{
	char dir[] = "/tmp/t_judge.XXXXXX", tree[64], patch[64];
	assert_non_null(mkdtemp(dir));
	snprintf(tree, sizeof tree, "%s/tree", dir);
	snprintf(patch, sizeof patch, "%s/patch", dir);
	assert_int_equal(mkdir(tree, 0755), 0);
	for (size_t i = 0; i < 8 && t->up[i].path != NULL; i++)
		write_file(tree, &t->up[i]);
	struct given p = {.path = "patch", .text = s->patch, .n = s->patch_n};
	write_file(dir, &p);
	if (s->patch_n > 0)
		run_in(tree, (const char *const[]){"git", "apply", "--whitespace=nowarn", patch, NULL});
	for (size_t i = 0; i < 8 && t->left[i].path != NULL; i++)
		expect_file(tree, &t->left[i]);
	for (size_t i = 0; i < 8 && t->up[i].path != NULL; i++) {
		char path[600];
		snprintf(path, sizeof path, "%s/%s", tree, t->up[i].path);
		struct stat st;
		if (!listed(t->left, t->up[i].path) && stat(path, &st) == 0 && S_ISREG(st.st_mode))
			fail_msg("%s is still there after git apply", t->up[i].path);
	}
	run_in("/", (const char *const[]){"rm", "-rf", dir, NULL});
}

#define LINES "1\n2\n3\n4\n5\n6\n7\n8\n9\n"

static void t_patches(void **state)
{
	(void)state;
	static const struct trial trials[] = {
	    {.allow = {"a.py"}, .up = {{"a.py", "x\n"}}, .left = {{"a.py", "y\n"}}},
	    {.allow = {"a.py"}, .up = {{"a.py", "x\n"}}, .left = {{"a.py", "x\n"}}},
	    {.allow = {"a.py"},
	     .up = {{"a.py", LINES LINES LINES}},
	     .left = {{"a.py", "0\n" LINES LINES "x\n" LINES "end\n"}}},
	    /* line ends that are missing on either side, or both */
	    {.allow = {"a.py"}, .up = {{"a.py", "x"}}, .left = {{"a.py", "y"}}},
	    {.allow = {"a.py"}, .up = {{"a.py", "x\n"}}, .left = {{"a.py", "x"}}},
	    {.allow = {"a.py"}, .up = {{"a.py", "x"}}, .left = {{"a.py", "x\n"}}},
	    {.allow = {"a.py"}, .up = {{"a.py", "a\nb"}}, .left = {{"a.py", "c\nb"}}},
	    {.allow = {"a.py"}, .up = {{"a.py", "a\r\nb\r\n"}}, .left = {{"a.py", "a\nb\r\n"}}},
	    /* empty files come, go, fill and are emptied */
	    {.allow = {"d/**"}, .up = {{"d/a.py", "x\n"}}, .left = {{"d/a.py", "x\n"}, {"d/b.py", ""}}},
	    {.allow = {"d/**"}, .up = {{"d/a.py", "x\n"}, {"d/b.py", ""}}, .left = {{"d/a.py", "x\n"}}},
	    {.allow = {"a.py"}, .up = {{"a.py", ""}}, .left = {{"a.py", "x\n"}}},
	    {.allow = {"a.py"}, .up = {{"a.py", "x\n"}}, .left = {{"a.py", ""}}},
	    /* added, removed, in folders, without a line end */
	    {.allow = {"d/**"}, .up = {{"d/a.py", "x\n"}}, .left = {{"d/a.py", "x\n"}, {"d/e/f/g.py", "n\nm"}}},
	    {.allow = {"d/**"}, .up = {{"d/a.py", "x\n"}, {"d/b.py", "q\nw"}}, .left = {{"d/a.py", "y\n"}}},
	    {.allow = {"d/**"}, .up = {{"d/a.py", "x\n"}}, .left = {{"d/c.py", "x\n"}}},
	    /* the executable bit, alone and with a change */
	    {.allow = {"a.py"}, .up = {{"a.py", "x\n"}}, .left = {{"a.py", "x\n", .exec = true}}},
	    {.allow = {"a.py"}, .up = {{"a.py", "x\n"}}, .left = {{"a.py", "y\n", .exec = true}}},
	    {.allow = {"d/**"},
	     .up = {{"d/a.py", "x\n"}},
	     .left = {{"d/a.py", "x\n"}, {"d/r.py", "y\n", .exec = true}}},
	    {.allow = {"d/**"}, .up = {{"d/a.py", "x\n"}}, .left = {{"d/a.py", "x\n"}, {"d/r.py", "", .exec = true}}},
	    /* bytes that are no text */
	    {.allow = {"a.txt"}, .up = {{"a.txt", "x\n"}}, .left = {{"a.txt", "x\0y\xff\n", 5}}},
	    {.allow = {"a.txt"}, .up = {{"a.txt", "p\0q", 3}}, .left = {{"a.txt", "p\0r\0s", 5}}},
	    {.allow = {"d/**"}, .up = {{"d/a.py", "x\n"}}, .left = {{"d/a.py", "x\n"}, {"d/b.txt", "\0\1\2\3", 4}}},
	    {.allow = {"d/**"}, .up = {{"d/a.py", "x\n"}, {"d/b.txt", "\0\1", 2}}, .left = {{"d/a.py", "x\n"}}},
	    {.allow = {"a.txt"}, .up = {{"a.txt", "caf\xc3\xa9\n"}}, .left = {{"a.txt", "caf\xe9\n"}}},
	    /* lines that look like a patch */
	    {.allow = {"a.md"},
	     .up = {{"a.md", "--- a/x\n+++ b/x\n"}},
	     .left = {{"a.md", "--- a/x\n@@ -1 +1 @@\n-- \ndiff --git a/q b/q\n"}}},
	    /* a file became a folder, and a folder a file */
	    {.allow = {"d/**"},
	     .up = {{"d/a.py", "x\n"}, {"d/b.py", "y\n"}},
	     .left = {{"d/a.py/c.py", "z\n"}, {"d/b.py", "y\n"}}},
	    {.allow = {"d/**"},
	     .up = {{"d/a.py/c.py", "x\n"}, {"d/b.py", "y\n"}},
	     .left = {{"d/a.py", "z\n"}, {"d/b.py", "y\n"}}},
	};
	for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
		struct said *s = trial_judge(&trials[i], NULL);
		if (!s->accepted)
			fail_msg("trial %zu: %s at %s", i, err_code(s->code), s->field);
		assert_false(s->truncated);
		for (uint32_t k = 1; k < s->n; k++)
			assert_true(strcmp(s->path[k - 1], s->path[k]) < 0);
		print_message("patch %zu: %u changes, %zu bytes\n", i, s->n, s->patch_n);
		apply(&trials[i], s);
		trial_end(s);
	}
}

static int setup(void **state)
{
	(void)state;
	return patch_init() ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	patch_end();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_patches)};
	return cmocka_run_group_tests(tests, setup, teardown);
}
