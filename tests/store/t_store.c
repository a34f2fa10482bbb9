/*
 * Principals and runs: every operation of stored and each of its refusals, through the client stubs,
 * against a real process.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gen/metrics.h"
#include "lib/digest.h"
#include "lib/hist.h"
#include "tests/store/steps.h"
#include <cmocka.h>

/* What PRINCIPAL says of a token, what is asked with it says as well, before anything else. */
static void vouched(const char *tenant, const struct st_principal *p, enum err want)
{
	struct st_run_get g = {.tenant = tenant, .run = "vouched", .token_id = p->token_id, .token_hash = p->hash};
	struct st_run_create m = rig_run(tenant, "vouched");
	struct st_run_is is;
	struct st_run_state s;
	m.token_id = p->token_id;
	m.token_hash = p->hash;
	m.fingerprint.n = 0;
	assert_int_equal(FCGI(st_call_run_get(fcgi, &g, NULL, &is, NULL)),
			 want == ERR_OK ? ERR_RUN_NOT_FOUND : ERR_UNAUTHORIZED);
	assert_int_equal(FCGI(rig_create(fcgi, &m, &s)), want == ERR_OK ? ERR_INVALID_REQUEST : ERR_UNAUTHORIZED);
}

static void principals(void **state)
{
	(void)state;
	uint8_t hash[32] = {9}, wrong[32] = {8};
	struct st_token_create c = {
	    .tenant = "acme", .kind = 1, .token_id = "abc", .hash = {hash, 32}, .label = "ci", .rights = 3};
	struct st_principal p = {.token_id = "abc", .hash = {hash, 32}};
	struct st_principal_is is;
	struct st_ok ok;
	assert_int_equal(FCGI(st_call_principal(fcgi, &p, NULL, &is, NULL)), ERR_UNAUTHORIZED);
	assert_int_equal(st_call_token_create(admin, &c, NULL, &ok, NULL), ERR_OK);
	assert_int_equal(st_call_token_create(admin, &c, NULL, &ok, NULL), ERR_OK);
	c.label = "else";
	assert_int_equal(st_call_token_create(admin, &c, NULL, &ok, NULL), ERR_TOKEN_EXISTS);
	c.tenant = "nobody";
	assert_int_equal(st_call_token_create(admin, &c, NULL, &ok, NULL), ERR_TENANT_NOT_FOUND);
	c = (struct st_token_create){.tenant = "acme", .kind = 9, .token_id = "k", .hash = {hash, 32}};
	assert_int_equal(st_call_token_create(admin, &c, NULL, &ok, NULL), ERR_INVALID_REQUEST);
	assert_int_equal(FCGI(st_call_principal(fcgi, &p, NULL, &is, NULL)), ERR_OK);
	assert_string_equal(is.tenant, "acme");
	assert_string_equal(is.label, "ci");
	assert_int_equal(is.kind, 1);
	assert_int_equal(is.rights, 3);
	vouched("acme", &p, ERR_OK);
	vouched("other", &p, ERR_UNAUTHORIZED);
	p.hash.p = wrong;
	assert_int_equal(FCGI(st_call_principal(fcgi, &p, NULL, &is, NULL)), ERR_UNAUTHORIZED);
	vouched("acme", &p, ERR_UNAUTHORIZED);
	p.hash = (struct wire_bytes){hash, 31};
	assert_int_equal(FCGI(st_call_principal(fcgi, &p, NULL, &is, NULL)), ERR_UNAUTHORIZED);
	p.hash.n = 32;

	struct st_token_list l = {.tenant = "acme"};
	struct st_tokens_are are;
	assert_int_equal(st_call_token_list(admin, &l, NULL, &are, NULL), ERR_OK);
	struct wire_bytes part;
	bool bad = false;
	struct st_token_item item;
	assert_true(wire_list_next(&are.items, &part, &bad) && st_get_token_item(part.p, part.n, &item));
	assert_string_equal(item.token_id, "abc");
	assert_false(item.revoked);
	assert_false(wire_list_next(&are.items, &part, &bad));
	l.tenant = "other";
	assert_int_equal(st_call_token_list(admin, &l, NULL, &are, NULL), ERR_OK);
	assert_int_equal(are.items.n, 0);
	l.tenant = "nobody";
	assert_int_equal(st_call_token_list(admin, &l, NULL, &are, NULL), ERR_TENANT_NOT_FOUND);

	struct st_token_revoke r = {.tenant = "other", .token_id = "abc"};
	assert_int_equal(st_call_token_revoke(admin, &r, NULL, &ok, NULL), ERR_TOKEN_NOT_FOUND);
	r.tenant = "acme";
	assert_int_equal(st_call_token_revoke(admin, &r, NULL, &ok, NULL), ERR_OK);
	assert_int_equal(st_call_token_revoke(admin, &r, NULL, &ok, NULL), ERR_OK);
	assert_int_equal(FCGI(st_call_principal(fcgi, &p, NULL, &is, NULL)), ERR_UNAUTHORIZED);
	vouched("acme", &p, ERR_UNAUTHORIZED);

	c = (struct st_token_create){
	    .tenant = "acme", .kind = 1, .token_id = "old", .hash = {hash, 32}, .expires_at = clock_ms() - 1};
	assert_int_equal(st_call_token_create(admin, &c, NULL, &ok, NULL), ERR_OK);
	p.token_id = "old";
	assert_int_equal(FCGI(st_call_principal(fcgi, &p, NULL, &is, NULL)), ERR_UNAUTHORIZED);
	vouched("acme", &p, ERR_UNAUTHORIZED);
}

