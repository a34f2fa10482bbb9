/*
 * J1: two ends of one run meet. Every ordered pair of {cancel, complete, fail, timeout, restart, unclean} is asked for
 * by two callers whose questions lie in stored's sockets while it is stopped, so that both are done in one turn and one
 * flush; and, as often, the second only when the first was answered. Each PINFOLD_ORDERS times (100).
 *
 * Then: the run is what run.fsm says, the first final state stays, there is exactly one terminal event, it is the
 * last, and who lost has a line in the audit log and nothing else.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "gen/reasons.h"
#include "lib/buf.h"
#include "lib/chan.h"
#include "lib/own.h"
#include "tests/store/steps.h"

enum { FRAME = 4096, ORDERS = 100, LOG_BYTES = 100000000 };

/* What a caller may ask for; timeout is a failure with a reason of its own. */
static const struct way {
	const char *name;
	enum run_event ev;
	enum reason reason;
	const char *error;
} ways[] = {
    {"cancel", RUN_EV_CANCEL, REASON_CANCELLED_BY_REQUEST, "cancelled_by_request"},
    {"complete", RUN_EV_COMPLETE, REASON_COMPLETED, ""},
    {"fail", RUN_EV_FAIL, REASON_AGENT_FAILED, "sandbox_agent_failed"},
    {"timeout", RUN_EV_FAIL, REASON_WALL_TIME_EXCEEDED, "wall_time_exceeded"},
    {"restart", RUN_EV_RESTART, REASON_CONTROLLER_RESTARTED, "controller_restarted"},
    {"unclean", RUN_EV_UNCLEAN, REASON_SANDBOX_CLEANUP_FAILED, "sandbox_cleanup_failed"},
};
enum { WAYS = sizeof ways / sizeof *ways };

/* A connection a side and role: [side][0] fcgi, which cancels, [side][1] steward. */
static int conn[2][2];
static uint64_t next_op = 1000;

static void greet(int side, bool as_steward)
{
	uint8_t b[FRAME];
	int fds[WIRE_MAX_FDS], nfds = 0;
	struct st_hello h = {.version = ST_VERSION, .client = (uint64_t)(10 + side)};
	struct st_welcome w;
	int fd = rig_connect(&rig, as_steward ? RIG_STEWARD : RIG_FCGI);
	assert_true(fd >= 0);
	assert_int_equal(chan_send(fd, b, st_put_hello(b, sizeof b, 1, &h), NULL, 0), 0);
	ssize_t n = chan_recv(fd, b, sizeof b, fds, &nfds);
	assert_true(n > 0 && st_get_welcome(b, (size_t)n, &w));
	conn[side][as_steward] = fd;
}

static void say(int side, const struct way *w, const char *run)
{
	uint8_t b[FRAME];
	struct st_run_cancel c = {.tenant = "acme", .run = run, .by = "tests"};
	struct st_run_finish f = {.tenant = "acme",
				  .run = run,
				  .event = (uint8_t)w->ev,
				  .terminal_reason = reason_name(w->reason),
				  .error = w->error,
				  /* So that one way twice is still two ends. */
				  .exited = true,
				  .exit_code = side};
	bool cancels = w->ev == RUN_EV_CANCEL;
	uint64_t op = next_op++;
	size_t n = cancels ? st_put_run_cancel(b, sizeof b, op, &c) : st_put_run_finish(b, sizeof b, op, &f);
	assert_true(n > 0);
	assert_int_equal(chan_send(conn[side][!cancels], b, n, NULL, 0), 0);
}

static enum err hear(int side, const struct way *w)
{
	uint8_t b[FRAME];
	int fds[WIRE_MAX_FDS], nfds = 0;
	struct st_fail fail;
	struct st_run_state a;
	ssize_t n = chan_recv(conn[side][w->ev != RUN_EV_CANCEL], b, sizeof b, fds, &nfds);
	assert_true(n > 0);
	if (st_get_fail(b, (size_t)n, &fail))
		return (enum err)fail.code;
	assert_true(st_get_run_state(b, (size_t)n, &a));
	return ERR_OK;
}

