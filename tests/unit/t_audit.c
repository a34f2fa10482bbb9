/* Finding an event, the ends of the audit log's lines, and how often something may be said. */
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

static void t_tables(void **state)
{
	(void)state;
	unsigned events = 0;
	for (unsigned i = 0; i < 300; i++) {
		const struct audit_row *row = audit_row(i);
		if (row == NULL)
			continue;
		events++;
		assert_int_equal(audit_find(row->name, (unsigned)strlen(row->name)), i);
	}
	assert_true(events >= 20);
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
