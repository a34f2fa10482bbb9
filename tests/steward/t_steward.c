/* The real steward against a real store, with sandboxd played by the test: how runs end by themselves. */
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

static const struct given meddled[] = {{"a.py", "one\nTWO\n"}, {"b.py", "changed\n"}};

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
			assert_true(course_holds(request.json, "\"repair it\"") && course_holds(request.json, run) &&
				    course_holds(request.json, "\"check-2\""));
		else if (bn_get_changed(frame, n, &changed))
			assert_true(strcmp(changed.path, "a.py") == 0 && course_holds(changed.content, "TWO"));
		else if (bn_get_check(frame, n, &check))
			assert_int_equal(check.seconds, 7);
	}
	bundle_close(&b);
	assert_string_equal(seen, order);
}

static void t_success(void **state)
{
	(void)state;
	const char *run = course_begin();
	struct order o = stage_expect(&course_stage, SBX_SPAWN, run, BOX_WORK);
	assert_string_equal(o.tenant, "acme");
	assert_int_equal(o.wall_seconds, 90 + LIMIT_APPROVAL_WAITS * 600); /* and all waiting that there may be */
	tokens_seen = 0;
	look_at_upload(o.upload, run, "1 1 2 5 6 6 6 7 9 ");
	assert_int_equal(tokens_seen, 3);
	assert_true(stage_capable(&course_stage, "acme", run));
	stage_spawned(&course_stage, run, BOX_WORK);
	stage_phase(&course_stage, "acme", run, PHASE_EXECUTING);
	course_leave_work(o.result, 0);
	course_end_work(run, &o);
	o = stage_expect(&course_stage, SBX_SPAWN, run, BOX_CHECK);
	look_at_upload(o.upload, run, "1 1 2 3 8 9 ");
	stage_spawned(&course_stage, run, BOX_CHECK);
	stage_phase(&course_stage, "acme", run, PHASE_VERIFYING);
	course_leave_checks(run, &o, 0, 0, GOOD_TESTS);
	const struct st_run_is *is = course_end_check(run, &o);
	course_expect_end(is, RUN_COMPLETED, "completed", "");
	assert_true(is->finished && is->success && is->exited && is->exit_code == 0);
	assert_true(course_holds(is->changed_files, "[\"a.py\"]"));
	assert_true(course_holds(is->verification, "\"name\":\"check-2\"") &&
		    course_holds(is->verification, "\"outcome\":\"passed\""));
	assert_true(course_holds(is->verification, "\"durationSeconds\":0.056"));
	assert_true(course_holds(is->summary, "\"I repaired it.\""));
	course_expect_artifact(run, ART_REQUEST, "repair it");
	course_expect_artifact(run, ART_PATCH, "-two\n+TWO\n");
	course_expect_artifact(run, ART_TEST_LOG, "Ran 2 tests");
	course_expect_artifact(run, ART_CHECKPOINT, "\"path\":\"b.py\"");
	course_expect_artifact(run, ART_RESULT, "\"ok\":true");
	course_expect_one_end(run, "run.completed");
	own_free char *events = stage_events(&course_stage, "acme", run);
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
		const char *run = course_begin();
		struct order o = course_to_work(run);
		bundles_ran(o.result, v[i].started, v[i].status, v[i].timed_out, false);
		bundles_entries(o.result, course_repaired, 3);
		bundles_collected(o.result, 3, true);
		order_end(&o);
		stage_exited(&course_stage, run, BOX_WORK, v[i].box_oom, v[i].box_timed_out);
		(void)stage_expect(&course_stage, SBX_KILL, run, BOX_WORK);
		stage_gone(&course_stage, run, BOX_WORK, true);
		const struct st_run_is *is = stage_final(&course_stage, "acme", run);
		course_expect_end(is, RUN_FAILED, v[i].reason, v[i].error);
		assert_false(is->success);
		assert_int_equal(is->exited, v[i].started);
		assert_int_equal(is->exit_code, v[i].code);
		/* What it did is judged all the same; checks are not run. */
		assert_true(course_holds(is->changed_files, "[\"a.py\"]"));
		assert_true(course_holds(is->verification, "[]"));
		course_expect_artifact(run, ART_PATCH, "+TWO");
		course_expect_artifact(run, ART_TEST_LOG, "No check was run.");
		course_expect_one_end(run, "run.failed");
	}
	assert_true(stage_silent(&course_stage));
}

/* A limit that was reached is told, and is the reason where the agent failed; processor time is always one. */
static void t_limits_reached(void **state)
{
	(void)state;
	static const struct {
		int status;
		uint8_t reached;
		uint64_t forks_refused;
		bool truncated;
		const char *reason, *error;
		bool told;
	} v[] = {
	    {1, 0, 0, false, "agent_failed", "sandbox_agent_failed", false},
	    {1, 1, 0, false, "workspace_full", "sandbox_agent_failed", true},
	    {1, 2, 3, false, "workspace_files_exceeded", "sandbox_agent_failed", true},
	    {1, 0, 3, false, "processes_exceeded", "sandbox_agent_failed", true},
	    {-25, 0, 0, false, "file_size_exceeded", "sandbox_agent_failed", true},
	    {1, 0, 0, true, "agent_failed", "sandbox_agent_failed", true},
	    {-9, 4, 0, false, "cpu_time_exceeded", "cpu_time_exceeded", true},
	    {0, 4, 0, false, "cpu_time_exceeded", "cpu_time_exceeded", true},
	};
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		uint8_t frame[1000];
		const char *run = course_begin();
		struct order o = course_to_work(run);
		struct bn_ran m = {
		    .started = true, .status = v[i].status, .reached = v[i].reached, .truncated = v[i].truncated};
		bundles_add(o.result, frame, bn_put_ran(frame, sizeof frame, 0, &m));
		bundles_entries(o.result, course_repaired, 3);
		bundles_collected(o.result, 3, true);
		order_end(&o);
		struct sbx_exited end = {.run = run, .kind = BOX_WORK, .forks_refused = v[i].forks_refused};
		stage_exited_so(&course_stage, &end);
		(void)stage_expect(&course_stage, SBX_KILL, run, BOX_WORK);
		stage_gone(&course_stage, run, BOX_WORK, true);
		course_expect_end(stage_final(&course_stage, "acme", run), RUN_FAILED, v[i].reason, v[i].error);
		own_free char *events = stage_events(&course_stage, "acme", run);
		assert_int_equal(strstr(events, "limit.reached\n") != NULL, v[i].told);
	}
}

