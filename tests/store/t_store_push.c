/*
 * Web Push in the store: who may have it, what is handed out to be sent and what its outcomes do. Against a real
 * process whose clock and timer a test may set, as role push would ask it.
 */
#include "tests/store/pushing.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/chan.h"
#include "lib/own.h"

static void unsubscribe(const char *tenant, const char *id)
{
	struct st_push_delete m = {.tenant = tenant, .token_id = id, .by = "device:x", .request_id = "rq"};
	struct st_ok ok;
	assert_int_equal(FCGI(st_call_push_delete(fcgi, &m, NULL, &ok, NULL)), ERR_OK);
}

/* The log of stored and the audit log, whether they hold this. */
static bool told(const char *text)
{
	char command[600];
	(void)snprintf(command, sizeof command, "grep -rqF '%s' %s %s", text, rig.log, rig.logs);
	return system(command) == 0;
}

static void who(void **state)
{
	static const uint8_t odd[65] = {4};
	(void)state;
	struct st_push_next m = {0};
	struct st_push_is a;
	struct st_ok ok;
	/* Without the key of who signs there is none of it. */
	ask_free(push);
	push = rig_ask(&rig, RIG_PUSH);
	device("acme", "first", 0);
	assert_true(WAIT_FOR(subscribe("acme", "first") == ERR_PUSH_NOT_READY));
	assert_int_equal(PUSHING(st_call_push_next(push, &m, NULL, &a, NULL)), ERR_PUSH_NOT_READY);
	assert_false(push_has("acme", "first"));
	struct st_push_ready no = {.public_key = {odd, 64}};
	assert_int_equal(PUSHING(st_call_push_ready(push, &no, NULL, &ok, NULL)), ERR_INVALID_REQUEST);
	ready('a');
	assert_int_equal(subscribe("acme", "first"), ERR_OK);
	assert_true(push_has("acme", "first"));
	assert_false(push_has("other", "first"));
	/* Another's device, none at all, an API token, one that is gone, one whose time is over. */
	assert_int_equal(subscribe("other", "first"), ERR_UNAUTHORIZED);
	assert_int_equal(subscribe("acme", "nobody"), ERR_UNAUTHORIZED);
	struct st_token_create api = {
	    .tenant = "acme", .kind = 1, .token_id = "api", .hash = {odd, 32}, .label = "api"};
	assert_int_equal(st_call_token_create(admin, &api, NULL, &ok, NULL), ERR_OK);
	assert_int_equal(subscribe("acme", "api"), ERR_UNAUTHORIZED);
	device("acme", "revoked", 0);
	revoke_device("acme", "revoked");
	assert_int_equal(subscribe("acme", "revoked"), ERR_UNAUTHORIZED);
	device("acme", "late", 1);
	assert_int_equal(subscribe("acme", "late"), ERR_UNAUTHORIZED);
	/* Looked at here as well, whoever asks. */
	assert_int_equal(push_put_at("acme", "first", "http://push.example.com/x"), ERR_INVALID_PUSH_ENDPOINT);
	assert_int_equal(push_put_at("acme", "first", "https://127.0.0.1/x"), ERR_INVALID_PUSH_ENDPOINT);
	struct st_push_put put = {.tenant = "acme",
				  .token_id = "first",
				  .endpoint = "https://push.example.com/x",
				  .p256dh = {odd, 64},
				  .auth = {odd, 16},
				  .by = "",
				  .request_id = ""};
	assert_int_equal(FCGI(st_call_push_put(fcgi, &put, NULL, &ok, NULL)), ERR_INVALID_PUSH_SUBSCRIPTION);
	put.p256dh.n = 65;
	put.auth.n = 15;
	assert_int_equal(FCGI(st_call_push_put(fcgi, &put, NULL, &ok, NULL)), ERR_INVALID_PUSH_SUBSCRIPTION);
	/* Under another key a browser must subscribe anew. */
	ready('b');
	assert_false(push_has("acme", "first"));
	assert_int_equal(subscribe("acme", "first"), ERR_OK);
	assert_true(push_has("acme", "first"));
	ready('a');
	assert_int_equal(subscribe("acme", "first"), ERR_OK);
	unsubscribe("other", "first");
	assert_true(push_has("acme", "first"));
	unsubscribe("acme", "first");
	unsubscribe("acme", "first");
	assert_false(push_has("acme", "first"));
	/* Its line is there, and its address nowhere. */
	assert_true(told("push.subscribe") && told("push.unsubscribe"));
	assert_false(told("push.example.com"));
	assert_int_equal(findings(), 0);
}

