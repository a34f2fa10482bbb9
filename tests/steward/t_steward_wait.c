/*
 * Waiting for a person: the clock of the wall time stops, the agent is frozen while no model answers, and every way out
 * lets both go on. By a timer that the test sets, against a real store, with sandboxd played by the test.
 */
#include "gen/limits.h"
#include "lib/num.h"
#include "lib/own.h"
#include "lib/token.h"
#include "tests/steward/course.h"
#include "tests/steward/times.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECOND = 1000, WALL = 60, BACKSTOP = 45, WAIT = 600 };

static struct stage *const st = &course_stage;

static void restart(void)
{
	(void)stage_stop(st, SIGKILL);
	stage_fork(st, stage_secret);
	stage_greet(st, 4);
}

static void ask(const char *run, const char *request)
{
	static uint8_t page[1000];
	static const uint8_t digest[32] = {7};
	struct st_agent_event ev = {.type = "approval.requested",
				    .data = {(const uint8_t *)"{}", 2},
				    .request = request,
				    .digest = {digest, sizeof digest},
				    .preview = "make"};
	struct wire_list l = {.p = page, .cap = sizeof page};
	wire_list_add(&l, st_put_agent_event(wire_list_room(&l, 500), 500, &ev));
	struct st_events_append m = {.tenant = "acme", .run = run, .events = wire_list_done(&l)};
	struct st_events_taken taken;
	assert_int_equal(RIG_AS(RIG_GATEWAY, st_call_events_append(st->gateway, &m, NULL, &taken, NULL)), ERR_OK);
}

static void decide(const char *run, const char *request)
{
	struct st_approval_decide m = {.tenant = "acme",
				       .run = run,
				       .request = request,
				       .decision = DECISION_ALLOW_ONCE,
				       .device = "phone",
				       .by = "dev-1",
				       .actor = "device:dev-1",
				       .request_id = "rq"};
	struct st_approval_decided done;
	assert_int_equal(RIG_AS(RIG_FCGI, st_call_approval_decide(st->fcgi, &m, NULL, &done, NULL)), ERR_OK);
}

static void call_begins(const char *run)
{
	struct st_run_create like = rig_run("acme", run);
	struct st_cap_consume m = {.tenant = "acme", .run = run, .model = like.model, .fingerprint = like.fingerprint};
	struct st_cap_is is;
	assert_int_equal(RIG_AS(RIG_GATEWAY, st_call_cap_consume(st->gateway, &m, NULL, &is, NULL)), ERR_OK);
}

static void call_ends(const char *run)
{
	struct st_model_called m = {.tenant = "acme", .run = run, .status = 200, .outcome = "ok"};
	struct st_called_is is;
	assert_int_equal(RIG_AS(RIG_GATEWAY, st_call_model_called(st->gateway, &m, NULL, &is, NULL)), ERR_OK);
}

/* What the steward says next. */
static void expect(const char *run, bool stands, bool frozen)
{
	struct order o = stage_expect(st, SBX_PAUSE, run, BOX_WORK);
	if (o.stands != stands || o.frozen != frozen)
		fail_msg("stands %d, frozen %d, not %d, %d", o.stands, o.frozen, stands, frozen);
}

/* It waits and is frozen; but not before what it was told can have arrived. */
static void expect_frozen(const char *run, const char *request)
{
	ask(run, request);
	expect(run, true, false);
	times_pass(2 * SECOND);
	expect(run, true, true);
}

/* It has been heard and nothing came of it: something that is answered came after. */
static void nothing(const char *run)
{
	char other[129];
	snprintf(other, sizeof other, "%s", stage_run(st, "beta"));
	struct order o = stage_order(st);
	if (o.number != SBX_SPAWN || strcmp(o.run, other) != 0)
		fail_msg("%s: message %u for %s came of nothing", run, o.number, o.run);
	order_end(&o);
	stage_refused(st, other, BOX_WORK, ERR_SANDBOX_UNAVAILABLE);
	(void)stage_final(st, "beta", other);
}

static void end(const char *run, struct order *o)
{
	course_leave_work(o->result, 1);
	course_end_work(run, o);
	course_expect_end(stage_final(st, "acme", run), RUN_FAILED, "agent_failed", "sandbox_agent_failed");
}

/* The wall time has all of it left after any wait, and its end is still its end. */
static void t_stands_still(void **state)
{
	(void)state;
	const char *run = course_begin();
	struct order o = course_to_work(run);
	uint64_t until = stage_capable_until(st, "acme", run);
	times_pass(50 * SECOND);
	expect_frozen(run, "q1");
	stage_phase(st, "acme", run, PHASE_AWAITING_APPROVAL);
	for (int i = 0; i < 10; i++)
		times_pass(2 * WALL * SECOND); /* longer than a token's life, too */
	nothing(run);
	/* Its tokens are good for as long as its capability, which was given a further life. */
	assert_true(WAIT_FOR(stage_capable_until(st, "acme", run) > until));
	decide(run, "q1");
	expect(run, false, false);
	times_pass((WALL + BACKSTOP - 50 - 10) * SECOND);
	nothing(run);
	times_pass(12 * SECOND);
	(void)stage_expect(st, SBX_KILL, run, BOX_WORK);
	order_end(&o);
	stage_gone(st, run, BOX_WORK, true);
	course_expect_end(stage_final(st, "acme", run), RUN_FAILED, "wall_time_exceeded", "wall_time_exceeded");
}

