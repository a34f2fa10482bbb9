/* The real steward against a real store, with sandboxd played by the test: whole courses of runs. */
#include "gen/run_fsm.h"
#include "lib/chan.h"
#include "lib/num.h"
#include "lib/own.h"
#include "lib/token.h"
#include "tests/steward/bundles.h"
#include "tests/steward/stage.h"
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct stage st;

#define GOOD_TESTS "..\nRan 2 tests in 0.001s\n\nOK\n"

/* --- what boxes leave ---------------------------------------------------------------------------- */

static const struct given repaired[] = {{"a.py", "one\nTWO\n"}, {"b.py", "bee\n"}, {"__pycache__/a.pyc", "x"}};
static const struct given meddled[] = {{"a.py", "one\nTWO\n"}, {"b.py", "changed\n"}};

static void leave_work(int fd, int status)
{
	bundles_ran(fd, true, status, false, false);
	bundles_entries(fd, repaired, 3);
	bundles_claim(fd, "{\"status\":\"completed\",\"summary\":\"I repaired it.\"}");
	bundles_collected(fd, 3, true);
}

static void leave_checks(int fd, int first, int second, const char *output)
{
	bundles_checked(fd, "check-1", true, first, false, "");
	bundles_checked(fd, "check-2", true, second, false, output);
}

/* --- parts of a course ----------------------------------------------------------------------------- */

static const char *begin(void)
{
	return stage_run(&st, "acme");
}

static struct order to_work(const char *run)
{
	struct order o = stage_expect(&st, SBX_SPAWN, run, BOX_WORK);
	stage_spawned(&st, run, BOX_WORK);
	stage_phase(&st, "acme", run, PHASE_EXECUTING);
	return o;
}

static void end_work(const char *run, struct order *o)
{
	order_end(o);
	stage_exited(&st, run, BOX_WORK, false, false);
	struct order k = stage_expect(&st, SBX_KILL, run, BOX_WORK);
	assert_int_equal(k.grace_ms, 0);
	/* Dead, then revoked, then destroyed. */
	assert_false(stage_capable(&st, "acme", run));
	stage_gone(&st, run, BOX_WORK, true);
}

static struct order to_check(const char *run)
{
	struct order o = to_work(run);
	leave_work(o.result, 0);
	end_work(run, &o);
	o = stage_expect(&st, SBX_SPAWN, run, BOX_CHECK);
	stage_spawned(&st, run, BOX_CHECK);
	return o;
}

static const struct st_run_is *end_check(const char *run, struct order *o)
{
	order_end(o);
	stage_exited(&st, run, BOX_CHECK, false, false);
	(void)stage_expect(&st, SBX_KILL, run, BOX_CHECK);
	/* Nothing is final before the box is gone. */
	assert_int_equal(stage_get(&st, "acme", run)->state, RUN_RUNNING);
	stage_gone(&st, run, BOX_CHECK, true);
	return stage_final(&st, "acme", run);
}

static void expect_end(const struct st_run_is *is, enum run_state state, const char *reason, const char *error)
{
	assert_string_equal(is->terminal_reason, reason);
	assert_string_equal(is->error, error);
	assert_int_equal(is->state, state);
}

static bool holds(struct wire_bytes b, const char *text)
{
	return b.n > 0 && memmem(b.p, b.n, text, strlen(text)) != NULL;
}

/* Exactly one terminal event, and it is the last (J1). */
static void expect_one_end(const char *run, const char *type)
{
	own_free char *events = stage_events(&st, "acme", run);
	char last[64];
	unsigned ends = 0;
	for (char *p = events; *p != '\0'; p = strchr(p, '\n') + 1)
		ends += strncmp(p, "run.completed\n", 14) == 0 || strncmp(p, "run.failed\n", 11) == 0 ||
			strncmp(p, "run.cancelled\n", 14) == 0;
	assert_int_equal(ends, 1);
	snprintf(last, sizeof last, "\n%s\n", type);
	size_t n = strlen(events), k = strlen(last);
	assert_true(n >= k && strcmp(events + n - k, last) == 0);
}

/* --- a run that goes well ---------------------------------------------------------------------------- */

static unsigned tokens_seen;