static void pause_store(void)
{
	int status;
	assert_int_equal(kill(rig.pid, SIGSTOP), 0);
	assert_int_equal(waitpid(rig.pid, &status, WUNTRACED), rig.pid);
	assert_true(WIFSTOPPED(status));
}

static unsigned count_of(const char *text, const char *what)
{
	unsigned n = 0;
	for (const char *p = text; (p = strstr(p, what)) != NULL; p++)
		n++;
	return n;
}

/* Who loses: it comes to a final state, or its end is not that of a cancelled run. Adds to the lines awaited. */
static void step(enum run_state *state, const struct way *w, enum err got, char *lost, size_t room)
{
	enum run_state before = *state, to = *state;
	enum err e = run_step(before, w->ev, &to);
	assert_int_equal(got, e);
	/* A cancel of what was cancelled wanted nothing else. */
	bool overruled = (run_final(before) && !(before == RUN_CANCELLED && w->ev == RUN_EV_CANCEL)) ||
			 (before == RUN_CANCELLING && to == RUN_CANCELLED);
	*state = to;
	if (overruled) {
		size_t n = strlen(lost);
		(void)snprintf(lost + n, room - n, "%s,", reason_name(w->reason));
	}
}

static void look(const char *run, enum run_state state, const char *log, const char *lost)
{
	char word[64], last[64], want[300] = "", copy[128];
	struct st_run_is is = run_is(run); /* its texts are gone with the next question */
	assert_int_equal(is.state, state);
	if (run_final(state))
		assert_string_equal(reason_status(reason_find(is.terminal_reason)), run_public(state));
	if (state == RUN_CANCELLED)
		assert_string_equal(is.error, "cancelled_by_request");
	const char *all = events_of(run, NULL);
	unsigned ends =
	    count_of(all, "run.completed ") + count_of(all, "run.failed ") + count_of(all, "run.cancelled ");
	assert_int_equal(ends, run_final(state) ? 1 : 0);
	if (run_final(state)) {
		(void)snprintf(last, sizeof last, "run.%s ", run_public(state));
		assert_string_equal(all + strlen(all) - strlen(last), last);
	}
	/* The log's lines of this run that tell of losers, in order. */
	(void)snprintf(word, sizeof word, "\"%s\"", run);
	(void)snprintf(copy, sizeof copy, "%s", lost);
	char found[300] = "";
	for (const char *p = log; (p = strstr(p, word)) != NULL; p++) {
		const char *from = p, *to = strchr(p, '\n');
		while (from > log && from[-1] != '\n')
			from--;
		own_free char *one = strndup(from, (size_t)(to - from));
		const char *at = strstr(one, "\"reason\":\"");
		if (strstr(one, "\"run.overruled\"") == NULL)
			continue;
		assert_non_null(at);
		assert_non_null(strstr(one, run_public(state)));
		at += strlen("\"reason\":\"");
		size_t n = strlen(found);
		(void)snprintf(found + n, sizeof found - n, "%.*s,", (int)strcspn(at, "\""), at);
	}
	(void)snprintf(want, sizeof want, "%s", copy);
	assert_string_equal(found, want);
}

static unsigned orders(void)
{
	const char *text = getenv("PINFOLD_ORDERS");
	return text != NULL ? (unsigned)atoi(text) : ORDERS;
}

static char *read_log(void)
{
	char path[200];
	size_t n;
	(void)snprintf(path, sizeof path, "%s/audit.log", rig.logs);
	char *text = file_read(AT_FDCWD, path, LOG_BYTES, &n);
	assert_non_null(text);
	return text;
}

