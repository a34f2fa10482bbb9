/*
 * How much is pushed (C-10 to C-13): three a minute about a run, ten a minute, thirty an hour; what would be the 31st
 * is one summary, and then there is silence for an hour. Whatever the limits do, the cards are there. Neither a restart
 * nor a clock that is set gives anything back, or holds anything up.
 */
#include "tests/store/pushing.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>

static unsigned asked;      /* runs so far: each has its own name */
static uint32_t summarised; /* what the last summary stood for */

/* What is sent for what was just asked: 'c' a card, 's' a summary, '-' nothing. */
static char sent_now(void)
{
	struct st_push_is a;
	char kind = next(&a);
	if (kind == 'n')
		return '-';
	if (kind == 's')
		summarised = a.count;
	assert_int_equal(done(&a, PUSH_SENT, 0), ERR_OK);
	assert_int_equal(next(&a), 'n');
	return kind;
}

/* A question of a run of its own: made-up conversations are no way around. */
static char one_of(const char *tenant)
{
	char run[32];
	(void)snprintf(run, sizeof run, "run-%u", ++asked);
	working(tenant, run);
	question(tenant, run, "q");
	/* Its card is there, whatever is sent (C-13). */
	assert_int_equal(cards(tenant, run), 1);
	char kind = sent_now();
	assert_int_equal(cards(tenant, run), 1);
	assert_int_equal(decided(tenant, run, "q"), ERR_OK);
	/* What was sent is taken back, and nothing else; that is no push that counts. */
	assert_string_equal(send_all(), kind == 'c' ? "x" : "");
	return kind;
}

static char one(void)
{
	return one_of("acme");
}

/* n at once; what each came to. */
static const char *some(unsigned n)
{
	static char all[100];
	for (unsigned i = 0; i < n; i++)
		all[i] = one();
	all[n] = '\0';
	return all;
}

/* Long enough that nothing counts any more. */
static void forget(void)
{
	pass(2 * HOUR + MINUTE);
	(void)send_all();
	summarised = 0;
}

/* Thirty, as fast as they may come: twenty minutes and a little later, so that the hour is over no sooner than in 39.
 */
static void fill_hour(void)
{
	for (int i = 0; i < 3; i++) {
		assert_string_equal(some(10), "cccccccccc");
		pass(MINUTE);
	}
}

static void minute(void **state)
{
	(void)state;
	struct st_push_is a;
	forget();
	working("acme", "talk");
	for (int i = 0; i < 5; i++) {
		char request[8];
		(void)snprintf(request, sizeof request, "q%d", i);
		question("acme", "talk", request);
		assert_int_equal(cards("acme", "talk"), i + 1);
		assert_int_equal(sent_now(), i < 3 ? 'c' : '-');
	}
	/* The others have their own three, and all together ten. */
	assert_string_equal(some(8), "ccccccc-");
	/* It slides: nothing begins anew with a full minute. */
	pass(MINUTE - 2 * SECOND);
	question("acme", "talk", "late");
	assert_int_equal(sent_now(), '-');
	pass(2 * SECOND);
	question("acme", "talk", "later");
	assert_int_equal(sent_now(), 'c');
	/* Asked again is the same question (C-10). */
	question("acme", "talk", "later");
	assert_int_equal(sent_now(), '-');
	assert_int_equal(cards("acme", "talk"), 7);
	/* What had no push has nothing to take back. */
	assert_int_equal(decided("acme", "talk", "q4"), ERR_OK);
	assert_int_equal(next(&a), 'n');
	assert_int_equal(decided("acme", "talk", "q0"), ERR_OK);
	assert_string_equal(send_all(), "x");
	assert_true(figure("pinfold_pushes_held_total") >= 4);
	assert_int_equal(findings(), 0);
}

/* 40 questions in an hour, over as many runs. */
static void hour(void **state)
{
	(void)state;
	forget();
	fill_hour();
	assert_int_equal(one(), 's');
	/* It stands for the questions that had no push since the last one, and for this one. */
	assert_true(summarised >= 1);
	assert_string_equal(some(9), "---------");
	pass(HOUR - 2 * SECOND);
	assert_int_equal(one(), '-');
	pass(3 * SECOND);
	assert_int_equal(one(), 'c');
	/* The next summary tells of those that fell into the silence. */
	assert_string_equal(some(9), "ccccccccc");
	pass(MINUTE);
	assert_string_equal(some(10), "cccccccccc");
	pass(MINUTE);
	assert_string_equal(some(11), "cccccccccc-");
	pass(MINUTE);
	assert_int_equal(one(), 's');
	assert_int_equal(summarised, 9 + 1 + 1 + 1);
	assert_int_equal(findings(), 0);
}

