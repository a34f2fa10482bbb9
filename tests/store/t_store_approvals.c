/* Questions of agents: asked, decided once, allowed for the rest of a run, over. Against a real process whose clock a
 * test may set. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "gen/limits.h"
#include "lib/token.h"
#include "tests/store/asking.h"
#include "tests/store/settable.h"
#include "tests/store/steps.h"

enum { SECOND = 1000 };

static void once(void **state)
{
	(void)state;
	struct st_approval q = {.run = ""};
	run("once");
	assert_string_equal(poll_of("once", "q1"), "pending"); /* it may be on its way */
	assert_int_equal(ask("once", "q1", 'a'), ERR_OK);
	assert_int_equal(run_is("once").phase, PHASE_AWAITING_APPROVAL);
	assert_int_equal(listed("once", "q1", &q), 1);
	assert_string_equal(q.preview, "make test");
	assert_string_equal(q.effect, "execute");
	assert_true(!q.shortened && q.expires_at == q.requested_at + 600 * SECOND);
	/* The steward's own word does not say that nothing waits. */
	struct st_run_phase phase = {.tenant = "acme", .run = "once", .phase = PHASE_EXECUTING};
	struct st_run_state s;
	assert_int_equal(STEWARD(st_call_run_phase(steward, &phase, NULL, &s, NULL)), ERR_OK);
	assert_int_equal(run_is("once").phase, PHASE_AWAITING_APPROVAL);
	assert_int_equal(decide("once", "q1", DECISION_NONE), ERR_INVALID_APPROVAL_DECISION);
	assert_int_equal(decide("once", "q2", DECISION_DENY), ERR_APPROVAL_NOT_FOUND);
	/* Not what was shown. */
	assert_int_equal(decide_as("dev-1", "once", "q1", DECISION_ALLOW_ONCE, 'b', ""), ERR_DIGEST_MISMATCH);
	assert_string_equal(poll_of("once", "q1"), "pending");
	assert_int_equal(decide_as("dev-1", "once", "q1", DECISION_ALLOW_ONCE, 'a', ""), ERR_OK);
	assert_true(last.changed);
	assert_string_equal(poll_of("once", "q1"), "allow_once");
	assert_int_equal(run_is("once").phase, PHASE_EXECUTING);
	/* The first stays, whoever comes next, whatever it says. */
	assert_int_equal(decide_as("dev-2", "once", "q1", DECISION_DENY, '\0', ""), ERR_OK);
	assert_true(!last.changed && last.decision == DECISION_ALLOW_ONCE && last.decided_at > 0);
	/* An id is good for one question. */
	assert_int_equal(ask("once", "q1", 'b'), ERR_OK);
	assert_string_equal(poll_of("once", "q1"), "allow_once");
	/* Allowed once: the same is asked again. */
	assert_int_equal(ask("once", "q3", 'a'), ERR_OK);
	assert_string_equal(poll_of("once", "q3"), "pending");
	assert_int_equal(decide("once", "q3", DECISION_CANCEL), ERR_OK);
	assert_string_equal(poll_of("once", "q3"), "cancel");
	assert_string_equal(
	    events_of("once", NULL),
	    "run.queued run.started run.phase run.phase approval.requested run.phase approval.resolved run.phase "
	    "approval.requested run.phase approval.resolved run.phase ");
	listed("once", "q3", &q);
	assert_string_equal(q.device, "phone");
	/* Asked before the steward had said that it runs. */
	assert_int_equal(rig_running(fcgi, steward, "acme", "early", 5), ERR_OK);
	assert_int_equal(ask("early", "q1", 'a'), ERR_OK);
	assert_int_equal(run_is("early").phase, PHASE_STAGING);
	phase.run = "early";
	assert_int_equal(STEWARD(st_call_run_phase(steward, &phase, NULL, &s, NULL)), ERR_OK);
	assert_int_equal(run_is("early").phase, PHASE_AWAITING_APPROVAL);
	struct st_approval_list other = {.tenant = "other", .run = "once", .after = ""};
	struct st_approvals_are a;
	assert_int_equal(FCGI(st_call_approval_list(fcgi, &other, NULL, &a, NULL)), ERR_RUN_NOT_FOUND);
}