static void look_at_token(const struct bn_token *m, const char *run)
{
	static const char *const files[] = {".pinfold-run-token", ".pinfold-event-token", ".pinfold-approval-token"};
	struct secret key = {0};
	struct token_claims claims;
	assert_true(secret_set(&key, stage_secret, STAGE_SECRET));
	for (int a = 0; a < TOKEN_AUDIENCE__COUNT; a++) {
		enum err e = token_verify(&key, NULL, (const char *)m->token.p, m->token.n, (enum token_audience)a,
					  (int64_t)(clock_ms() / 1000), &claims);
		assert_int_equal(e == ERR_OK, strcmp(files[a], m->file) == 0);
		if (e == ERR_OK) {
			assert_string_equal(claims.run, run);
			assert_string_equal(claims.tenant, "acme");
			assert_string_equal(claims.model, "model-1");
			assert_int_equal(claims.exp - claims.iat, 300);
			tokens_seen++;
		}
	}
	secret_wipe(&key);
}

static void look_at_agent(const struct bn_agent *m, const char *run)
{
	char line[200];
	assert_int_equal(m->argv_n, 1);
	assert_int_equal(m->env_n, 3);
	assert_int_equal(m->wall_seconds, 60);
	assert_string_equal(m->env[0], "PINFOLD_MODEL_ID=model-1");
	assert_string_equal(m->env[1], "PINFOLD_MODEL_GATEWAY_URL=http://127.0.0.1:9797/internal/v1");
	snprintf(line, sizeof line, "PINFOLD_RUN_ID=%s{x}", run);
	assert_string_equal(m->env[2], line);
}

/* The upload of a box: its frames in order, looked at. */
static void look_at_upload(int fd, const char *run, const char *order)
{
	struct bundle b;
	const uint8_t *frame;
	size_t n;
	uint16_t number;
	uint64_t op;
	char seen[200] = "", part[16];
	struct bn_token token;
	struct bn_agent agent;
	struct bn_changed changed;
	struct bn_check check;
	struct bn_request request;
	assert_int_equal(write(fd, "x", 1), -1); /* sealed */
	assert_true(bundle_open(&b, fd, BN_MAXFRAME));
	while (bundle_next(&b, &frame, &n) > 0) {
		assert_true(wire_peek(frame, n, &number, &op));
		snprintf(part, sizeof part, "%u ", number);
		strcat(seen, part);
		if (bn_get_token(frame, n, &token))
			look_at_token(&token, run);
		else if (bn_get_agent(frame, n, &agent))
			look_at_agent(&agent, run);
		else if (bn_get_request(frame, n, &request))
			assert_true(holds(request.json, "\"repair it\"") && holds(request.json, run) &&
				    holds(request.json, "\"check-2\""));
		else if (bn_get_changed(frame, n, &changed))
			assert_true(strcmp(changed.path, "a.py") == 0 && holds(changed.content, "TWO"));
		else if (bn_get_check(frame, n, &check))
			assert_int_equal(check.seconds, 7);
	}
	bundle_close(&b);
	assert_string_equal(seen, order);
}

static void expect_artifact(const char *run, enum artifact name, const char *text)
{
	own_free char *got = stage_artifact(&st, "acme", run, name);
	if (got == NULL)
		fail_msg("artifact %s is missing", artifact_names[name]);
	if (strstr(got, text) == NULL)
		fail_msg("artifact %s is: %s", artifact_names[name], got);
}

