/*
 * Lines of the audit log that turned out untrue, and could not be called so at once: store/audit.c owes that, and pays
 * before it writes anything else. The log's file is real; its writes fail when the test says so.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/audit_chain.h"
#include "lib/num.h"
#include "lib/own.h"
#include "store/audit.h"
#include "store/audit_file.h"
#include "store/env.h"
#include "store/txn.h"

/* --- what only the start of the log asks of the store ---------------------------------------------- */

uint64_t store_now(const struct store *s)
{
	(void)s;
	return 0;
}

void txn_init(struct txn *t, struct store *s, uint8_t *page)
{
	(void)t;
	(void)s;
	(void)page;
}

enum err txn_end(struct txn *t, enum err result)
{
	(void)t;
	return result;
}

void txn_free(struct txn *t)
{
	(void)t;
}

void txn_audit(struct txn *t, const struct audit_line *line)
{
	(void)t;
	(void)line;
}

bool audit_mark_get(struct txn *t, struct audit_mark *out)
{
	(void)t;
	(void)out;
	return false;
}

void audit_mark_put(struct txn *t, const struct audit_mark *m)
{
	(void)t;
	(void)m;
}

/* --- writes that fail ------------------------------------------------------------------------------- */

static int good = 1000; /* so many writes succeed, then none */

bool __real_audit_file_add(struct audit_file *f, const void *p, size_t n, bool durable);
bool __wrap_audit_file_add(struct audit_file *f, const void *p, size_t n, bool durable);
bool __wrap_audit_file_add(struct audit_file *f, const void *p, size_t n, bool durable)
{
	if (good > 0) {
		good--;
		return __real_audit_file_add(f, p, n, durable);
	}
	errno = ENOSPC;
	return false;
}

static char dir[] = "/tmp/pinfold-owed-XXXXXX";
static struct audit *a;

static int setup(void **state)
{
	struct audit_settings s = {0};
	(void)state;
	if (mkdtemp(dir) == NULL)
		return -1;
	a = audit_open(dir, &s);
	return 0;
}

static int teardown(void **state)
{
	char path[64];
	(void)state;
	audit_leave(a);
	(void)snprintf(path, sizeof path, "%s/audit.log", dir);
	(void)unlink(path);
	return rmdir(dir);
}

/* The log's lines: for each its event, for audit.undone the line it is of, for audit.lost how many. */
static const char *lines(void)
{
	static char text[20000];
	char path[64];
	size_t n;
	(void)snprintf(path, sizeof path, "%s/audit.log", dir);
	own_free char *all = file_read(AT_FDCWD, path, 1 << 20, &n);
	char *save = NULL;
	text[0] = '\0';
	for (char *l = all != NULL ? strtok_r(all, "\n", &save) : NULL; l != NULL; l = strtok_r(NULL, "\n", &save)) {
		struct audit_seen s;
		uint64_t of = 0, count = 0;
		size_t at = strlen(text);
		assert_true(audit_read(l, strlen(l), &s) && s.sound);
		if (audit_number(l, strlen(l), "of", &of))
			(void)snprintf(text + at, sizeof text - at, "-%llu ", (unsigned long long)of);
		else if (audit_number(l, strlen(l), "count", &count))
			(void)snprintf(text + at, sizeof text - at, "lost:%llu ", (unsigned long long)count);
		else
			(void)snprintf(text + at, sizeof text - at, "%llu ", (unsigned long long)s.seq);
	}
	return text;
}

static bool ahead(size_t n, uint64_t *last)
{
	struct audit_line l[TXN_AUDIT] = {
	    {.event = AUDIT_RUN_FINISH, .tenant = "acme", .run = "r", .actor = "steward"}};
	bool synced;
	for (size_t i = 1; i < n; i++)
		l[i] = l[0];
	return audit_ahead(a, 1, l, n, last, &synced);
}

/* Of a transaction that did not commit, while the log can be written: said at once. */
static void t_at_once(void **state)
{
	uint64_t last;
	(void)state;
	assert_true(ahead(2, &last));
	assert_int_equal(last, 2);
	audit_undone(a, 1, last, 2);
	assert_string_equal(lines(), "1 2 -1 -2 ");
	/* Nothing was written, so nothing is untrue. */
	audit_undone(a, 1, 0, 2);
	assert_string_equal(lines(), "1 2 -1 -2 ");
}

/* It cannot be said: it is said first as soon as it can, in its order, and nothing is lost. */
static void t_later(void **state)
{
	uint64_t last;
	(void)state;
	assert_true(ahead(3, &last));
	assert_int_equal(last, 7);
	good = 0;
	audit_undone(a, 1, last, 3);
	assert_string_equal(lines(), "1 2 -1 -2 5 6 7 ");
	assert_int_equal(audit_lost(a), 0);
	good = 1000;
	assert_true(ahead(1, &last));
	assert_string_equal(lines(), "1 2 -1 -2 5 6 7 -5 -6 -7 11 ");
	/* And once. */
	assert_true(ahead(1, &last));
	assert_string_equal(lines(), "1 2 -1 -2 5 6 7 -5 -6 -7 11 12 ");
}

/* Paid in part: the rest stays owed, and what turns out untrue meanwhile comes behind it. */
static void t_in_part(void **state)
{
	uint64_t last;
	(void)state;
	assert_true(ahead(3, &last));
	assert_int_equal(last, 15);
	good = 1;
	audit_undone(a, 1, last, 3);
	assert_non_null(strstr(lines(), " 13 14 15 -13 "));
	good = 1;
	assert_true(ahead(1, &last)); /* one debt is paid, the line itself is lost */
	assert_int_equal(last, 0);
	assert_int_equal(audit_lost(a), 1);
	assert_non_null(strstr(lines(), " -13 -14 "));
	good = 1000;
	assert_true(ahead(1, &last));
	assert_non_null(strstr(lines(), " -13 -14 -15 lost:1 20 "));
	audit_undone(a, 1, last, 1);
	assert_non_null(strstr(lines(), " lost:1 20 -20 "));
	/* In the order in which they turned out untrue, also where the later one could be said. */
	assert_true(ahead(2, &last));
	good = 0;
	audit_undone(a, 1, last - 1, 1);
	good = 1000;
	audit_undone(a, 1, last, 1);
	assert_true(ahead(1, &last));
	assert_non_null(strstr(lines(), " -20 22 23 -22 -23 26 "));
}

/* More than it can remember is counted as lost, not forgotten. */
static void t_most(void **state)
{
	uint64_t last, first = 0;
	char want[64];
	(void)state;
	uint64_t before = audit_lost(a);
	for (int i = 0; i < 75; i++) {
		assert_true(ahead(4, &last));
		first = first == 0 ? last - 3 : first;
	}
	good = 0;
	for (uint64_t of = first + 3; of <= last; of += 4)
		audit_undone(a, 1, of, 4);
	assert_int_equal(audit_lost(a), before + 300 - 256);
	good = 1000;
	assert_true(ahead(1, &last));
	(void)snprintf(want, sizeof want, "-%llu lost:44 %llu ", (unsigned long long)first + 255,
		       (unsigned long long)last);
	assert_non_null(strstr(lines(), want));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_at_once), cmocka_unit_test(t_later),
					   cmocka_unit_test(t_in_part), cmocka_unit_test(t_most)};
	return cmocka_run_group_tests_name("audit: what is owed", tests, setup, teardown);
}