/* Nothing is given back by a restart of stored or of the machine, wherever it comes. */
static void restarts(void **state)
{
	(void)state;
	forget();
	assert_string_equal(some(10), "cccccccccc");
	restart(false);
	assert_int_equal(one(), '-');
	pass(MINUTE);
	assert_string_equal(some(10), "cccccccccc");
	restart(true);
	assert_int_equal(one(), '-');
	pass(MINUTE);
	assert_string_equal(some(10), "cccccccccc");
	restart(false);
	pass(MINUTE);
	assert_int_equal(one(), 's');
	restart(false);
	assert_string_equal(some(3), "---");
	pass(30 * MINUTE);
	restart(true);
	assert_int_equal(one(), '-');
	restart(true);
	assert_int_equal(one(), '-');
	/* Nor is it silent for ever: for an hour of this machine at most. */
	pass(HOUR + SECOND);
	assert_int_equal(one(), 'c');
	assert_int_equal(findings(), 0);
}

/* A clock that is set counts for nothing. */
static void steps(void **state)
{
	static const long long by[] = {HOUR + MINUTE, -2LL * HOUR, 20LL * HOUR, -3 * SECOND, -20LL * HOUR, HOUR};
	(void)state;
	forget();
	assert_string_equal(some(10), "cccccccccc");
	for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
		step_clock(by[i]);
		assert_int_equal(one(), '-');
	}
	pass(MINUTE);
	assert_string_equal(some(10), "cccccccccc");
	pass(MINUTE);
	assert_string_equal(some(10), "cccccccccc");
	pass(MINUTE);
	assert_int_equal(one(), 's');
	for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
		step_clock(by[i]);
		assert_int_equal(one(), '-');
		restart(false);
		assert_int_equal(one(), '-');
	}
	/* Set back for good: it is over when an hour is. */
	step_clock(-30LL * 24 * HOUR);
	assert_int_equal(one(), '-');
	pass(HOUR);
	assert_int_equal(one(), 'c');
	step_clock(30LL * 24 * HOUR);
	assert_int_equal(findings(), 0);
}

/* Who has no device with push spends nothing, of his own or of all. */
static void nobody(void **state)
{
	(void)state;
	forget();
	for (int i = 0; i < 12; i++)
		assert_int_equal(one_of("other"), '-');
	assert_string_equal(some(10), "cccccccccc");
}

/* All tenants together have a limit, too; and each its own where that one is higher. */
static void everybody(void **state)
{
	(void)state;
	device("other", "other-phone", 0);
	assert_int_equal(subscribe("other", "other-phone"), ERR_OK);
	forget();
	for (int i = 0; i < 5; i++) {
		assert_int_equal(one_of("other"), 'c');
		assert_int_equal(one(), 'c');
	}
	assert_int_equal(one_of("other"), '-');
	assert_int_equal(one(), '-');
	pass(MINUTE);
	for (int i = 0; i < 10; i++)
		assert_int_equal(one_of("other"), 'c');
	pass(MINUTE);
	assert_string_equal(some(10), "cccccccccc");
	pass(MINUTE);
	/* The 31st of the service is a summary for whose it was, and then nobody is told anything. */
	assert_int_equal(one(), 's');
	assert_true(summarised >= 2);
	assert_int_equal(one_of("other"), '-');
	pass(HOUR + SECOND);
	assert_int_equal(one_of("other"), 'c');
	/* More for all: then nobody's silence is another's. */
	(void)rig_stop(&rig, SIGTERM);
	rig.push_per_hour = 100;
	rig.push_per_minute = 100;
	rig_start(&rig);
	ready('a');
	forget();
	fill_hour();
	assert_int_equal(one(), 's');
	assert_int_equal(one(), '-');
	for (int i = 0; i < 10; i++)
		assert_int_equal(one_of("other"), 'c');
	assert_int_equal(one_of("other"), '-');
	assert_int_equal(findings(), 0);
}

/* However many devices there are, a question is one push, and each of them has it. */
static void devices(void **state)
{
	(void)state;
	struct st_push_is a[3];
	for (int i = 2; i <= 3; i++) {
		char id[16];
		(void)snprintf(id, sizeof id, "phone-%d", i);
		device("acme", id, 0);
		assert_int_equal(subscribe("acme", id), ERR_OK);
	}
	forget();
	for (int k = 0; k < 10; k++) {
		char run[32], request[] = "q";
		(void)snprintf(run, sizeof run, "many-%d", k);
		working("acme", run);
		question("acme", run, request);
		char labels[3][161];
		for (int i = 0; i < 3; i++) {
			assert_int_equal(next(&a[i]), 'c');
			(void)snprintf(labels[i], sizeof labels[i], "%s", a[i].label);
			assert_int_equal(done(&a[i], PUSH_SENT, 0), ERR_OK);
			for (int j = 0; j < i; j++)
				assert_string_not_equal(labels[i], labels[j]);
		}
		assert_int_equal(next(&a[0]), 'n');
		assert_int_equal(decided("acme", run, request), ERR_OK);
		assert_string_equal(send_all(), "xxx");
	}
	assert_int_equal(one_of("acme"), '-');
	assert_int_equal(findings(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(minute), cmocka_unit_test(hour),      cmocka_unit_test(restarts), cmocka_unit_test(steps),
	    cmocka_unit_test(nobody), cmocka_unit_test(everybody), cmocka_unit_test(devices)};
	return cmocka_run_group_tests(tests, pushing_phone, pushing_teardown);
}