static void bounds(void **state)
{
	(void)state;
	char id[32];
	for (int i = 0; i <= LIMIT_PUSH_DEVICES; i++) {
		(void)snprintf(id, sizeof id, "of-many-%d", i);
		device("other", id, 0);
		assert_int_equal(subscribe("other", id), i < LIMIT_PUSH_DEVICES ? ERR_OK : ERR_TOO_MANY_PUSH_DEVICES);
	}
	assert_int_equal(figure("pinfold_push_subscriptions"), LIMIT_PUSH_DEVICES);
	/* One that had it may have it anew, and another tenant's are not counted. */
	assert_int_equal(push_put_at("other", "of-many-3", "https://push.example.com/new"), ERR_OK);
	device("acme", "alone", 0);
	assert_int_equal(subscribe("acme", "alone"), ERR_OK);
	/* A browser that was paired anew comes with the address that it had. */
	device("other", "again", 0);
	assert_int_equal(push_put_at("other", "again", "https://push.example.com/new"), ERR_OK);
	assert_false(push_has("other", "of-many-3"));
	/* Who is gone makes room. */
	(void)snprintf(id, sizeof id, "of-many-%d", LIMIT_PUSH_DEVICES);
	assert_int_equal(subscribe("other", id), ERR_TOO_MANY_PUSH_DEVICES);
	revoke_device("other", "of-many-0");
	assert_int_equal(subscribe("other", id), ERR_OK);
	assert_int_equal(findings(), 0);
	for (int i = 0; i <= LIMIT_PUSH_DEVICES; i++) {
		(void)snprintf(id, sizeof id, "of-many-%d", i);
		unsubscribe("other", id);
	}
	unsubscribe("other", "again");
	unsubscribe("acme", "alone");
	assert_int_equal(figure("pinfold_push_subscriptions"), 0);
}

static bool topical(const char *topic)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	size_t n = strlen(topic);
	return n > 0 && n <= 32 && n % 4 != 1 && strspn(topic, alphabet) == n;
}

/* One question from its asking to its end. */
static void course(void **state)
{
	(void)state;
	struct st_push_is a;
	char topic[64];
	device("acme", "phone", 0);
	assert_int_equal(subscribe("acme", "phone"), ERR_OK);
	past_budgets();
	working("acme", "course");
	assert_int_equal(next(&a), 'n');
	assert_int_equal(a.wait_ms, 0);
	question("acme", "course", "q1");
	assert_int_equal(next(&a), 'c');
	assert_string_equal(a.tenant, "acme");
	assert_string_equal(a.label, "phone");
	assert_string_equal(a.endpoint, "https://push.example.com/send/acme/phone");
	assert_true(a.p256dh.n == 65 && a.p256dh.p[0] == 4 && a.auth.n == 16);
	assert_string_equal(a.run, "course");
	assert_string_equal(a.request, "q1");
	assert_int_equal(a.count, 1);
	assert_true(topical(a.topic));
	assert_true(a.ttl > 0 && a.ttl <= 600 && a.ttl <= LIMIT_PUSH_TTL_SECONDS);
	(void)snprintf(topic, sizeof topic, "%s", a.topic);
	/* It is out once, and once it has gone no more. */
	struct st_push_is b;
	assert_int_equal(next(&b), 'n');
	assert_true(b.wait_ms > 0 && b.wait_ms <= 60 * SECOND);
	assert_int_equal(done(&a, PUSH_SENT, 0), ERR_OK);
	assert_int_equal(done(&a, PUSH_SENT, 0), ERR_OK);
	assert_int_equal(next(&b), 'n');
	/* Decided: what is on the screen is taken from there. */
	assert_int_equal(decided("acme", "course", "q1"), ERR_OK);
	assert_int_equal(next(&a), 'x');
	assert_string_equal(a.topic, topic);
	assert_string_equal(a.request, "q1");
	assert_int_equal(done(&a, PUSH_SENT, 0), ERR_OK);
	assert_int_equal(next(&a), 'n');
	assert_int_equal(a.wait_ms, 0);
	/* Decided before it was sent: nothing is. */
	question("acme", "course", "q2");
	assert_int_equal(decided("acme", "course", "q2"), ERR_OK);
	assert_int_equal(next(&a), 'n');
	/* While it was out: who knows what arrived? It is taken back behind it. */
	question("acme", "course", "q3");
	assert_int_equal(next(&a), 'c');
	assert_string_not_equal(a.topic, topic);
	assert_int_equal(decided("acme", "course", "q3"), ERR_OK);
	assert_int_equal(next(&b), 'n');
	assert_int_equal(done(&a, PUSH_SENT, 0), ERR_OK);
	assert_int_equal(next(&b), 'x');
	assert_int_equal(done(&b, PUSH_SENT, 0), ERR_OK);
	assert_int_equal(next(&b), 'n');
	assert_int_equal(findings(), 0);
}

