/* The real steward against a real store: refusals, an absent store, failed clean-up, restarts, fairness. */
#include "lib/chan.h"
#include "lib/num.h"
#include "lib/own.h"
#include "lib/token.h"
#include "tests/steward/course.h"
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* --- sandboxd in trouble --------------------------------------------------------------------------------------- */

static void t_refused(void **state)
{
	(void)state;
	const char *run = course_begin();
	struct order o = stage_expect(&course_stage, SBX_SPAWN, run, BOX_WORK);
	order_end(&o);
	/* A full machine is asked again. */
	stage_refused(&course_stage, run, BOX_WORK, ERR_SANDBOX_CAPACITY);
	o = stage_expect(&course_stage, SBX_SPAWN, run, BOX_WORK);
	order_end(&o);
	stage_refused(&course_stage, run, BOX_WORK, ERR_SANDBOX_UNAVAILABLE);
	course_expect_end(stage_final(&course_stage, "acme", run), RUN_FAILED, "sandbox_refused",
			  "sandbox_unavailable");
	assert_false(stage_capable(&course_stage, "acme", run));
	/* Cancelled while it waits for a place. */
	run = course_begin();
	o = stage_expect(&course_stage, SBX_SPAWN, run, BOX_WORK);
	order_end(&o);
	stage_refused(&course_stage, run, BOX_WORK, ERR_SANDBOX_CAPACITY);
	stage_cancel(&course_stage, "acme", run);
	while (stage_get(&course_stage, "acme", run)->state == RUN_CANCELLING)
		if (!stage_silent(&course_stage)) { /* asked again just before */
			o = stage_order(&course_stage);
			if (o.number == SBX_SPAWN)
				stage_refused(&course_stage, run, BOX_WORK, ERR_SANDBOX_CAPACITY);
			order_end(&o);
		}
	assert_int_equal(stage_final(&course_stage, "acme", run)->state, RUN_CANCELLED);
}

static void t_store_away(void **state)
{
	(void)state;
	const char *run = course_begin();
	struct order o = course_to_check(run);
	course_leave_checks(run, &o, 0, 0, GOOD_TESTS);
	order_end(&o);
	stage_exited(&course_stage, run, BOX_CHECK, false, false);
	(void)stage_expect(&course_stage, SBX_KILL, run, BOX_CHECK);
	(void)rig_stop(&course_stage.rig, SIGKILL);
	stage_gone(&course_stage, run, BOX_CHECK, true);
	stage_logged(&course_stage, "are to be told when the store is back");
	rig_start(&course_stage.rig);
	course_expect_end(stage_final(&course_stage, "acme", run), RUN_COMPLETED, "completed", "");
	course_expect_one_end(run, "run.completed");
	course_expect_artifact(run, ART_PATCH, "+TWO");
	/* It hears of new runs again. */
	run = course_begin();
	o = stage_expect(&course_stage, SBX_SPAWN, run, BOX_WORK);
	order_end(&o);
	stage_refused(&course_stage, run, BOX_WORK, ERR_SANDBOX_UNAVAILABLE);
	(void)stage_final(&course_stage, "acme", run);
}

static void t_cleanup_fails(void **state)
{
	(void)state;
	const char *run = course_begin();
	struct order o = course_to_work(run);
	course_leave_work(o.result, 0);
	order_end(&o);
	stage_exited(&course_stage, run, BOX_WORK, false, false);
	(void)stage_expect(&course_stage, SBX_KILL, run, BOX_WORK);
	stage_gone(&course_stage, run, BOX_WORK, false);
	const struct st_run_is *is = stage_final(&course_stage, "acme", run);
	course_expect_end(is, RUN_FAILED, "sandbox_cleanup_failed", "sandbox_cleanup_failed");
	course_expect_artifact(run, ART_PATCH, "+TWO");
	/* The check box too: all its checks passed, and still it is no success. */
	run = course_begin();
	o = course_to_check(run);
	course_leave_checks(run, &o, 0, 0, GOOD_TESTS);
	order_end(&o);
	stage_exited(&course_stage, run, BOX_CHECK, false, false);
	(void)stage_expect(&course_stage, SBX_KILL, run, BOX_CHECK);
	stage_gone(&course_stage, run, BOX_CHECK, false);
	is = stage_final(&course_stage, "acme", run);
	course_expect_end(is, RUN_FAILED, "sandbox_cleanup_failed", "sandbox_cleanup_failed");
	assert_true(course_holds(is->verification, "\"outcome\":\"passed\""));
}

/* --- the steward in trouble ----------------------------------------------------------------------------------------
 */