static void creation(void **state)
{
	(void)state;
	struct st_run_create m = rig_run("acme", "create-1");
	struct st_run_state a;
	assert_int_equal(rig_create(fcgi, &m, &a), ERR_OK);
	assert_int_equal(a.state, RUN_QUEUED);
	assert_true(a.changed);
	/* The same again is the same answer; anything else is refused. */
	assert_int_equal(rig_create(fcgi, &m, &a), ERR_OK);
	assert_false(a.changed);
	m.max_steps++;
	assert_int_equal(rig_create(fcgi, &m, &a), ERR_RUN_SESSION_EXISTS);
	m = rig_run("acme", "create-1");
	int fds[2] = {rig_memfd("{\"instruction\":\"y\"}", 19), rig_memfd("upload", 6)};
	assert_int_equal(FCGI(st_call_run_create(fcgi, &m, fds, &a, NULL)), ERR_RUN_SESSION_EXISTS);
	/* The other tenant's run of the same id is another run. */
	struct st_run_get g = {.tenant = "other", .run = "create-1"};
	struct st_run_is is;
	assert_int_equal(FCGI(st_call_run_get(fcgi, &g, NULL, &is, NULL)), ERR_RUN_NOT_FOUND);
	m.tenant = "nobody";
	assert_int_equal(FCGI(st_call_run_create(fcgi, &m, fds, &a, NULL)), ERR_TENANT_NOT_FOUND);
	m = rig_run("acme", "create-2");
	m.fingerprint.n = 31;
	assert_int_equal(FCGI(st_call_run_create(fcgi, &m, fds, &a, NULL)), ERR_INVALID_REQUEST);
	close(fds[0]);
	close(fds[1]);

	int back[1];
	g = (struct st_run_get){.tenant = "acme", .run = "create-1"};
	assert_int_equal(FCGI(st_call_run_get(fcgi, &g, NULL, &is, back)), ERR_OK);
	assert_int_equal(is.request.n, 19);
	assert_memory_equal(is.request.p, "{\"instruction\":\"x\"}", 19);
	assert_int_equal(lseek(back[0], 0, SEEK_END), 0);
	assert_int_equal(write(back[0], "x", 1), -1);
	close(back[0]);
	assert_string_equal(is.model, "model-1");
	assert_int_equal(is.last_sequence, 1);
	assert_false(is.finished);
	assert_string_equal(events_of("create-1", NULL), "run.queued ");
}

static void limits_of_blobs(void **state)
{
	(void)state;
	struct st_run_create m = rig_run("acme", "blob-1");
	struct st_run_state a;
	char *big = calloc(1, 8000001);
	int fds[2] = {rig_memfd("{}", 2), rig_memfd(big, 8000001)};
	assert_int_equal(FCGI(st_call_run_create(fcgi, &m, fds, &a, NULL)), ERR_REQUEST_TOO_LARGE);
	close(fds[1]);
	fds[1] = rig_memfd(big, 8000000);
	assert_int_equal(FCGI(st_call_run_create(fcgi, &m, fds, &a, NULL)), ERR_OK);
	close(fds[1]);
	int pipes[2];
	assert_int_equal(pipe(pipes), 0);
	fds[1] = pipes[0];
	m.run = "blob-2";
	assert_int_equal(FCGI(st_call_run_create(fcgi, &m, fds, &a, NULL)), ERR_INVALID_REQUEST);
	close(pipes[0]);
	close(pipes[1]);
	close(fds[0]);
	fds[0] = rig_memfd(big, 1500001);
	fds[1] = rig_memfd("x", 1);
	assert_int_equal(FCGI(st_call_run_create(fcgi, &m, fds, &a, NULL)), ERR_REQUEST_TOO_LARGE);
	struct st_run_get g = {.tenant = "acme", .run = "blob-2"};
	struct st_run_is is;
	assert_int_equal(FCGI(st_call_run_get(fcgi, &g, NULL, &is, NULL)), ERR_RUN_NOT_FOUND);
	close(fds[0]);
	close(fds[1]);
	free(big);
	assert_int_equal(cancel("blob-1", &a), ERR_OK);
}

