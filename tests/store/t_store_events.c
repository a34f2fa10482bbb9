/* Events, lists and subscriptions, against a real process. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/chan.h"
#include "tests/store/steps.h"
#include <cmocka.h>

static void events(void **state)
{
	(void)state;
	struct st_events_taken a;
	struct st_run_state s;
	assert_int_equal(rig_running(fcgi, steward, "acme", "events", 5), ERR_OK);
	assert_int_equal(append("events", "step", 20, 3, &a), ERR_OK);
	assert_int_equal(a.accepted, 3);
	assert_int_equal(a.last_sequence, 6);
	/* A reserved type from an agent is never the control plane's. */
	assert_int_equal(append("events", "run.completed", 20, 1, &a), ERR_OK);
	assert_string_equal(events_of("events", NULL),
			    "run.queued run.started run.phase step step step agent.run.completed ");
	/* A batch with one bad event leaves nothing. */
	struct st_events_append m = {.tenant = "acme", .run = "events", .events = BYTES("\0\0\0\7garbage")};
	assert_int_equal(GATEWAY(st_call_events_append(gateway, &m, NULL, &a, NULL)), ERR_INVALID_EVENT_APPEND);
	m.events.n = 0;
	assert_int_equal(GATEWAY(st_call_events_append(gateway, &m, NULL, &a, NULL)), ERR_INVALID_EVENT_APPEND);
	assert_int_equal(append("events", "", 20, 1, &a), ERR_INVALID_EVENT_APPEND);
	assert_int_equal(append("events", "x", 2, 129, &a), ERR_INVALID_EVENT_APPEND);
	assert_int_equal(append("nothing", "x", 2, 1, &a), ERR_RUN_NOT_FOUND);
	assert_int_equal(run_is("events").last_sequence, 7);
	/* 1,000,000 bytes less 64,000: fourteen events of 64,000 fit beside what there is. */
	unsigned taken = 0;
	for (int i = 0; i < 16; i++) {
		assert_int_equal(append("events", "big", 64000, 1, &a), ERR_OK);
		taken += a.accepted;
	}
	assert_int_equal(taken, 14);
	assert_int_equal(append("events", "small", 2, 1, &a), ERR_OK);
	assert_int_equal(a.accepted, 0);
	/* The control plane still writes. */
	struct st_model_called called = {.tenant = "acme", .run = "events", .outcome = "ok"};
	struct st_called_is said;
	assert_int_equal(GATEWAY(st_call_model_called(gateway, &called, NULL, &said, NULL)), ERR_OK);
	assert_int_equal(finish("events", RUN_EV_FAIL, false, "sandbox_agent_failed", &s), ERR_OK);
	assert_int_equal(append("events", "x", 2, 1, &a), ERR_RUN_SESSION_EVENTS_REJECTED);
	const char *all = events_of("events", NULL);
	assert_non_null(strstr(all, "big events.truncated model.called run.failed "));
	assert_null(strstr(strstr(all, "events.truncated") + 1, "events.truncated"));
}

static void many_lines(void **state)
{
	(void)state;
	struct st_events_taken a = {0};
	assert_int_equal(rig_running(fcgi, steward, "acme", "lines", 5), ERR_OK);
	char type[65];
	memset(type, 't', 64);
	type[64] = '\0';
	uint64_t total = 0;
	for (int i = 0; i < 80; i++) {
		assert_int_equal(append("lines", "t", 2, 128, &a), ERR_OK);
		total += a.accepted;
	}
	/* Bytes or lines, whichever comes first; either way it is bounded and dense. */
	assert_true(total > 4000 && total < 9900);
	assert_int_equal(append("lines", type, 2, 1, &a), ERR_OK);
	assert_int_equal(a.last_sequence, total + 4);
	(void)events_of("lines", NULL);
}

static unsigned page(struct st_run_page *a, char ids[][40], unsigned n)
{
	struct wire_bytes part;
	bool bad = false;
	struct st_run_item item;
	while (wire_list_next(&a->items, &part, &bad)) {
		assert_true(st_get_run_item(part.p, part.n, &item));
		(void)snprintf(ids[n++], 40, "%s/%s", item.tenant, item.run);
	}
	assert_false(bad);
	return n;
}