static void two_taps(void **state)
{
	(void)state;
	enum err e;
	run("taps");
	assert_int_equal(ask("taps", "q1", 'a'), ERR_OK);
	assert_int_equal(decide("taps", "q1", DECISION_ALLOW_SESSION), ERR_CONFIRM_INVALID);
	assert_null(tap("dev-1", "taps", "nothing", &e));
	assert_int_equal(e, ERR_APPROVAL_NOT_FOUND);
	const char *old = tap("dev-1", "taps", "q1", &e), *nonce = tap("dev-1", "taps", "q1", &e);
	assert_non_null(nonce);
	assert_string_not_equal(old, nonce);
	assert_int_equal(decide_as("dev-1", "taps", "q1", DECISION_ALLOW_SESSION, 'a', old), ERR_CONFIRM_INVALID);
	assert_int_equal(decide_as("dev-2", "taps", "q1", DECISION_ALLOW_SESSION, 'a', nonce), ERR_CONFIRM_INVALID);
	/* For something else: another question, though it is the same that would be done. */
	assert_int_equal(ask("taps", "q2", 'a'), ERR_OK);
	assert_int_equal(decide_as("dev-1", "taps", "q2", DECISION_ALLOW_SESSION, 'a', nonce), ERR_CONFIRM_INVALID);
	set_clock((LIMIT_APPROVAL_CONFIRM_SECONDS + 1) * SECOND);
	assert_int_equal(decide_as("dev-1", "taps", "q1", DECISION_ALLOW_SESSION, 'a', nonce), ERR_CONFIRM_INVALID);
	nonce = tap("dev-1", "taps", "q1", &e);
	assert_string_equal(poll_of("taps", "q1"), "pending");
	assert_int_equal(decide_as("dev-1", "taps", "q1", DECISION_ALLOW_SESSION, 'a', nonce), ERR_OK);
	assert_true(last.changed);
	assert_int_equal(decide_as("dev-1", "taps", "q1", DECISION_ALLOW_SESSION, 'a', nonce), ERR_OK);
	assert_false(last.changed);
	/* What waited is still asked; what comes is not, if it is the identical action of this run, also after a kill.
	 */
	assert_string_equal(poll_of("taps", "q2"), "pending");
	(void)rig_stop(&rig, SIGKILL);
	rig_start(&rig);
	assert_int_equal(ask("taps", "q4", 'a'), ERR_OK);
	assert_string_equal(poll_of("taps", "q4"), "allow_session");
	assert_int_equal(ask("taps", "q5", 'b'), ERR_OK);
	assert_string_equal(poll_of("taps", "q5"), "pending");
	/* Nor what cannot be seen whole, though the same would be done. */
	assert_int_equal(ask_for("taps", "q6", 'a', true), ERR_OK);
	assert_string_equal(poll_of("taps", "q6"), "pending");
	run("taps-2");
	assert_int_equal(ask("taps-2", "q1", 'a'), ERR_OK);
	assert_string_equal(poll_of("taps-2", "q1"), "pending");
}

static void not_whole(void **state)
{
	(void)state;
	enum err e;
	run("cut");
	assert_int_equal(ask_for("cut", "q1", 'a', true), ERR_OK);
	assert_int_equal(ask("cut", "q2", '-'), ERR_OK); /* of which nothing is shown */
	for (int i = 0; i < 2; i++) {
		const char *q = i == 0 ? "q1" : "q2";
		assert_null(tap("dev-1", "cut", q, &e));
		assert_int_equal(e, ERR_DECISION_NOT_OFFERED);
		assert_int_equal(decide("cut", q, DECISION_ALLOW_SESSION), ERR_DECISION_NOT_OFFERED);
		assert_int_equal(decide("cut", q, DECISION_ALLOW_ONCE), ERR_OK);
		assert_true(last.changed);
	}
}