static void quota(void **state)
{
	(void)state;
	char id[16];
	struct st_run_state a;
	for (int i = 0; i < 3; i++) {
		(void)snprintf(id, sizeof id, "quota-%d", i);
		struct st_run_create m = rig_run("other", id);
		m.max_queued = 2;
		assert_int_equal(rig_create(fcgi, &m, &a), i < 2 ? ERR_OK : ERR_RUN_QUEUE_FULL);
	}
	struct st_run_cancel c = {.tenant = "other", .run = "quota-0", .by = "t"};
	assert_int_equal(FCGI(st_call_run_cancel(fcgi, &c, NULL, &a, NULL)), ERR_OK);
	struct st_run_create m = rig_run("other", "quota-2");
	m.max_queued = 2;
	assert_int_equal(rig_create(fcgi, &m, &a), ERR_OK);
	/* A repeated creation is answered even where the queue is full. */
	assert_int_equal(rig_create(fcgi, &m, &a), ERR_OK);
	/* As full after a start; what begins leaves the queue, and another tenant's queue is another. */
	assert_true(WIFSIGNALED(rig_stop(&rig, SIGKILL)));
	rig_start(&rig);
	m.run = "quota-3";
	assert_int_equal(rig_create(fcgi, &m, &a), ERR_RUN_QUEUE_FULL);
	struct st_run_start s = {.tenant = "other", .run = "quota-1", .expires_at = clock_ms() + 300000};
	struct st_run_work work;
	int fds[2];
	assert_int_equal(STEWARD(st_call_run_start(steward, &s, NULL, &work, fds)), ERR_OK);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(rig_create(fcgi, &m, &a), ERR_OK);
	m.run = "quota-4";
	assert_int_equal(rig_create(fcgi, &m, &a), ERR_RUN_QUEUE_FULL);
	c.run = "quota-1"; /* runs, so it makes no room */
	assert_int_equal(FCGI(st_call_run_cancel(fcgi, &c, NULL, &a, NULL)), ERR_OK);
	assert_int_equal(rig_create(fcgi, &m, &a), ERR_RUN_QUEUE_FULL);
	c.run = "quota-2";
	assert_int_equal(FCGI(st_call_run_cancel(fcgi, &c, NULL, &a, NULL)), ERR_OK);
	assert_int_equal(rig_create(fcgi, &m, &a), ERR_OK);
}