static void t_success(void **state)
{
	(void)state;
	const char *run = begin();
	struct order o = stage_expect(&st, SBX_SPAWN, run, BOX_WORK);
	assert_string_equal(o.tenant, "acme");
	assert_int_equal(o.wall_seconds, 90);
	tokens_seen = 0;
	look_at_upload(o.upload, run, "1 1 2 5 6 6 6 7 9 ");
	assert_int_equal(tokens_seen, 3);
	assert_true(stage_capable(&st, "acme", run));
	stage_spawned(&st, run, BOX_WORK);
	stage_phase(&st, "acme", run, PHASE_EXECUTING);
	leave_work(o.result, 0);
	end_work(run, &o);
	o = stage_expect(&st, SBX_SPAWN, run, BOX_CHECK);
	look_at_upload(o.upload, run, "1 1 2 3 8 8 9 ");
	stage_spawned(&st, run, BOX_CHECK);
	stage_phase(&st, "acme", run, PHASE_VERIFYING);
	leave_checks(o.result, 0, 0, GOOD_TESTS);
	const struct st_run_is *is = end_check(run, &o);
	expect_end(is, RUN_COMPLETED, "completed", "");
	assert_true(is->finished && is->success && is->exited && is->exit_code == 0);
	assert_true(holds(is->changed_files, "[\"a.py\"]"));
	assert_true(holds(is->verification, "\"name\":\"check-2\"") &&
		    holds(is->verification, "\"outcome\":\"passed\""));
	assert_true(holds(is->verification, "\"durationSeconds\":0.056"));
	assert_true(holds(is->summary, "\"I repaired it.\""));
	expect_artifact(run, ART_REQUEST, "repair it");
	expect_artifact(run, ART_PATCH, "-two\n+TWO\n");
	expect_artifact(run, ART_TEST_LOG, "Ran 2 tests");
	expect_artifact(run, ART_CHECKPOINT, "\"path\":\"b.py\"");
	expect_artifact(run, ART_RESULT, "\"ok\":true");
	expect_one_end(run, "run.completed");
	own_free char *events = stage_events(&st, "acme", run);
	assert_non_null(strstr(events, "run.agent_exited\n"));
	assert_non_null(strstr(events, "run.changes_judged\n"));
	assert_non_null(strstr(events, "check.started\n"));
	assert_non_null(strstr(events, "check.finished\n"));
}

/* --- the agent's own end -------------------------------------------------------------------------------- */

static void t_agent_ends(void **state)
{
	(void)state;
	static const struct {
		bool started, timed_out, box_oom, box_timed_out;
		int status;
		const char *reason, *error;
		int code;
	} v[] = {
	    {true, false, false, false, 1, "agent_failed", "sandbox_agent_failed", 1},
	    {true, false, false, false, -11, "agent_failed", "sandbox_agent_failed", 139},
	    {true, true, false, false, -9, "wall_time_exceeded", "wall_time_exceeded", 137},
	    {true, false, true, false, -9, "memory_exceeded", "memory_exceeded", 137},
	    {true, false, false, true, -9, "wall_time_exceeded", "wall_time_exceeded", 137},
	    {false, false, false, false, 0, "agent_not_started", "sandbox_setup_failed", 127},
	};
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		const char *run = begin();
		struct order o = to_work(run);
		bundles_ran(o.result, v[i].started, v[i].status, v[i].timed_out, false);
		bundles_entries(o.result, repaired, 3);
		bundles_collected(o.result, 3, true);
		order_end(&o);
		stage_exited(&st, run, BOX_WORK, v[i].box_oom, v[i].box_timed_out);
		(void)stage_expect(&st, SBX_KILL, run, BOX_WORK);
		stage_gone(&st, run, BOX_WORK, true);
		const struct st_run_is *is = stage_final(&st, "acme", run);
		expect_end(is, RUN_FAILED, v[i].reason, v[i].error);
		assert_false(is->success);
		assert_int_equal(is->exited, v[i].started);
		assert_int_equal(is->exit_code, v[i].code);
		/* What it did is judged all the same; checks are not run. */
		assert_true(holds(is->changed_files, "[\"a.py\"]"));
		assert_true(holds(is->verification, "[]"));
		expect_artifact(run, ART_PATCH, "+TWO");
		expect_artifact(run, ART_TEST_LOG, "No check was run.");
		expect_one_end(run, "run.failed");
	}
	assert_true(stage_silent(&st));
}

static void t_changes_outside(void **state)
{
	(void)state;
	const char *run = begin();
	struct order o = to_work(run);
	bundles_ran(o.result, true, 0, false, false);
	bundles_entries(o.result, meddled, 2);
	bundles_collected(o.result, 2, true);
	end_work(run, &o);
	const struct st_run_is *is = stage_final(&st, "acme", run);
	expect_end(is, RUN_FAILED, "changed_files_outside_allowed_paths", "sandbox_changed_files_mismatch");
	assert_true(is->success && holds(is->changed_files, "[\"a.py\"]"));
	expect_artifact(run, ART_RESULT, "\"path\":\"b.py\"");
	assert_true(stage_silent(&st));
}