static void too_many(void **state)
{
	(void)state;
	char id[16];
	struct st_approval q = {.run = ""};
	run("many");
	for (int i = 0; i < LIMIT_APPROVAL_PENDING; i++) {
		(void)snprintf(id, sizeof id, "q%d", i);
		assert_int_equal(ask("many", id, 'a'), ERR_OK);
	}
	assert_int_equal(ask("many", "more", 'a'), ERR_OK);
	/* Refused, and none of those that wait made room. */
	assert_string_equal(poll_of("many", "more"), "deny");
	assert_string_equal(poll_of("many", "q0"), "pending");
	assert_int_equal(listed("many", "more", &q), LIMIT_APPROVAL_PENDING);
	assert_string_equal(q.device, "");
	assert_non_null(strstr(events_of("many", NULL), "approval.requested approval.rejected "));
	assert_non_null(strstr(last_data("many"), "too many questions wait"));
	assert_int_equal(decide("many", "q7", DECISION_DENY), ERR_OK);
	assert_int_equal(run_is("many").phase, PHASE_AWAITING_APPROVAL);
	assert_int_equal(ask("many", "again", 'a'), ERR_OK);
	assert_string_equal(poll_of("many", "again"), "pending");
}

enum { LATER = (LIMIT_APPROVAL_CONFIRM_SECONDS + 602) * SECOND };

static void in_time(void **state)
{
	(void)state;
	run("late");
	assert_int_equal(ask("late", "q1", 'a'), ERR_OK);
	assert_int_equal(ask("late", "q2", 'a'), ERR_OK);
	assert_int_equal(ask("late", "q3", 'a'), ERR_OK);
	set_clock(LATER);
	/* Over whoever looks first: the list, who decides, the agent. And never a refusal. */
	assert_int_equal(listed("late", "q1", NULL), 0);
	assert_int_equal(decide("late", "q1", DECISION_ALLOW_ONCE), ERR_APPROVAL_EXPIRED);
	assert_string_equal(poll_of("late", "q1"), "expired");
	assert_string_equal(poll_of("late", "q2"), "expired");
	enum err e;
	assert_null(tap("dev-1", "late", "q3", &e));
	assert_int_equal(e, ERR_APPROVAL_EXPIRED);
	assert_int_equal(decide("late", "q3", DECISION_ALLOW_ONCE), ERR_APPROVAL_EXPIRED);
	assert_int_equal(run_is("late").phase, PHASE_EXECUTING);
	assert_non_null(
	    strstr(events_of("late", NULL), "approval.expired approval.expired approval.expired run.phase "));
	/* A run of which nobody is waited for. */
	struct st_run_create m = rig_run("acme", "hurry");
	struct st_run_start s = {.tenant = "acme", .run = "hurry", .expires_at = UINT64_MAX};
	struct st_run_work work;
	m.approval_wait_seconds = 0;
	assert_int_equal(rig_create(fcgi, &m, NULL), ERR_OK);
	assert_int_equal(STEWARD(st_call_run_start(steward, &s, NULL, &work, NULL)), ERR_OK);
	assert_int_equal(ask("hurry", "q1", 'a'), ERR_OK);
	assert_string_equal(poll_of("hurry", "q1"), "expired");
}

/* An agent that gave up looking: what is over takes no room from what it asks next. */
static void unlooked(void **state)
{
	(void)state;
	char id[16];
	run("left");
	for (int i = 0; i < LIMIT_APPROVAL_PENDING; i++) {
		(void)snprintf(id, sizeof id, "q%d", i);
		assert_int_equal(ask("left", id, 'a'), ERR_OK);
	}
	set_clock(LATER + 601 * SECOND);
	assert_int_equal(ask("left", "next", 'a'), ERR_OK);
	assert_string_equal(poll_of("left", "next"), "pending");
	assert_string_equal(poll_of("left", "q0"), "expired");
	assert_int_equal(listed("left", "next", NULL), 1);
	assert_int_equal(run_is("left").phase, PHASE_AWAITING_APPROVAL);
}