/* Never beside a model call: neither one that is there, nor one that begins, even where it is frozen already. */
static void t_model_answers(void **state)
{
	(void)state;
	const char *run = course_begin();
	struct order o = course_to_work(run);
	call_begins(run);
	ask(run, "q1");
	expect(run, true, false);
	times_pass(WAIT / 2 * SECOND);
	nothing(run);
	call_ends(run);
	nothing(run);
	times_pass(2 * SECOND);
	expect(run, true, true);
	call_begins(run);
	expect(run, true, false);
	ask(run, "q2");
	times_pass(WAIT / 2 * SECOND);
	nothing(run);
	call_ends(run);
	nothing(run);
	times_pass(2 * SECOND);
	expect(run, true, true);
	/* As long as one waits. */
	decide(run, "q2");
	nothing(run);
	decide(run, "q1");
	expect(run, false, false);
	/* It ends while it waits. */
	expect_frozen(run, "q3");
	end(run, &o);
}

static void t_cancelled(void **state)
{
	(void)state;
	const char *run = course_begin();
	struct order o = course_to_work(run);
	expect_frozen(run, "q1");
	times_pass(WAIT / 2 * SECOND);
	stage_cancel(st, "acme", run);
	expect(run, false, false);
	struct order k = stage_expect(st, SBX_KILL, run, BOX_WORK);
	assert_int_equal(k.grace_ms, 5000);
	/* And within its own bound, though waiting moved its end away. */
	times_pass(7 * SECOND);
	k = stage_expect(st, SBX_KILL, run, BOX_WORK);
	assert_int_equal(k.grace_ms, 0);
	order_end(&o);
	stage_gone(st, run, BOX_WORK, true);
	course_expect_end(stage_final(st, "acme", run), RUN_CANCELLED, "cancelled_by_request", "cancelled_by_request");
}

/* A frozen agent does not look whether its question is over. */
static void t_expires(void **state)
{
	(void)state;
	st->run_wait_seconds = 3;
	const char *run = course_begin();
	struct order o = course_to_work(run);
	expect_frozen(run, "q1");
	expect(run, false, false);
	stage_event(st, "acme", run, "approval.expired");
	end(run, &o);
}

/* All waiting of a run has an end: then its wall time goes on while it waits. */
static void t_too_long(void **state)
{
	(void)state;
	const char *run = course_begin();
	struct order o = course_to_work(run);
	expect_frozen(run, "q1");
	times_pass((LIMIT_APPROVAL_WAITS * WAIT - 60) * SECOND);
	decide(run, "q1");
	expect(run, false, false);
	ask(run, "q2");
	expect(run, true, false);
	times_pass(2 * SECOND);
	expect(run, true, true);
	times_pass(60 * SECOND);
	expect(run, false, false);
	ask(run, "q3");
	nothing(run);
	times_pass((WALL + BACKSTOP) * SECOND);
	(void)stage_expect(st, SBX_KILL, run, BOX_WORK);
	order_end(&o);
	stage_gone(st, run, BOX_WORK, true);
	course_expect_end(stage_final(st, "acme", run), RUN_FAILED, "wall_time_exceeded", "wall_time_exceeded");
}

/* The store dies, and its word with it: what it says when it is back counts. */
static void t_store_dies(void **state)
{
	(void)state;
	const char *run = course_begin();
	struct order o = course_to_work(run);
	expect_frozen(run, "q1");
	(void)rig_stop(&st->rig, SIGKILL);
	times_pass(WALL * SECOND);
	rig_start(&st->rig);
	decide(run, "q1");
	expect(run, false, false);
	end(run, &o);
}

static void t_steward_dies(void **state)
{
	(void)state;
	const char *run = course_begin();
	struct order o = course_to_work(run);
	expect_frozen(run, "q1");
	order_end(&o);
	(void)stage_stop(st, SIGKILL);
	stage_fork(st, stage_secret);
	const struct stage_box box = {run, BOX_WORK};
	stage_greet_with(st, 4, &box, 1);
	struct order k = stage_expect(st, SBX_KILL, run, BOX_WORK);
	assert_int_equal(k.grace_ms, 0);
	stage_gone(st, run, BOX_WORK, true);
	course_expect_end(stage_final(st, "acme", run), RUN_FAILED, "controller_restarted", "controller_restarted");
	stage_event(st, "acme", run, "approval.abandoned");
}

static int fresh(void **state)
{
	(void)state;
	st->run_wait_seconds = 0;
	restart();
	return 0;
}

static int setup(void **state)
{
	static const uint8_t hash[32] = {1};
	struct st_ok ok;
	struct st_token_create m = {.tenant = "acme",
				    .kind = PRINCIPAL_DEVICE,
				    .token_id = "dev-1",
				    .hash = {hash, sizeof hash},
				    .label = "phone"};
	if (times_setup(state) != 0)
		return -1;
	struct ask *admin = rig_ask(&st->rig, RIG_ADMIN);
	enum err e = admin == NULL ? ERR_INTERNAL_ERROR : st_call_token_create(admin, &m, NULL, &ok, NULL);
	ask_free(admin);
	return e == ERR_OK ? 0 : -1;
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(t_stands_still, fresh), cmocka_unit_test_setup(t_model_answers, fresh),
	    cmocka_unit_test_setup(t_cancelled, fresh),    cmocka_unit_test_setup(t_expires, fresh),
	    cmocka_unit_test_setup(t_too_long, fresh),     cmocka_unit_test_setup(t_store_dies, fresh),
	    cmocka_unit_test_setup(t_steward_dies, fresh)};
	return cmocka_run_group_tests(tests, setup, times_teardown);
}