static void a_whole_run(void **state)
{
	(void)state;
	struct st_run_state a;
	struct st_cap_is cap;
	struct st_run_work work;
	struct st_ok ok;
	int fds[2];
	struct st_run_create m = rig_run("acme", "whole");
	m.max_requests = 2;
	assert_int_equal(rig_create(fcgi, &m, &a), ERR_OK);
	assert_int_equal(consume("whole", &cap), ERR_INACTIVE_RUN_TOKEN);
	struct st_run_start s = {.tenant = "acme", .run = "whole", .expires_at = clock_ms() - 1000};
	assert_int_equal(STEWARD(st_call_run_start(steward, &s, NULL, &work, fds)), ERR_INVALID_REQUEST);
	s.expires_at = clock_ms() + 300000;
	assert_int_equal(STEWARD(st_call_run_start(steward, &s, NULL, &work, fds)), ERR_OK);
	assert_int_equal(work.max_requests, 2);
	char text[16] = {0};
	assert_int_equal(pread(fds[1], text, sizeof text, 0), 6);
	assert_string_equal(text, "upload");
	close(fds[0]);
	close(fds[1]);
	/* The answer was lost: the same. Another life for the capability: no. */
	assert_int_equal(STEWARD(st_call_run_start(steward, &s, NULL, &work, NULL)), ERR_OK);
	s.expires_at++;
	assert_int_equal(STEWARD(st_call_run_start(steward, &s, NULL, &work, NULL)), ERR_ALREADY_ACTIVE);

	struct st_run_phase ph = {.tenant = "acme", .run = "whole", .phase = PHASE_EXECUTING};
	assert_int_equal(STEWARD(st_call_run_phase(steward, &ph, NULL, &a, NULL)), ERR_OK);
	assert_true(a.changed);
	assert_int_equal(STEWARD(st_call_run_phase(steward, &ph, NULL, &a, NULL)), ERR_OK);
	assert_false(a.changed);
	ph.phase = PHASE__COUNT;
	assert_int_equal(STEWARD(st_call_run_phase(steward, &ph, NULL, &a, NULL)), ERR_INVALID_REQUEST);

	struct st_cap_consume c = {.tenant = "acme", .run = "whole", .model = "model-2", .fingerprint = m.fingerprint};
	assert_int_equal(GATEWAY(st_call_cap_consume(gateway, &c, NULL, &cap, NULL)), ERR_INACTIVE_RUN_TOKEN);
	uint8_t other[32] = {7};
	c.model = "model-1";
	c.fingerprint.p = other;
	assert_int_equal(GATEWAY(st_call_cap_consume(gateway, &c, NULL, &cap, NULL)), ERR_INACTIVE_RUN_TOKEN);
	assert_int_equal(consume("whole", &cap), ERR_OK);
	assert_int_equal(cap.remaining, 1);
	s.expires_at--;
	assert_int_equal(STEWARD(st_call_run_start(steward, &s, NULL, &work, NULL)), ERR_ALREADY_ACTIVE);
	struct st_called_is said;
	struct st_model_called called = {.tenant = "acme",
					 .run = "whole",
					 .status = 200,
					 .outcome = "ok",
					 .prompt_tokens = 100,
					 .completion_tokens = 20,
					 .duration_ms = 5};
	assert_int_equal(GATEWAY(st_call_model_called(gateway, &called, NULL, &said, NULL)), ERR_OK);
	assert_string_equal(last_data("whole"),
			    "{\"status\":200,\"outcome\":\"ok\",\"promptTokens\":100,\"completionTokens\":20,"
			    "\"durationMs\":5,\"requestsUsed\":1,\"requestsMax\":2}");
	assert_int_equal(consume("whole", &cap), ERR_OK);
	assert_int_equal(cap.remaining, 0);
	assert_int_equal(consume("whole", &cap), ERR_MODEL_REQUEST_BUDGET_EXHAUSTED);
	struct st_cap_check check = {.tenant = "acme", .run = "whole"};
	assert_int_equal(GATEWAY(st_call_cap_check(gateway, &check, NULL, &cap, NULL)), ERR_OK);
	assert_int_equal(cap.remaining, 0);

	struct st_run_event ev = {.tenant = "acme", .run = "whole", .type = "check.started", .data = BYTES("{}")};
	assert_int_equal(STEWARD(st_call_run_event(steward, &ev, NULL, &ok, NULL)), ERR_OK);
	ev.data = BYTES("[]");
	assert_int_equal(STEWARD(st_call_run_event(steward, &ev, NULL, &ok, NULL)), ERR_INVALID_REQUEST);

	int file = rig_memfd("--- a\n", 6);
	struct st_artifact_put put = {.tenant = "acme", .run = "whole", .name = ART_PATCH};
	assert_int_equal(STEWARD(st_call_artifact_put(steward, &put, &file, &ok, NULL)), ERR_OK);
	put.name = ART__COUNT;
	assert_int_equal(STEWARD(st_call_artifact_put(steward, &put, &file, &ok, NULL)), ERR_ARTIFACT_NOT_FOUND);
	struct st_artifact_get get = {.tenant = "acme", .run = "whole", .name = ART_PATCH};
	struct st_artifact_is art;
	assert_int_equal(FCGI(st_call_artifact_get(fcgi, &get, NULL, &art, NULL)), ERR_RUN_NOT_TERMINAL);

	assert_int_equal(finish("whole", RUN_EV_START, true, "", &a), ERR_INVALID_REQUEST);
	assert_int_equal(finish("whole", RUN_EV_COMPLETE, true, "", &a), ERR_OK);
	assert_true(a.changed);
	assert_int_equal(a.state, RUN_COMPLETED);
	/* Asked again: the same; anything else comes too late. */
	assert_int_equal(finish("whole", RUN_EV_COMPLETE, true, "", &a), ERR_OK);
	assert_false(a.changed);
	assert_int_equal(finish("whole", RUN_EV_FAIL, true, "", &a), ERR_ILLEGAL_RUN_TRANSITION);
	assert_int_equal(finish("whole", RUN_EV_COMPLETE, false, "", &a), ERR_ILLEGAL_RUN_TRANSITION);
	assert_int_equal(finish("whole", RUN_EV_RESTART, false, "", &a), ERR_OK);
	assert_false(a.changed);
	assert_int_equal(cancel("whole", &a), ERR_OK);
	assert_false(a.changed);
	assert_int_equal(a.state, RUN_COMPLETED);

	/* Nothing is taken any more, and the token is dead. */
	assert_int_equal(consume("whole", &cap), ERR_INACTIVE_RUN_TOKEN);
	assert_int_equal(GATEWAY(st_call_cap_check(gateway, &check, NULL, &cap, NULL)), ERR_INACTIVE_RUN_TOKEN);
	assert_int_equal(GATEWAY(st_call_model_called(gateway, &called, NULL, &said, NULL)),
			 ERR_RUN_SESSION_EVENTS_REJECTED);
	ev.data = BYTES("{}");
	assert_int_equal(STEWARD(st_call_run_event(steward, &ev, NULL, &ok, NULL)), ERR_RUN_SESSION_EVENTS_REJECTED);
	put.name = ART_PATCH;
	assert_int_equal(STEWARD(st_call_artifact_put(steward, &put, &file, &ok, NULL)), ERR_ILLEGAL_RUN_TRANSITION);
	close(file);
	ph.phase = PHASE_CLEANING;
	assert_int_equal(STEWARD(st_call_run_phase(steward, &ph, NULL, &a, NULL)), ERR_ILLEGAL_RUN_TRANSITION);
	s.expires_at = clock_ms() + 300000;
	assert_int_equal(STEWARD(st_call_run_start(steward, &s, NULL, &work, NULL)), ERR_ILLEGAL_RUN_TRANSITION);

	uint8_t sha[32];
	assert_int_equal(FCGI(st_call_artifact_get(fcgi, &get, NULL, &art, fds)), ERR_OK);
	assert_int_equal(art.size, 6);
	assert_true(sha256("--- a\n", 6, sha));
	assert_memory_equal(art.sha256.p, sha, 32);
	assert_int_equal(pread(fds[0], text, sizeof text, 0), 6);
	close(fds[0]);
	get.name = ART_TEST_LOG;
	assert_int_equal(FCGI(st_call_artifact_get(fcgi, &get, NULL, &art, fds)), ERR_ARTIFACT_NOT_FOUND);

	struct st_run_is is = run_is("whole");
	assert_true(is.finished && is.success && is.exited);
	assert_int_equal(is.used_requests, 2);
	assert_int_equal(is.prompt_tokens, 100);
	assert_int_equal(is.artifacts, 1u << ART_PATCH);
	assert_true(is.started_at >= is.created_at && is.finished_at >= is.started_at);
	assert_string_equal(is.terminal_reason, "completed");
	assert_memory_equal(is.changed_files.p, "[\"a.py\"]", 8);
	bool terminal;
	assert_string_equal(events_of("whole", &terminal), "run.queued run.started run.phase run.phase model.called "
							   "check.started run.completed ");
	assert_true(terminal);
	assert_string_equal(last_data("whole"), "{\"terminalReason\":\"completed\",\"error\":\"\"}");
}