/* What was over stays so, and no first tap gets a second life. */
static void set_back(void **state)
{
	(void)state;
	enum err e;
	int now = LATER + 602 * SECOND;
	set_clock(now);
	run("back");
	assert_int_equal(ask("back", "q1", 'a'), ERR_OK);
	const char *nonce = tap("dev-1", "back", "q1", &e);
	set_clock(now + (LIMIT_APPROVAL_CONFIRM_SECONDS + 1) * SECOND);
	rig_tenant(&rig, "acme");
	set_clock(now);
	assert_int_equal(decide_as("dev-1", "back", "q1", DECISION_ALLOW_SESSION, 'a', nonce), ERR_CONFIRM_INVALID);
	assert_string_equal(poll_of("back", "q1"), "pending");
	set_clock(now + 601 * SECOND);
	rig_tenant(&rig, "acme");
	run("fresh");
	assert_int_equal(ask("fresh", "q1", 'a'), ERR_OK);
	set_clock(now);
	assert_int_equal(listed("back", "q1", NULL), 0);
	assert_int_equal(decide("back", "q1", DECISION_ALLOW_ONCE), ERR_APPROVAL_EXPIRED);
	assert_string_equal(poll_of("back", "q1"), "expired");
	assert_string_equal(poll_of("fresh", "q1"), "pending");
}

static void the_end(void **state)
{
	(void)state;
	struct st_run_state a;
	struct st_approval q = {.run = ""};
	bool terminal;
	run("ends");
	assert_int_equal(ask("ends", "q1", 'a'), ERR_OK);
	assert_int_equal(ask("ends", "q2", 'b'), ERR_OK);
	assert_int_equal(decide("ends", "q2", DECISION_DENY), ERR_OK);
	assert_int_equal(finish("ends", RUN_EV_FAIL, false, "", &a), ERR_OK);
	assert_non_null(strstr(events_of("ends", &terminal), "approval.abandoned run.failed "));
	assert_true(terminal);
	assert_int_equal(listed("ends", "q1", &q), 0);
	assert_int_equal(q.status, APPROVAL_EXPIRED);
	assert_string_equal(poll_of("ends", "q1"), "approval_not_found");
	assert_int_equal(decide("ends", "q1", DECISION_ALLOW_ONCE), ERR_RUN_IS_TERMINAL);
	assert_int_equal(decide("ends", "q2", DECISION_ALLOW_ONCE), ERR_OK);
	assert_true(!last.changed && last.decision == DECISION_DENY);
	assert_int_equal(decide("ends", "none", DECISION_ALLOW_ONCE), ERR_RUN_IS_TERMINAL);
	assert_int_equal(ask("ends", "q3", 'a'), ERR_RUN_SESSION_EVENTS_REJECTED);
	/* A cancel: nothing is decided for it afterwards, and nothing more is asked. */
	run("off");
	assert_int_equal(ask("off", "q1", 'a'), ERR_OK);
	assert_int_equal(cancel("off", &a), ERR_OK);
	assert_string_equal(poll_of("off", "q1"), "expired");
	assert_int_equal(decide("off", "q1", DECISION_ALLOW_ONCE), ERR_APPROVAL_EXPIRED);
	assert_int_equal(ask("off", "q2", 'a'), ERR_OK);
	assert_string_equal(poll_of("off", "q2"), "expired");
	assert_int_equal(run_is("off").approvals, 2);
	/* Its agent is dead, and the run goes on without it. */
	struct st_run_phase phase = {.tenant = "acme", .run = "dead", .phase = PHASE_COLLECTING};
	run("dead");
	assert_int_equal(ask("dead", "q1", 'a'), ERR_OK);
	assert_int_equal(STEWARD(st_call_run_phase(steward, &phase, NULL, &a, NULL)), ERR_OK);
	assert_int_equal(a.phase, PHASE_COLLECTING);
	assert_int_equal(decide("dead", "q1", DECISION_ALLOW_ONCE), ERR_APPROVAL_EXPIRED);
	assert_int_equal(ask("dead", "q2", 'a'), ERR_OK);
	assert_string_equal(poll_of("dead", "q2"), "expired");
	assert_non_null(
	    strstr(events_of("dead", NULL), "run.phase approval.abandoned approval.requested approval.abandoned "));
	assert_int_equal(run_is("dead").phase, PHASE_COLLECTING);
	/* Kept over a kill, while they wait. */
	run("kept");
	assert_int_equal(ask("kept", "q1", 'a'), ERR_OK);
	(void)rig_stop(&rig, SIGKILL);
	rig_start(&rig);
	assert_string_equal(poll_of("kept", "q1"), "pending");
	assert_int_equal(decide("kept", "q1", DECISION_ALLOW_ONCE), ERR_OK);
	assert_string_equal(poll_of("kept", "q1"), "allow_once");
	/* A steward that was started anew. */
	run("anew");
	assert_int_equal(ask("anew", "q1", 'a'), ERR_OK);
	assert_int_equal(finish("anew", RUN_EV_RESTART, false, "controller_restarted", &a), ERR_OK);
	assert_int_equal(listed("anew", "q1", &q), 0);
	struct st_run_delete d = {.tenant = "acme", .run = "anew", .by = "x", .request_id = ""};
	struct st_ok ok;
	assert_int_equal(FCGI(st_call_run_delete(fcgi, &d, NULL, &ok, NULL)), ERR_OK);
	run("anew");
	assert_int_equal(listed("anew", "q1", NULL), 0);
	assert_string_equal(poll_of("anew", "q1"), "pending");
}