/* Results that no runner makes. None may end well. */
static void t_forged_work(void **state)
{
	(void)state;
	for (int i = 0; i < 8; i++) {
		const char *run = begin();
		struct order o = to_work(run);
		bool written = true;
		if (i > 0)
			bundles_ran(o.result, true, 0, false, false);
		if (i == 1) /* says twice how the agent ended */
			bundles_ran(o.result, true, 0, false, false);
		if (i == 2)
			bundles_checked(o.result, "check-1", true, 0, false, "");
		if (i == 3)
			bundles_entries(o.result, repaired, 3);
		if (i == 4)
			written = write(o.result, "\x7f\xff\xff\xff", 4) == 4;
		if (i == 5)
			bundles_sources(o.result, repaired, 2);
		if (i == 6) {
			bundles_entries(o.result, repaired, 3);
			bundles_entries(o.result, repaired, 1);
			bundles_collected(o.result, 4, true);
		}
		if (i == 7) {
			static const uint8_t zeros[65536];
			for (int k = 0; k < 600; k++)
				written = written && write(o.result, zeros, sizeof zeros) == (ssize_t)sizeof zeros;
		}
		assert_true(written);
		end_work(run, &o);
		const struct st_run_is *is = stage_final(&st, "acme", run);
		expect_end(is, RUN_FAILED, "sandbox_result_invalid", "sandbox_result_invalid");
	}
}

static void t_broken_box(void **state)
{
	(void)state;
	const char *run = begin();
	struct order o = to_work(run);
	uint8_t frame[BN_MAX_BROKEN];
	struct bn_broken m = {.code = ERR_SANDBOX_SETUP_FAILED, .detail = "no room\n\x1b[2J"};
	bundles_add(o.result, frame, bn_put_broken(frame, sizeof frame, 0, &m));
	end_work(run, &o);
	expect_end(stage_final(&st, "acme", run), RUN_FAILED, "sandbox_setup_failed", "sandbox_setup_failed");
}

/* --- checks ------------------------------------------------------------------------------------------------ */

static void t_checks_fail(void **state)
{
	(void)state;
	static const struct {
		int first, second;
		const char *output, *reason, *outcome;
	} v[] = {
	    {1, 0, GOOD_TESTS, "check_failed",
	     "\"ok\":false,\"exitCode\":1,\"durationSeconds\":0.056,\"outcome\":\"failed\""},
	    {0, 1, "Ran 2 tests in 1s\nFAILED", "check_failed", "\"outcome\":\"failed\""},
	    {0, 0, "Ran 0 tests in 0.0s\n\nOK\n", "no_tests", "\"outcome\":\"no_tests\""},
	    {0, -9, "", "check_failed", "\"exitCode\":137,\"durationSeconds\":0.056,\"outcome\":\"killed\""},
	};
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		const char *run = begin();
		struct order o = to_check(run);
		leave_checks(o.result, v[i].first, v[i].second, v[i].output);
		const struct st_run_is *is = end_check(run, &o);
		expect_end(is, RUN_FAILED, v[i].reason, "verification_failed");
		assert_true(is->success && holds(is->verification, v[i].outcome));
	}
}

static void t_forged_checks(void **state)
{
	(void)state;
	static const char *const names[][4] = {
	    {NULL},
	    {"check-1", NULL},
	    {"check-2", "check-1", NULL},
	    {"check-1", "check-1", NULL},
	    {"check-1", "check-2", "check-3", NULL},
	    {"check-1", "check-3", NULL},
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *run = begin();
		struct order o = to_check(run);
		for (size_t k = 0; k < 4 && names[i][k] != NULL; k++)
			bundles_checked(o.result, names[i][k], true, 0, false, GOOD_TESTS);
		expect_end(end_check(run, &o), RUN_FAILED, "sandbox_verification_mismatch",
			   "sandbox_verification_mismatch");
	}
}

/* --- cancel ------------------------------------------------------------------------------------------------- */

static void expect_cancelled(const char *run)
{
	const struct st_run_is *is = stage_final(&st, "acme", run);
	expect_end(is, RUN_CANCELLED, "cancelled_by_request", "cancelled_by_request");
	assert_false(stage_capable(&st, "acme", run));
	expect_one_end(run, "run.cancelled");
	expect_artifact(run, ART_REQUEST, "repair it");
	assert_true(stage_silent(&st));
}