static void cancelling(void **state)
{
	(void)state;
	struct st_run_state a;
	struct st_cap_is cap;
	/* While queued: at once. */
	struct st_run_create m = rig_run("acme", "cancel-q");
	assert_int_equal(rig_create(fcgi, &m, &a), ERR_OK);
	assert_int_equal(cancel("cancel-q", &a), ERR_OK);
	assert_true(a.changed);
	assert_int_equal(a.state, RUN_CANCELLED);
	assert_string_equal(events_of("cancel-q", NULL), "run.queued run.cancel_requested run.cancelled ");
	struct st_run_is is = run_is("cancel-q");
	assert_true(is.finished && is.cancel_requested);
	assert_string_equal(is.terminal_reason, "cancelled_by_request");
	assert_int_equal(finish("cancel-q", RUN_EV_COMPLETE, true, "", &a), ERR_ILLEGAL_RUN_TRANSITION);
	assert_int_equal(cancel("cancel-q", &a), ERR_OK);
	assert_false(a.changed);
	/* While running: the capability goes with the request; a late success does not win. */
	assert_int_equal(rig_running(fcgi, steward, "acme", "cancel-r", 5), ERR_OK);
	assert_int_equal(consume("cancel-r", &cap), ERR_OK);
	assert_int_equal(cancel("cancel-r", &a), ERR_OK);
	assert_true(a.changed);
	assert_int_equal(a.state, RUN_CANCELLING);
	assert_string_equal(last_data("cancel-r"), "{\"by\":\"tests \\\"x\\\"\"}");
	assert_int_equal(consume("cancel-r", &cap), ERR_INACTIVE_RUN_TOKEN);
	assert_int_equal(cancel("cancel-r", &a), ERR_OK);
	assert_false(a.changed);
	assert_int_equal(finish("cancel-r", RUN_EV_COMPLETE, true, "", &a), ERR_OK);
	assert_int_equal(a.state, RUN_CANCELLED);
	assert_int_equal(finish("cancel-r", RUN_EV_COMPLETE, true, "", &a), ERR_OK);
	assert_false(a.changed);
	assert_int_equal(finish("cancel-r", RUN_EV_COMPLETE, false, "", &a), ERR_ILLEGAL_RUN_TRANSITION);
	assert_string_equal(run_is("cancel-r").terminal_reason, "cancelled_by_request");
	assert_string_equal(events_of("cancel-r", NULL),
			    "run.queued run.started run.phase run.cancel_requested run.cancelled ");
	assert_int_equal(cancel("cancel-none", &a), ERR_RUN_NOT_FOUND);
}