/* Whoever may decide when a request begins need not when it is read whole. */
static void nobody_any_more(void **state)
{
	(void)state;
	enum err e;
	struct st_ok ok;
	struct st_token_revoke end = {.tenant = "acme", .token_id = "dev-3"};
	struct st_token_create tool = {
	    .tenant = "acme", .kind = PRINCIPAL_API, .token_id = "tool-1", .hash = digest_of('t'), .label = "tool"};
	run("gone");
	assert_int_equal(ask("gone", "q1", 'a'), ERR_OK);
	assert_int_equal(decide_as("nobody", "gone", "q1", DECISION_ALLOW_ONCE, '\0', ""), ERR_UNAUTHORIZED);
	assert_int_equal(decide_as("", "gone", "q1", DECISION_ALLOW_ONCE, '\0', ""), ERR_UNAUTHORIZED);
	deciding_device("dev-3");
	const char *nonce = tap("dev-3", "gone", "q1", &e);
	assert_non_null(nonce);
	assert_int_equal(st_call_token_revoke(admin, &end, NULL, &ok, NULL), ERR_OK);
	assert_int_equal(decide_as("dev-3", "gone", "q1", DECISION_ALLOW_SESSION, '\0', nonce), ERR_UNAUTHORIZED);
	assert_int_equal(decide_as("dev-3", "gone", "q1", DECISION_DENY, '\0', ""), ERR_UNAUTHORIZED);
	assert_null(tap("dev-3", "gone", "q1", &e));
	assert_int_equal(e, ERR_UNAUTHORIZED);
	assert_int_equal(st_call_token_create(admin, &tool, NULL, &ok, NULL), ERR_OK);
	assert_int_equal(decide_as("tool-1", "gone", "q1", DECISION_DENY, '\0', ""), ERR_DEVICE_REQUIRED);
	tool = (struct st_token_create){.tenant = "other",
					.kind = PRINCIPAL_DEVICE,
					.token_id = "dev-4",
					.hash = digest_of('u'),
					.label = "another tenant's"};
	assert_int_equal(st_call_token_create(admin, &tool, NULL, &ok, NULL), ERR_OK);
	assert_int_equal(decide_as("dev-4", "gone", "q1", DECISION_DENY, '\0', ""), ERR_UNAUTHORIZED);
	assert_string_equal(poll_of("gone", "q1"), "pending");
	assert_int_equal(decide("gone", "q1", DECISION_DENY), ERR_OK);
}