/* A question is over without a person, by its time, a cancel, or the end of its run: what was sent is taken back. */
static void ends(void **state)
{
	(void)state;
	struct st_push_is a;
	struct st_run_state s;
	past_budgets();
	working("acme", "ends");
	question("acme", "ends", "q1");
	assert_string_equal(send_all(), "c");
	/* Nobody asks what became of it; yet it goes when its time is over. */
	pass(599 * SECOND);
	assert_string_equal(send_all(), "");
	pass(SECOND);
	assert_string_equal(send_all(), "x");
	/* And if it could not be sent before, not at all. */
	question("acme", "ends", "q2");
	pass(600 * SECOND);
	assert_string_equal(send_all(), "");
	question("acme", "ends", "q3");
	question("acme", "ends", "q4");
	assert_string_equal(send_all(), "cc");
	question("acme", "ends", "q5");
	assert_int_equal(cancel("ends", &s), ERR_OK);
	assert_string_equal(send_all(), "xx");
	/* A clock that is set back has the question wait for longer, and its notification stay. */
	working("acme", "back");
	pass(MINUTE);
	question("acme", "back", "q1");
	assert_string_equal(send_all(), "c");
	step_clock(-5 * MINUTE);
	pass(601 * SECOND);
	assert_int_equal(cards("acme", "back"), 1);
	assert_int_equal(next(&a), 'n');
	assert_true(a.wait_ms > 0);
	pass(5 * MINUTE);
	assert_string_equal(send_all(), "x");
	/* And one that is set forward lets it wait for less. */
	working("acme", "forward");
	question("acme", "forward", "q1");
	step_clock(5 * MINUTE);
	assert_int_equal(next(&a), 'c');
	assert_true(a.ttl > 0 && a.ttl <= 300);
	assert_int_equal(done(&a, PUSH_SENT, 0), ERR_OK);
	pass(5 * MINUTE);
	assert_string_equal(send_all(), "x");
	/* Nothing is pushed that nobody is asked. */
	struct st_run_create create = rig_run("acme", "unasked");
	create.approval_wait_seconds = 0;
	struct st_run_start start = {.tenant = "acme", .run = "unasked", .expires_at = UINT64_MAX};
	struct st_run_work work;
	assert_int_equal(rig_create(fcgi, &create, NULL), ERR_OK);
	assert_int_equal(STEWARD(st_call_run_start(steward, &start, NULL, &work, NULL)), ERR_OK);
	question("acme", "unasked", "q1");
	assert_string_equal(send_all(), "");
	assert_int_equal(findings(), 0);
}

/* A push service may keep it six hours, and never for longer than the question waits. */
static void lifetime(void **state)
{
	(void)state;
	struct st_push_is a;
	struct st_run_start start = {.tenant = "acme", .run = "day", .expires_at = UINT64_MAX};
	struct st_run_work work;
	struct st_run_create create = rig_run("acme", "day");
	past_budgets();
	create.approval_wait_seconds = 86400;
	assert_int_equal(rig_create(fcgi, &create, NULL), ERR_OK);
	assert_int_equal(STEWARD(st_call_run_start(steward, &start, NULL, &work, NULL)), ERR_OK);
	question("acme", "day", "q1");
	pass(HOUR);
	assert_int_equal(next(&a), 'c');
	assert_true(a.ttl > 4 * 3600 && a.ttl <= 5 * 3600);
	assert_int_equal(done(&a, PUSH_TOO_MANY, 100000), ERR_OK);
	/* Six hours are over before the service wants to hear of it. */
	pass(5LL * HOUR);
	assert_int_equal(next(&a), 'n');
	pass(3LL * HOUR);
	assert_string_equal(send_all(), "");
	assert_int_equal(cards("acme", "day"), 1);
	question("acme", "day", "q2");
	assert_string_equal(send_all(), "c");
	assert_int_equal(decided("acme", "day", "q2"), ERR_OK);
	assert_int_equal(next(&a), 'x');
	assert_true(a.ttl > 0 && a.ttl <= LIMIT_PUSH_TTL_SECONDS);
	assert_int_equal(done(&a, PUSH_SENT, 0), ERR_OK);
	assert_int_equal(findings(), 0);
}

