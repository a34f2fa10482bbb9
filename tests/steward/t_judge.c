/*
 * The judge over many trees: what is a change, what is allowed, and whether real `git apply` turns the
 * upload into the result with the patch it makes. Decisions are taken in this process; one test goes
 * through the confined child.
 */
#include "lib/own.h"
#include "steward/judge.h"
#include "steward/patch.h"
#include "steward/tree.h"
#include "tests/steward/bundles.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { CHANGES = 40 };

struct said {
	bool accepted;
	enum err code;
	char field[4097];
	uint32_t seen, n;
	char path[CHANGES][161];
	uint8_t how[CHANGES];
	bool exec[CHANGES];
	char *patch;
	size_t patch_n;
	bool truncated;
	char summary[16001], status[33];
};

static const char *const extensions[] = {".py", ".txt", ".md", ".cfg"};

static void hear(int out, struct said *s)
{
	struct bundle b;
	const uint8_t *frame;
	size_t n;
	uint16_t number;
	uint64_t op;
	assert_true(bundle_open(&b, out, BN_MAXFRAME));
	while (bundle_next(&b, &frame, &n) > 0) {
		assert_true(wire_peek(frame, n, &number, &op));
		if (number == BN_JUDGED) {
			struct bn_judged m;
			assert_true(bn_get_judged(frame, n, &m));
			s->accepted = m.accepted;
			s->code = (enum err)m.code;
			s->seen = m.changed;
			memcpy(s->field, m.field.p, m.field.n);
		} else if (number == BN_CHANGE) {
			struct bn_change m;
			assert_true(bn_get_change(frame, n, &m) && s->n < CHANGES);
			snprintf(s->path[s->n], 161, "%s", m.path);
			s->how[s->n] = m.how;
			s->exec[s->n++] = m.executable;
		} else if (number == BN_PATCH) {
			struct bn_patch m;
			assert_true(bn_get_patch(frame, n, &m));
			s->patch = malloc(m.text.n + 1);
			assert_non_null(s->patch);
			memcpy(s->patch, m.text.p, m.text.n);
			s->patch[m.text.n] = '\0';
			s->patch_n = m.text.n;
			s->truncated = m.truncated;
		} else {
			struct bn_summary m;
			assert_true(number == BN_SUMMARY && bn_get_summary(frame, n, &m));
			memcpy(s->summary, m.text.p, m.text.n);
			snprintf(s->status, sizeof s->status, "%s", m.claimed_status);
		}
	}
	bundle_close(&b);
}

struct trial {
	const char *allow[4];
	struct given up[8], left[8];
	size_t nup, nleft;
};

static struct said *judge(const struct trial *t, const char *claim)
{
	own_fd int up = bundle_new("up"), left = bundle_new("left"), out = bundle_new("out");
	struct said *s = calloc(1, sizeof *s);
	struct judge_rules rules = {.allow = t->allow, .extensions = extensions, .nextensions = 4};
	assert_non_null(s);
	while (rules.nallow < 4 && t->allow[rules.nallow] != NULL)
		rules.nallow++;
	size_t nup = 0, nleft = 0;
	while (nup < 8 && t->up[nup].path != NULL)
		nup++;
	while (nleft < 8 && t->left[nleft].path != NULL)
		nleft++;
	bundles_sources(up, t->up, nup);
	bundles_ran(left, true, 0, false, false);
	bundles_entries(left, t->left, nleft);
	if (claim != NULL)
		bundles_claim(left, claim);
	bundles_collected(left, (uint32_t)nleft, true);
	assert_int_equal(judge_decide(up, left, &rules, out), ERR_OK);
	hear(out, s);
	return s;
}

static void forget_said(struct said *s)
{
	free(s->patch);
	free(s);
}

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
		struct said *s = judge(&trials[i], NULL);
		if (!s->accepted)
			fail_msg("trial %zu: %s at %s", i, err_code(s->code), s->field);
		assert_false(s->truncated);
		for (uint32_t k = 1; k < s->n; k++)
			assert_true(strcmp(s->path[k - 1], s->path[k]) < 0);
		print_message("patch %zu: %u changes, %zu bytes\n", i, s->n, s->patch_n);
		apply(&trials[i], s);
		forget_said(s);
	}
}

