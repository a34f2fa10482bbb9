/*
 * What dies while runs are everywhere: one run at each point of its course, and then stored, the steward, sandboxd or
 * all of them are gone. With stored away the runs go on, and end with everything told, in order and once. After a
 * restart of the rest, queued runs start, those that went on have failed as controller_restarted, nothing is done
 * again, and what had ended is what it was (CONTRACT section 4).
 */
#include "lib/num.h"
#include "lib/own.h"
#include "tests/steward/course.h"
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOTS = 40, MOVES = 10 };

static struct stage *const st = &course_stage;

/* A run and the next move of its sandboxd. */
struct actor {
	char run[64];
	struct order o;
	int at;
};

static void check_ends(struct actor *a, const char *name, const char *output)
{
	bundles_checked(a->o.result, name, true, 0, false, output);
	order_end(&a->o);
	stage_exited(st, a->run, BOX_CHECK, false, false);
	(void)stage_expect(st, SBX_KILL, a->run, BOX_CHECK);
}

/* One move, and what the steward must say to it. */
static void go(struct actor *a)
{
	switch (a->at++) {
	case 0:
		a->o = stage_expect(st, SBX_SPAWN, a->run, BOX_WORK);
		break;
	case 1:
		stage_spawned(st, a->run, BOX_WORK);
		break;
	case 2:
		course_leave_work(a->o.result, 0);
		order_end(&a->o);
		stage_exited(st, a->run, BOX_WORK, false, false);
		(void)stage_expect(st, SBX_KILL, a->run, BOX_WORK);
		break;
	case 3:
		stage_gone(st, a->run, BOX_WORK, true);
		a->o = stage_expect(st, SBX_SPAWN, a->run, BOX_CHECK);
		break;
	case 4:
	case 7:
		stage_spawned(st, a->run, BOX_CHECK);
		break;
	case 5:
		check_ends(a, "check-1", "");
		break;
	case 6:
		stage_gone(st, a->run, BOX_CHECK, true);
		a->o = stage_expect(st, SBX_SPAWN, a->run, BOX_CHECK);
		break;
	case 8:
		check_ends(a, "check-2", GOOD_TESTS);
		break;
	case 9:
		stage_gone(st, a->run, BOX_CHECK, true);
		break;
	default:
		fail_msg("no move %d", a->at);
	}
}

static void begin(struct actor *a, int to)
{
	*a = (struct actor){.o = {.upload = -1, .result = -1}};
	snprintf(a->run, sizeof a->run, "%s", stage_run(st, "acme"));
	while (a->at < to)
		go(a);
}

/* What an undisturbed run tells. */
static char *events_of_a_good_run(void)
{
	struct actor a;
	begin(&a, MOVES);
	course_expect_end(stage_final(st, "acme", a.run), RUN_COMPLETED, "completed", "");
	return stage_events(st, "acme", a.run);
}

static void expect_whole(const char *run, const char *events)
{
	own_free char *got = stage_events(st, "acme", run);
	assert_string_equal(got, events);
	course_expect_one_end(run, "run.completed");
	course_expect_artifact(run, ART_PATCH, "+TWO");
	course_expect_artifact(run, ART_RESULT, "\"terminalReason\":\"completed\"");
}

/* --- stored ------------------------------------------------------------------------------------------------- */

/* Away while each run makes one move (or two), which no run notices. */
static void store_away(int moves)
{
	struct actor a[MOVES];
	own_free char *events = events_of_a_good_run();
	for (int i = 1; i < MOVES; i++)
		begin(&a[i], i);
	(void)rig_stop(&st->rig, SIGKILL);
	for (int i = 1; i < MOVES; i++)
		for (int k = 0; k < moves && a[i].at < MOVES; k++)
			go(&a[i]);
	rig_start(&st->rig);
	for (int i = 1; i < MOVES; i++)
		while (a[i].at < MOVES)
			go(&a[i]);
	for (int i = 1; i < MOVES; i++) {
		course_expect_end(stage_final(st, "acme", a[i].run), RUN_COMPLETED, "completed", "");
		expect_whole(a[i].run, events);
	}
}