static void lists(void **state)
{
	(void)state;
	static char ids[1000][40];
	struct st_run_page a;
	rig_tenant(&rig, "list");
	char id[16];
	for (int i = 0; i < 25; i++) {
		(void)snprintf(id, sizeof id, "l%02d", i);
		struct st_run_create m = rig_run("list", id);
		assert_int_equal(rig_create(fcgi, &m, NULL), ERR_OK);
		(void)usleep(1500);
	}
	struct st_run_list l = {.tenant = "list", .before_run = "", .limit = 10};
	unsigned n = 0, pages = 0;
	char next[40];
	do {
		assert_int_equal(FCGI(st_call_run_list(fcgi, &l, NULL, &a, NULL)), ERR_OK);
		n = page(&a, ids, n);
		(void)snprintf(next, sizeof next, "%s", a.next_run);
		l.before_run = next;
		l.before_created = a.next_created;
		pages++;
	} while (a.more);
	assert_int_equal(n, 25);
	assert_int_equal(pages, 3);
	for (unsigned i = 0; i < n; i++) {
		(void)snprintf(next, sizeof next, "list/l%02u", 24 - i);
		assert_string_equal(ids[i], next);
	}
	struct st_run_cancel c = {.tenant = "list", .run = "l07", .by = "t"};
	struct st_run_state s;
	assert_int_equal(FCGI(st_call_run_cancel(fcgi, &c, NULL, &s, NULL)), ERR_OK);
	l = (struct st_run_list){.tenant = "list", .before_run = "", .states = 1u << RUN_CANCELLED, .limit = 10};
	assert_int_equal(FCGI(st_call_run_list(fcgi, &l, NULL, &a, NULL)), ERR_OK);
	assert_int_equal(page(&a, ids, 0), 1);
	assert_string_equal(ids[0], "list/l07");
	assert_false(a.more);
	l.tenant = "nobody";
	assert_int_equal(FCGI(st_call_run_list(fcgi, &l, NULL, &a, NULL)), ERR_OK);
	assert_int_equal(a.items.n, 0);

	/* The steward sees what is not final, of all tenants, and can go on from the last. */
	struct st_runs_open o = {.after_tenant = "list", .after_run = "l05"};
	assert_int_equal(STEWARD(st_call_runs_open(steward, &o, NULL, &a, NULL)), ERR_OK);
	page(&a, ids, 0);
	assert_string_equal(ids[0], "list/l06");
	assert_string_equal(ids[1], "list/l08");
	o = (struct st_runs_open){.after_tenant = "", .after_run = ""};
	assert_int_equal(STEWARD(st_call_runs_open(steward, &o, NULL, &a, NULL)), ERR_OK);
	n = page(&a, ids, 0);
	assert_true(n > 24);
	struct st_stat st = {0};
	struct st_stats_are are;
	assert_int_equal(st_call_stat(admin, &st, NULL, &are, NULL), ERR_OK);
	assert_int_equal(are.open_runs, n);
	assert_true(are.runs > n && are.commits > 0 && are.flushes > 0 && are.flushes <= are.commits);
}

static void subscribers(void **state)
{
	(void)state;
	struct st_subscribe m = {.tenant = "acme", .run = "sub"};
	struct st_ok ok;
	struct ask *one = rig_ask(&rig, RIG_FCGI), *all = rig_ask(&rig, RIG_STEWARD);
	assert_int_equal(st_call_subscribe(one, &m, NULL, &ok, NULL), ERR_OK);
	m = (struct st_subscribe){.tenant = "", .run = ""};
	assert_int_equal(st_call_subscribe(all, &m, NULL, &ok, NULL), ERR_OK);
	struct st_run_create r = rig_run("acme", "nosub");
	assert_int_equal(rig_create(fcgi, &r, NULL), ERR_OK);
	r.run = "sub";
	assert_int_equal(rig_create(fcgi, &r, NULL), ERR_OK);
	struct ask_answer got;
	struct st_woken w;
	assert_int_equal(ask_wait(one, 10000, &got), 1);
	assert_true(st_get_woken(got.frame, got.len, &w));
	assert_string_equal(w.run, "sub");
	assert_int_equal(w.last_sequence, 1);
	assert_int_equal(ask_wait(all, 10000, &got), 1);
	assert_true(st_get_woken(got.frame, got.len, &w));
	assert_string_equal(w.run, "nosub");
	/* A run without its tenant is no subscription; a subscriber that asks is closed. */
	m = (struct st_subscribe){.tenant = "", .run = "sub"};
	assert_int_equal(FCGI(st_call_subscribe(fcgi, &m, NULL, &ok, NULL)), ERR_INVALID_REQUEST);
	uint8_t question[ST_MAX_PING];
	struct st_ping ping = {0};
	assert_int_equal(chan_send(ask_fd(one), question, st_put_ping(question, sizeof question, 1, &ping), NULL, 0),
			 0);
	assert_int_equal(ask_wait(one, 10000, &got), -1);
	ask_free(one);
	ask_free(all);
}