/* What is refused, and at which path. */
static void t_refusals(void **state)
{
	(void)state;
	static const struct {
		struct trial t;
		enum err code;
		const char *field;
		uint32_t shown; /* allowed changes that are still reported */
	} v[] = {
	    {{.allow = {"a.py"}, .up = {{"a.py", "x"}, {"b.py", "x"}}, .left = {{"a.py", "y"}, {"b.py", "y"}}},
	     ERR_SANDBOX_CHANGED_FILES_MISMATCH,
	     "b.py",
	     1},
	    {{.allow = {"a.py"}, .up = {{"a.py", "x"}, {"b.py", "x"}}, .left = {{"a.py", "x"}}},
	     ERR_SANDBOX_CHANGED_FILES_MISMATCH,
	     "b.py",
	     0},
	    {{.allow = {"a.py"},
	      .up = {{"a.py", "x"}, {"b.py", "x"}},
	      .left = {{"a.py", "x"}, {"b.py", "x", .exec = true}}},
	     ERR_SANDBOX_CHANGED_FILES_MISMATCH,
	     "b.py",
	     0},
	    /* a/ ** covers nothing beside a/ */
	    {{.allow = {"a/**"}, .up = {{"a/x.py", "x"}}, .left = {{"a/x.py", "x"}, {"ab/x.py", "x"}}},
	     ERR_SANDBOX_CHANGED_FILES_MISMATCH,
	     "ab/x.py",
	     0},
	    {{.allow = {"a/**"}, .up = {{"a/x.py", "x"}}, .left = {{"a", "x"}}},
	     ERR_SANDBOX_CHANGED_FILES_MISMATCH,
	     "a",
	     1},
	    /* names that only some systems tell apart, and parts of git's own */
	    {{.allow = {"d/**"}, .up = {{"d/a.py", "x"}}, .left = {{"d/A.py", "x"}, {"d/a.py", "x"}}},
	     ERR_SANDBOX_CHANGED_FILES_MISMATCH,
	     "d/A.py",
	     1},
	    {{.allow = {"d/**"}, .up = {{"d/a.py", "x"}}, .left = {{"d/.git/hooks.py", "x"}, {"d/a.py", "x"}}},
	     ERR_SANDBOX_CHANGED_FILES_MISMATCH,
	     "d/.git/hooks.py",
	     0},
	    {{.allow = {"d/**"}, .up = {{"d/a.py", "x"}}, .left = {{"d/.GIT/x.py", "x"}, {"d/a.py", "x"}}},
	     ERR_SANDBOX_CHANGED_FILES_MISMATCH,
	     "d/.GIT/x.py",
	     0},
	    {{.allow = {"d/**"}, .up = {{"d/a.py", "x"}}, .left = {{"d/a.py", "x"}, {"d/-x.py", "x"}}},
	     ERR_SANDBOX_CHANGED_FILES_MISMATCH,
	     "d/-x.py",
	     0},
	    {{.allow = {"d/**"}, .up = {{"d/a.py", "x"}}, .left = {{"d/a.py", "x"}, {"d/../../etc/x.py", "x"}}},
	     ERR_SANDBOX_CHANGED_FILES_MISMATCH,
	     "d/../../etc/x.py",
	     0},
	    {{.allow = {"d/**"}, .up = {{"d/a.py", "x"}}, .left = {{"d/a.py", "x"}, {"d/b c.py", "x"}}},
	     ERR_SANDBOX_CHANGED_FILES_MISMATCH,
	     "d/b c.py",
	     0},
	    {{.allow = {"d/**"}, .up = {{"d/a.py", "x"}}, .left = {{"d/a.py", "x"}, {"d/e\xe2\x80\xae.py", "x"}}},
	     ERR_SANDBOX_CHANGED_FILES_MISMATCH,
	     "d/e\xe2\x80\xae.py",
	     0},
	    /* an extension that could not have been uploaded */
	    {{.allow = {"d/**"}, .up = {{"d/a.py", "x"}}, .left = {{"d/a.py", "x"}, {"d/x.so", "x"}}},
	     ERR_SANDBOX_CHANGED_FILES_MISMATCH,
	     "d/x.so",
	     0},
	    /* links and special files, inside and outside, even among by-products */
	    {{.allow = {"d/**"}, .up = {{"d/a.py", "x"}}, .left = {{"d/a.py", "/etc/passwd", .type = ENTRY_LINK}}},
	     ERR_SANDBOX_CHANGED_FILES_MISMATCH,
	     "d/a.py",
	     0},
	    {{.allow = {"d/**"}, .up = {{"d/a.py", "x"}}, .left = {{"d/a.py", "y"}, {"e.py", "", .type = ENTRY_OTHER}}},
	     ERR_SANDBOX_CHANGED_FILES_MISMATCH,
	     "e.py",
	     1},
	    {{.allow = {"d/**"},
	      .up = {{"d/a.py", "x"}},
	      .left = {{"__pycache__/a.pyc", "", .type = ENTRY_LINK}, {"d/a.py", "x"}}},
	     ERR_SANDBOX_CHANGED_FILES_MISMATCH,
	     "__pycache__/a.pyc",
	     0},
	    /* sizes and modes */
	    {{.allow = {"d/**"}, .up = {{"d/a.py", "x"}}, .left = {{"d/a.py", "", .type = ENTRY_TOO_LARGE}}},
	     ERR_SANDBOX_OUTPUT_TOO_LARGE,
	     "d/a.py",
	     0},
	    {{.allow = {"d/**"},
	      .up = {{"d/a.py", "x"}},
	      .left = {{"d/a.py", "x"}, {"q", "", .type = ENTRY_TOO_LARGE}}},
	     ERR_SANDBOX_CHANGED_FILES_MISMATCH,
	     "q",
	     0},
	    {{.allow = {"d/**"}, .up = {{"d/a.py", "x"}}, .left = {{"d/a.py", "", .type = ENTRY_UNREADABLE}}},
	     ERR_SANDBOX_CHANGED_FILES_MISMATCH,
	     "d/a.py",
	     0},
	    /* the first in path order is named */
	    {{.allow = {"m.py"}, .up = {{"m.py", "x"}}, .left = {{"z.py", "x"}, {"m.py", "x"}, {"b.py", "x"}}},
	     ERR_SANDBOX_CHANGED_FILES_MISMATCH,
	     "b.py",
	     0},
	    /* a path twice is no tree */
	    {{.allow = {"m.py"}, .up = {{"m.py", "x"}}, .left = {{"m.py", "x"}, {"m.py", "y"}}},
	     ERR_SANDBOX_RESULT_INVALID,
	     "",
	     0},
	};
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		struct said *s = judge(&v[i].t, NULL);
		if (s->accepted || s->code != v[i].code || strcmp(s->field, v[i].field) != 0 || s->n != v[i].shown)
			fail_msg("refusal %zu: %s at \"%s\", %u shown", i, err_code(s->code), s->field, s->n);
		forget_said(s);
	}
}

