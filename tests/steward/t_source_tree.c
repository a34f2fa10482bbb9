/*
 * What a box that unpacked may leave, and what becomes of it: an upload where every file could have been one of
 * files[], else a fault. The box is believed nothing, so the results here are such as no pinfold-unpack would make.
 */
#include "lib/confine.h"
#include "lib/own.h"
#include "steward/source_tree.h"
#include "tests/patience.h"
#include "tests/steward/bundles.h"
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const char *const extensions[] = {".py", ".txt"}, *const allow_a[] = {"a.py"},
			 *const allow_d[] = {"d/**", "e.py"};

static struct judge_rules rules(void)
{
	return (struct judge_rules){.allow = allow_a,
				    .nallow = 1,
				    .extensions = extensions,
				    .nextensions = 2,
				    .files = 100,
				    .bytes = 1000,
				    .file_bytes = 500,
				    .workspace_bytes = 64 << 20,
				    .workspace_inodes = 5000};
}

struct heard {
	enum err code;
	char field[5000], list[4000]; /* of an upload: path, a star where it can be executed, a line each */
};

static void hear(int out, struct heard *h)
{
	struct bundle b;
	const uint8_t *frame;
	size_t n;
	struct bn_judged m;
	struct bn_source s;
	struct bn_program p;
	struct bn_source_end end;
	uint32_t files = 0;
	bool over = false;
	*h = (struct heard){ERR_OK, "", ""};
	assert_true(bundle_open(&b, out, BN_MAXFRAME));
	while (bundle_next(&b, &frame, &n) > 0) {
		size_t at = strlen(h->list);
		assert_false(over);
		if (bn_get_judged(frame, n, &m)) {
			h->code = (enum err)m.code;
			memcpy(h->field, m.field.p, m.field.n);
			assert_int_equal(files, 0);
			over = true;
		} else if (bn_get_source(frame, n, &s)) {
			snprintf(h->list + at, sizeof h->list - at, "%s\n", s.path);
			files++;
		} else if (bn_get_program(frame, n, &p)) {
			snprintf(h->list + at, sizeof h->list - at, "%s*\n", p.path);
			files++;
		} else {
			assert_true(bn_get_source_end(frame, n, &end));
			assert_int_equal(end.files, files);
			over = true;
		}
	}
	assert_true(over);
	bundle_close(&b);
}

static void ran(int fd, int status, bool timed_out, uint8_t reached, const char *said)
{
	uint8_t frame[2000];
	struct bn_ran m = {.started = true,
			   .status = status,
			   .timed_out = timed_out,
			   .reached = reached,
			   .output = {(const uint8_t *)said, (uint32_t)strlen(said)}};
	bundles_add(fd, frame, bn_put_ran(frame, sizeof frame, 0, &m));
}

static struct heard judged(const struct judge_rules *r, const struct given *v, size_t n)
{
	struct heard h;
	own_fd int left = bundle_new("left"), out = bundle_new("out");
	ran(left, 0, false, 0, "");
	bundles_entries(left, v, n);
	bundles_collected(left, (uint32_t)n, true);
	assert_true(bundle_seal(left));
	assert_int_equal(source_tree(left, left, r, out), ERR_OK);
	hear(out, &h);
	return h;
}

static void t_upload(void **state)
{
	(void)state;
	struct judge_rules r = rules();
	static const struct given v[] = {
	    {"d/b.py", "x", .exec = true}, {"a.py", ""}, {"A/b.txt", "\0\1", 2}, {"a/c.txt", "y"}};
	struct heard h = judged(&r, v, 4);
	assert_int_equal(h.code, ERR_OK);
	assert_string_equal(h.list, "A/b.txt\na.py\na/c.txt\nd/b.py*\n");
}

