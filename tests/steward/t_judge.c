/*
 * The judge over many trees: what is a change, what is allowed, what is refused and where. Decisions are
 * taken in this process; one test goes through the confined child.
 */
#include "lib/confine.h"
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

#define LINES "1\n2\n3\n4\n5\n6\n7\n8\n9\n"

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
		struct said *s = trial_judge(&v[i].t, NULL);
		if (s->accepted || s->code != v[i].code || strcmp(s->field, v[i].field) != 0 || s->n != v[i].shown)
			fail_msg("refusal %zu: %s at \"%s\", %u shown", i, err_code(s->code), s->field, s->n);
		trial_end(s);
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
	struct said *s = trial_judge(&t, NULL);
	assert_true(s->accepted);
	assert_int_equal(s->n, 1);
	assert_int_equal(s->seen, 1);
	trial_end(s);
	/* Names that only resemble them are changes. */
	static const char *const near[] = {"x__pycache__/a.py", "__pycache__.py", "d/.pytest_cache.txt", "apyc.txt"};
	for (size_t i = 0; i < sizeof near / sizeof *near; i++) {
		struct trial n = {.allow = {"a.py"}, .up = {{"a.py", "x"}}, .left = {{"a.py", "x"}, {near[i], "q"}}};
		s = trial_judge(&n, NULL);
		assert_false(s->accepted);
		assert_string_equal(s->field, near[i]);
		trial_end(s);
	}
}

/* What was uploaded is nobody's by-product; only compiled files are made anew whoever made them first. */
static void t_uploaded_by_products(void **state)
{
	(void)state;
	static const char *const paths[] = {"__pycache__/notes.txt", "d/.pytest_cache/README.md", "__pycache__/a.pyc",
					    "q.pyc"};
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		struct trial changed = {.allow = {"a.py"},
					.up = {{"a.py", "x"}, {paths[i], "q"}},
					.left = {{"a.py", "x"}, {paths[i], "r"}}};
		struct trial removed = {
		    .allow = {"a.py"}, .up = {{"a.py", "x"}, {paths[i], "q"}}, .left = {{"a.py", "x"}}};
		for (int k = 0; k < 2; k++) {
			struct said *s = trial_judge(k == 0 ? &changed : &removed, NULL);
			assert_int_equal(s->accepted, i >= 2);
			assert_string_equal(s->field, i < 2 ? paths[i] : "");
			trial_end(s);
		}
	}
}

static struct said *judge_many(size_t files, size_t bytes)
{
	own_fd int up = bundle_new("up"), left = bundle_new("left"), out = bundle_new("out");
	struct said *s = calloc(1, sizeof *s);
	struct given base = {"d/a.py", "x"};
	const char *allow[] = {"d/**"};
	struct judge_rules rules = {.allow = allow, .nallow = 1, .extensions = trial_extensions, .nextensions = 4};
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
	trial_hear(out, s);
	return s;
}

static void t_counts(void **state)
{
	(void)state;
	struct said *s = judge_many(32, 100);
	assert_true(s->accepted && s->n == 32);
	trial_end(s);
	s = judge_many(33, 100);
	assert_false(s->accepted);
	assert_int_equal(s->code, ERR_SANDBOX_CHANGED_FILES_MISMATCH);
	assert_string_equal(s->field, "d/n032.py");
	assert_int_equal(s->n, 0);
	assert_int_equal(s->patch_n, 0);
	trial_end(s);
	s = judge_many(1, 99000);
	trial_end(s);
	s = judge_many(10, 20000);
	assert_false(s->accepted);
	assert_int_equal(s->code, ERR_PATCH_TOO_LARGE);
	assert_true(s->truncated && s->patch_n == 0 && s->n == 10);
	trial_end(s);
}

static enum err broken_result(void (*make)(int fd), enum err *code)
{
	own_fd int up = bundle_new("up"), left = bundle_new("left"), out = bundle_new("out");
	struct given base = {"a.py", "x"};
	const char *allow[] = {"a.py"};
	struct judge_rules rules = {.allow = allow, .nallow = 1, .extensions = trial_extensions, .nextensions = 4};
	struct said s = {0};
	bundles_sources(up, &base, 1);
	make(left);
	enum err e = judge_decide(up, left, &rules, out);
	if (e == ERR_OK)
		trial_hear(out, &s);
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
		struct said *s = trial_judge(&t, v[i].claim);
		assert_true(s->accepted);
		if (v[i].summary != NULL) {
			assert_string_equal(s->summary, v[i].summary);
			assert_string_equal(s->status, v[i].status);
		} else {
			assert_null(strchr(s->summary, 27));
			assert_null(strstr(s->summary, "\xe2\x80\xae"));
			assert_null(strchr(s->status, '\n'));
		}
		trial_end(s);
	}
	own_free char *deep = malloc(400001);
	assert_non_null(deep);
	memset(deep, '[', 400000);
	deep[400000] = '\0';
	struct said *s = trial_judge(&t, deep);
	assert_string_equal(s->status, "unreadable");
	trial_end(s);
}

