/* The generated error table and the states of a run. */
#include "gen/course_fsm.h"
#include "gen/errors.h"
#include "gen/reasons.h"
#include "gen/run_fsm.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void t_errors(void **state)
{
	(void)state;
	assert_string_equal(err_code(ERR_OK), "ok");
	assert_int_equal(err_row(ERR_UNKNOWN_FIELD)->status, 400);
	assert_int_equal(err_row(ERR_STORE_UNAVAILABLE)->status, 503);
	assert_true(err_row(ERR_STORE_UNAVAILABLE)->retry);
	assert_int_equal(err_find("run_not_terminal"), ERR_RUN_NOT_TERMINAL);
	assert_int_equal(err_find("no such code"), ERR_INTERNAL_ERROR);
	assert_int_equal(err_find(""), ERR_INTERNAL_ERROR);
	/* A number from outside is never an index. */
	assert_string_equal(err_code((enum err)9999), "internal_error");
	assert_string_equal(err_code((enum err) - 1), "internal_error");
	for (int i = 1; i < 200; i++) {
		const struct err_row *row = err_row((enum err)i);
		assert_non_null(row->code);
		assert_true(strlen(row->sentence) > 0 && row->status >= 400);
		if (strcmp(row->code, "internal_error") != 0)
			assert_int_equal(err_find(row->code), i);
	}
}

static void t_run_states(void **state)
{
	(void)state;
	enum run_state s = RUN_QUEUED;
	assert_int_equal(run_step(RUN_QUEUED, RUN_EV_START, &s), ERR_OK);
	assert_int_equal(s, RUN_RUNNING);
	assert_int_equal(run_step(RUN_RUNNING, RUN_EV_CANCEL, &s), ERR_OK);
	assert_int_equal(s, RUN_CANCELLING);
	assert_string_equal(run_public(RUN_CANCELLING), "running");
	assert_string_equal(run_state_name(RUN_CANCELLING), "cancelling");
	/* A restart leaves a queued run queued, and fails a running one. */
	assert_int_equal(run_step(RUN_QUEUED, RUN_EV_RESTART, &s), ERR_OK);
	assert_int_equal(s, RUN_QUEUED);
	assert_int_equal(run_step(RUN_RUNNING, RUN_EV_RESTART, &s), ERR_OK);
	assert_int_equal(s, RUN_FAILED);
	/* A cancel outweighs every end but that of a box which is still there. */
	for (int ev = 0; ev < RUN_EVENT__COUNT; ev++)
		if (run_step(RUN_CANCELLING, (enum run_event)ev, &s) == ERR_OK && ev != RUN_EV_CANCEL)
			assert_int_equal(s, ev == RUN_EV_UNCLEAN ? RUN_FAILED : RUN_CANCELLED);
	/* Nothing leaves a final state, and what is refused changes nothing. */
	for (int from = 0; from < RUN_STATE__COUNT; from++)
		for (int ev = 0; ev < RUN_EVENT__COUNT; ev++) {
			s = RUN_QUEUED;
			enum err e = run_step((enum run_state)from, (enum run_event)ev, &s);
			if (run_final((enum run_state)from) && e == ERR_OK)
				assert_int_equal(s, from);
			if (e != ERR_OK)
				assert_int_equal(s, RUN_QUEUED);
		}
	assert_int_equal(run_step(RUN_STATE__COUNT, RUN_EV_START, &s), ERR_INTERNAL_ERROR);
	assert_int_equal(run_step(RUN_QUEUED, RUN_EVENT__COUNT, &s), ERR_INTERNAL_ERROR);
	assert_false(run_final(RUN_STATE__COUNT));
	assert_string_equal(run_public(RUN_STATE__COUNT), "unknown");
}

static void t_phases(void **state)
{
	(void)state;
	enum course_state s = COURSE_WAITING;
	for (int from = 0; from < COURSE_STATE__COUNT; from++)
		for (int ev = 0; ev < COURSE_EVENT__COUNT; ev++) {
			s = (enum course_state)from;
			enum err e = course_step((enum course_state)from, (enum course_event)ev, &s);
			/* Nothing goes back, but an agent that has its answer goes on. */
			if (e == ERR_OK && !(from == COURSE_AWAITING_APPROVAL && ev == COURSE_EV_EXECUTE))
				assert_true(s >= (enum course_state)from);
			/* Whoever has begun can be cleaned up after from everywhere. */
			if (ev == COURSE_EV_CLEAN && from != COURSE_WAITING)
				assert_true(e == ERR_OK && s == COURSE_CLEANING);
		}
}

static void t_reasons(void **state)
{
	(void)state;
	for (int i = 0; i < REASON__COUNT; i++)
		assert_int_equal(reason_find(reason_name((enum reason)i)), i);
	assert_int_equal(reason_find(""), REASON__COUNT);
	assert_int_equal(reason_find("failed"), REASON__COUNT);
	assert_string_equal(reason_status(REASON_COMPLETED), "completed");
	assert_string_equal(reason_status(REASON_CANCELLED_BY_REQUEST), "cancelled");
	assert_string_equal(reason_status(REASON_QUEUE_TIME_EXCEEDED), "failed");
	assert_string_equal(reason_status(REASON__COUNT), "");
	assert_string_equal(reason_name(REASON__COUNT), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_errors), cmocka_unit_test(t_run_states),
					   cmocka_unit_test(t_phases), cmocka_unit_test(t_reasons)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