static void t_by_products(void **state)
{
	(void)state;
	static const struct trial t = {.allow = {"a.py"},
				       .up = {{"a.py", "x"}},
				       .left = {{"a.py", "y"},
						{"__pycache__/a.cpython-311.pyc", "z"},
						{"d/__pycache__/b.txt", "z"},
						{".pytest_cache/v/cache", "z"},
						{"d/q.pyc", "z"},
						{"big/__pycache__/c.pyc", "", .type = ENTRY_TOO_LARGE},
						{"empty", "", .type = ENTRY_DIRECTORY}}};
	struct said *s = judge(&t, NULL);
	assert_true(s->accepted);
	assert_int_equal(s->n, 1);
	assert_int_equal(s->seen, 1);
	forget_said(s);
	/* Names that only resemble them are changes. */
	static const char *const near[] = {"x__pycache__/a.py", "__pycache__.py", "d/.pytest_cache.txt", "apyc.txt"};
	for (size_t i = 0; i < sizeof near / sizeof *near; i++) {
		struct trial n = {.allow = {"a.py"}, .up = {{"a.py", "x"}}, .left = {{"a.py", "x"}, {near[i], "q"}}};
		s = judge(&n, NULL);
		assert_false(s->accepted);
		assert_string_equal(s->field, near[i]);
		forget_said(s);
	}
}

static struct said *judge_many(size_t files, size_t bytes)
{
	own_fd int up = bundle_new("up"), left = bundle_new("left"), out = bundle_new("out");
	struct said *s = calloc(1, sizeof *s);
	struct given base = {"d/a.py", "x"};
	const char *allow[] = {"d/**"};
	struct judge_rules rules = {.allow = allow, .nallow = 1, .extensions = extensions, .nextensions = 4};
	own_free char *text = calloc(1, bytes + 1);
	assert_true(s != NULL && text != NULL);
	for (size_t i = 0; i < bytes; i++)
		text[i] = i % 60 == 59 ? '\n' : 'q';
	bundles_sources(up, &base, 1);
	bundles_entries(left, &base, 1);
	for (size_t i = 0; i < files; i++) {
		char path[32];
		snprintf(path, sizeof path, "d/n%03zu.py", i);
		struct given g = {.path = path, .text = text};
		bundles_entries(left, &g, 1);
	}
	bundles_collected(left, (uint32_t)files + 1, true);
	assert_int_equal(judge_decide(up, left, &rules, out), ERR_OK);
	hear(out, s);
	return s;
}

