/* What a tenant may use within an hour or a day: counted whole, over deaths, deletions and steps of the clock. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "tests/store/settable.h"
#include "tests/store/steps.h"

enum { MINUTE = 60000, HOUR = 60 * MINUTE, DAY = 24 * HOUR, RUNS = 6, REQUESTS = 5, TOKENS = 1000, RUN_BYTES = 25 };

/* Another life of stored, whose machine's timer is as late as that, with these quotas. */
static void again(uint32_t runs, uint64_t bytes, uint64_t requests, uint64_t tokens, long long timer)
{
	(void)rig_stop(&rig, SIGKILL);
	rig.max_runs_hour = runs;
	rig.max_stored_bytes = bytes;
	rig.max_model_requests_day = requests;
	rig.max_tokens_day = tokens;
	set_timer(timer);
	rig_start(&rig);
}

static enum err create_of(const char *tenant, const char *run)
{
	struct st_run_create m = rig_run(tenant, run);
	return rig_create(fcgi, &m, NULL);
}

static enum err create(const char *run)
{
	return create_of("acme", run);
}

static enum err called(const char *run, uint64_t prompt, uint64_t completion)
{
	struct st_model_called m = {.tenant = "acme",
				    .run = run,
				    .status = 200,
				    .outcome = "ok",
				    .prompt_tokens = prompt,
				    .completion_tokens = completion};
	struct st_called_is is;
	return GATEWAY(st_call_model_called(gateway, &m, NULL, &is, NULL));
}

static void delete_run(const char *run)
{
	struct st_run_state a;
	struct st_run_delete m = {.tenant = "acme", .run = run, .by = "tests", .request_id = ""};
	struct st_ok ok;
	assert_int_equal(cancel(run, &a), ERR_OK);
	assert_int_equal(FCGI(st_call_run_delete(fcgi, &m, NULL, &ok, NULL)), ERR_OK);
}

static void no_quota(void **state)
{
	(void)state;
	for (int i = 0; i < 2 * RUNS; i++) {
		char run[32];
		(void)snprintf(run, sizeof run, "free-%d", i);
		assert_int_equal(create(run), ERR_OK);
	}
}

/* They count although there was no quota when they were made. */
static void runs_an_hour(void **state)
{
	(void)state;
	again(3 * RUNS, 0, 0, 0, 2 * MINUTE);
	for (int i = 0; i < RUNS; i++) {
		char run[32];
		(void)snprintf(run, sizeof run, "hour-%d", i);
		assert_int_equal(create(run), ERR_OK);
	}
	assert_int_equal(create("one-more"), ERR_RUN_RATE_EXCEEDED);
	uint32_t wait = ask_retry_after(fcgi);
	assert_in_range(wait, 1, 61 * 60);
	assert_int_equal(figure("pinfold_store_refusals_total{code=\"run_rate_exceeded\"}"), 1);
	assert_int_equal(create("hour-1"), ERR_OK); /* the same again is no new one */
	assert_int_equal(create_of("other", "elsewhere"), ERR_OK);
	/* Neither is made room by a deletion, nor by a step of the clock, nor by a death. */
	delete_run("hour-2");
	set_clock(3 * DAY);
	assert_int_equal(create("one-more"), ERR_RUN_RATE_EXCEEDED);
	set_clock(0);
	assert_int_equal(create("one-more"), ERR_RUN_RATE_EXCEEDED);
	again(3 * RUNS, 0, 0, 0, 2 * MINUTE);
	assert_int_equal(create("one-more"), ERR_RUN_RATE_EXCEEDED);
	/* What was said is true: not long before, and then. */
	wait = ask_retry_after(fcgi);
	set_timer(2 * MINUTE + (wait - 60) * 1000LL);
	assert_int_equal(create("one-more"), ERR_RUN_RATE_EXCEEDED);
	set_timer(2 * MINUTE + wait * 1000LL);
	assert_int_equal(create("one-more"), ERR_OK);
	/* The window slides: those of the later piece count still. */
	for (int i = 0; i < 2 * RUNS - 1; i++) {
		char run[32];
		(void)snprintf(run, sizeof run, "slid-%d", i);
		assert_int_equal(create(run), ERR_OK);
	}
	assert_int_equal(create("too-many"), ERR_RUN_RATE_EXCEEDED);
	set_timer(2 * MINUTE + 3LL * HOUR);
	assert_int_equal(create("too-many"), ERR_OK);
}