static bool called(const char *run, enum err want)
{
	struct st_model_called m = {.tenant = "acme", .run = run, .outcome = "ok"};
	struct st_called_is is = {0};
	assert_int_equal(GATEWAY(st_call_model_called(gateway, &m, NULL, &is, NULL)), want);
	return is.deliver;
}

/* A gateway hears of runs that lost their capability, once each, and of nothing else that happens to them. */
static void revocations(void **state)
{
	(void)state;
	static const char *const runs[] = {"revoked", "cancelled", "ended", "last"};
	struct st_subscribe all = {.tenant = "", .run = ""};
	struct ask *ear = rig_ask(&rig, RIG_GATEWAY);
	struct st_cap_is cap;
	struct st_run_state s;
	struct st_events_taken taken;
	struct ask_answer got;
	struct st_woken w;
	struct st_ok ok;

	assert_int_equal(st_call_subscribe(ear, &all, NULL, &ok, NULL), ERR_OK);
	for (int i = 0; i < 4; i++) {
		struct st_cap_revoke m = {.tenant = "acme", .run = runs[i]};
		assert_int_equal(rig_running(fcgi, steward, "acme", runs[i], 5), ERR_OK);
		assert_int_equal(consume(runs[i], &cap), ERR_OK);
		assert_int_equal(append(runs[i], "step", 20, 1, &taken), ERR_OK);
		assert_true(called(runs[i], ERR_OK));
		if (i == 1)
			assert_int_equal(cancel(runs[i], &s), ERR_OK);
		else if (i == 2)
			assert_int_equal(finish(runs[i], RUN_EV_FAIL, false, "sandbox_agent_failed", &s), ERR_OK);
		else
			assert_int_equal(STEWARD(st_call_cap_revoke(steward, &m, NULL, &ok, NULL)), ERR_OK);
		/* From then on no answer of a model may go to the box. */
		assert_false(called(runs[i], i == 2 ? ERR_RUN_SESSION_EVENTS_REJECTED : ERR_OK));
		if (i == 1)
			assert_int_equal(finish(runs[i], RUN_EV_FAIL, false, "", &s), ERR_OK);
		assert_int_equal(ask_wait(ear, 10000, &got), 1);
		assert_true(st_get_woken(got.frame, got.len, &w));
		assert_string_equal(w.run, runs[i]);
		assert_string_equal(w.tenant, "acme");
	}
	ask_free(ear);
}

/* A revocation and what a call came to, in one batch: the later does not hide the earlier, and the answer is kept back.
 */
static void revoked_in_one_batch(void **state)
{
	(void)state;
	struct st_subscribe all = {.tenant = "", .run = ""};
	struct ask *ear = rig_ask(&rig, RIG_GATEWAY), *one = rig_ask(&rig, RIG_STEWARD),
		   *two = rig_ask(&rig, RIG_GATEWAY);
	struct st_cap_revoke revoke = {.tenant = "acme", .run = "batch"};
	struct st_model_called m = {.tenant = "acme", .run = "batch", .outcome = "ok"};
	uint8_t first[ST_MAX_CAP_REVOKE], second[ST_MAX_MODEL_CALLED];
	struct ask_answer got;
	struct st_called_is is;
	struct st_woken w;
	struct st_ok ok;
	int status;

	assert_int_equal(st_call_subscribe(ear, &all, NULL, &ok, NULL), ERR_OK);
	assert_int_equal(rig_running(fcgi, steward, "acme", "batch", 5), ERR_OK);
	assert_int_equal(kill(rig.pid, SIGSTOP), 0);
	assert_int_equal(waitpid(rig.pid, &status, WUNTRACED), rig.pid);
	size_t n = st_put_cap_revoke(first, sizeof first, ask_op(one), &revoke);
	assert_int_equal(chan_send(ask_fd(one), first, n, NULL, 0), 0);
	n = st_put_model_called(second, sizeof second, ask_op(two), &m);
	assert_int_equal(chan_send(ask_fd(two), second, n, NULL, 0), 0);
	assert_int_equal(kill(rig.pid, SIGCONT), 0);
	assert_int_equal(ask_wait(two, 10000, &got), 1);
	assert_true(st_get_called_is(got.frame, got.len, &is));
	assert_false(is.deliver);
	assert_int_equal(ask_wait(ear, 10000, &got), 1);
	assert_true(st_get_woken(got.frame, got.len, &w));
	assert_string_equal(w.run, "batch");
	ask_free(ear);
	ask_free(one);
	ask_free(two);
}