/* Whoever took one and says nothing, by its death or otherwise: it is handed out again. */
static void lost(void **state)
{
	(void)state;
	struct st_push_is a, b;
	past_budgets();
	working("acme", "lost");
	question("acme", "lost", "q1");
	assert_int_equal(next(&a), 'c');
	restart(false);
	assert_int_equal(next(&b), 'n');
	pass(59 * SECOND);
	assert_int_equal(next(&b), 'n');
	pass(SECOND);
	assert_int_equal(next(&b), 'c');
	assert_string_equal(b.request, "q1");
	assert_true(a.id != b.id);
	/* What the first one says now is about nothing. */
	assert_int_equal(done(&a, PUSH_GONE, 0), ERR_OK);
	assert_true(push_has("acme", "phone"));
	assert_int_equal(done(&b, PUSH_OUTCOME__COUNT, 0), ERR_INVALID_REQUEST);
	assert_int_equal(done(&b, PUSH_SENT, 0), ERR_OK);
	assert_int_equal(decided("acme", "lost", "q1"), ERR_OK);
	assert_string_equal(send_all(), "x");
	/* A new start of the machine, whose timer begins anew, loses nothing and holds nothing up. */
	question("acme", "lost", "q2");
	restart(true);
	assert_string_equal(send_all(), "c");
	assert_int_equal(next(&a), 'n');
	restart(true);
	assert_int_equal(decided("acme", "lost", "q2"), ERR_OK);
	assert_string_equal(send_all(), "x");
	assert_int_equal(findings(), 0);
}

/* How the pauses grow, and the fifth failure in a row ends it. */
static void failures(void **state)
{
	static const int pauses[] = {10, 30, 90, 270};
	(void)state;
	struct st_push_is a;
	past_budgets();
	working("acme", "fails");
	question("acme", "fails", "q1");
	assert_int_equal(next(&a), 'c');
	for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++) {
		assert_int_equal(done(&a, PUSH_FAILED, 0), ERR_OK);
		pass(pauses[i] * SECOND - 500);
		assert_int_equal(next(&a), 'n');
		assert_true(a.wait_ms > 0 && a.wait_ms <= 500);
		pass(500);
		assert_int_equal(next(&a), 'c');
		assert_string_equal(a.request, "q1");
	}
	/* One that goes through begins the count anew. */
	assert_int_equal(done(&a, PUSH_SENT, 0), ERR_OK);
	assert_int_equal(decided("acme", "fails", "q1"), ERR_OK);
	assert_string_equal(send_all(), "x");
	uint64_t evicted = figure("pinfold_push_evicted_total");
	for (int i = 0; i < 5; i++) {
		char request[8];
		(void)snprintf(request, sizeof request, "r%d", i);
		assert_true(push_has("acme", "phone"));
		pass(5 * MINUTE);
		question("acme", "fails", request);
		/* What a service does not take is not tried again, and is a failure all the same. */
		assert_int_equal(next(&a), 'c');
		assert_string_equal(a.request, request);
		assert_int_equal(done(&a, PUSH_REFUSED, 0), ERR_OK);
		assert_int_equal(next(&a), 'n');
	}
	assert_false(push_has("acme", "phone"));
	assert_int_equal(figure("pinfold_push_evicted_total"), evicted + 1);
	assert_true(told("push.evicted"));
	assert_int_equal(findings(), 0);
	/* Nothing of that takes a card away. */
	assert_int_equal(cards("acme", "fails"), 2);
	assert_int_equal(subscribe("acme", "phone"), ERR_OK);
}