static void requests_a_day(void **state)
{
	(void)state;
	struct st_cap_is cap;
	again(0, 0, REQUESTS, 0, 4LL * HOUR);
	assert_int_equal(rig_running(fcgi, steward, "acme", "asks", 50), ERR_OK);
	assert_int_equal(rig_running(fcgi, steward, "acme", "asks-too", 50), ERR_OK);
	for (int i = 0; i < REQUESTS; i++)
		assert_int_equal(consume(i % 2 == 0 ? "asks" : "asks-too", &cap), ERR_OK);
	assert_int_equal(consume("asks", &cap), ERR_TENANT_REQUEST_QUOTA_EXHAUSTED);
	assert_int_equal(consume("asks-too", &cap), ERR_TENANT_REQUEST_QUOTA_EXHAUSTED);
	uint32_t wait = ask_retry_after(gateway);
	assert_in_range(wait, 23 * 3600, 24 * 3600 + 1801);
	/* Nothing was charged to the run. */
	assert_int_equal(run_is("asks").used_requests, 3);
	assert_int_equal(create("would-fail"), ERR_TENANT_REQUEST_QUOTA_EXHAUSTED);
	assert_int_equal(ask_retry_after(fcgi), wait);
	again(0, 0, REQUESTS, 0, 4LL * HOUR);
	assert_int_equal(consume("asks", &cap), ERR_TENANT_REQUEST_QUOTA_EXHAUSTED);
	set_timer(4LL * HOUR + (wait - 60) * 1000LL);
	assert_int_equal(consume("asks", &cap), ERR_TENANT_REQUEST_QUOTA_EXHAUSTED);
	set_timer(4LL * HOUR + wait * 1000LL);
	assert_int_equal(consume("asks", &cap), ERR_OK);
	assert_int_equal(run_is("asks").used_requests, 4);
}

static void tokens_a_day(void **state)
{
	(void)state;
	struct st_cap_is cap;
	struct st_run_state a;
	again(0, 0, 0, TOKENS, 40LL * HOUR);
	uint64_t had = figure("pinfold_model_tokens_total");
	assert_int_equal(rig_running(fcgi, steward, "acme", "reads", 50), ERR_OK);
	assert_int_equal(rig_running(fcgi, steward, "acme", "reads-too", 50), ERR_OK);
	assert_int_equal(consume("reads", &cap), ERR_OK);
	assert_int_equal(called("reads", 400, 100), ERR_OK);
	assert_int_equal(consume("reads", &cap), ERR_OK);
	assert_int_equal(consume("reads-too", &cap), ERR_OK);
	/* Also of a run that ended before its call did. */
	assert_int_equal(cancel("reads-too", &a), ERR_OK);
	assert_int_equal(finish("reads-too", RUN_EV_FAIL, false, "", &a), ERR_OK);
	assert_int_equal(called("reads-too", 499, 0), ERR_RUN_SESSION_EVENTS_REJECTED);
	assert_int_equal(consume("reads", &cap), ERR_OK); /* one is left */
	assert_int_equal(called("reads", 700, 0), ERR_OK);
	assert_int_equal(figure("pinfold_model_tokens_total"), had + 1699);
	assert_int_equal(consume("reads", &cap), ERR_TENANT_TOKEN_QUOTA_EXHAUSTED);
	assert_int_equal(create("would-fail"), ERR_TENANT_TOKEN_QUOTA_EXHAUSTED);
	again(0, 0, 0, TOKENS, 40LL * HOUR);
	assert_int_equal(consume("reads", &cap), ERR_TENANT_TOKEN_QUOTA_EXHAUSTED);
	uint32_t wait = ask_retry_after(gateway);
	set_timer(40LL * HOUR + wait * 1000LL);
	assert_int_equal(consume("reads", &cap), ERR_OK);
}