/* What a call came to is answered before it is durable, so that many share a flush; whoever looks then sees it. */
static void called_early(void **state)
{
	(void)state;
	enum { TIMES = 200, SPENT = 20 };
	struct st_stat m = {0};
	struct st_stats_are before, after;

	struct st_cap_is cap;

	assert_int_equal(rig_running(fcgi, steward, "acme", "early", SPENT), ERR_OK);
	/* But a unit is durable before anybody hears that it was spent. */
	assert_int_equal(st_call_stat(admin, &m, NULL, &before, NULL), ERR_OK);
	for (int i = 0; i < SPENT; i++)
		assert_int_equal(consume("early", &cap), ERR_OK);
	assert_int_equal(st_call_stat(admin, &m, NULL, &after, NULL), ERR_OK);
	assert_true(after.flushes - before.flushes >= SPENT);
	before = after;
	for (int i = 0; i < TIMES; i++)
		assert_true(called("early", ERR_OK));
	assert_int_equal(run_is("early").last_sequence, 3 + TIMES);
	assert_int_equal(st_call_stat(admin, &m, NULL, &after, NULL), ERR_OK);
	assert_true(after.commits - before.commits >= TIMES);
	assert_true(after.flushes > before.flushes && after.flushes - before.flushes < TIMES);
}

/* One line about one stream. */
static struct st_stream_state look(const char *tenant, const char *run, const char *id, const uint8_t hash[32])
{
	uint8_t room[1024];
	struct wire_list list = {.p = room, .cap = sizeof room};
	struct st_stream_item item = {.tenant = tenant, .run = run, .token_id = id, .token_hash = {hash, 32}};
	uint8_t *p = wire_list_room(&list, ST_MAX_STREAM_ITEM);
	assert_non_null(p);
	wire_list_add(&list, st_put_stream_item(p, ST_MAX_STREAM_ITEM, &item));
	struct st_streams_check m = {.items = wire_list_done(&list)};
	struct st_streams_are a;
	struct st_stream_state s = {0};
	struct wire_bytes part;
	bool bad = false;
	assert_int_equal(st_call_streams_check(fcgi, &m, NULL, &a, NULL), ERR_OK);
	assert_true(wire_list_next(&a.items, &part, &bad) && st_get_stream_state(part.p, part.n, &s));
	assert_false(wire_list_next(&a.items, &part, &bad) || bad);
	return s;
}

static void token(const char *tenant, const char *id, const uint8_t hash[32], unsigned kind, uint64_t expires)
{
	struct st_token_create m = {.tenant = tenant,
				    .kind = (uint8_t)kind,
				    .token_id = id,
				    .hash = {hash, 32},
				    .label = id,
				    .expires_at = expires};
	struct st_ok ok;
	assert_int_equal(st_call_token_create(admin, &m, NULL, &ok, NULL), ERR_OK);
}

