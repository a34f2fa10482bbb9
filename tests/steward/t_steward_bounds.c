/*
 * What bounds a run from outside: cancels that sandboxd does not answer, or answers badly; a clock that is set; how
 * long a run may wait, how many may go on, and whose turn it is.
 */
#include "lib/num.h"
#include "lib/own.h"
#include "tests/steward/course.h"
#include "tests/steward/times.h"
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HOUR = 3600000, CROWD = 1000 };

static struct stage *const st = &course_stage;

static void restart(uint32_t slots)
{
	(void)stage_stop(st, SIGKILL);
	stage_fork(st, stage_secret);
	stage_greet(st, slots);
}

static void refuse(const char *run)
{
	stage_refused(st, run, BOX_WORK, ERR_SANDBOX_UNAVAILABLE);
	(void)stage_final(st, "acme", run);
}

static struct order spawn_of(const char *run)
{
	struct order o = stage_expect(st, SBX_SPAWN, run, BOX_WORK);
	order_end(&o);
	return o;
}

/* --- cancels ---------------------------------------------------------------------------------------------------- */

/* Nothing comes back: the run is cancelled at its bound all the same, and the box keeps its slot. */
static void t_no_answer(void **state)
{
	(void)state;
	restart(1);
	const char *run = course_begin();
	struct order o = course_to_work(run);
	stage_cancel(st, "acme", run);
	struct order k = stage_expect(st, SBX_KILL, run, BOX_WORK);
	assert_int_equal(k.grace_ms, 5000);
	assert_false(stage_capable(st, "acme", run));
	k = stage_expect(st, SBX_KILL, run, BOX_WORK);
	assert_int_equal(k.grace_ms, 0);
	const struct st_run_is *is = stage_final(st, "acme", run);
	course_expect_end(is, RUN_CANCELLED, "cancelled_by_request", "cancelled_by_request");
	is = stage_get(st, "acme", run);
	printf("cancelled without an answer of sandboxd: %llu ms after start\n",
	       (unsigned long long)(is->finished_at - is->started_at));
	course_expect_one_end(run, "run.cancelled");
	course_expect_artifact(run, ART_REQUEST, "repair it");
	/* The next waits until the box is gone. */
	const char *next = course_begin();
	(void)poll(NULL, 0, 100);
	assert_int_equal(stage_get(st, "acme", next)->state, RUN_QUEUED);
	stage_gone(st, run, BOX_WORK, true);
	do /* killed once more before it was known to be gone */
		k = stage_order(st);
	while (k.number == SBX_KILL && strcmp(k.run, run) == 0);
	assert_true(k.number == SBX_SPAWN && strcmp(k.run, next) == 0);
	order_end(&k);
	refuse(next);
	order_end(&o);
}

/* GONE, and not clean: that is how the run ended, cancelled or not; its artifacts are there. */
static void t_unclean(void **state)
{
	(void)state;
	restart(4);
	const char *run = course_begin();
	struct order o = course_to_work(run);
	stage_cancel(st, "acme", run);
	(void)stage_expect(st, SBX_KILL, run, BOX_WORK);
	bundles_ran(o.result, true, -15, false, true);
	bundles_entries(o.result, course_repaired, 3);
	bundles_collected(o.result, 3, true);
	order_end(&o);
	stage_exited(st, run, BOX_WORK, false, false);
	(void)stage_expect(st, SBX_KILL, run, BOX_WORK);
	stage_gone(st, run, BOX_WORK, false);
	const struct st_run_is *is = stage_final(st, "acme", run);
	course_expect_end(is, RUN_FAILED, "sandbox_cleanup_failed", "sandbox_cleanup_failed");
	assert_true(is->cancel_requested);
	course_expect_one_end(run, "run.failed");
	course_expect_artifact(run, ART_PATCH, "+TWO");
	assert_int_equal(stage_audited(st, "sandbox.cleanup_failed", run), 1);
}