/* A word that comes too late decides nothing, but that it is over is told to whoever follows the run. */
static void late_is_told(void **state)
{
	(void)state;
	struct st_subscribe sub = {.tenant = "acme", .run = "told"};
	struct st_ok ok;
	struct ask *follower = rig_ask(&rig, RIG_STEWARD);
	struct ask_answer packet;
	struct st_woken woken = {.run = ""};
	int now = 2 * LATER;
	set_clock(now);
	run("told");
	assert_int_equal(ask("told", "q1", 'a'), ERR_OK);
	assert_int_equal(STEWARD(st_call_subscribe(follower, &sub, NULL, &ok, NULL)), ERR_OK);
	set_clock(now + 601 * SECOND);
	assert_int_equal(decide("told", "q1", DECISION_ALLOW_ONCE), ERR_APPROVAL_EXPIRED);
	assert_int_equal(ask_wait(follower, PATIENCE_MS, &packet), 1);
	assert_true(st_get_woken(packet.frame, packet.len, &woken));
	assert_string_equal(woken.run, "told");
	assert_int_equal(woken.phase, PHASE_EXECUTING);
	ask_close_fds(&packet);
	assert_string_equal(events_of("told", NULL) + strlen(events_of("told", NULL)) -
				strlen("approval.expired run.phase "),
			    "approval.expired run.phase ");
	ask_free(follower);
}

static struct st_wait_is look(const char *id)
{
	struct st_wait_look m = {.tenant = "acme", .run = id};
	struct st_wait_is a;
	assert_int_equal(STEWARD(st_call_wait_look(steward, &m, NULL, &a, NULL)), ERR_OK);
	return a;
}

/* What the steward goes by: is anybody waited for, does a model answer, and when is it over, whoever looks. */
static void looked_at(void **state)
{
	(void)state;
	struct st_cap_is cap;
	struct st_called_is called;
	struct st_model_called end = {.tenant = "acme", .run = "looks", .status = 200, .outcome = "ok"};
	struct st_run_state s;
	int now = 3 * LATER;
	set_clock(now);
	run("looks");
	assert_false(look("looks").waits);
	assert_int_equal(consume("looks", &cap), ERR_OK);
	assert_int_equal(ask("looks", "q1", 'a'), ERR_OK);
	struct st_wait_is is = look("looks");
	assert_true(is.waits && is.calling && is.left_ms > 0 && is.left_ms <= 600 * SECOND);
	assert_int_equal(GATEWAY(st_call_model_called(gateway, &end, NULL, &called, NULL)), ERR_OK);
	assert_true(look("looks").waits && !look("looks").calling);
	/* The end of a call that never was. */
	assert_int_equal(GATEWAY(st_call_model_called(gateway, &end, NULL, &called, NULL)), ERR_OK);
	assert_int_equal(consume("looks", &cap), ERR_OK);
	assert_true(look("looks").calling);
	(void)rig_stop(&rig, SIGKILL);
	rig_start(&rig);
	assert_true(look("looks").waits && look("looks").calling);
	assert_int_equal(GATEWAY(st_call_model_called(gateway, &end, NULL, &called, NULL)), ERR_OK);
	set_clock(now + 300 * SECOND);
	assert_int_equal(ask("looks", "q2", 'b'), ERR_OK);
	assert_true(look("looks").left_ms <= 300 * SECOND);
	/* Nobody else asks: an agent that is frozen does not. */
	set_clock(now + 601 * SECOND);
	is = look("looks");
	assert_true(is.waits && !is.calling && is.left_ms > 200 * SECOND && is.left_ms <= 300 * SECOND);
	assert_string_equal(poll_of("looks", "q1"), "expired");
	set_clock(now + 901 * SECOND);
	assert_false(look("looks").waits);
	assert_int_equal(run_is("looks").phase, PHASE_EXECUTING);
	assert_int_equal(ask("looks", "q3", 'c'), ERR_OK);
	assert_true(look("looks").waits);
	assert_int_equal(cancel("looks", &s), ERR_OK);
	assert_false(look("looks").waits);
}

