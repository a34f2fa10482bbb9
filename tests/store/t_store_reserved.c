/*
 * Tokens are reserved with the unit and settled when the call is over, so that neither a run nor a day is ever
 * overspent, whoever dies meanwhile; and how often a run may ask within a minute.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "tests/store/settable.h"
#include "tests/store/steps.h"

enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, SLOTS = 12, STEPS = 400, SEEDS = 2 };

/* Another life of stored with these limits, whose machine's timer is as late as that. */
static void again(uint64_t run, uint64_t agent, uint64_t day, uint32_t minute, long long timer)
{
	(void)rig_stop(&rig, SIGKILL);
	rig.max_tokens_run = run;
	rig.agent_tokens_run = agent;
	rig.max_tokens_day = day;
	rig.max_model_calls_minute = minute;
	set_timer(timer);
	rig_start(&rig);
}

struct call {
	const char *run;
	uint64_t reserved, at;
};

static enum err admit(const char *run, uint64_t tokens, struct call *c)
{
	struct st_run_create like = rig_run("acme", run);
	struct st_cap_is is = {0};
	struct st_cap_consume m = {
	    .tenant = "acme", .run = run, .model = like.model, .fingerprint = like.fingerprint, .tokens = tokens};
	enum err e = GATEWAY(st_call_cap_consume(gateway, &m, NULL, &is, NULL));
	*c = (struct call){run, tokens, is.reserved_at};
	return e;
}

static enum err over(const struct call *c, uint64_t prompt, uint64_t completion, bool keep)
{
	struct st_model_called m = {.tenant = "acme",
				    .run = c->run,
				    .outcome = "ok",
				    .prompt_tokens = prompt,
				    .completion_tokens = completion,
				    .reserved = c->reserved,
				    .reserved_at = c->at,
				    .keep = keep};
	struct st_called_is is;
	return GATEWAY(st_call_model_called(gateway, &m, NULL, &is, NULL));
}

/* In, out, reserved. */
static void used(const char *run, uint64_t prompt, uint64_t completion, uint64_t reserved)
{
	struct st_run_is is = run_is(run);
	assert_int_equal(is.prompt_tokens, prompt);
	assert_int_equal(is.completion_tokens, completion);
	assert_int_equal(is.reserved_tokens, reserved);
}

static void of_a_run(void **state)
{
	(void)state;
	struct call a, b, no;
	again(1000, 0, 0, 0, 0);
	assert_int_equal(rig_running(fcgi, steward, "acme", "one", 50), ERR_OK);
	assert_int_equal(run_is("one").max_tokens, 1000);
	assert_int_equal(admit("one", 1001, &no), ERR_MODEL_TOKEN_BUDGET_EXHAUSTED);
	assert_int_equal(admit("one", 600, &a), ERR_OK);
	/* It would fit but for the one that is under way: a moment later it may. */
	assert_int_equal(admit("one", 500, &no), ERR_TOO_MANY_MODEL_CALLS);
	assert_int_equal(ask_retry_after(gateway), 1);
	assert_int_equal(admit("one", 400, &b), ERR_OK);
	used("one", 0, 0, 1000);
	assert_int_equal(admit("one", 0, &no), ERR_TOO_MANY_MODEL_CALLS);
	assert_int_equal(over(&a, 50, 25, false), ERR_OK);
	used("one", 50, 25, 400);
	/* The upstream failed before its first byte: all comes back, but the unit. */
	assert_int_equal(over(&b, 0, 0, false), ERR_OK);
	used("one", 50, 25, 0);
	assert_int_equal(run_is("one").used_requests, 2);
	/* Nobody knows: all is kept, and what is known is a part of it. */
	assert_int_equal(admit("one", 300, &a), ERR_OK);
	assert_int_equal(over(&a, 100, 0, true), ERR_OK);
	used("one", 150, 25, 200);
	assert_int_equal(admit("one", 626, &no), ERR_MODEL_TOKEN_BUDGET_EXHAUSTED);
	assert_int_equal(admit("one", 625, &a), ERR_OK);
	/* A provider may count what it wants; then it is counted, and that is the end. */
	assert_int_equal(over(&a, 700, 300, false), ERR_OK);
	used("one", 850, 325, 200);
	assert_int_equal(admit("one", 0, &no), ERR_MODEL_TOKEN_BUDGET_EXHAUSTED);
	/* The smaller one of both counts. */
	again(1000, 10, 0, 0, 0);
	assert_int_equal(run_is("one").max_tokens, 10);
	again(0, 1175, 0, 0, 0);
	assert_int_equal(run_is("one").max_tokens, 1175);
	again(0, 0, 5, 0, 0); /* there is a configuration */
	assert_int_equal(run_is("one").max_tokens, 0);
}