/* Cancelled while it is cleaned up after: the store is away, so its end is not yet committed. */
static void t_cleaning(void **state)
{
	(void)state;
	restart(4);
	const char *run = course_begin();
	struct order o = course_to_check(run);
	course_leave_checks(run, &o, 0, 0, GOOD_TESTS);
	order_end(&o);
	stage_exited(st, run, BOX_CHECK, false, false);
	(void)stage_expect(st, SBX_KILL, run, BOX_CHECK);
	kill(st->pid, SIGSTOP);
	stage_gone(st, run, BOX_CHECK, true);
	stage_cancel(st, "acme", run);
	kill(st->pid, SIGCONT);
	course_expect_end(stage_final(st, "acme", run), RUN_CANCELLED, "cancelled_by_request", "cancelled_by_request");
	course_expect_one_end(run, "run.cancelled");
	course_expect_artifact(run, ART_RESULT, "\"ok\":false,\"terminalReason\":\"cancelled_by_request\"");
	/* And once more, when it has ended: nothing, for it is what was asked for. */
	uint64_t last = stage_get(st, "acme", run)->last_sequence;
	unsigned lines = stage_audited(st, "run.overruled", run);
	stage_cancel(st, "acme", run);
	assert_int_equal(stage_get(st, "acme", run)->last_sequence, last);
	assert_int_equal(stage_audited(st, "run.overruled", run), lines);
}

/* --- time ----------------------------------------------------------------------------------------------------------
 */

/* Each step that waits for sandboxd, when nothing comes: what follows, and what the run's end is then. */
enum { AT_SPAWN_WORK, AT_WORK, AT_WORK_GONE, AT_SPAWN_CHECK, AT_CHECK, AT_CHECK_GONE };

static const struct silence {
	int at;
	uint64_t wait; /* ms that are allowed */
	bool gone;     /* it is killed then, and goes */
	const char *reason, *error;
} silences[] = {
    {AT_SPAWN_WORK, 30000, true, "sandbox_spawn_failed", "sandbox_spawn_failed"},
    {AT_WORK, 105000, true, "wall_time_exceeded", "wall_time_exceeded"},
    {AT_WORK_GONE, 10000, false, "sandbox_cleanup_failed", "sandbox_cleanup_failed"},
    {AT_SPAWN_CHECK, 30000, true, "sandbox_spawn_failed", "sandbox_spawn_failed"},
    {AT_CHECK, 52000, true, "check_not_run", "sandbox_result_invalid"},
    {AT_CHECK_GONE, 10000, false, "sandbox_cleanup_failed", "sandbox_cleanup_failed"},
};

static struct order reach(const char *run, int at)
{
	struct order o = stage_expect(st, SBX_SPAWN, run, BOX_WORK);
	if (at == AT_SPAWN_WORK)
		return o;
	stage_spawned(st, run, BOX_WORK);
	stage_phase(st, "acme", run, PHASE_EXECUTING);
	if (at == AT_WORK)
		return o;
	course_leave_work(o.result, 0);
	order_end(&o);
	stage_exited(st, run, BOX_WORK, false, false);
	(void)stage_expect(st, SBX_KILL, run, BOX_WORK);
	if (at == AT_WORK_GONE)
		return o;
	stage_gone(st, run, BOX_WORK, true);
	o = stage_expect(st, SBX_SPAWN, run, BOX_CHECK);
	if (at == AT_SPAWN_CHECK)
		return o;
	stage_spawned(st, run, BOX_CHECK);
	stage_event(st, "acme", run, "check.started");
	if (at == AT_CHECK)
		return o;
	order_end(&o);
	stage_exited(st, run, BOX_CHECK, false, false);
	(void)stage_expect(st, SBX_KILL, run, BOX_CHECK);
	return o;
}

static void t_silence(void **state)
{
	(void)state;
	restart(1);
	for (size_t i = 0; i < sizeof silences / sizeof *silences; i++) {
		const struct silence *s = &silences[i];
		const char *run = course_begin();
		enum box_kind kind = s->at < AT_SPAWN_CHECK ? BOX_WORK : BOX_CHECK;
		struct order o = reach(run, s->at);
		times_pass((long long)s->wait / 2);
		(void)poll(NULL, 0, 100);
		assert_true(stage_silent(st));
		assert_int_equal(stage_get(st, "acme", run)->state, RUN_RUNNING);
		times_pass((long long)s->wait / 2 + 1000);
		if (s->gone) {
			struct order k = stage_expect(st, SBX_KILL, run, kind);
			assert_int_equal(k.grace_ms, 0);
			order_end(&o);
			stage_gone(st, run, kind, true);
		}
		course_expect_end(stage_final(st, "acme", run), RUN_FAILED, s->reason, s->error);
		course_expect_one_end(run, "run.failed");
		course_expect_artifact(run, ART_RESULT, s->reason);
		assert_false(stage_capable(st, "acme", run));
		order_end(&o);
		if (!s->gone) {
			/* Its slot is free when it is gone after all. */
			const char *next = course_begin();
			(void)poll(NULL, 0, 100);
			assert_true(stage_silent(st));
			stage_gone(st, run, kind, true);
			(void)spawn_of(next);
			refuse(next);
		}
	}
}