static void t_counts(void **state)
{
	(void)state;
	struct said *s = judge_many(32, 100);
	assert_true(s->accepted && s->n == 32);
	forget_said(s);
	s = judge_many(33, 100);
	assert_false(s->accepted);
	assert_int_equal(s->code, ERR_SANDBOX_CHANGED_FILES_MISMATCH);
	assert_string_equal(s->field, "d/n032.py");
	assert_int_equal(s->n, 0);
	assert_int_equal(s->patch_n, 0);
	forget_said(s);
	s = judge_many(1, 99000);
	forget_said(s);
	s = judge_many(10, 20000);
	assert_false(s->accepted);
	assert_int_equal(s->code, ERR_PATCH_TOO_LARGE);
	assert_true(s->truncated && s->patch_n == 0 && s->n == 10);
	forget_said(s);
}

static enum err broken_result(void (*make)(int fd), enum err *code)
{
	own_fd int up = bundle_new("up"), left = bundle_new("left"), out = bundle_new("out");
	struct given base = {"a.py", "x"};
	const char *allow[] = {"a.py"};
	struct judge_rules rules = {.allow = allow, .nallow = 1, .extensions = extensions, .nextensions = 4};
	struct said s = {0};
	bundles_sources(up, &base, 1);
	make(left);
	enum err e = judge_decide(up, left, &rules, out);
	if (e == ERR_OK)
		hear(out, &s);
	free(s.patch);
	*code = s.code;
	assert_false(s.accepted);
	return e;
}

static void make_nothing(int fd)
{
	(void)fd;
}

static void make_cut(int fd)
{
	bundles_ran(fd, true, 0, false, false);
	bundles_collected(fd, 0, true);
	assert_int_equal(ftruncate(fd, lseek(fd, 0, SEEK_END) - 1), 0);
}

static void make_junk(int fd)
{
	assert_int_equal(write(fd, "\xff\xff\xff\xffxxxxxxxxxx", 14), 14);
}

static void make_uncollected(int fd)
{
	bundles_ran(fd, true, 0, false, false);
}

static void make_twice(int fd)
{
	bundles_collected(fd, 0, true);
	bundles_collected(fd, 0, true);
}

static void make_after(int fd)
{
	struct given g = {"a.py", "evil"};
	bundles_collected(fd, 0, true);
	bundles_entries(fd, &g, 1);
}

static void make_miscounted(int fd)
{
	struct given g = {"a.py", "x"};
	bundles_entries(fd, &g, 1);
	bundles_collected(fd, 2, true);
}

static void make_own_verdict(int fd)
{
	uint8_t frame[BN_MAX_JUDGED];
	struct bn_judged m = {.accepted = true};
	bundles_add(fd, frame, bn_put_judged(frame, sizeof frame, 0, &m));
	bundles_collected(fd, 0, true);
}

static void make_nul_path(int fd)
{
	uint8_t frame[1000];
	struct bn_entry m = {.path = {(const uint8_t *)"a.py\0x", 6}, .type = 1};
	bundles_add(fd, frame, bn_put_entry(frame, sizeof frame, 0, &m));
	bundles_collected(fd, 1, true);
}

static void make_lying_size(int fd)
{
	uint8_t frame[1000];
	struct bn_entry m = {
	    .path = {(const uint8_t *)"a.py", 4}, .type = 1, .size = 5, .content = {(const uint8_t *)"x", 1}};
	bundles_add(fd, frame, bn_put_entry(frame, sizeof frame, 0, &m));
	bundles_collected(fd, 1, true);
}

static void make_bad_type(int fd)
{
	uint8_t frame[1000];
	struct bn_entry m = {.path = {(const uint8_t *)"a.py", 4}, .type = 9};
	bundles_add(fd, frame, bn_put_entry(frame, sizeof frame, 0, &m));
	bundles_collected(fd, 1, true);
}

static void make_incomplete(int fd)
{
	bundles_collected(fd, 0, false);
}