/* Whoever reserved it is dead: it is kept, and in time that is no reason any more to ask again. */
static void lost(void **state)
{
	(void)state;
	struct call a, no;
	again(1000, 0, 0, 0, 0);
	assert_int_equal(rig_running(fcgi, steward, "acme", "left", 50), ERR_OK);
	assert_int_equal(admit("left", 600, &a), ERR_OK);
	again(1000, 0, 0, 0, 0);
	used("left", 0, 0, 600);
	assert_int_equal(admit("left", 500, &no), ERR_TOO_MANY_MODEL_CALLS);
	set_clock(62LL * MINUTE);
	assert_int_equal(admit("left", 500, &no), ERR_MODEL_TOKEN_BUDGET_EXHAUSTED);
	assert_int_equal(admit("left", 400, &no), ERR_OK);
	set_clock(0);
}

/* A day's: what was reserved counts where it was, and comes back there; what is older than the day does not. */
static void of_a_day(void **state)
{
	(void)state;
	struct call a, b, no;
	again(0, 0, 1000, 0, 100LL * HOUR);
	assert_int_equal(rig_running(fcgi, steward, "acme", "day", 50), ERR_OK);
	assert_int_equal(admit("day", 1001, &no), ERR_TENANT_TOKEN_QUOTA_EXHAUSTED);
	assert_in_range(ask_retry_after(gateway), 23 * 3600, 24 * 3600);
	assert_int_equal(admit("day", 600, &a), ERR_OK);
	assert_int_equal(admit("day", 401, &no), ERR_TENANT_TOKEN_QUOTA_EXHAUSTED);
	set_timer(110LL * HOUR);
	assert_int_equal(admit("day", 400, &b), ERR_OK);
	assert_int_equal(admit("day", 0, &no), ERR_TENANT_TOKEN_QUOTA_EXHAUSTED);
	assert_int_equal(over(&b, 50, 50, false), ERR_OK);
	used("day", 50, 50, 600);
	/* There is room for 300, and for as much as the first one left once its window is over. */
	assert_int_equal(admit("day", 301, &no), ERR_TENANT_TOKEN_QUOTA_EXHAUSTED);
	again(0, 0, 1000, 0, 125LL * HOUR);
	assert_int_equal(admit("day", 901, &no), ERR_TENANT_TOKEN_QUOTA_EXHAUSTED);
	/* Nothing of it counts any more: it gives nothing back, and is counted as of now. */
	assert_int_equal(over(&a, 200, 0, false), ERR_OK);
	assert_int_equal(admit("day", 701, &no), ERR_TENANT_TOKEN_QUOTA_EXHAUSTED);
	assert_int_equal(admit("day", 700, &no), ERR_OK);
	assert_int_equal(admit("day", 0, &no), ERR_TENANT_TOKEN_QUOTA_EXHAUSTED);
}

static void in_a_minute(void **state)
{
	(void)state;
	struct call c;
	again(0, 0, 0, 5, 200LL * HOUR);
	assert_int_equal(rig_running(fcgi, steward, "acme", "fast", 50), ERR_OK);
	assert_int_equal(rig_running(fcgi, steward, "acme", "other-one", 50), ERR_OK);
	for (int i = 0; i < 5; i++)
		assert_int_equal(admit("fast", 0, &c), ERR_OK);
	assert_int_equal(admit("fast", 0, &c), ERR_MODEL_CALL_RATE_EXCEEDED);
	uint32_t wait = ask_retry_after(gateway);
	assert_in_range(wait, 30, 65); /* 30: on a machine that took its time */
	assert_int_equal(run_is("fast").used_requests, 5);
	assert_int_equal(admit("other-one", 0, &c), ERR_OK);
	/* Neither a death nor a step of the clock makes room. */
	set_clock(10LL * MINUTE);
	assert_int_equal(admit("fast", 0, &c), ERR_MODEL_CALL_RATE_EXCEEDED);
	set_clock(0);
	again(0, 0, 0, 5, 200LL * HOUR + 1);
	assert_int_equal(admit("fast", 0, &c), ERR_MODEL_CALL_RATE_EXCEEDED);
	/* What was said is true. */
	set_timer(200LL * HOUR + wait * SECOND + 1);
	for (int i = 0; i < 5; i++)
		assert_int_equal(admit("fast", 0, &c), ERR_OK);
	assert_int_equal(admit("fast", 0, &c), ERR_MODEL_CALL_RATE_EXCEEDED);
	/* A machine that was started again begins its timer anew, and its clock from where it was last written down. */
	again(0, 0, 0, 5, SECOND - (long long)timer_ms());
	assert_int_equal(admit("fast", 0, &c), ERR_MODEL_CALL_RATE_EXCEEDED);
	assert_in_range(ask_retry_after(gateway), 1, 65);
}