/* One rule each; the path at fault. */
static void t_faults(void **state)
{
	(void)state;
	char big[502], half[402];
	memset(big, 'x', 501);
	memset(half, 'x', 401);
	big[501] = half[401] = '\0';
	const struct {
		struct given v[4];
		enum err code;
		const char *field;
	} cases[] = {
	    {{{"a.py", "x"}, {"/etc/x.py", "x"}}, ERR_INVALID_SOURCE_PATH, "/etc/x.py"},
	    {{{"a.py", "x"}, {"d/../../x.py", "x"}}, ERR_INVALID_SOURCE_PATH, "d/../../x.py"},
	    {{{"a.py", "x"}, {"d//x.py", "x"}}, ERR_INVALID_SOURCE_PATH, "d//x.py"},
	    {{{"a.py", "x"}, {"d\\x.py", "x"}}, ERR_INVALID_SOURCE_PATH, "d\\x.py"},
	    {{{"a.py", "x"}, {"d/.GIT/x.py", "x"}}, ERR_INVALID_SOURCE_PATH, "d/.GIT/x.py"},
	    {{{"a.py", "x"}, {".gitattributes", "x"}}, ERR_INVALID_SOURCE_PATH, ".gitattributes"},
	    {{{"a.py", "x"}, {"e\xe2\x80\xae.py", "x"}}, ERR_INVALID_SOURCE_PATH, "e\xe2\x80\xae.py"},
	    {{{"a.py", "x"}, {"b.so", "x"}}, ERR_UNSUPPORTED_SOURCE_TYPE, "b.so"},
	    {{{"a.py", "x"}, {"Makefile", "x"}}, ERR_UNSUPPORTED_SOURCE_TYPE, "Makefile"},
	    {{{"a.py", "x"}, {"l.py", "", .type = 3}}, ERR_SOURCE_ENTRY_REFUSED, "l.py"},
	    {{{"a.py", "x"}, {"f.py", "", .type = 4}}, ERR_SOURCE_ENTRY_REFUSED, "f.py"},
	    {{{"a.py", "x"}, {"big.py", "", .type = 5}}, ERR_SOURCE_FILE_TOO_LARGE, "big.py"},
	    {{{"a.py", "x"}, {"u.py", "", .type = 6}}, ERR_SANDBOX_RESULT_INVALID, "u.py"},
	    {{{"a.py", "x"}, {"d", "", .type = 2}}, ERR_SANDBOX_RESULT_INVALID, "d"},
	    {{{"a.py", "x"}, {"b.py", big}}, ERR_SOURCE_FILE_TOO_LARGE, "b.py"},
	    {{{"a.py", half}, {"b.py", half}, {"c.py", half}}, ERR_SOURCE_TREE_TOO_LARGE, "c.py"},
	    {{{"a.py", "x"}, {"A.py", "x"}}, ERR_CONFLICTING_SOURCE_PATH, "a.py"},
	    {{{"a.py", "x"}, {"a.py/b.py", "x"}}, ERR_CONFLICTING_SOURCE_PATH, "a.py/b.py"},
	    {{{"a.py", "x"}, {"d.txt", "x"}, {"d-x.txt", "x"}, {"D.TXT/e.py", "x"}},
	     ERR_CONFLICTING_SOURCE_PATH,
	     "D.TXT/e.py"},
	    {{{"b.py", "x"}}, ERR_UNBOUND_ALLOWED_PATH, "a.py"},
	    {{{"a.py/x.py", "x"}}, ERR_UNBOUND_ALLOWED_PATH, "a.py"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct judge_rules r = rules();
		size_t n = 0;
		while (n < 4 && cases[i].v[n].path != NULL)
			n++;
		struct heard h = judged(&r, cases[i].v, n);
		if (h.code != cases[i].code)
			fail_msg("%zu: %s", i, err_code(h.code));
		assert_string_equal(h.field, cases[i].field);
	}
	/* Nothing at all; a path twice, which makes no sense; more than may be. */
	struct judge_rules r = rules();
	assert_int_equal(judged(&r, NULL, 0).code, ERR_INVALID_ARCHIVE);
	static const struct given twice[] = {{"a.py", "x"}, {"a.py", "y"}};
	assert_int_equal(judged(&r, twice, 2).code, ERR_SANDBOX_RESULT_INVALID);
	r.files = 1;
	static const struct given two[] = {{"a.py", "x"}, {"b.py", "y"}};
	assert_int_equal(judged(&r, two, 2).code, ERR_SOURCE_TOO_MANY_FILES);
	r = rules();
	r.allow = allow_d;
	r.nallow = 2;
	static const struct given d[] = {{"d/x.py", "x"}, {"dd/e.py", "y"}};
	struct heard h = judged(&r, d, 2);
	assert_int_equal(h.code, ERR_UNBOUND_ALLOWED_PATH);
	assert_string_equal(h.field, "e.py");
}

static void t_room(void **state)
{
	(void)state;
	static const struct given v[] = {{"a.py", "x"}, {"d/e/f/b.py", "y"}, {"d/e/f/c.py", "y"}, {"d/e-f/c.py", "y"}};
	struct judge_rules r = rules();
	/* Four files and four folders, which git has as well, and what it has of its own. */
	r.workspace_inodes = 4 + 2 * 4 + 400;
	assert_int_equal(judged(&r, v, 4).code, ERR_OK);
	r.workspace_inodes--;
	assert_int_equal(judged(&r, v, 4).code, ERR_SOURCE_EXCEEDS_WORKSPACE);
	r = rules();
	r.workspace_bytes = (1 << 20) + 8 * 4096 + 4 * 301;
	assert_int_equal(judged(&r, v, 4).code, ERR_OK);
	r.workspace_bytes--;
	assert_int_equal(judged(&r, v, 4).code, ERR_SOURCE_EXCEEDS_WORKSPACE);
}

/* How the box ended; only what can be said of an archive is believed. */
static void t_ended(void **state)
{
	(void)state;
	static const struct {
		int status;
		bool timed_out;
		uint8_t reached;
		const char *said;
		enum err code;
		const char *field;
	} v[] = {
	    {1, false, 0, "invalid_source_path ../x\n", ERR_INVALID_SOURCE_PATH, "../x"},
	    {1, false, 0, "invalid_archive\n", ERR_INVALID_ARCHIVE, ""},
	    {1, false, 0, "source_entry_refused a b\n", ERR_SOURCE_ENTRY_REFUSED, "a b"},
	    {1, false, 0, "invalid_archive", ERR_SANDBOX_SETUP_FAILED, ""},
	    {1, false, 0, "invalid_archives x\n", ERR_SANDBOX_SETUP_FAILED, ""},
	    {1, false, 0, "\ninvalid_archive\n", ERR_SANDBOX_SETUP_FAILED, ""},
	    {1, false, 0, "cancelled_by_request\n", ERR_SANDBOX_SETUP_FAILED, ""},
	    {1, false, 0, "resources_exhausted a\n", ERR_SANDBOX_SETUP_FAILED, ""},
	    {1, false, 0, "", ERR_SANDBOX_SETUP_FAILED, ""},
	    {-11, false, 0, "", ERR_SANDBOX_SETUP_FAILED, ""},
	    {2, false, 0, "usage\n", ERR_SANDBOX_SETUP_FAILED, ""},
	    {-9, true, 0, "invalid_archive\n", ERR_WALL_TIME_EXCEEDED, ""},
	    {-9, false, 4, "", ERR_CPU_TIME_EXCEEDED, ""},
	};
	struct judge_rules r = rules();
	static const struct given a = {"a.py", "x"};
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		struct heard h;
		own_fd int left = bundle_new("left"), out = bundle_new("out");
		ran(left, v[i].status, v[i].timed_out, v[i].reached, v[i].said);
		/* Whatever is there beside it counts nothing. */
		bundles_entries(left, &a, 1);
		bundles_collected(left, 1, true);
		assert_int_equal(source_tree(left, left, &r, out), ERR_OK);
		hear(out, &h);
		if (h.code != v[i].code)
			fail_msg("%zu: %s", i, err_code(h.code));
		assert_string_equal(h.field, v[i].field);
	}
}