/* Two things happen to a running run, in every order: the first end stays, and its event is the last. */
static void all_orders(void **state)
{
	(void)state;
	static const enum run_event what[] = {RUN_EV_CANCEL, RUN_EV_COMPLETE, RUN_EV_FAIL, RUN_EV_RESTART};
	for (int first = 0; first < 4; first++) {
		for (int second = 0; second < 4; second++) {
			char run[32];
			struct st_run_state a = {0};
			enum run_state expect = RUN_RUNNING;
			(void)snprintf(run, sizeof run, "order-%d%d", first, second);
			assert_int_equal(rig_running(fcgi, steward, "acme", run, 5), ERR_OK);
			const enum run_event pair[] = {what[first], what[second]};
			for (int i = 0; i < 2; i++) {
				enum err e = run_step(expect, pair[i], &expect);
				/* The second is not the first asked again. */
				enum err got = pair[i] == RUN_EV_CANCEL
						   ? cancel(run, &a)
						   : finish(run, pair[i], i == 0, i == 0 ? "one" : "two", &a);
				assert_int_equal(got, e);
				assert_int_equal(run_is(run).state, expect);
			}
			const char *all = events_of(run, NULL);
			char last[64];
			(void)snprintf(last, sizeof last, "run.%s ", run_public(expect));
			if (run_final(expect)) {
				assert_string_equal(all + strlen(all) - strlen(last), last);
				assert_ptr_equal(strstr(all, last), all + strlen(all) - strlen(last));
			}
		}
	}
}

static void restart_event(void **state)
{
	(void)state;
	struct st_run_state a;
	struct st_run_create m = rig_run("acme", "restart-q");
	assert_int_equal(rig_create(fcgi, &m, &a), ERR_OK);
	assert_int_equal(finish("restart-q", RUN_EV_RESTART, false, "controller_restarted", &a), ERR_OK);
	assert_false(a.changed);
	assert_int_equal(a.state, RUN_QUEUED);
	assert_int_equal(finish("restart-q", RUN_EV_COMPLETE, true, "", &a), ERR_ILLEGAL_RUN_TRANSITION);
	assert_int_equal(rig_running(fcgi, steward, "acme", "restart-r", 5), ERR_OK);
	assert_int_equal(finish("restart-r", RUN_EV_RESTART, false, "controller_restarted", &a), ERR_OK);
	assert_true(a.changed);
	assert_int_equal(a.state, RUN_FAILED);
	assert_string_equal(last_data("restart-r"),
			    "{\"terminalReason\":\"controller_restarted\",\"error\":\"controller_restarted\"}");
	assert_int_equal(cancel("restart-q", &a), ERR_OK);
}