/* Who follows a run: may he still, and how far is it? */
static void followed(void **state)
{
	(void)state;
	uint8_t hash[32] = {1, 2, 3}, other[32] = {3, 2, 1};
	struct st_events_taken a;
	struct st_run_state s;
	struct st_ok ok;
	struct timespec now;
	assert_int_equal(rig_running(fcgi, steward, "acme", "followed", 5), ERR_OK);
	assert_int_equal(append("followed", "step", 20, 3, &a), ERR_OK);
	token("acme", "feed000000000001", hash, 2, 0);
	struct st_stream_state is = look("acme", "followed", "feed000000000001", hash);
	assert_int_equal(is.refused, 0);
	assert_false(is.terminal);
	assert_int_equal(is.last_sequence, a.last_sequence);
	assert_int_equal(look("acme", "followed", "feed000000000001", other).refused, ERR_UNAUTHORIZED);
	assert_int_equal(look("acme", "followed", "feed000000000009", hash).refused, ERR_UNAUTHORIZED);
	assert_int_equal(look("acme", "nothing", "feed000000000001", hash).refused, ERR_RUN_NOT_FOUND);
	/* Of another tenant: neither its token here nor ours there. */
	rig_tenant(&rig, "umbrella");
	token("umbrella", "feed000000000002", hash, 1, 0);
	assert_int_equal(look("acme", "followed", "feed000000000002", hash).refused, ERR_UNAUTHORIZED);
	assert_int_equal(look("umbrella", "followed", "feed000000000001", hash).refused, ERR_UNAUTHORIZED);
	assert_int_equal(look("umbrella", "followed", "feed000000000002", hash).refused, ERR_RUN_NOT_FOUND);
	/* One that has its end soon, and then behind it. */
	assert_int_equal(clock_gettime(CLOCK_REALTIME, &now), 0);
	token("acme", "feed000000000003", hash, 1, (uint64_t)now.tv_sec * 1000 + 1500);
	WAIT_FOR(look("acme", "followed", "feed000000000003", hash).refused == ERR_UNAUTHORIZED);
	assert_int_equal(finish("followed", RUN_EV_FAIL, false, "sandbox_agent_failed", &s), ERR_OK);
	is = look("acme", "followed", "feed000000000001", hash);
	assert_true(is.terminal && is.refused == 0);
	assert_int_equal(is.last_sequence, run_is("followed").last_sequence);
	struct st_device_revoke revoke = {.tenant = "acme", .label = "feed000000000001", .by = "x"};
	assert_int_equal(st_call_device_revoke(admin, &revoke, NULL, &ok, NULL), ERR_OK);
	assert_int_equal(look("acme", "followed", "feed000000000001", hash).refused, ERR_UNAUTHORIZED);
	struct st_streams_check bad = {.items = BYTES("\0\0\0\7garbage")};
	struct st_streams_are are;
	assert_int_equal(st_call_streams_check(fcgi, &bad, NULL, &are, NULL), ERR_INVALID_REQUEST);
	bad.items.n = 0;
	assert_int_equal(st_call_streams_check(fcgi, &bad, NULL, &are, NULL), ERR_OK);
	assert_int_equal(are.items.n, 0);
}

/* A page of any size holds one event at least, and they join to all. */
static void pages(void **state)
{
	(void)state;
	struct st_events_taken a;
	assert_int_equal(rig_running(fcgi, steward, "acme", "pages", 5), ERR_OK);
	assert_int_equal(append("pages", "step", 3000, 40, &a), ERR_OK);
	for (uint32_t most = 1; most <= 64000; most *= 40) {
		uint64_t after = 0;
		unsigned reads = 0;
		for (bool more = true; more; reads++) {
			struct st_events_read m = {.tenant = "acme", .run = "pages", .after = after, .most = most};
			struct st_events_are are;
			struct wire_bytes part;
			bool bad = false;
			uint64_t seen = after;
			assert_int_equal(st_call_events_read(fcgi, &m, NULL, &are, NULL), ERR_OK);
			assert_true(are.events.n <= most + 4000);
			for (struct st_event ev; wire_list_next(&are.events, &part, &bad); seen++) {
				assert_true(st_get_event(part.p, part.n, &ev));
				assert_int_equal(ev.sequence, seen + 1);
			}
			assert_true(seen > after && seen == are.last && !bad);
			after = seen;
			more = are.more;
		}
		assert_int_equal(after, a.last_sequence);
		assert_true(most > 40 ? reads < after : reads == after);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(events),       cmocka_unit_test(many_lines),  cmocka_unit_test(lists),
	    cmocka_unit_test(subscribers),  cmocka_unit_test(revocations), cmocka_unit_test(revoked_in_one_batch),
	    cmocka_unit_test(called_early), cmocka_unit_test(followed),    cmocka_unit_test(pages),
	};
	return cmocka_run_group_tests(tests, steps_setup, steps_teardown);
}