static void t_store_killed(void **state)
{
	(void)state;
	store_away(1);
	store_away(3);
}

/* Stopped for longer than a question may take, it does afterwards what it was asked, or dies: it is told once. */
static void store_stopped(bool dies)
{
	own_free char *events = events_of_a_good_run();
	static const int at[] = {4, 1, 9}; /* an event is asked first */
	struct actor a[3];
	for (int i = 0; i < 3; i++)
		begin(&a[i], at[i]);
	kill(st->rig.pid, SIGSTOP);
	for (int i = 0; i < 3; i++)
		go(&a[i]);
	char line[128];
	snprintf(line, sizeof line, "run %s: 2 things are to be told when the store is back", a[0].run);
	stage_logged(st, line);
	if (dies) {
		(void)rig_stop(&st->rig, SIGKILL);
		rig_start(&st->rig);
	} else {
		kill(st->rig.pid, SIGCONT);
	}
	for (int i = 0; i < 3; i++) {
		while (a[i].at < MOVES)
			go(&a[i]);
		course_expect_end(stage_final(st, "acme", a[i].run), RUN_COMPLETED, "completed", "");
		expect_whole(a[i].run, events);
		/* So has the audit log; what it was told twice it may have twice. */
		assert_true(stage_audited(st, "sandbox.spawn", a[i].run) >= 3);
		assert_true(stage_audited(st, "sandbox.destroy", a[i].run) >= 3);
	}
}

static void t_store_stopped(void **state)
{
	(void)state;
	store_stopped(false);
	store_stopped(true);
}

/*
 * An event that stored took, and whose answer the steward did not hear, is told again as the same one. The first that
 * is told when the judge ends is an event, so stored is stopped while the judge is.
 */
static void t_event_unheard(void **state)
{
	(void)state;
	own_free char *events = events_of_a_good_run();
	struct actor a;
	pid_t judge = 0;
	for (int i = 0; i < 100 && judge == 0; i++) {
		begin(&a, 3);
		stage_gone(st, a.run, BOX_WORK, true);
		judge = stage_hold_judge(st);
		if (judge != 0)
			break;
		a.o = stage_expect(st, SBX_SPAWN, a.run, BOX_CHECK);
		for (a.at = 4; a.at < MOVES;)
			go(&a);
	}
	assert_true(judge != 0);
	stage_event(st, "acme", a.run, "run.agent_exited");
	kill(st->rig.pid, SIGSTOP);
	kill(judge, SIGCONT);
	char line[128];
	snprintf(line, sizeof line, "run %s: 2 things are to be told when the store is back", a.run);
	stage_logged(st, line);
	kill(st->rig.pid, SIGCONT);
	a.o = stage_expect(st, SBX_SPAWN, a.run, BOX_CHECK);
	for (a.at = 4; a.at < MOVES;)
		go(&a);
	course_expect_end(stage_final(st, "acme", a.run), RUN_COMPLETED, "completed", "");
	expect_whole(a.run, events);
}

/* A start that stored did, and whose answer the steward did not hear, is not another one. */
static void t_start_unheard(void **state)
{
	(void)state;
	struct actor a = {.o = {.upload = -1, .result = -1}};
	free(events_of_a_good_run()); /* it listens */
	kill(st->pid, SIGSTOP);
	snprintf(a.run, sizeof a.run, "%s", stage_run(st, "acme"));
	(void)stage_get(st, "acme", a.run); /* by now the steward's socket holds the wake-up */
	kill(st->rig.pid, SIGSTOP);
	kill(st->pid, SIGCONT);
	char line[128];
	snprintf(line, sizeof line, "run %s of acme is not started: store_unavailable", a.run);
	stage_logged(st, line);
	kill(st->rig.pid, SIGCONT);
	while (a.at < MOVES)
		go(&a);
	course_expect_end(stage_final(st, "acme", a.run), RUN_COMPLETED, "completed", "");
}

/* --- the rest ------------------------------------------------------------------------------------------------ */

enum { DIES_STEWARD, DIES_SANDBOXD, DIES_STEWARD_AND_STORE, DIES_ALL, DIES__COUNT };