static void outcomes(void **state)
{
	(void)state;
	struct st_push_is a;
	past_budgets();
	working("acme", "outcomes");
	question("acme", "outcomes", "q1");
	/* Later, as it says; that is no failure, however often. */
	for (int i = 0; i < 7; i++) {
		assert_int_equal(next(&a), 'c');
		assert_int_equal(done(&a, PUSH_TOO_MANY, 40), ERR_OK);
		pass(40 * SECOND - 500);
		assert_int_equal(next(&a), 'n');
		pass(500);
	}
	/* Where it does not say when, in a minute. */
	assert_int_equal(next(&a), 'c');
	assert_int_equal(done(&a, PUSH_TOO_MANY, 0), ERR_OK);
	pass(59 * SECOND);
	assert_int_equal(next(&a), 'n');
	pass(SECOND);
	/* It surely never arrived, so it need not be taken back. */
	assert_int_equal(next(&a), 'c');
	assert_int_equal(done(&a, PUSH_TOO_MANY, 1), ERR_OK);
	assert_int_equal(decided("acme", "outcomes", "q1"), ERR_OK);
	pass(MINUTE);
	assert_string_equal(send_all(), "");
	/* One that failed may have. */
	question("acme", "outcomes", "q2");
	assert_int_equal(next(&a), 'c');
	assert_int_equal(done(&a, PUSH_FAILED, 0), ERR_OK);
	assert_int_equal(decided("acme", "outcomes", "q2"), ERR_OK);
	pass(MINUTE);
	assert_string_equal(send_all(), "x");
	/* Gone is gone. */
	question("acme", "outcomes", "q3");
	assert_int_equal(next(&a), 'c');
	assert_int_equal(done(&a, PUSH_GONE, 0), ERR_OK);
	assert_false(push_has("acme", "phone"));
	assert_int_equal(next(&a), 'n');
	assert_int_equal(cards("acme", "outcomes"), 1);
	assert_int_equal(subscribe("acme", "phone"), ERR_OK);
	/* What was for the one before is not for this one. */
	assert_string_equal(send_all(), "");
	assert_int_equal(findings(), 0);
}

/* One that hangs holds up itself alone, and a tenant whose devices all hang not the next tenant. */
static void hung(void **state)
{
	(void)state;
	struct st_push_is a;
	char id[32];
	for (int i = 0; i < 6; i++) {
		(void)snprintf(id, sizeof id, "hangs-%d", i);
		device("acme", id, 0);
		assert_int_equal(subscribe("acme", id), ERR_OK);
	}
	device("other", "works", 0);
	assert_int_equal(subscribe("other", "works"), ERR_OK);
	past_budgets();
	working("acme", "hung");
	working("other", "hung-2");
	question("acme", "hung", "q1");
	question("acme", "hung", "q2");
	question("other", "hung-2", "q1");
	char labels[4][161];
	for (int i = 0; i < 4; i++) {
		assert_int_equal(next(&a), 'c');
		assert_string_equal(a.tenant, "acme");
		(void)snprintf(labels[i], sizeof labels[i], "%s", a.label);
		for (int j = 0; j < i; j++)
			assert_string_not_equal(labels[i], labels[j]);
	}
	assert_int_equal(next(&a), 'c');
	assert_string_equal(a.tenant, "other");
	assert_int_equal(done(&a, PUSH_SENT, 0), ERR_OK);
	assert_int_equal(next(&a), 'n');
	assert_true(a.wait_ms > 0 && a.wait_ms <= SECOND);
	/* When they are let go of, all the others come, each its two. */
	pass(MINUTE);
	assert_int_equal(strlen(send_all()), 14);
	for (int i = 0; i < 6; i++) {
		(void)snprintf(id, sizeof id, "hangs-%d", i);
		unsubscribe("acme", id);
	}
	unsubscribe("other", "works");
	assert_int_equal(findings(), 0);
}