/* Frames that are not those of such a box. */
static void t_forged(void **state)
{
	(void)state;
	struct judge_rules r = rules();
	static const struct given a = {"a.py", "x"};
	for (int i = 0; i < 9; i++) {
		struct heard h;
		own_fd int left = bundle_new("left"), out = bundle_new("out");
		if (i != 0)
			ran(left, 0, false, 0, "");
		if (i == 1)
			ran(left, 0, false, 0, "");
		if (i == 2)
			bundles_sources(left, &a, 1);
		bundles_entries(left, &a, 1);
		if (i != 3)
			bundles_collected(left, i == 4 ? 2 : 1, i != 5);
		if (i == 6)
			bundles_entries(left, &a, 1);
		if (i == 7)
			assert_int_equal(pwrite(left, "\377\377\377\377", 4, 0), 4);
		if (i == 8)
			assert_int_equal(ftruncate(left, 30), 0);
		assert_int_equal(source_tree(left, left, &r, out), ERR_OK);
		hear(out, &h);
		assert_int_equal(h.code, i == 5 ? ERR_SOURCE_TREE_TOO_LARGE : ERR_SANDBOX_RESULT_INVALID);
	}
}

/* Ten thousand files of six kilobytes through the confined child. */
static void t_child(void **state)
{
	(void)state;
	enum { FILES = 10000, EACH = 6000 };
	struct judge_rules r = rules();
	struct judge j;
	own_fd int left = bundle_new("left");
	static char text[EACH + 1], path[64];
	r.files = FILES;
	r.bytes = (uint64_t)FILES * EACH;
	r.file_bytes = EACH;
	r.workspace_bytes = 256 << 20;
	r.workspace_inodes = 20000;
	r.allow = allow_d;
	r.nallow = 1;
	memset(text, 'x', EACH);
	ran(left, 0, false, 0, "");
	for (int i = 0; i < FILES; i++) {
		snprintf(path, sizeof path, "d/e%d/f%d.py", i % 97, i);
		struct given g = {.path = path, .text = text, .n = EACH};
		bundles_entries(left, &g, 1);
	}
	bundles_collected(left, FILES, true);
	assert_true(bundle_seal(left));
	assert_true(judge_start(&j, source_tree, left, left, &r, NULL, NULL));
	struct pollfd p = {.fd = j.pidfd, .events = POLLIN};
	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_int_equal(judge_end(&j), ERR_OK);
	struct bundle b;
	const uint8_t *frame;
	size_t n;
	struct bn_source s;
	uint32_t files = 0;
	assert_true(bundle_open(&b, j.out, BN_MAXFRAME));
	while (bundle_next(&b, &frame, &n) > 0)
		files += bn_get_source(frame, n, &s) && s.content.n == EACH;
	bundle_close(&b);
	close(j.out);
	assert_int_equal(files, FILES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_upload), cmocka_unit_test(t_faults), cmocka_unit_test(t_room),
	    cmocka_unit_test(t_ended),  cmocka_unit_test(t_forged), cmocka_unit_test(t_child),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