/* The same through the confined child: it must get everything done with what it is allowed. */
static void t_child(void **state)
{
	(void)state;
	own_fd int up = bundle_new("up"), left = bundle_new("left");
	struct given before[] = {{"d/a.py", LINES}, {"d/b.txt", "\0\1\2", 3}};
	struct given after[] = {{"d/a.py", LINES "10"}, {"d/b.txt", "\0\1\3\4", 4}, {"d/c.py", "new\n", .exec = true}};
	const char *allow[] = {"d/**"};
	struct judge_rules rules = {.allow = allow, .nallow = 1, .extensions = trial_extensions, .nextensions = 4};
	struct judge j;
	struct said s = {0};
	bundles_sources(up, before, 2);
	bundles_ran(left, true, 0, false, false);
	bundles_entries(left, after, 3);
	bundles_claim(left, "{\"summary\":\"three\",\"status\":\"completed\"}");
	bundles_collected(left, 3, true);
	assert_true(bundle_seal(up) && bundle_seal(left));
	assert_true(judge_start(&j, judge_decide, up, left, &rules, NULL, NULL));
	struct pollfd p = {.fd = j.pidfd, .events = POLLIN};
	assert_int_equal(poll(&p, 1, 60000), 1);
	assert_int_equal(judge_end(&j), ERR_OK);
	trial_hear(j.out, &s);
	close(j.out);
	assert_true(s.accepted && s.n == 3 && strcmp(s.summary, "three") == 0);
	assert_non_null(strstr(s.patch, "GIT binary patch"));
	free(s.patch);
	/* Junk instead of an upload: the child says nothing, and that is noticed. */
	own_fd int junk = bundle_new("junk");
	assert_int_equal(write(junk, "junk", 4), 4);
	assert_true(judge_start(&j, judge_decide, junk, left, &rules, NULL, NULL));
	p.fd = j.pidfd;
	assert_int_equal(poll(&p, 1, 60000), 1);
	assert_int_equal(judge_end(&j), ERR_SANDBOX_RESULT_INVALID);
	close(j.out);
	/* Stopped before its time. */
	assert_true(judge_start(&j, judge_decide, up, left, &rules, NULL, NULL));
	kill(j.pid, SIGSTOP);
	assert_int_equal(judge_end(&j), ERR_SANDBOX_RESULT_INVALID);
	close(j.out);
}

#ifndef CONFINE_LESS
static bool status_says(const char *path, const char *line)
{
	own_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	char buf[8192];
	ssize_t got = fd < 0 ? -1 : read(fd, buf, sizeof buf - 1);
	if (got <= 0)
		return false;
	buf[got] = '\0';
	return strstr(buf, line) != NULL;
}

/* Caught in the middle of its work: filtered, without new privileges, with six descriptors. */
static void t_confined(void **state)
{
	(void)state;
	own_fd int up = bundle_new("up"), left = bundle_new("left");
	struct given base = {"d/a.py", "x"};
	const char *allow[] = {"d/**"};
	struct judge_rules rules = {.allow = allow, .nallow = 1, .extensions = trial_extensions, .nextensions = 4};
	enum { BIG = 1000000, FILES = 30 };
	own_free char *text = malloc(BIG + 1);
	assert_non_null(text);
	memset(text, 'x', BIG);
	text[BIG] = '\0';
	bundles_sources(up, &base, 1);
	for (int i = 0; i < FILES; i++) {
		char path[32];
		snprintf(path, sizeof path, "d/n%d.py", i);
		struct given g = {.path = path, .text = text, .n = BIG};
		bundles_entries(left, &g, 1);
	}
	bundles_collected(left, FILES, true);
	for (int round = 0; round < 50; round++) {
		struct judge j;
		char path[64];
		struct stat st;
		assert_true(judge_start(&j, judge_decide, up, left, &rules, NULL, NULL));
		snprintf(path, sizeof path, "/proc/%d/status", (int)j.pid);
		struct pollfd p = {.fd = j.pidfd, .events = POLLIN};
		bool caught = false;
		while (!caught && poll(&p, 1, 0) == 0)
			caught = status_says(path, "Seccomp:\t2\n");
		caught = caught && kill(j.pid, SIGSTOP) == 0 && status_says(path, "Seccomp:\t2\n");
		if (caught) {
			assert_true(status_says(path, "NoNewPrivs:\t1\n"));
			for (int fd = 0; fd < 64; fd++) {
				snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)j.pid, fd);
				assert_int_equal(lstat(path, &st) == 0, fd < 6);
			}
		}
		(void)judge_end(&j);
		close(j.out);
		if (caught)
			return;
	}
	fail_msg("the judge was never seen confined");
}
#endif

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
	    cmocka_unit_test(t_refusals), cmocka_unit_test(t_by_products), cmocka_unit_test(t_uploaded_by_products),
	    cmocka_unit_test(t_counts),   cmocka_unit_test(t_claims),      cmocka_unit_test(t_broken_results),
	    cmocka_unit_test(t_child),
#ifndef CONFINE_LESS
	    cmocka_unit_test(t_confined),
#endif
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
