/*
 * The real steward against a real store: a check that passed in doubt has its tests counted on the upload. Whatever
 * comes of that box, the run's end is what it would be without it, but for a box that does not go.
 */
#include "lib/chan.h"
#include "lib/own.h"
#include "tests/steward/course.h"
#include <signal.h>
#include <unistd.h>

/* One test ran, one was skipped: a reason for doubt. */
#define SOME_SKIPPED ".s\n---\nRan 2 tests in 0.001s\n\nOK (skipped=1)\n"

static unsigned frames_of(int bundle, uint16_t wanted)
{
	struct bundle b;
	const uint8_t *frame;
	size_t n;
	uint16_t number;
	uint64_t op;
	unsigned count = 0;
	assert_true(bundle_open(&b, bundle, BN_MAXFRAME));
	while (bundle_next(&b, &frame, &n) > 0)
		count += wire_peek(frame, n, &number, &op) && number == wanted;
	bundle_close(&b);
	return count;
}

/* Up to the order for the box that counts. */
static struct order to_compare(const char *run)
{
	struct order o = course_to_check(run);
	assert_int_equal(frames_of(o.upload, BN_CHANGED), 1);
	course_leave_checks(run, &o, 0, 0, SOME_SKIPPED);
	order_end(&o);
	stage_exited(&course_stage, run, BOX_CHECK, false, false);
	(void)stage_expect(&course_stage, SBX_KILL, run, BOX_CHECK);
	stage_gone(&course_stage, run, BOX_CHECK, true);
	o = stage_expect(&course_stage, SBX_SPAWN, run, BOX_CHECK);
	/* The upload as it came, and that check. */
	assert_int_equal(frames_of(o.upload, BN_SOURCE), 2);
	assert_int_equal(frames_of(o.upload, BN_CHANGED) + frames_of(o.upload, BN_REMOVED), 0);
	assert_int_equal(frames_of(o.upload, BN_CHECK), 1);
	return o;
}

static void t_compared(void **state)
{
	(void)state;
	static const struct {
		int status;
		const char *output, *tests;
		bool fewer;
	} v[] = {
	    {0, GOOD_TESTS, "\"uploadTests\":{\"run\":2,\"failed\":0,\"skipped\":0}", true},
	    {1, "Ran 2 tests in 0.1s\n\nFAILED (failures=2)\n",
	     "\"uploadTests\":{\"run\":2,\"failed\":2,\"skipped\":0}", true},
	    {0, SOME_SKIPPED, "\"uploadTests\":{\"run\":1,\"failed\":0,\"skipped\":1}", false},
	};
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		const char *run = course_begin();
		struct order o = to_compare(run);
		stage_spawned(&course_stage, run, BOX_CHECK);
		bundles_checked(o.result, "check-2", true, v[i].status, false, v[i].output);
		const struct st_run_is *is = course_end_check(run, &o);
		course_expect_end(is, RUN_COMPLETED, "completed", "");
		assert_true(course_holds(is->verification, "\"tests\":{\"run\":1,\"failed\":0,\"skipped\":1}"));
		assert_true(course_holds(is->verification, v[i].tests));
		assert_int_equal(course_holds(is->verification, "{\"flag\":\"fewer_tests\"}"), v[i].fewer);
		course_expect_one_end(run, "run.completed");
		own_free char *events = stage_events(&course_stage, "acme", run);
		assert_non_null(strstr(events, "check.compared\n"));
		assert_true(stage_silent(&course_stage));
	}
}

/* Nothing that a check box says or leaves can fail a run, or count, when it only counts. */
static void t_not_compared(void **state)
{
	(void)state;
	for (int i = 0; i < 8; i++) {
		const char *run = course_begin();
		struct order o = to_compare(run);
		uint8_t frame[BN_MAX_BROKEN];
		struct bn_broken m = {.code = ERR_SANDBOX_SETUP_FAILED, .detail = "no room"};
		const struct st_run_is *is;
		if (i == 0) {
			order_end(&o);
			stage_refused(&course_stage, run, BOX_CHECK, ERR_SANDBOX_UNAVAILABLE);
			is = stage_final(&course_stage, "acme", run);
		} else {
			stage_spawned(&course_stage, run, BOX_CHECK);
			if (i == 2)
				bundles_checked(o.result, "check-1", true, 0, false, GOOD_TESTS);
			if (i == 3)
				bundles_checked(o.result, "check-2", true, -9, true, GOOD_TESTS);
			if (i == 4)
				bundles_checked(o.result, "check-2", true, -9, false, GOOD_TESTS);
			if (i == 5)
				bundles_add(o.result, frame, bn_put_broken(frame, sizeof frame, 0, &m));
			if (i == 6)
				assert_int_equal(write(o.result, "\x7f\xff\xff\xff", 4), 4);
			if (i == 7)
				bundles_checked(o.result, "check-2", true, 0, false, "no count");
			is = course_end_check(run, &o);
		}
		course_expect_end(is, RUN_COMPLETED, "completed", "");
		assert_true(course_holds(is->verification, "\"outcome\":\"passed\""));
		assert_false(course_holds(is->verification, "uploadTests"));
		assert_false(course_holds(is->verification, "fewer_tests"));
	}
	assert_true(stage_silent(&course_stage));
}

static void t_box_stays(void **state)
{
	(void)state;
	const char *run = course_begin();
	struct order o = to_compare(run);
	stage_spawned(&course_stage, run, BOX_CHECK);
	order_end(&o);
	stage_exited(&course_stage, run, BOX_CHECK, false, false);
	(void)stage_expect(&course_stage, SBX_KILL, run, BOX_CHECK);
	stage_gone(&course_stage, run, BOX_CHECK, false);
	course_expect_end(stage_final(&course_stage, "acme", run), RUN_FAILED, "sandbox_cleanup_failed",
			  "sandbox_cleanup_failed");
}

static void t_cancelled(void **state)
{
	(void)state;
	const char *run = course_begin();
	struct order o = to_compare(run);
	stage_spawned(&course_stage, run, BOX_CHECK);
	order_end(&o);
	stage_cancel(&course_stage, "acme", run);
	(void)stage_expect(&course_stage, SBX_KILL, run, BOX_CHECK);
	stage_gone(&course_stage, run, BOX_CHECK, true);
	course_expect_end(stage_final(&course_stage, "acme", run), RUN_CANCELLED, "cancelled_by_request",
			  "cancelled_by_request");
	course_expect_one_end(run, "run.cancelled");
}

/* A check that failed is not looked at again. */
static void t_failed(void **state)
{
	(void)state;
	const char *run = course_begin();
	struct order o = course_to_check(run);
	course_leave_checks(run, &o, 0, 1, "Ran 2 tests in 0.1s\n\nFAILED (failures=1, skipped=1)\n");
	const struct st_run_is *is = course_end_check(run, &o);
	course_expect_end(is, RUN_FAILED, "check_failed", "verification_failed");
	assert_true(course_holds(is->verification, "\"tests\":{\"run\":1,\"failed\":1,\"skipped\":1}"));
	assert_true(stage_silent(&course_stage));
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_compared), cmocka_unit_test(t_not_compared),
					   cmocka_unit_test(t_box_stays), cmocka_unit_test(t_cancelled),
					   cmocka_unit_test(t_failed)};
	return cmocka_run_group_tests(tests, course_setup, course_teardown);
}