static void t_broken_results(void **state)
{
	(void)state;
	static void (*const makers[])(int) = {make_nothing,  make_cut,        make_junk,       make_uncollected,
					      make_twice,    make_after,      make_miscounted, make_own_verdict,
					      make_nul_path, make_lying_size, make_bad_type};
	enum err code;
	for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
		assert_int_equal(broken_result(makers[i], &code), ERR_OK);
		if (code != ERR_SANDBOX_RESULT_INVALID)
			fail_msg("maker %zu: %s", i, err_code(code));
	}
	assert_int_equal(broken_result(make_incomplete, &code), ERR_OK);
	assert_int_equal(code, ERR_SANDBOX_OUTPUT_TOO_LARGE);
}

static void t_claims(void **state)
{
	(void)state;
	static const struct {
		const char *claim, *summary, *status;
	} v[] = {
	    {NULL, "", ""},
	    {"{\"summary\":\"I did it\",\"status\":\"completed\"}", "I did it", "completed"},
	    {"{\"ok\":true,\"result\":{\"summary\":\"nested\",\"status\":\"failed\"}}", "nested", "failed"},
	    {"{\"summary\":\"a\\u001b[2Jb\\u202e c\",\"status\":\"x\\ny\"}", NULL, NULL},
	    {"not json", "", "unreadable"},
	    {"{\"summary\":1,\"status\":[]}", "", ""},
	    {"[]", "", "unreadable"},
	    {"{\"summary\":\"a\",\"summary\":\"b\"}", "", "unreadable"},
	};
	static const struct trial t = {.allow = {"a.py"}, .up = {{"a.py", "x"}}, .left = {{"a.py", "x"}}};
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		struct said *s = judge(&t, v[i].claim);
		assert_true(s->accepted);
		if (v[i].summary != NULL) {
			assert_string_equal(s->summary, v[i].summary);
			assert_string_equal(s->status, v[i].status);
		} else {
			assert_null(strchr(s->summary, 27));
			assert_null(strstr(s->summary, "\xe2\x80\xae"));
			assert_null(strchr(s->status, '\n'));
		}
		forget_said(s);
	}
	own_free char *deep = malloc(400001);
	assert_non_null(deep);
	memset(deep, '[', 400000);
	deep[400000] = '\0';
	struct said *s = judge(&t, deep);
	assert_string_equal(s->status, "unreadable");
	forget_said(s);
}

/* The same through the confined child: it must get everything done with what it is allowed. */
static void t_child(void **state)
{
	(void)state;
	own_fd int up = bundle_new("up"), left = bundle_new("left");
	struct given before[] = {{"d/a.py", LINES}, {"d/b.txt", "\0\1\2", 3}};
	struct given after[] = {{"d/a.py", LINES "10"}, {"d/b.txt", "\0\1\3\4", 4}, {"d/c.py", "new\n", .exec = true}};
	const char *allow[] = {"d/**"};
	struct judge_rules rules = {.allow = allow, .nallow = 1, .extensions = extensions, .nextensions = 4};
	struct judge j;
	struct said s = {0};
	bundles_sources(up, before, 2);
	bundles_ran(left, true, 0, false, false);
	bundles_entries(left, after, 3);
	bundles_claim(left, "{\"summary\":\"three\",\"status\":\"completed\"}");
	bundles_collected(left, 3, true);
	assert_true(bundle_seal(up) && bundle_seal(left));
	assert_true(judge_start(&j, up, left, &rules, NULL, NULL));
	struct pollfd p = {.fd = j.pidfd, .events = POLLIN};
	assert_int_equal(poll(&p, 1, 60000), 1);
	assert_true(judge_end(&j));
	hear(j.out, &s);
	close(j.out);
	assert_true(s.accepted && s.n == 3 && strcmp(s.summary, "three") == 0);
	assert_non_null(strstr(s.patch, "GIT binary patch"));
	free(s.patch);
	/* Junk instead of an upload: the child says nothing, and that is noticed. */
	own_fd int junk = bundle_new("junk");
	assert_int_equal(write(junk, "junk", 4), 4);
	assert_true(judge_start(&j, junk, left, &rules, NULL, NULL));
	p.fd = j.pidfd;
	assert_int_equal(poll(&p, 1, 60000), 1);
	assert_false(judge_end(&j));
	close(j.out);
	/* Stopped before its time. */
	assert_true(judge_start(&j, up, left, &rules, NULL, NULL));
	kill(j.pid, SIGSTOP);
	assert_false(judge_end(&j));
	close(j.out);
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
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_patches), cmocka_unit_test(t_refusals), cmocka_unit_test(t_by_products),
	    cmocka_unit_test(t_counts),  cmocka_unit_test(t_claims),   cmocka_unit_test(t_broken_results),
	    cmocka_unit_test(t_child),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