/* A judge that does not come to an end is ended, and that is how the run did: nothing of its box is believed. */
static void t_judge_hangs(void **state)
{
	(void)state;
	restart(2);
	for (int i = 0; i < 100; i++) {
		const char *run = course_begin();
		struct order o = course_to_work(run);
		course_leave_work(o.result, 0);
		order_end(&o);
		stage_exited(st, run, BOX_WORK, false, false);
		(void)stage_expect(st, SBX_KILL, run, BOX_WORK);
		stage_gone(st, run, BOX_WORK, true);
		pid_t judge = stage_hold_judge(st);
		if (judge == 0) {
			o = stage_expect(st, SBX_SPAWN, run, BOX_CHECK);
			order_end(&o);
			stage_refused(st, run, BOX_CHECK, ERR_SANDBOX_UNAVAILABLE);
			(void)stage_final(st, "acme", run);
			continue;
		}
		times_pass(21000);
		course_expect_end(stage_final(st, "acme", run), RUN_FAILED, "judge_failed", "sandbox_result_invalid");
		assert_true(kill(judge, 0) != 0);
		own_free char *patch = stage_artifact(st, "acme", run, ART_PATCH);
		assert_true(patch == NULL || *patch == '\0');
		course_expect_artifact(run, ART_RESULT, "\"terminalReason\":\"judge_failed\"");
		return;
	}
	fail_msg("the judge is too quick to be held");
}

/* The same where tests of the upload are counted: nothing that does not come costs the run its end. */
static void t_silence_comparing(void **state)
{
	(void)state;
	restart(1);
	for (int spawned = 0; spawned < 2; spawned++) {
		const char *run = course_begin();
		struct order o = course_to_check(run);
		course_leave_checks(run, &o, 0, 0, ".s\nRan 2 tests in 0.1s\n\nOK (skipped=1)\n");
		order_end(&o);
		stage_exited(st, run, BOX_CHECK, false, false);
		(void)stage_expect(st, SBX_KILL, run, BOX_CHECK);
		stage_gone(st, run, BOX_CHECK, true);
		o = stage_expect(st, SBX_SPAWN, run, BOX_CHECK);
		if (spawned) {
			stage_spawned(st, run, BOX_CHECK);
			stage_logged(st, "counted on the upload");
		}
		times_pass(spawned ? 53000 : 31000);
		(void)stage_expect(st, SBX_KILL, run, BOX_CHECK);
		order_end(&o);
		stage_gone(st, run, BOX_CHECK, true);
		course_expect_end(stage_final(st, "acme", run), RUN_COMPLETED, "completed", "");
		course_expect_one_end(run, "run.completed");
	}
}

/* The steward itself stopped for long: what came meanwhile is no silence. */
static void t_stopped(void **state)
{
	(void)state;
	restart(2);
	const char *run[] = {course_begin(), NULL};
	struct order o[2] = {reach(run[0], AT_WORK_GONE)};
	run[1] = course_begin();
	o[1] = reach(run[1], AT_WORK_GONE);
	kill(st->pid, SIGSTOP);
	for (int i = 0; i < 2; i++)
		stage_gone(st, run[i], BOX_WORK, true);
	times_pass(11000);
	kill(st->pid, SIGCONT);
	for (int i = 0; i < 2; i++) {
		struct order next = stage_order(st);
		assert_true(next.number == SBX_SPAWN && next.kind == BOX_CHECK);
		order_end(&next);
		order_end(&o[i]);
	}
	for (int i = 0; i < 2; i++) {
		stage_refused(st, run[i], BOX_CHECK, ERR_SANDBOX_UNAVAILABLE);
		course_expect_end(stage_final(st, "acme", run[i]), RUN_FAILED, "sandbox_refused",
				  "sandbox_unavailable");
	}
}

/* A machine that says it is full, though a slot was free: asked again for ten seconds, then that is the reason. */
static void t_full(void **state)
{
	(void)state;
	restart(1);
	const char *run = course_begin();
	for (int i = 0; i < 3; i++) {
		(void)spawn_of(run);
		stage_refused(st, run, BOX_WORK, ERR_SANDBOX_CAPACITY);
	}
	(void)spawn_of(run);
	times_pass(11000);
	stage_refused(st, run, BOX_WORK, ERR_SANDBOX_CAPACITY);
	course_expect_end(stage_final(st, "acme", run), RUN_FAILED, "sandbox_capacity", "sandbox_capacity");
}