static void expiry(void **state)
{
	(void)state;
	struct st_run_create m = rig_run("acme", "expire");
	struct st_run_start s = {.tenant = "acme", .run = "expire", .expires_at = clock_ms() + 200};
	struct st_run_work work;
	struct st_cap_is cap;
	struct st_ok ok;
	assert_int_equal(rig_create(fcgi, &m, NULL), ERR_OK);
	assert_int_equal(STEWARD(st_call_run_start(steward, &s, NULL, &work, NULL)), ERR_OK);
	while (clock_ms() <= s.expires_at)
		(void)usleep(10000);
	assert_int_equal(consume("expire", &cap), ERR_INACTIVE_RUN_TOKEN);
	struct st_cap_check check = {.tenant = "acme", .run = "expire"};
	assert_int_equal(GATEWAY(st_call_cap_check(gateway, &check, NULL, &cap, NULL)), ERR_INACTIVE_RUN_TOKEN);
	assert_int_equal(run_is("expire").used_requests, 0);
	/* Revoking is idempotent; a run that is not there is named. */
	struct st_cap_revoke r = {.tenant = "acme", .run = "expire"};
	assert_int_equal(STEWARD(st_call_cap_revoke(steward, &r, NULL, &ok, NULL)), ERR_OK);
	assert_int_equal(rig_running(fcgi, steward, "acme", "revoke", 5), ERR_OK);
	r.run = "revoke";
	assert_int_equal(consume("revoke", &cap), ERR_OK);
	assert_int_equal(STEWARD(st_call_cap_revoke(steward, &r, NULL, &ok, NULL)), ERR_OK);
	assert_int_equal(STEWARD(st_call_cap_revoke(steward, &r, NULL, &ok, NULL)), ERR_OK);
	assert_int_equal(consume("revoke", &cap), ERR_INACTIVE_RUN_TOKEN);
	r.run = "none";
	assert_int_equal(STEWARD(st_call_cap_revoke(steward, &r, NULL, &ok, NULL)), ERR_RUN_NOT_FOUND);
	/* No budget at all is no. */
	assert_int_equal(rig_running(fcgi, steward, "acme", "zero", 0), ERR_OK);
	assert_int_equal(consume("zero", &cap), ERR_MODEL_REQUEST_BUDGET_EXHAUSTED);
}