static void stored_bytes(void **state)
{
	(void)state;
	struct st_artifact_put m = {.tenant = "acme", .run = "reads", .name = 3};
	struct st_ok ok;
	again(0, 1, 0, 0, 80LL * HOUR);
	assert_int_equal(create("full"), ERR_TENANT_STORAGE_FULL);
	assert_int_equal(ask_retry_after(fcgi), 3600);
	/* How many there are: the least quota with which one more is taken. */
	uint64_t low = 1, high = 100000;
	while (low < high) {
		uint64_t middle = (low + high) / 2;
		again(0, middle, 0, 0, 80LL * HOUR);
		enum err e = create("probe");
		if (e == ERR_OK) {
			delete_run("probe");
			high = middle;
		} else
			low = middle + 1;
	}
	again(0, low, 0, 0, 80LL * HOUR);
	assert_int_equal(create("last"), ERR_OK);
	assert_int_equal(create("full"), ERR_TENANT_STORAGE_FULL);
	assert_int_equal(create_of("other", "not-full"), ERR_OK);
	delete_run("last");
	assert_int_equal(create("last"), ERR_OK);
	/* A run's results are kept whatever there is, and counted once. */
	for (int i = 0; i < 2; i++) {
		int fd = rig_memfd("0123456789", 10);
		assert_int_equal(STEWARD(st_call_artifact_put(steward, &m, &fd, &ok, NULL)), ERR_OK);
	}
	again(0, low + RUN_BYTES + 9, 0, 0, 80LL * HOUR);
	assert_int_equal(create("full"), ERR_TENANT_STORAGE_FULL);
	again(0, low + RUN_BYTES + 10, 0, 0, 80LL * HOUR);
	assert_int_equal(create("full"), ERR_OK);
}

static struct st_tenant_used used_by(const char *tenant, uint64_t created, const char *run)
{
	struct st_tenant_use m = {.tenant = tenant, .before_created = created, .before_run = run};
	struct st_tenant_used a;
	assert_int_equal(st_call_tenant_use(admin, &m, NULL, &a, NULL), ERR_OK);
	return a;
}

/* What the operator is told. */
static void told(void **state)
{
	(void)state;
	struct st_run_state s;
	again(0, 0, 0, 0, 200LL * HOUR);
	struct st_tenant_used before = used_by("acme", 0, ""), other = used_by("other", 0, "");
	assert_int_equal(create("told-1"), ERR_OK);
	assert_int_equal(create("told-2"), ERR_OK);
	assert_int_equal(cancel("told-2", &s), ERR_OK);
	struct st_tenant_used after = used_by("acme", 0, "");
	assert_true(after.known && !after.more);
	assert_int_equal(after.queued, before.queued + 1);
	assert_int_equal(after.cancelled, before.cancelled + 1);
	assert_int_equal(after.runs_hour, before.runs_hour + 2);
	assert_int_equal(after.stored_bytes, before.stored_bytes + 2 * (uint64_t)RUN_BYTES);
	assert_int_equal(after.completed + after.failed + after.running,
			 before.completed + before.failed + before.running);
	/* Resumed behind the oldest there is nothing more, and what is no run is told by the first step alone. */
	struct st_tenant_used rest = used_by("acme", 1, "a");
	assert_true(rest.queued == 0 && rest.cancelled == 0 && rest.runs_hour == 0 && rest.tokens == 0 && !rest.more);
	struct st_tenant_used same = used_by("other", 0, "");
	assert_int_equal(same.queued, other.queued);
	assert_int_equal(same.runs_hour, other.runs_hour);
	assert_false(used_by("nobody-at-all", 0, "").known);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(no_quota),       cmocka_unit_test(runs_an_hour),
					   cmocka_unit_test(requests_a_day), cmocka_unit_test(tokens_a_day),
					   cmocka_unit_test(stored_bytes),   cmocka_unit_test(told)};
	return cmocka_run_group_tests(tests, settable_setup, settable_teardown);
}