static void t_restart(void **state)
{
	(void)state;
	const char *run = course_begin();
	struct order o = course_to_work(run);
	order_end(&o);
	const char *cancelling = course_begin();
	o = course_to_work(cancelling);
	order_end(&o);
	(void)stage_stop(&course_stage, SIGKILL);
	stage_cancel(&course_stage, "acme", cancelling);
	const char *queued = course_begin();
	const char *alone = "acme-unknown";
	struct stage_box boxes[] = {{run, BOX_WORK}, {cancelling, BOX_CHECK}, {alone, BOX_WORK}};
	stage_fork(&course_stage, stage_secret);
	stage_greet_with(&course_stage, 5, boxes, 3);
	for (int i = 0; i < 3; i++) {
		o = stage_order(&course_stage);
		assert_int_equal(o.number, SBX_KILL);
		assert_int_equal(o.grace_ms, 0);
	}
	/* The queued run starts, the others wait for their boxes. */
	o = stage_expect(&course_stage, SBX_SPAWN, queued, BOX_WORK);
	order_end(&o);
	assert_false(stage_capable(&course_stage, "acme", run));
	assert_int_equal(stage_get(&course_stage, "acme", run)->state, RUN_RUNNING);
	stage_gone(&course_stage, run, BOX_WORK, true);
	stage_gone(&course_stage, alone, BOX_WORK, true);
	course_expect_end(stage_final(&course_stage, "acme", run), RUN_FAILED, "controller_restarted",
			  "controller_restarted");
	course_expect_one_end(run, "run.failed");
	stage_gone(&course_stage, cancelling, BOX_CHECK, true);
	assert_int_equal(stage_final(&course_stage, "acme", cancelling)->state, RUN_CANCELLED);
	stage_refused(&course_stage, queued, BOX_WORK, ERR_SANDBOX_UNAVAILABLE);
	course_expect_end(stage_final(&course_stage, "acme", queued), RUN_FAILED, "sandbox_refused",
			  "sandbox_unavailable");
}

static void t_fair(void **state)
{
	(void)state;
	assert_true(WIFEXITED(stage_stop(&course_stage, SIGTERM)));
	char order[200] = "";
	for (int i = 0; i < 3; i++)
		(void)stage_run(&course_stage, "acme");
	(void)stage_run(&course_stage, "beta");
	(void)stage_run(&course_stage, "beta");
	stage_fork(&course_stage, stage_secret);
	stage_greet(&course_stage, 1);
	for (int i = 0; i < 5; i++) {
		struct order o = stage_order(&course_stage);
		assert_int_equal(o.number, SBX_SPAWN);
		assert_true(stage_silent(&course_stage)); /* one slot, one box */
		strcat(order, o.tenant);
		strcat(order, " ");
		order_end(&o);
		stage_refused(&course_stage, o.run, BOX_WORK, ERR_SANDBOX_UNAVAILABLE);
		(void)stage_final(&course_stage, o.tenant, o.run);
	}
	assert_string_equal(order, "acme beta acme beta acme ");
	/* A box that does not go keeps its slot: no further run starts. */
	const char *run = course_begin();
	struct order o = course_to_work(run);
	course_leave_work(o.result, 0);
	order_end(&o);
	stage_exited(&course_stage, run, BOX_WORK, false, false);
	(void)stage_expect(&course_stage, SBX_KILL, run, BOX_WORK);
	stage_gone(&course_stage, run, BOX_WORK, false);
	(void)stage_final(&course_stage, "acme", run);
	run = course_begin();
	struct timespec pause = {.tv_nsec = 300000000};
	nanosleep(&pause, NULL);
	assert_true(stage_silent(&course_stage));
	assert_int_equal(stage_get(&course_stage, "acme", run)->state, RUN_QUEUED);
	stage_cancel(&course_stage, "acme", run);
	assert_int_equal(stage_final(&course_stage, "acme", run)->state, RUN_CANCELLED);
}

static void t_ends(void **state)
{
	(void)state;
	int status = stage_stop(&course_stage, SIGTERM);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	stage_fork(&course_stage, stage_secret);
	stage_greet(&course_stage, 2);
	status = stage_stop(&course_stage, 0); /* sandboxd is gone */
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	stage_fork(&course_stage, "0123456789012345678901234567890"); /* 31 bytes */
	status = stage_stop(&course_stage, 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_refused),       cmocka_unit_test(t_store_away),
					   cmocka_unit_test(t_cleanup_fails), cmocka_unit_test(t_restart),
					   cmocka_unit_test(t_fair),          cmocka_unit_test(t_ends)};
	return cmocka_run_group_tests(tests, course_setup, course_teardown);
}