static void t_cancel_spawning(void **state)
{
	(void)state;
	const char *run = begin();
	struct order o = stage_expect(&st, SBX_SPAWN, run, BOX_WORK);
	stage_cancel(&st, "acme", run);
	struct order k = stage_expect(&st, SBX_KILL, run, BOX_WORK);
	assert_int_equal(k.grace_ms, 5000);
	stage_gone(&st, run, BOX_WORK, true); /* without ever an EXITED */
	order_end(&o);
	expect_cancelled(run);
}

static void t_cancel_working(void **state)
{
	(void)state;
	const char *run = begin();
	struct order o = to_work(run);
	stage_cancel(&st, "acme", run);
	stage_cancel(&st, "acme", run);
	struct order k = stage_expect(&st, SBX_KILL, run, BOX_WORK);
	assert_int_equal(k.grace_ms, 5000);
	assert_false(stage_capable(&st, "acme", run));
	bundles_ran(o.result, true, -15, false, true);
	bundles_entries(o.result, repaired, 3);
	bundles_collected(o.result, 3, true);
	end_work(run, &o);
	expect_cancelled(run);
	expect_artifact(run, ART_PATCH, "+TWO");
}

static void t_cancel_collecting(void **state)
{
	(void)state;
	const char *run = begin();
	struct order o = to_work(run);
	leave_work(o.result, 0);
	order_end(&o);
	stage_exited(&st, run, BOX_WORK, false, false);
	(void)stage_expect(&st, SBX_KILL, run, BOX_WORK);
	stage_cancel(&st, "acme", run);
	stage_gone(&st, run, BOX_WORK, true);
	/* The store's word and sandboxd's may come in either order: a check box may have been ordered. */
	while (stage_get(&st, "acme", run)->state != RUN_CANCELLED)
		if (!stage_silent(&st)) {
			o = stage_order(&st);
			if (o.number == SBX_KILL)
				stage_gone(&st, run, (enum box_kind)o.kind, true);
			order_end(&o);
		}
	expect_cancelled(run);
}

static void t_cancel_checking(void **state)
{
	(void)state;
	for (int spawned = 0; spawned < 2; spawned++) {
		const char *run = begin();
		struct order o = to_work(run);
		leave_work(o.result, 0);
		end_work(run, &o);
		o = stage_expect(&st, SBX_SPAWN, run, BOX_CHECK);
		if (spawned) {
			stage_spawned(&st, run, BOX_CHECK);
			stage_phase(&st, "acme", run, PHASE_VERIFYING);
		}
		stage_cancel(&st, "acme", run);
		struct order k = stage_expect(&st, SBX_KILL, run, BOX_CHECK);
		assert_int_equal(k.grace_ms, 0);
		order_end(&o);
		stage_gone(&st, run, BOX_CHECK, true);
		expect_cancelled(run);
	}
}

/* The end and the cancel meet; whichever the store takes first stays. */
static void t_cancel_and_end(void **state)
{
	(void)state;
	for (int i = 0; i < 12; i++) {
		const char *run = begin();
		struct order o = to_check(run);
		leave_checks(o.result, i % 3 == 2, 0, GOOD_TESTS);
		order_end(&o);
		stage_exited(&st, run, BOX_CHECK, false, false);
		(void)stage_expect(&st, SBX_KILL, run, BOX_CHECK);
		if (i % 2 == 0)
			stage_cancel(&st, "acme", run);
		stage_gone(&st, run, BOX_CHECK, true);
		if (i % 2 != 0)
			stage_cancel(&st, "acme", run);
		const struct st_run_is *is = stage_final(&st, "acme", run);
		if (i % 2 == 0)
			assert_int_equal(is->state, RUN_CANCELLED);
		static const char *const ends[] = {
		    [RUN_COMPLETED] = "run.completed", [RUN_FAILED] = "run.failed", [RUN_CANCELLED] = "run.cancelled"};
		expect_one_end(run, ends[is->state]);
	}
}

/* --- sandboxd in trouble --------------------------------------------------------------------------------------- */