/* One ordered pair; odd rounds with both questions in the sockets of a stopped stored. */
static void pair(const struct way *first, const struct way *second, unsigned rounds)
{
	enum run_state *ends = calloc(rounds, sizeof *ends);
	char(*lost)[128] = calloc(rounds, sizeof *lost);
	char run[64];
	assert_true(ends != NULL && lost != NULL);
	for (unsigned i = 0; i < rounds; i++) {
		const struct way *both[] = {first, second};
		enum err got[2];
		(void)snprintf(run, sizeof run, "%s-%s-%u", first->name, second->name, i);
		assert_int_equal(rig_running(fcgi, steward, "acme", run, 5), ERR_OK);
		if (i % 2 != 0)
			pause_store();
		for (int side = 0; side < 2; side++) {
			say(side, both[side], run);
			if (i % 2 == 0)
				got[side] = hear(side, both[side]);
		}
		if (i % 2 != 0) {
			assert_int_equal(kill(rig.pid, SIGCONT), 0);
			for (int side = 0; side < 2; side++)
				got[side] = hear(side, both[side]);
		}
		ends[i] = RUN_RUNNING;
		for (int side = 0; side < 2; side++)
			step(&ends[i], both[side], got[side], lost[i], sizeof lost[i]);
		assert_true(ends[i] == RUN_CANCELLING || run_final(ends[i]));
	}
	own_free char *log = read_log();
	for (unsigned i = 0; i < rounds; i++) {
		(void)snprintf(run, sizeof run, "%s-%s-%u", first->name, second->name, i);
		look(run, ends[i], log, lost[i]);
	}
	free(ends);
	free(lost);
}

static void all_pairs(void **state)
{
	(void)state;
	unsigned rounds = orders();
	for (int i = 0; i < 4; i++)
		greet(i / 2, i % 2 != 0);
	for (int a = 0; a < WAYS; a++)
		for (int b = 0; b < WAYS; b++)
			pair(&ways[a], &ways[b], rounds);
	printf("%u pairs, each %u times\n", (unsigned)(WAYS * WAYS), rounds);
}

/* A terminal run has a reason, one of the table, that goes with its status. */
static void reasons(void **state)
{
	(void)state;
	struct st_run_state a;
	static const struct {
		enum run_event ev;
		const char *reason;
		enum err want;
	} v[] = {{RUN_EV_FAIL, "", ERR_INVALID_REQUEST},
		 {RUN_EV_FAIL, "because", ERR_INVALID_REQUEST},
		 {RUN_EV_FAIL, "completed", ERR_INVALID_REQUEST},
		 {RUN_EV_FAIL, "cancelled_by_request", ERR_INVALID_REQUEST},
		 {RUN_EV_COMPLETE, "agent_failed", ERR_INVALID_REQUEST},
		 {RUN_EV_COMPLETE, "", ERR_INVALID_REQUEST},
		 {RUN_EV_UNCLEAN, "agent_failed", ERR_INVALID_REQUEST},
		 {RUN_EV_RESTART, "completed", ERR_INVALID_REQUEST},
		 {RUN_EV_START, "agent_failed", ERR_INVALID_REQUEST},
		 {RUN_EV_CANCEL, "cancelled_by_request", ERR_INVALID_REQUEST},
		 {RUN_EVENT__COUNT, "agent_failed", ERR_INVALID_REQUEST},
		 {RUN_EV_FAIL, "agent_failed", ERR_OK}};
	assert_int_equal(rig_running(fcgi, steward, "acme", "reasoned", 5), ERR_OK);
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		struct st_run_finish f = {
		    .tenant = "acme", .run = "reasoned", .event = (uint8_t)v[i].ev, .terminal_reason = v[i].reason};
		assert_int_equal(STEWARD(st_call_run_finish(steward, &f, NULL, &a, NULL)), v[i].want);
	}
}