static void die(int what, uint32_t slots, const struct actor *a)
{
	struct stage_box boxes[MOVES];
	size_t n = 0;
	bool boxes_stay = what == DIES_STEWARD || what == DIES_STEWARD_AND_STORE;
	if (what == DIES_STEWARD_AND_STORE || what == DIES_ALL)
		(void)rig_stop(&st->rig, SIGKILL);
	if (what == DIES_SANDBOXD) {
		/* Without its pipe the steward ends by itself; it was stopped, and finds the pipe gone before anything
		 * else. */
		int status;
		close(st->control);
		kill(st->pid, SIGCONT);
		assert_int_equal(waitpid(st->pid, &status, 0), st->pid);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		st->control = -1;
		st->pid = 0;
	} else {
		assert_true(WIFSIGNALED(stage_stop(st, SIGKILL)));
	}
	if (what == DIES_STEWARD_AND_STORE || what == DIES_ALL)
		rig_start(&st->rig);
	for (int i = 1; i < MOVES && boxes_stay; i++)
		boxes[n++] = (struct stage_box){a[i].run, a[i].at <= 3 ? BOX_WORK : BOX_CHECK};
	stage_fork(st, stage_secret);
	stage_greet_with(st, slots, boxes, n);
	for (size_t i = 0; i < n; i++) {
		struct order k = stage_expect(st, SBX_KILL, boxes[i].run, (enum box_kind)boxes[i].kind);
		assert_int_equal(k.grace_ms, 0);
	}
	for (size_t i = 0; i < n; i++)
		stage_gone(st, boxes[i].run, (enum box_kind)boxes[i].kind, true);
}

static void t_restarts(void **state)
{
	(void)state;
	for (int what = 0; what < DIES__COUNT; what++) {
		struct actor a[MOVES], cancelled, queued;
		/* All there is at once, and no place for more. */
		uint32_t slots = MOVES + 1;
		const char *ended = stage_run(st, "acme");
		struct order o = stage_expect(st, SBX_SPAWN, ended, BOX_WORK);
		order_end(&o);
		stage_refused(st, ended, BOX_WORK, ERR_SANDBOX_UNAVAILABLE);
		const struct st_run_is *is = stage_final(st, "acme", ended);
		uint64_t updated = is->updated_at, last = is->last_sequence;
		uint8_t was = is->state;
		for (int i = 1; i < MOVES; i++)
			begin(&a[i], i);
		begin(&cancelled, 1);
		kill(st->pid, SIGSTOP);
		stage_cancel(st, "acme", cancelled.run);
		queued = (struct actor){.o = {.upload = -1, .result = -1}};
		snprintf(queued.run, sizeof queued.run, "%s", stage_run(st, "acme"));
		die(what, slots, a);
		for (int i = 1; i < MOVES; i++) {
			course_expect_end(stage_final(st, "acme", a[i].run), RUN_FAILED, "controller_restarted",
					  "controller_restarted");
			course_expect_one_end(a[i].run, "run.failed");
			assert_false(stage_capable(st, "acme", a[i].run));
			order_end(&a[i].o);
		}
		course_expect_end(stage_final(st, "acme", cancelled.run), RUN_CANCELLED, "cancelled_by_request",
				  "cancelled_by_request");
		course_expect_one_end(cancelled.run, "run.cancelled");
		order_end(&cancelled.o);
		/* The only thing that is started is what was queued; it runs to its end. */
		while (queued.at < MOVES)
			go(&queued);
		course_expect_end(stage_final(st, "acme", queued.run), RUN_COMPLETED, "completed", "");
		assert_true(stage_silent(st));
		is = stage_get(st, "acme", ended);
		assert_true(is->state == was && is->updated_at == updated && is->last_sequence == last);
	}
}

static int setup(void **state)
{
	(void)state;
	stage_open(st);
	st->tenant_runs = SLOTS;
	stage_fork(st, stage_secret);
	stage_greet(st, SLOTS);
	return 0;
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_store_killed), cmocka_unit_test(t_store_stopped),
					   cmocka_unit_test(t_event_unheard), cmocka_unit_test(t_start_unheard),
					   cmocka_unit_test(t_restarts)};
	return cmocka_run_group_tests(tests, setup, course_teardown);
}