static void t_refused(void **state)
{
	(void)state;
	const char *run = begin();
	struct order o = stage_expect(&st, SBX_SPAWN, run, BOX_WORK);
	order_end(&o);
	/* A full machine is asked again. */
	stage_refused(&st, run, BOX_WORK, ERR_SANDBOX_CAPACITY);
	o = stage_expect(&st, SBX_SPAWN, run, BOX_WORK);
	order_end(&o);
	stage_refused(&st, run, BOX_WORK, ERR_SANDBOX_UNAVAILABLE);
	expect_end(stage_final(&st, "acme", run), RUN_FAILED, "sandbox_refused", "sandbox_unavailable");
	assert_false(stage_capable(&st, "acme", run));
	/* Cancelled while it waits for a place. */
	run = begin();
	o = stage_expect(&st, SBX_SPAWN, run, BOX_WORK);
	order_end(&o);
	stage_refused(&st, run, BOX_WORK, ERR_SANDBOX_CAPACITY);
	stage_cancel(&st, "acme", run);
	while (stage_get(&st, "acme", run)->state == RUN_CANCELLING)
		if (!stage_silent(&st)) { /* asked again just before */
			o = stage_order(&st);
			if (o.number == SBX_SPAWN)
				stage_refused(&st, run, BOX_WORK, ERR_SANDBOX_CAPACITY);
			order_end(&o);
		}
	assert_int_equal(stage_final(&st, "acme", run)->state, RUN_CANCELLED);
}

static void t_store_away(void **state)
{
	(void)state;
	const char *run = begin();
	struct order o = to_check(run);
	leave_checks(o.result, 0, 0, GOOD_TESTS);
	order_end(&o);
	stage_exited(&st, run, BOX_CHECK, false, false);
	(void)stage_expect(&st, SBX_KILL, run, BOX_CHECK);
	(void)rig_stop(&st.rig, SIGKILL);
	stage_gone(&st, run, BOX_CHECK, true);
	stage_logged(&st, "was not stored: store_unavailable");
	rig_start(&st.rig);
	expect_end(stage_final(&st, "acme", run), RUN_COMPLETED, "completed", "");
	expect_one_end(run, "run.completed");
	expect_artifact(run, ART_PATCH, "+TWO");
	/* It hears of new runs again. */
	run = begin();
	o = stage_expect(&st, SBX_SPAWN, run, BOX_WORK);
	order_end(&o);
	stage_refused(&st, run, BOX_WORK, ERR_SANDBOX_UNAVAILABLE);
	(void)stage_final(&st, "acme", run);
}

static void t_cleanup_fails(void **state)
{
	(void)state;
	const char *run = begin();
	struct order o = to_work(run);
	leave_work(o.result, 0);
	order_end(&o);
	stage_exited(&st, run, BOX_WORK, false, false);
	(void)stage_expect(&st, SBX_KILL, run, BOX_WORK);
	stage_gone(&st, run, BOX_WORK, false);
	const struct st_run_is *is = stage_final(&st, "acme", run);
	expect_end(is, RUN_FAILED, "sandbox_cleanup_failed", "sandbox_cleanup_failed");
	expect_artifact(run, ART_PATCH, "+TWO");
	/* The check box too: all its checks passed, and still it is no success. */
	run = begin();
	o = to_check(run);
	leave_checks(o.result, 0, 0, GOOD_TESTS);
	order_end(&o);
	stage_exited(&st, run, BOX_CHECK, false, false);
	(void)stage_expect(&st, SBX_KILL, run, BOX_CHECK);
	stage_gone(&st, run, BOX_CHECK, false);
	is = stage_final(&st, "acme", run);
	expect_end(is, RUN_FAILED, "sandbox_cleanup_failed", "sandbox_cleanup_failed");
	assert_true(holds(is->verification, "\"outcome\":\"passed\""));
}

/* --- the steward in trouble ----------------------------------------------------------------------------------------
 */