/* Every cell of course.fsm, through the operation. */
static void phases(void **state)
{
	(void)state;
	static const enum run_phase way[] = {PHASE_EXECUTING,  PHASE_AWAITING_APPROVAL, PHASE_EXECUTING,
					     PHASE_COLLECTING, PHASE_VERIFYING,         PHASE_CLEANING};
	static const enum run_phase never[][3] = {{PHASE_WAITING, PHASE_AWAITING_APPROVAL, PHASE_VERIFYING},
						  {PHASE_WAITING, PHASE_STAGING, PHASE_VERIFYING},
						  {PHASE_WAITING, PHASE_STAGING, PHASE_VERIFYING},
						  {PHASE_WAITING, PHASE_STAGING, PHASE_VERIFYING},
						  {PHASE_STAGING, PHASE_EXECUTING, PHASE_AWAITING_APPROVAL},
						  {PHASE_EXECUTING, PHASE_COLLECTING, PHASE_AWAITING_APPROVAL},
						  {PHASE_EXECUTING, PHASE_COLLECTING, PHASE_VERIFYING}};
	struct st_run_state a;
	struct st_run_create c = rig_run("acme", "phased");
	struct st_run_phase m = {.tenant = "acme", .run = "phased", .phase = PHASE_STAGING};
	assert_int_equal(rig_create(fcgi, &c, &a), ERR_OK);
	assert_int_equal(STEWARD(st_call_run_phase(steward, &m, NULL, &a, NULL)), ERR_ILLEGAL_RUN_TRANSITION);
	assert_int_equal(cancel("phased", &a), ERR_OK);
	assert_int_equal(rig_running(fcgi, steward, "acme", "phases", 5), ERR_OK);
	m.run = "phases";
	for (size_t i = 0; i <= sizeof way / sizeof *way; i++) {
		for (int k = 0; k < 3; k++) {
			m.phase = (uint8_t)never[i][k];
			assert_int_equal(STEWARD(st_call_run_phase(steward, &m, NULL, &a, NULL)),
					 ERR_ILLEGAL_RUN_TRANSITION);
		}
		for (int again = 0; again < 2 && i < sizeof way / sizeof *way; again++) {
			m.phase = (uint8_t)way[i];
			assert_int_equal(STEWARD(st_call_run_phase(steward, &m, NULL, &a, NULL)), ERR_OK);
			assert_int_equal(a.changed, again == 0);
		}
	}
}

/* A cancel in each phase takes the capability along, and is what the run ends with. */
static void cancel_in_each_phase(void **state)
{
	(void)state;
	static const enum run_phase way[] = {PHASE_STAGING,    PHASE_EXECUTING, PHASE_AWAITING_APPROVAL,
					     PHASE_COLLECTING, PHASE_VERIFYING, PHASE_CLEANING};
	struct st_run_state a;
	struct st_cap_is cap;
	for (size_t last = 0; last < sizeof way / sizeof *way; last++) {
		char run[32];
		(void)snprintf(run, sizeof run, "cancel-in-%s", phase_names[way[last]]);
		for (char *p = run; *p != '\0'; p++)
			*p = *p == '_' ? '-' : *p;
		assert_int_equal(rig_running(fcgi, steward, "acme", run, 5), ERR_OK);
		for (size_t i = 0; i <= last; i++) {
			struct st_run_phase m = {.tenant = "acme", .run = run, .phase = (uint8_t)way[i]};
			assert_int_equal(STEWARD(st_call_run_phase(steward, &m, NULL, &a, NULL)), ERR_OK);
		}
		assert_int_equal(consume(run, &cap), ERR_OK);
		assert_int_equal(cancel(run, &a), ERR_OK);
		assert_true(a.changed && a.state == RUN_CANCELLING && a.phase == way[last]);
		assert_int_equal(consume(run, &cap), ERR_INACTIVE_RUN_TOKEN);
		assert_int_equal(cancel(run, &a), ERR_OK);
		assert_false(a.changed);
		assert_int_equal(finish(run, RUN_EV_COMPLETE, true, "", &a), ERR_OK);
		assert_int_equal(a.state, RUN_CANCELLED);
		assert_int_equal(count_of(events_of(run, NULL), "run.cancelled "), 1);
		assert_true(run_is(run).used_requests == 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(all_pairs), cmocka_unit_test(reasons),
					   cmocka_unit_test(phases), cmocka_unit_test(cancel_in_each_phase)};
	return cmocka_run_group_tests(tests, steps_setup, steps_teardown);
}