/*
 * Whatever happens in whatever order: a call is let in when, and only when, it fits, and what the run and the day have
 * used is what the provider's own log says, with all that was reserved where it says nothing.
 */
struct model {
	uint64_t prompt, completion, kept, open, day, run_most, day_most;
	struct call calls[SLOTS];
	unsigned n;
};

static void one_more(struct model *m, const char *run)
{
	struct call c;
	uint64_t tokens = (uint64_t)(rand() % 300), least = tokens > 0 ? tokens : 1;
	uint64_t done = m->prompt + m->completion + m->kept;
	enum err want = m->day + least > m->day_most            ? ERR_TENANT_TOKEN_QUOTA_EXHAUSTED
			: done + m->open + least <= m->run_most ? ERR_OK
			: done + least > m->run_most            ? ERR_MODEL_TOKEN_BUDGET_EXHAUSTED
								: ERR_TOO_MANY_MODEL_CALLS;
	assert_int_equal(admit(run, tokens, &c), want);
	if (want != ERR_OK)
		return;
	m->open += tokens;
	m->day += tokens;
	m->calls[m->n++] = c;
}

static void one_less(struct model *m, bool look)
{
	unsigned i = (unsigned)rand() % m->n;
	struct call c = m->calls[i];
	m->calls[i] = m->calls[--m->n];
	int how = rand() % 4;
	uint64_t prompt = 0, completion = 0;
	bool keep = how == 2;
	if (how != 1 && c.reserved > 0) { /* 1: released */
		prompt = (uint64_t)rand() % c.reserved;
		completion = (uint64_t)rand() % (c.reserved - prompt + 1);
	}
	if (how == 3) /* whoever asked is dead: nobody says a word */
		return;
	assert_int_equal(over(&c, prompt, completion, keep), ERR_OK);
	struct model before = *m;
	uint64_t charged = keep ? c.reserved : prompt + completion;
	m->open -= c.reserved;
	m->prompt += prompt;
	m->completion += completion;
	m->kept += charged - prompt - completion;
	m->day -= c.reserved - charged;
	if (look)
		return;
	/* Answered before it was written: it may be lost with stored, and then all is kept. */
	again(m->run_most, 0, m->day_most, 0, 300LL * HOUR);
	if (run_is(c.run).reserved_tokens == before.open + before.kept &&
	    m->open + m->kept != before.open + before.kept)
		*m = before;
}

static void any_order(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= SEEDS; seed++) {
		char run[32];
		struct model m = {.run_most = 6000, .day_most = seed == 1 ? 20000 : 5000};
		unsigned ended = 0;
		srand(seed);
		again(m.run_most, 0, m.day_most, 0, 300LL * HOUR + seed * 30LL * HOUR);
		(void)snprintf(run, sizeof run, "any-%u", seed);
		assert_int_equal(rig_running(fcgi, steward, "acme", run, 2 * STEPS), ERR_OK);
		for (int i = 0; i < STEPS; i++) {
			if (m.n < SLOTS && (m.n == 0 || rand() % 2 == 0))
				one_more(&m, run);
			else if (m.n > 0)
				one_less(&m, true);
			if (rand() % 80 == 0)
				again(m.run_most, 0, m.day_most, 0, 300LL * HOUR + seed * 30LL * HOUR);
			used(run, m.prompt, m.completion, m.open + m.kept);
			assert_true(m.prompt + m.completion + m.open + m.kept <= m.run_most && m.day <= m.day_most);
			ended += m.prompt + m.completion + m.kept > 0;
		}
		assert_true(ended > STEPS / 2);
	}
}

/* The same at the moment of an early answer. */
static void killed_at_once(void **state)
{
	(void)state;
	struct model m = {.run_most = 1000000, .day_most = 1000000};
	srand(7);
	again(m.run_most, 0, m.day_most, 0, 300LL * HOUR);
	m.day_most = m.run_most = 500000;
	again(m.run_most, 0, m.day_most, 0, 300LL * HOUR);
	assert_int_equal(rig_running(fcgi, steward, "acme", "early", 100), ERR_OK);
	for (int i = 0; i < 8; i++) {
		uint64_t n = m.n;
		while (m.n == n)
			one_more(&m, "early");
		one_less(&m, false);
		used("early", m.prompt, m.completion, m.open + m.kept);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(of_a_run),       cmocka_unit_test(lost),
					   cmocka_unit_test(of_a_day),       cmocka_unit_test(in_a_minute),
					   cmocka_unit_test(killed_at_once), cmocka_unit_test(any_order)};
	return cmocka_run_group_tests(tests, settable_setup, settable_teardown);
}