/* One event before a question that is refused: it is not there either, so that the batch may be sent again. */
static void whole_or_nothing(void **state)
{
	(void)state;
	static uint8_t page[100000];
	struct st_events_taken taken;
	struct st_agent_event note = {.type = "note", .data = BYTES("{}")};
	struct st_agent_event q = {.type = "approval.requested",
				   .data = BYTES("{\"request_id\":\"q\"}"),
				   .request = "q0",
				   .digest = digest_of('a'),
				   .preview = "make"};
	char id[16];
	run("batch");
	for (int round = 0; round < 3; round++) {
		struct wire_list l = {.p = page, .cap = sizeof page};
		wire_list_add(&l, st_put_agent_event(wire_list_room(&l, 200), 200, &note));
		for (int i = 0; i < LIMIT_APPROVAL_BATCH + (round == 0); i++) {
			(void)snprintf(id, sizeof id, "q%d", i);
			q.request = round == 1 && i == 1 ? "no id" : id;
			wire_list_add(&l, st_put_agent_event(wire_list_room(&l, 400), 400, &q));
		}
		struct st_events_append m = {.tenant = "acme", .run = "batch", .events = wire_list_done(&l)};
		assert_int_equal(GATEWAY(st_call_events_append(gateway, &m, NULL, &taken, NULL)),
				 round < 2 ? ERR_INVALID_EVENT_APPEND : ERR_OK);
	}
	assert_int_equal(taken.accepted, 1 + LIMIT_APPROVAL_BATCH);
	assert_non_null(
	    strstr(events_of("batch", NULL), "run.phase note approval.requested run.phase approval.requested "));
	/* Of a buffer that is full. */
	struct st_events_taken a;
	run("full");
	while (append("full", "fill", 60000, 1, &a) == ERR_OK && a.accepted == 1)
		continue;
	assert_int_equal(ask("full", "q1", 'a'), ERR_RUN_SESSION_EVENTS_REJECTED);
	run("filled");
	while (append("filled", "fill", 60000, 1, &a) == ERR_OK && a.last_sequence < 19)
		continue;
	uint64_t before = run_is("filled").last_sequence;
	struct wire_list l = {.p = page, .cap = sizeof page};
	wire_list_add(&l, st_put_agent_event(wire_list_room(&l, 200), 200, &note));
	static char much[63000];
	memset(much, ' ', sizeof much);
	much[0] = '{';
	much[sizeof much - 1] = '}';
	q.data = (struct wire_bytes){(const uint8_t *)much, sizeof much};
	q.request = "q1";
	wire_list_add(&l, st_put_agent_event(wire_list_room(&l, 70000), 70000, &q));
	struct st_events_append m = {.tenant = "acme", .run = "filled", .events = wire_list_done(&l)};
	for (int i = 0; i < 2; i++)
		assert_int_equal(GATEWAY(st_call_events_append(gateway, &m, NULL, &taken, NULL)),
				 ERR_RUN_SESSION_EVENTS_REJECTED);
	assert_int_equal(run_is("filled").last_sequence, before);
}

static int setup(void **state)
{
	if (settable_setup(state) != 0)
		return -1;
	deciding_device("dev-1");
	deciding_device("dev-2");
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(once),         cmocka_unit_test(the_end),   cmocka_unit_test(not_whole),
	    cmocka_unit_test(too_many),     cmocka_unit_test(two_taps),  cmocka_unit_test(in_time),
	    cmocka_unit_test(unlooked),     cmocka_unit_test(set_back),  cmocka_unit_test(nobody_any_more),
	    cmocka_unit_test(late_is_told), cmocka_unit_test(looked_at), cmocka_unit_test(whole_or_nothing)};
	return cmocka_run_group_tests(tests, setup, settable_teardown);
}
