/* The real steward against a real store: a cancel in every step of a run. */
#include "lib/chan.h"
#include "lib/num.h"
#include "lib/own.h"
#include "lib/token.h"
#include "tests/steward/course.h"
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- cancel ------------------------------------------------------------------------------------------------- */

static void expect_cancelled(const char *run)
{
	const struct st_run_is *is = stage_final(&course_stage, "acme", run);
	course_expect_end(is, RUN_CANCELLED, "cancelled_by_request", "cancelled_by_request");
	assert_false(stage_capable(&course_stage, "acme", run));
	course_expect_one_end(run, "run.cancelled");
	course_expect_artifact(run, ART_REQUEST, "repair it");
	assert_true(stage_silent(&course_stage));
}

static void t_cancel_spawning(void **state)
{
	(void)state;
	const char *run = course_begin();
	struct order o = stage_expect(&course_stage, SBX_SPAWN, run, BOX_WORK);
	stage_cancel(&course_stage, "acme", run);
	struct order k = stage_expect(&course_stage, SBX_KILL, run, BOX_WORK);
	assert_int_equal(k.grace_ms, 5000);
	stage_gone(&course_stage, run, BOX_WORK, true); /* without ever an EXITED */
	order_end(&o);
	expect_cancelled(run);
}

static void t_cancel_working(void **state)
{
	(void)state;
	const char *run = course_begin();
	struct order o = course_to_work(run);
	stage_cancel(&course_stage, "acme", run);
	stage_cancel(&course_stage, "acme", run);
	struct order k = stage_expect(&course_stage, SBX_KILL, run, BOX_WORK);
	assert_int_equal(k.grace_ms, 5000);
	assert_false(stage_capable(&course_stage, "acme", run));
	bundles_ran(o.result, true, -15, false, true);
	bundles_entries(o.result, course_repaired, 3);
	bundles_collected(o.result, 3, true);
	course_end_work(run, &o);
	expect_cancelled(run);
	course_expect_artifact(run, ART_PATCH, "+TWO");
}

static void t_cancel_collecting(void **state)
{
	(void)state;
	const char *run = course_begin();
	struct order o = course_to_work(run);
	course_leave_work(o.result, 0);
	order_end(&o);
	stage_exited(&course_stage, run, BOX_WORK, false, false);
	(void)stage_expect(&course_stage, SBX_KILL, run, BOX_WORK);
	stage_cancel(&course_stage, "acme", run);
	stage_gone(&course_stage, run, BOX_WORK, true);
	/* The store's word and sandboxd's may come in either order: a check box may have been ordered. */
	while (stage_get(&course_stage, "acme", run)->state != RUN_CANCELLED)
		if (!stage_silent(&course_stage)) {
			o = stage_order(&course_stage);
			if (o.number == SBX_KILL)
				stage_gone(&course_stage, run, (enum box_kind)o.kind, true);
			order_end(&o);
		}
	expect_cancelled(run);
}

static void t_cancel_checking(void **state)
{
	(void)state;
	for (int spawned = 0; spawned < 2; spawned++) {
		const char *run = course_begin();
		struct order o = course_to_work(run);
		course_leave_work(o.result, 0);
		course_end_work(run, &o);
		o = stage_expect(&course_stage, SBX_SPAWN, run, BOX_CHECK);
		if (spawned) {
			stage_spawned(&course_stage, run, BOX_CHECK);
			stage_phase(&course_stage, "acme", run, PHASE_VERIFYING);
		}
		stage_cancel(&course_stage, "acme", run);
		struct order k = stage_expect(&course_stage, SBX_KILL, run, BOX_CHECK);
		assert_int_equal(k.grace_ms, 0);
		order_end(&o);
		stage_gone(&course_stage, run, BOX_CHECK, true);
		expect_cancelled(run);
	}
}

/* The end and the cancel meet; whichever the store takes first stays. */
static void t_cancel_and_end(void **state)
{
	(void)state;
	for (int i = 0; i < 12; i++) {
		const char *run = course_begin();
		struct order o = course_to_check(run);
		course_leave_checks(run, &o, i % 3 == 2, 0, GOOD_TESTS);
		order_end(&o);
		stage_exited(&course_stage, run, BOX_CHECK, false, false);
		(void)stage_expect(&course_stage, SBX_KILL, run, BOX_CHECK);
		if (i % 2 == 0)
			stage_cancel(&course_stage, "acme", run);
		stage_gone(&course_stage, run, BOX_CHECK, true);
		if (i % 2 != 0)
			stage_cancel(&course_stage, "acme", run);
		const struct st_run_is *is = stage_final(&course_stage, "acme", run);
		if (i % 2 == 0)
			assert_int_equal(is->state, RUN_CANCELLED);
		static const char *const ends[] = {
		    [RUN_COMPLETED] = "run.completed", [RUN_FAILED] = "run.failed", [RUN_CANCELLED] = "run.cancelled"};
		course_expect_one_end(run, ends[is->state]);
	}
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_cancel_spawning), cmocka_unit_test(t_cancel_working),
					   cmocka_unit_test(t_cancel_collecting), cmocka_unit_test(t_cancel_checking),
					   cmocka_unit_test(t_cancel_and_end)};
	return cmocka_run_group_tests(tests, course_setup, course_teardown);
}