/* A box of an earlier steward that does not go. */
static void t_orphan_stays(void **state)
{
	(void)state;
	restart(2);
	const char *run = course_begin();
	struct order o = course_to_work(run);
	order_end(&o);
	(void)stage_stop(st, SIGKILL);
	const struct stage_box box = {run, BOX_WORK};
	stage_fork(st, stage_secret);
	stage_greet_with(st, 4, &box, 1);
	(void)stage_expect(st, SBX_KILL, run, BOX_WORK);
	const char *next = course_begin();
	(void)spawn_of(next); /* by now the orphan is known */
	assert_int_equal(stage_get(st, "acme", run)->state, RUN_RUNNING);
	times_pass(11000);
	course_expect_end(stage_final(st, "acme", run), RUN_FAILED, "sandbox_cleanup_failed", "sandbox_cleanup_failed");
	refuse(next);
}

/* Another tenant's run is started: then the steward has heard of all that were made before. */
static void heard_of_all(void)
{
	const char *run = stage_run(st, "beta");
	(void)spawn_of(run);
	stage_refused(st, run, BOX_WORK, ERR_SANDBOX_UNAVAILABLE);
	(void)stage_final(st, "beta", run);
}

static void t_waits_too_long(void **state)
{
	(void)state;
	st->tenant_runs = 1;
	/* The default first, then a setting. */
	for (int i = 0; i < 2; i++) {
		st->queue_seconds = i == 0 ? 0 : 77;
		restart(3);
		const char *first = course_begin();
		(void)spawn_of(first);
		const char *second = course_begin();
		heard_of_all();
		times_pass(i == 0 ? 3500000 : 40000);
		if (i == 0) /* the one before it was never spawned; it is still to go */
			(void)stage_expect(st, SBX_KILL, first, BOX_WORK);
		assert_int_equal(stage_get(st, "acme", second)->state, RUN_QUEUED);
		times_pass(i == 0 ? 101000 : 38000);
		const struct st_run_is *is = stage_final(st, "acme", second);
		course_expect_end(is, RUN_FAILED, "queue_time_exceeded", "queue_time_exceeded");
		course_expect_one_end(second, "run.failed");
	}
}

/* The steward comes to a new run of another tenant, which may not be started while its token would have ended already.
 */
static void come_to_another(void)
{
	const char *run = stage_run(st, "beta");
	char text[200];
	snprintf(text, sizeof text, "run %s of beta is not started", run);
	if (!WAIT_FOR(!stage_silent(st) || stage_has_logged(st, text)))
		fail_msg("run %s is left alone", run);
	if (stage_silent(st)) {
		stage_cancel(st, "beta", run);
	} else {
		(void)spawn_of(run);
		stage_refused(st, run, BOX_WORK, ERR_SANDBOX_UNAVAILABLE);
	}
	(void)stage_final(st, "beta", run);
}

/* D5: set an hour ahead and back, nobody is thrown out of the queue, and nobody's bounds are over. */
static void t_clock(void **state)
{
	(void)state;
	static const long long steps[] = {2 * HOUR, -2 * HOUR, -2000, 0};
	st->tenant_runs = 1;
	restart(2);
	const char *first = course_begin();
	struct order o = course_to_work(first);
	const char *second = course_begin();
	heard_of_all(); /* what it has not seen waiting it can only tell the age of by the clock */
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		times_clock(steps[i]);
		/* It reads all open runs again, with their ages. */
		(void)rig_stop(&st->rig, SIGKILL);
		rig_start(&st->rig);
		come_to_another();
		/* Then the queue is looked through. */
		times_pass(1100);
		come_to_another();
		assert_int_equal(stage_get(st, "acme", first)->state, RUN_RUNNING);
		assert_int_equal(stage_get(st, "acme", second)->state, RUN_QUEUED);
	}
	assert_true(stage_silent(st));
	times_clock(2 * HOUR);
	course_leave_work(o.result, 1);
	course_end_work(first, &o);
	course_expect_end(stage_final(st, "acme", first), RUN_FAILED, "agent_failed", "sandbox_agent_failed");
	times_clock(0);
	(void)spawn_of(second);
	refuse(second);
}

