/* The tables of the audit log, the ends of its lines, and how often something may be said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gen/audit.h"
#include "lib/audit_chain.h"
#include "lib/pace.h"

static bool listed(const char *list, const char *name)
{
	char key[64];
	(void)snprintf(key, sizeof key, " %s ", name);
	return strstr(list, key) != NULL;
}

static void t_tables(void **state)
{
	(void)state;
	/* Said here once more, so that a changed row is a decision. */
	static const char required[] = " token.issue approval.deny ",
			  redacted[] = " agent modelProfile model label subject ", fcgi[] = " auth.denied ",
			  gateway[] = " auth.denied ",
			  steward[] = " sandbox.spawn sandbox.destroy sandbox.cleanup_failed ",
			  notes[] = " auth.denied caller.refused protocol.violation sandbox.spawn sandbox.destroy "
				    "sandbox.cleanup_failed store.start store.stop audit.rotate audit.torn audit.gap "
				    "audit.undone audit.lost ";
	unsigned events = 0;
	for (unsigned i = 0; i < 300; i++) {
		const struct audit_row *row = audit_row(i);
		if (row == NULL)
			continue;
		events++;
		assert_int_equal(audit_find(row->name, (unsigned)strlen(row->name)), i);
		assert_int_equal(row->required, listed(required, row->name));
		assert_int_equal(row->commit, !listed(notes, row->name));
		assert_int_equal((row->by & AUDIT_BY_FCGI) != 0, listed(fcgi, row->name));
		assert_int_equal((row->by & AUDIT_BY_GATEWAY) != 0, listed(gateway, row->name));
		assert_int_equal((row->by & AUDIT_BY_STEWARD) != 0, listed(steward, row->name));
	}
	assert_true(events >= 20);
	for (int f = 1; f < AUDIT_F__COUNT; f++)
		assert_int_equal(audit_fields[f].keep, !listed(redacted, audit_fields[f].name));
	assert_int_equal(audit_find("run.creat", 9), 0);
	assert_int_equal(audit_find("", 0), 0);
	assert_null(audit_row(0));
	assert_null(audit_row(~0u));
}

static void t_chain(void **state)
{
	(void)state;
	own_buf struct buf b;
	char hash[AUDIT_HASH + 1];
	struct audit_seen s;
	uint64_t n;
	buf_init(&b, 10000);
	audit_no_hash(hash);
	buf_adds(&b,
		 "{\"ts\":5,\"seq\":18446744073709551615,\"event\":\"a.b\",\"text\":\"\\\",\\\"of\\\":1\",\"of\":12");
	assert_true(audit_seal(&b, 0, hash, hash));
	const char *line = (const char *)b.p;
	size_t len = b.n - 1;
	assert_int_equal(line[len], '\n');
	assert_true(audit_read(line, len, &s));
	assert_true(s.sound && s.seq == UINT64_MAX && s.event_len == 3 && strcmp(s.hash, hash) == 0);
	assert_true(audit_number(line, len, "of", &n) && n == 12);
	assert_false(audit_number(line, len, "text", &n));
	assert_false(audit_text_is(line, len, "of", "12"));
	assert_false(audit_read(line, len + 1, &s));
	assert_false(audit_read(line, len - 1, &s));
	assert_false(audit_read(line, 0, &s));
	for (size_t i = 0; i < len; i++) {
		uint8_t was = b.p[i];
		b.p[i] ^= 1;
		assert_false(audit_read(line, len, &s) && s.sound);
		b.p[i] = was;
	}
	/* Too long is refused, and nothing half is said to be sealed. */
	buf_reset(&b);
	for (int i = 0; i < AUDIT_LINE_MAX - 100; i++)
		buf_addc(&b, 'x');
	assert_false(audit_seal(&b, 0, hash, hash));
}

static void t_pace(void **state)
{
	(void)state;
	struct pace p = {0};
	struct pace_rate rate = {.burst = 3, .every_ms = 100};
	uint32_t held = 99;
	for (int i = 0; i < 3; i++)
		assert_true(pace_take(&p, rate, 1000, &held) && held == 0);
	for (int i = 0; i < 5; i++)
		assert_false(pace_take(&p, rate, 1099, &held));
	assert_true(pace_take(&p, rate, 1100, &held) && held == 5);
	assert_false(pace_take(&p, rate, 1199, &held));
	/* However long it was quiet, no more than the burst. */
	for (int i = 0; i < 3; i++)
		assert_true(pace_take(&p, rate, 1000000, &held));
	assert_false(pace_take(&p, rate, 1000000, &held));
	p.held = UINT32_MAX;
	assert_false(pace_take(&p, rate, 1000000, &held));
	assert_int_equal(p.held, UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_tables), cmocka_unit_test(t_chain),
					   cmocka_unit_test(t_pace)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