static void t_restart(void **state)
{
	(void)state;
	const char *run = begin();
	struct order o = to_work(run);
	order_end(&o);
	const char *cancelling = begin();
	o = to_work(cancelling);
	order_end(&o);
	(void)stage_stop(&st, SIGKILL);
	stage_cancel(&st, "acme", cancelling);
	const char *queued = begin();
	const char *alone = "acme-unknown";
	struct stage_box boxes[] = {{run, BOX_WORK}, {cancelling, BOX_CHECK}, {alone, BOX_WORK}};
	stage_fork(&st, stage_secret);
	stage_greet_with(&st, 5, boxes, 3);
	for (int i = 0; i < 3; i++) {
		o = stage_order(&st);
		assert_int_equal(o.number, SBX_KILL);
		assert_int_equal(o.grace_ms, 0);
	}
	/* The queued run starts, the others wait for their boxes. */
	o = stage_expect(&st, SBX_SPAWN, queued, BOX_WORK);
	order_end(&o);
	assert_false(stage_capable(&st, "acme", run));
	assert_int_equal(stage_get(&st, "acme", run)->state, RUN_RUNNING);
	stage_gone(&st, run, BOX_WORK, true);
	stage_gone(&st, alone, BOX_WORK, true);
	expect_end(stage_final(&st, "acme", run), RUN_FAILED, "controller_restarted", "controller_restarted");
	expect_one_end(run, "run.failed");
	stage_gone(&st, cancelling, BOX_CHECK, true);
	assert_int_equal(stage_final(&st, "acme", cancelling)->state, RUN_CANCELLED);
	stage_refused(&st, queued, BOX_WORK, ERR_SANDBOX_UNAVAILABLE);
	expect_end(stage_final(&st, "acme", queued), RUN_FAILED, "sandbox_refused", "sandbox_unavailable");
}

static void t_fair(void **state)
{
	(void)state;
	assert_true(WIFEXITED(stage_stop(&st, SIGTERM)));
	char order[200] = "";
	for (int i = 0; i < 3; i++)
		(void)stage_run(&st, "acme");
	(void)stage_run(&st, "beta");
	(void)stage_run(&st, "beta");
	stage_fork(&st, stage_secret);
	stage_greet(&st, 1);
	for (int i = 0; i < 5; i++) {
		struct order o = stage_order(&st);
		assert_int_equal(o.number, SBX_SPAWN);
		assert_true(stage_silent(&st)); /* one slot, one box */
		strcat(order, o.tenant);
		strcat(order, " ");
		order_end(&o);
		stage_refused(&st, o.run, BOX_WORK, ERR_SANDBOX_UNAVAILABLE);
		(void)stage_final(&st, o.tenant, o.run);
	}
	assert_string_equal(order, "acme beta acme beta acme ");
	/* A box that does not go keeps its slot: no further run starts. */
	const char *run = begin();
	struct order o = to_work(run);
	leave_work(o.result, 0);
	order_end(&o);
	stage_exited(&st, run, BOX_WORK, false, false);
	(void)stage_expect(&st, SBX_KILL, run, BOX_WORK);
	stage_gone(&st, run, BOX_WORK, false);
	(void)stage_final(&st, "acme", run);
	run = begin();
	struct timespec pause = {.tv_nsec = 300000000};
	nanosleep(&pause, NULL);
	assert_true(stage_silent(&st));
	assert_int_equal(stage_get(&st, "acme", run)->state, RUN_QUEUED);
	stage_cancel(&st, "acme", run);
	assert_int_equal(stage_final(&st, "acme", run)->state, RUN_CANCELLED);
}

static void t_ends(void **state)
{
	(void)state;
	int status = stage_stop(&st, SIGTERM);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	stage_fork(&st, stage_secret);
	stage_greet(&st, 2);
	status = stage_stop(&st, 0); /* sandboxd is gone */
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	stage_fork(&st, "0123456789012345678901234567890"); /* 31 bytes */
	status = stage_stop(&st, 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

static int setup(void **state)
{
	(void)state;
	stage_open(&st);
	stage_fork(&st, stage_secret);
	stage_greet(&st, 10);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	stage_close(&st);
	return 0;
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_success),
	    cmocka_unit_test(t_agent_ends),
	    cmocka_unit_test(t_changes_outside),
	    cmocka_unit_test(t_forged_work),
	    cmocka_unit_test(t_broken_box),
	    cmocka_unit_test(t_checks_fail),
	    cmocka_unit_test(t_forged_checks),
	    cmocka_unit_test(t_cancel_spawning),
	    cmocka_unit_test(t_cancel_working),
	    cmocka_unit_test(t_cancel_collecting),
	    cmocka_unit_test(t_cancel_checking),
	    cmocka_unit_test(t_cancel_and_end),
	    cmocka_unit_test(t_refused),
	    cmocka_unit_test(t_store_away),
	    cmocka_unit_test(t_cleanup_fails),
	    cmocka_unit_test(t_restart),
	    cmocka_unit_test(t_fair),
	    cmocka_unit_test(t_ends),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
