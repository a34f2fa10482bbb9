/*
 * The runner in boxes that unpack: that what is collected is what the archive holds, and that nothing is where it is
 * refused, does not end or is stopped. What is refused is tested with pinfold-unpack itself (tests/unpack).
 */
#include "tests/runner/run_box.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { TAR_BYTES = 65536 };
struct tar {
	uint8_t p[TAR_BYTES];
	size_t n;
};

static void tar_add(struct tar *t, const char *name, char kind, unsigned mode, const char *text)
{
	char *h = (char *)t->p + t->n;
	unsigned sum = 0;
	size_t n = strlen(text);
	assert_true(t->n + 2048 < TAR_BYTES);
	snprintf(h, 100, "%s", name);
	snprintf(h + 100, 8, "%07o", mode);
	snprintf(h + 108, 8, "%07o", 0);
	snprintf(h + 116, 8, "%07o", 0);
	snprintf(h + 124, 12, "%011o", (unsigned)n);
	snprintf(h + 136, 12, "%011o", 0);
	memset(h + 148, ' ', 8);
	h[156] = kind;
	if (kind == '2')
		snprintf(h + 157, 100, "/etc/passwd");
	memcpy(h + 257, "ustar\00000", 8);
	for (int i = 0; i < 512; i++)
		sum += (uint8_t)h[i];
	snprintf(h + 148, 8, "%06o", sum);
	memcpy(h + 512, text, n);
	t->n += 512 + (n + 511) / 512 * 512;
}

static struct tar *usual(void)
{
	struct tar *t = calloc(1, sizeof *t);
	assert_non_null(t);
	tar_add(t, "p/", '5', 0755, "");
	tar_add(t, "p/a.py", '0', 0644, "one\n");
	tar_add(t, "p/sub/run", '0', 0755, "#!/bin/sh\n");
	return t;
}

/* Behind the end mark; part: how many bytes an ARCHIVE has. */
static int upload(struct tar *t, size_t part, uint32_t seconds, uint32_t files, uint64_t most)
{
	int up = up_new();
	up_archive(up, t->p, t->n + 1024, part, seconds, 0);
	up_go(up, 3, files, most, 1000);
	free(t);
	return up;
}

static void comes_out(void **s)
{
	(void)s;
	static const size_t parts[] = {TAR_BYTES, 1000, 512, 7};
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		struct found f;
		assert_int_equal(box_all(&f, upload(usual(), parts[i], ENDLESS, 100, 100000)), 0);
		assert_true(f.ran_n == 1 && f.ran.started);
		assert_int_equal(f.ran.status, 0);
		assert_int_equal(f.ran.output.n, 0);
		assert_true(f.collected_n == 1 && f.collected.complete);
		assert_int_equal(f.entries_n, 2); /* no repository, no archive */
		const struct bn_entry *a = found_entry(&f, "p/a.py"), *b = found_entry(&f, "p/sub/run");
		assert_true(a != NULL && b != NULL && a->type == 1 && b->type == 1);
		assert_true(same(a->content, "one\n") && same(b->content, "#!/bin/sh\n"));
		assert_true(!a->executable && b->executable);
		found_free(&f);
	}
}

static void is_refused(void **s)
{
	(void)s;
	static const struct {
		const char *name;
		char kind;
		uint32_t files;
		uint64_t most;
		const char *said;
	} v[] = {
	    {"p/link", '2', 100, 100000, "source_entry_refused p/link\n"},
	    {"../up", '0', 100, 100000, "invalid_source_path ../up\n"},
	    {"more", '0', 2, 100000, "source_too_many_files more\n"},
	    {"more", '0', 100, 16, "source_tree_too_large more\n"},
	};
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		struct found f;
		struct tar *t = usual();
		tar_add(t, v[i].name, v[i].kind, 0644, v[i].kind == '0' ? "content" : "");
		assert_int_equal(box_all(&f, upload(t, 1000, ENDLESS, v[i].files, v[i].most)), 0);
		assert_int_equal(f.ran.status, 1);
		box_assert_output(f.ran.output, v[i].said);
		assert_true(f.entries_n == 0 && f.collected_n == 1 && f.collected.complete);
		found_free(&f);
	}
}

static void is_cut(void **s)
{
	(void)s;
	struct found f;
	struct tar *t = usual();
	int up = up_new();
	up_archive(up, t->p, t->n - 512, 1000, ENDLESS, 0);
	up_go(up, 3, 100, 100000, 1000);
	free(t);
	assert_int_equal(box_all(&f, up), 0);
	assert_int_equal(f.ran.status, 1);
	box_assert_output(f.ran.output, "invalid_archive p/sub/run\n");
	assert_int_equal(f.entries_n, 0);
	found_free(&f);
}

/* Nothing goes with it, and there is no other way to begin. */
static void other_frames(void **s)
{
	(void)s;
	for (int i = 0; i < 5; i++) {
		struct found f;
		int up = up_new();
		if (i == 0)
			up_source(up, "a", "x");
		if (i < 4)
			up_archive(up, "x", 1, 1, 1, 0);
		if (i == 1)
			up_request(up, "{}");
		if (i == 2)
			up_archive(up, "x", 1, 1, 1, 0);
		up_go(up, i == 3 ? 2 : 3, 100, 1000, 1000);
		assert_int_equal(box_all(&f, up), 1);
		assert_true(f.broken_n == 1 && f.ran_n == 0);
		found_free(&f);
	}
}

static void is_stopped(void **s)
{
	(void)s;
	struct found f;
	/* Before it begins, and after no time. */
	int up = upload(usual(), 1000, 0, 100, 100000);
	assert_int_equal(box_all(&f, up), 0);
	assert_true(f.ran.timed_out && f.entries_n == 0);
	found_free(&f);
}

/* What can be executed is so in work and check boxes, before the first commit. */
static void programs(void **s)
{
	(void)s;
	struct found f;
	static const char *const check[] = {"sh", "-c", "./run && git status --porcelain && git ls-files -s", NULL};
	int up = up_new();
	up_program(up, "run", "#!/bin/sh\necho ran\n");
	up_source(up, "a", "x");
	up_source_end(up, 2);
	up_check(up, "check-1", ENDLESS, 10000, check);
	up_go(up, 2, 0, 0, 0);
	assert_int_equal(box_all(&f, up), 0);
	assert_int_equal(f.checked[0].status, 0);
	assert_true(holds(f.checked[0].output, "ran\n100644 ") && holds(f.checked[0].output, "100755 "));
	found_free(&f);
}

int main(void)
{
	if (geteuid() != 0) {
		puts("needs root");
		return 77;
	}
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(comes_out),    cmocka_unit_test(is_refused), cmocka_unit_test(is_cut),
	    cmocka_unit_test(other_frames), cmocka_unit_test(is_stopped), cmocka_unit_test(programs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