static void survives_a_restart(void **state)
{
	(void)state;
	struct st_run_is before = run_is("whole");
	uint64_t last = before.last_sequence, updated = before.updated_at;
	int status = rig_stop(&rig, SIGTERM);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	struct stat st;
	char path[200];
	(void)snprintf(path, sizeof path, "%s/store", rig.state);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	/* A file that no record names goes, one that is named stays. */
	(void)snprintf(path, sizeof path, "%s/store/blobs/00", rig.state);
	if (mkdir(path, 0700) == 0)
		assert_int_equal(chown(path, RIG_UID, RIG_UID), 0);
	(void)snprintf(path, sizeof path, "%s/store/blobs/00/%064d", rig.state, 0);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
	rig_start(&rig);
	struct st_run_is after = run_is("whole");
	assert_int_equal(after.last_sequence, last);
	assert_int_equal(after.updated_at, updated);
	assert_int_equal(access(path, F_OK), -1);
	struct st_artifact_get get = {.tenant = "acme", .run = "whole", .name = ART_PATCH};
	struct st_artifact_is art;
	assert_int_equal(FCGI(st_call_artifact_get(fcgi, &get, NULL, &art, NULL)), ERR_OK);
	/* Events go on where they were. */
	struct st_run_state a;
	assert_int_equal(cancel("restart-q", &a), ERR_OK);
	/* sandboxd is gone: so is stored. */
	status = rig_stop(&rig, 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	rig_start(&rig);
	assert_int_equal(run_is("whole").last_sequence, last);
}

/* One figure, with so many bytes of values, each number 7; told by fcgi, steward or, for what must be refused, another.
 */
static enum err told(enum rig_role role, unsigned metric, const char *labels, uint32_t bytes, size_t cut)
{
	static uint8_t items[1000], values[112];
	struct wire_list l = {.p = items, .cap = sizeof items};
	struct st_figure f = {.metric = (uint8_t)metric, .labels = labels, .values = {values, bytes}};
	bool heard = role == RIG_FCGI || role == RIG_STEWARD;
	struct ask *as = role == RIG_FCGI ? fcgi : heard ? steward : rig_hasty(&rig, role);
	assert_non_null(as);
	struct st_ok ok;
	for (size_t i = 0; i < sizeof values; i++)
		values[i] = i % 8 == 7 ? 7 : 0;
	uint8_t *p = wire_list_room(&l, ST_MAX_FIGURE);
	assert_non_null(p);
	wire_list_add(&l, st_put_figure(p, ST_MAX_FIGURE, &f));
	struct st_figures m = {.items = wire_list_done(&l)};
	m.items.n -= (uint32_t)cut;
	enum err e = RIG_AS(role, st_call_figures(as, &m, NULL, &ok, NULL));
	if (!heard)
		ask_free(as);
	return e;
}

/* Nobody tells what another counts, nor what does not fit the table; what was told before stays then. */
static void figures_told(void **state)
{
	(void)state;
	enum { ONE = 8, HIST = (HIST_BOUNDS + 2) * 8 };
	static const char streams[] = "pinfold_streams_open", spawns[] = "pinfold_spawn_seconds_count{box=\"work\"}";
	assert_int_equal(told(RIG_FCGI, METRIC_STREAMS_OPEN, "", ONE, 0), ERR_OK);
	assert_int_equal(figure(streams), 7);
	assert_int_equal(told(RIG_STEWARD, METRIC_SPAWN_SECONDS, "work", HIST, 0), ERR_OK);
	assert_int_equal(figure(spawns), 7 * (HIST_BOUNDS + 1));
	const struct {
		enum rig_role by;
		unsigned metric;
		const char *labels;
		uint32_t bytes;
		size_t cut;
	} forged[] = {
	    {RIG_FCGI, METRIC_SPAWN_SECONDS, "work", HIST, 0},        /* the steward's */
	    {RIG_STEWARD, METRIC_STREAMS_OPEN, "", ONE, 0},           /* fcgi's */
	    {RIG_STEWARD, METRIC_AUTH_FAILURES_TOTAL, "x", ONE, 0},   /* fcgi's */
	    {RIG_FCGI, METRIC_RUNS_OPEN, "", ONE, 0},                 /* stored's own */
	    {RIG_STEWARD, METRIC_RUNS_CREATED_TOTAL, "", ONE, 0},     /* stored's own */
	    {RIG_FCGI, METRIC__COUNT, "", ONE, 0},                    /* none */
	    {RIG_FCGI, 255, "", ONE, 0},                              /* none */
	    {RIG_FCGI, METRIC_STREAMS_OPEN, "", 0, 0},                /* no number */
	    {RIG_FCGI, METRIC_STREAMS_OPEN, "", ONE - 1, 0},          /* a part of one */
	    {RIG_FCGI, METRIC_STREAMS_OPEN, "", 2 * ONE, 0},          /* two */
	    {RIG_FCGI, METRIC_STREAMS_OPEN, "", HIST, 0},             /* a histogram's */
	    {RIG_STEWARD, METRIC_SPAWN_SECONDS, "work", ONE, 0},      /* one number for a histogram */
	    {RIG_STEWARD, METRIC_SPAWN_SECONDS, "work", HIST - 8, 0}, /* one too few */
	    {RIG_FCGI, METRIC_STREAMS_OPEN, "x", ONE, 0},             /* a label that it has not */
	    {RIG_FCGI, METRIC_HTTP_REQUESTS_TOTAL, "", ONE, 0},       /* none of three */
	    {RIG_FCGI, METRIC_HTTP_REQUESTS_TOTAL, "GET /x", ONE, 0}, /* two of three */
	    {RIG_FCGI, METRIC_HTTP_REQUESTS_TOTAL, "GET /x 2xx ", ONE, 0},
	    {RIG_FCGI, METRIC_HTTP_REQUESTS_TOTAL, "GET /x 2xx y", ONE, 0},
	    {RIG_FCGI, METRIC_HTTP_REQUESTS_TOTAL, "GET  2xx", ONE, 0},
	    {RIG_FCGI, METRIC_AUTH_FAILURES_TOTAL, "a\"}\npinfold_runs_open", ONE, 0}, /* another line */
	    {RIG_FCGI, METRIC_AUTH_FAILURES_TOTAL, "a\\", ONE, 0},
	    {RIG_FCGI, METRIC_AUTH_FAILURES_TOTAL, "\xc3\xa4", ONE, 0},
	    {RIG_FCGI, METRIC_STREAMS_OPEN, "", ONE, 1}, /* the last byte is missing */
	};
	for (size_t i = 0; i < sizeof forged / sizeof *forged; i++) {
		enum err e = told(forged[i].by, forged[i].metric, forged[i].labels, forged[i].bytes, forged[i].cut);
		if (e != ERR_INVALID_REQUEST)
			fail_msg("forged figure %zu: %s", i, err_code(e));
		assert_int_equal(figure(streams), 7);
		assert_int_equal(figure(spawns), 7 * (HIST_BOUNDS + 1));
	}
	/* Whoever has none to tell is not heard. */
	assert_int_not_equal(told(RIG_GATEWAY, METRIC_STREAMS_OPEN, "", ONE, 0), ERR_OK);
	assert_int_not_equal(told(RIG_ADMIN, METRIC_STREAMS_OPEN, "", ONE, 0), ERR_OK);
	assert_int_equal(figure(streams), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(principals),   cmocka_unit_test(creation),           cmocka_unit_test(limits_of_blobs),
	    cmocka_unit_test(quota),        cmocka_unit_test(a_whole_run),        cmocka_unit_test(cancelling),
	    cmocka_unit_test(all_orders),   cmocka_unit_test(restart_event),      cmocka_unit_test(expiry),
	    cmocka_unit_test(figures_told), cmocka_unit_test(survives_a_restart),
	};
	return cmocka_run_group_tests(tests, steps_setup, steps_teardown);
}