/* A device that is gone, however it went, gets nothing; nor does another tenant's anything of this one. */
static void gone(void **state)
{
	(void)state;
	struct st_push_is a;
	struct st_ok ok;
	device("other", "stranger", 0);
	assert_int_equal(subscribe("other", "stranger"), ERR_OK);
	device("acme", "revoked-2", 0);
	device("acme", "token", 0);
	past_budgets();
	device("acme", "brief", there() + 5 * MINUTE);
	assert_int_equal(subscribe("acme", "revoked-2"), ERR_OK);
	assert_int_equal(subscribe("acme", "token"), ERR_OK);
	assert_int_equal(subscribe("acme", "brief"), ERR_OK);
	working("acme", "gone");
	question("acme", "gone", "q1");
	/* One at once, with what waits for it; one by its time alone; one while a push to it is out. */
	revoke_device("acme", "revoked-2");
	assert_int_equal(figure("pinfold_push_subscriptions"), 4);
	unsigned seen = 0;
	struct st_push_is out = {.id = 0};
	for (unsigned i = 0; i < 3; i++) {
		char label[161];
		assert_int_equal(next(&a), 'c');
		(void)snprintf(label, sizeof label, "%s", a.label);
		assert_string_equal(a.tenant, "acme");
		assert_string_not_equal(label, "revoked-2");
		seen += strcmp(label, "phone") == 0 || strcmp(label, "token") == 0 || strcmp(label, "brief") == 0;
		if (strcmp(label, "token") == 0)
			out = a;
		else
			assert_int_equal(done(&a, PUSH_SENT, 0), ERR_OK);
	}
	assert_int_equal(seen, 3);
	struct st_token_revoke revoke = {.tenant = "acme", .token_id = "token"};
	assert_int_equal(st_call_token_revoke(admin, &revoke, NULL, &ok, NULL), ERR_OK);
	assert_int_equal(figure("pinfold_push_subscriptions"), 3);
	assert_int_equal(done(&out, PUSH_SENT, 0), ERR_OK);
	pass(5 * MINUTE + SECOND);
	/* Also what would take a card back: nothing is said to it any more. */
	assert_int_equal(decided("acme", "gone", "q1"), ERR_OK);
	assert_int_equal(next(&a), 'x');
	assert_string_equal(a.label, "phone");
	assert_int_equal(done(&a, PUSH_SENT, 0), ERR_OK);
	assert_int_equal(next(&a), 'n');
	assert_int_equal(a.wait_ms, 0);
	question("acme", "gone", "q2");
	assert_string_equal(send_all(), "c");
	assert_int_equal(figure("pinfold_push_subscriptions"), 2);
	/* A clock that is set back brings none of them back. */
	step_clock(-HOUR);
	question("acme", "gone", "q3");
	assert_string_equal(send_all(), "c");
	step_clock(HOUR);
	assert_false(push_has("acme", "brief") || push_has("acme", "token") || push_has("acme", "revoked-2"));
	unsubscribe("other", "stranger");
	assert_int_equal(findings(), 0);
}

/* The same id of a run at two tenants: each hears of its own. */
static void apart(void **state)
{
	(void)state;
	struct st_push_is a;
	device("other", "apart", 0);
	assert_int_equal(subscribe("other", "apart"), ERR_OK);
	past_budgets();
	working("acme", "same");
	working("other", "same");
	question("acme", "same", "q");
	assert_int_equal(next(&a), 'c');
	assert_string_equal(a.tenant, "acme");
	assert_int_equal(done(&a, PUSH_SENT, 0), ERR_OK);
	assert_int_equal(next(&a), 'n');
	/* Nobody reports of another's. */
	question("other", "same", "q");
	assert_int_equal(next(&a), 'c');
	assert_string_equal(a.label, "apart");
	struct st_push_is b = a;
	b.tenant = "acme";
	assert_int_equal(done(&b, PUSH_GONE, 0), ERR_OK);
	assert_true(push_has("other", "apart") && push_has("acme", "phone"));
	assert_int_equal(done(&a, PUSH_SENT, 0), ERR_OK);
	assert_int_equal(decided("other", "same", "q"), ERR_OK);
	assert_int_equal(next(&a), 'x');
	assert_string_equal(a.tenant, "other");
	assert_int_equal(done(&a, PUSH_SENT, 0), ERR_OK);
	assert_int_equal(next(&a), 'n');
	unsubscribe("other", "apart");
	assert_int_equal(findings(), 0);
}

/* Under another key nothing of what waited is sent: no browser would take it. */
static void another_key(void **state)
{
	(void)state;
	struct st_push_is a;
	past_budgets();
	working("acme", "keys");
	question("acme", "keys", "q1");
	ready('z');
	assert_int_equal(next(&a), 'n');
	assert_int_equal(a.wait_ms, 0);
	assert_int_equal(findings(), 0);
	assert_int_equal(subscribe("acme", "phone"), ERR_OK);
	question("acme", "keys", "q2");
	assert_string_equal(send_all(), "c");
	ready('a');
	assert_int_equal(subscribe("acme", "phone"), ERR_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(who),      cmocka_unit_test(bounds),   cmocka_unit_test(course),
	    cmocka_unit_test(ends),     cmocka_unit_test(lifetime), cmocka_unit_test(lost),
	    cmocka_unit_test(failures), cmocka_unit_test(outcomes), cmocka_unit_test(hung),
	    cmocka_unit_test(gone),     cmocka_unit_test(apart),    cmocka_unit_test(another_key)};
	return cmocka_run_group_tests(tests, pushing_setup, pushing_teardown);
}