static void t_changes_outside(void **state)
{
	(void)state;
	const char *run = course_begin();
	struct order o = course_to_work(run);
	bundles_ran(o.result, true, 0, false, false);
	bundles_entries(o.result, meddled, 2);
	bundles_collected(o.result, 2, true);
	course_end_work(run, &o);
	const struct st_run_is *is = stage_final(&course_stage, "acme", run);
	course_expect_end(is, RUN_FAILED, "changed_files_outside_allowed_paths", "sandbox_changed_files_mismatch");
	assert_true(is->success && course_holds(is->changed_files, "[\"a.py\"]"));
	course_expect_artifact(run, ART_RESULT, "\"path\":\"b.py\"");
	assert_true(stage_silent(&course_stage));
}

/* Results that no runner makes. None may end well. */
static void t_forged_work(void **state)
{
	(void)state;
	for (int i = 0; i < 8; i++) {
		const char *run = course_begin();
		struct order o = course_to_work(run);
		bool written = true;
		if (i > 0)
			bundles_ran(o.result, true, 0, false, false);
		if (i == 1) /* says twice how the agent ended */
			bundles_ran(o.result, true, 0, false, false);
		if (i == 2)
			bundles_checked(o.result, "check-1", true, 0, false, "");
		if (i == 3)
			bundles_entries(o.result, course_repaired, 3);
		if (i == 4)
			written = write(o.result, "\x7f\xff\xff\xff", 4) == 4;
		if (i == 5)
			bundles_sources(o.result, course_repaired, 2);
		if (i == 6) {
			bundles_entries(o.result, course_repaired, 3);
			bundles_entries(o.result, course_repaired, 1);
			bundles_collected(o.result, 4, true);
		}
		if (i == 7) {
			static const uint8_t zeros[65536];
			for (int k = 0; k < 600; k++)
				written = written && write(o.result, zeros, sizeof zeros) == (ssize_t)sizeof zeros;
		}
		assert_true(written);
		course_end_work(run, &o);
		const struct st_run_is *is = stage_final(&course_stage, "acme", run);
		course_expect_end(is, RUN_FAILED, "sandbox_result_invalid", "sandbox_result_invalid");
	}
}

static void t_broken_box(void **state)
{
	(void)state;
	const char *run = course_begin();
	struct order o = course_to_work(run);
	uint8_t frame[BN_MAX_BROKEN];
	struct bn_broken m = {.code = ERR_SANDBOX_SETUP_FAILED, .detail = "no room\n\x1b[2J"};
	bundles_add(o.result, frame, bn_put_broken(frame, sizeof frame, 0, &m));
	course_end_work(run, &o);
	course_expect_end(stage_final(&course_stage, "acme", run), RUN_FAILED, "sandbox_setup_failed",
			  "sandbox_setup_failed");
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
		const char *run = course_begin();
		struct order o = course_to_check(run);
		course_leave_checks(run, &o, v[i].first, v[i].second, v[i].output);
		const struct st_run_is *is = course_end_check(run, &o);
		course_expect_end(is, RUN_FAILED, v[i].reason, "verification_failed");
		assert_true(is->success && course_holds(is->verification, v[i].outcome));
	}
}

static void t_forged_checks(void **state)
{
	(void)state;
	static const struct {
		bool second; /* in the second check's box */
		const char *names[4];
	} v[] = {
	    {false, {NULL}},
	    {false, {"check-2", NULL}},
	    {false, {"check-1", "check-1", NULL}},
	    {false, {"check-1", "check-2", NULL}},
	    {true, {NULL}},
	    {true, {"check-1", NULL}},
	    {true, {"check-3", NULL}},
	    {true, {"check-2", "check-2", NULL}},
	};
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		const char *run = course_begin();
		struct order o = course_to_check(run);
		if (v[i].second) {
			bundles_checked(o.result, "check-1", true, 0, false, GOOD_TESTS);
			course_next_check(run, &o);
		}
		for (size_t k = 0; k < 4 && v[i].names[k] != NULL; k++)
			bundles_checked(o.result, v[i].names[k], true, 0, false, GOOD_TESTS);
		course_expect_end(course_end_check(run, &o), RUN_FAILED, "sandbox_verification_mismatch",
				  "sandbox_verification_mismatch");
	}
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_success),        cmocka_unit_test(t_agent_ends),
					   cmocka_unit_test(t_limits_reached), cmocka_unit_test(t_changes_outside),
					   cmocka_unit_test(t_forged_work),    cmocka_unit_test(t_broken_box),
					   cmocka_unit_test(t_checks_fail),    cmocka_unit_test(t_forged_checks)};
	return cmocka_run_group_tests(tests, course_setup, course_teardown);
}