/* Without tokens in the box its run's capability is given further lives while the box is alive; with them never. */
static void t_renewed(void **state)
{
	(void)state;
	st->run_wall_seconds = 220;
	for (int wire = 0; wire < 2; wire++) {
		st->token_wire = wire == 1;
		restart(1);
		const char *run = course_begin();
		struct order o = course_to_work(run);
		uint64_t before = stage_capable_until(st, "acme", run);
		assert_true(before > 0);
		times_pass(50000);
		(void)poll(NULL, 0, 300);
		assert_int_equal(stage_capable_until(st, "acme", run), before); /* not before its half */
		times_pass(101000);
		if (wire)
			assert_true(WAIT_FOR(stage_capable_until(st, "acme", run) > before));
		(void)poll(NULL, 0, 300);
		assert_int_equal(stage_capable_until(st, "acme", run) > before, wire);
		course_leave_work(o.result, 1);
		course_end_work(run, &o);
		(void)stage_final(st, "acme", run);
		assert_int_equal(stage_capable_until(st, "acme", run), 0);
	}
}

/* --- turns -----------------------------------------------------------------------------------------------------------
 */

static void t_most_of_all(void **state)
{
	(void)state;
	st->max_concurrent_runs = 2;
	restart(10);
	const char *run[3] = {course_begin()};
	(void)spawn_of(run[0]);
	run[1] = stage_run(st, "beta");
	(void)spawn_of(run[1]);
	run[2] = course_begin();
	(void)poll(NULL, 0, 300);
	assert_true(stage_silent(st));
	assert_int_equal(stage_get(st, "acme", run[2])->state, RUN_QUEUED);
	stage_refused(st, run[1], BOX_WORK, ERR_SANDBOX_UNAVAILABLE);
	(void)spawn_of(run[2]);
	refuse(run[0]);
	refuse(run[2]);
}

/* A tenant with a thousand queued runs delays another's first by one turn of a slot at most. */
static void t_crowd(void **state)
{
	(void)state;
	restart(1);
	char run[129];
	for (int i = 0; i < CROWD; i++)
		(void)stage_run(st, "acme");
	struct order o = stage_order(st);
	order_end(&o);
	for (int round = 0; round < 3; round++) {
		snprintf(run, sizeof run, "%s", stage_run(st, "beta"));
		(void)stage_get(st, "beta", run);
		unsigned turns = 0;
		while (strcmp(o.run, run) != 0) {
			assert_string_equal(o.tenant, "acme");
			assert_true(turns++ <= 1);
			stage_refused(st, o.run, BOX_WORK, ERR_SANDBOX_UNAVAILABLE);
			o = stage_order(st);
			order_end(&o);
			assert_int_equal(o.number, SBX_SPAWN);
		}
		printf("turns of the crowd before the other's first run: %u\n", turns);
		stage_refused(st, o.run, BOX_WORK, ERR_SANDBOX_UNAVAILABLE);
		o = stage_order(st);
		order_end(&o);
	}
	/* A new steward reads the thousand from the store, and is as fair. */
	snprintf(run, sizeof run, "%s", stage_run(st, "beta"));
	restart(1);
	char seen[2][129] = {"", ""};
	for (int i = 0; i < 2; i++) {
		o = stage_order(st);
		order_end(&o);
		snprintf(seen[i], sizeof seen[i], "%s", o.tenant);
		stage_refused(st, o.run, BOX_WORK, ERR_SANDBOX_UNAVAILABLE);
	}
	assert_string_not_equal(seen[0], seen[1]);
}

/* Before each: as if no other had been, so that one that fails does not make others fail. */
static int fresh(void **state)
{
	(void)state;
	times_clock(0);
	st->token_wire = false;
	st->run_wall_seconds = st->max_concurrent_runs = st->queue_seconds = st->tenant_runs = 0;
	return 0;
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup(t_no_answer, fresh),
					   cmocka_unit_test_setup(t_unclean, fresh),
					   cmocka_unit_test_setup(t_cleaning, fresh),
					   cmocka_unit_test_setup(t_silence, fresh),
					   cmocka_unit_test_setup(t_silence_comparing, fresh),
					   cmocka_unit_test_setup(t_judge_hangs, fresh),
					   cmocka_unit_test_setup(t_stopped, fresh),
					   cmocka_unit_test_setup(t_full, fresh),
					   cmocka_unit_test_setup(t_orphan_stays, fresh),
					   cmocka_unit_test_setup(t_waits_too_long, fresh),
					   cmocka_unit_test_setup(t_clock, fresh),
					   cmocka_unit_test_setup(t_renewed, fresh),
					   cmocka_unit_test_setup(t_most_of_all, fresh),
					   cmocka_unit_test_setup(t_crowd, fresh)};
	return cmocka_run_group_tests(tests, times_setup, times_teardown);
}
