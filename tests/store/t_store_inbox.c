/* What people see of all runs: what waits, what devices did, what is allowed for the rest of a run and can be taken
 * back, and the devices, page by page. Against a real process whose clock a test may set. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gen/limits.h"
#include "lib/token.h"
#include "tests/store/asking.h"
#include "tests/store/settable.h"

enum { SECOND = 1000, MANY_DEVICES = 230 };

/* The store holds what it says it holds. */
static void whole(void)
{
	uint8_t after[600];
	struct st_store_check m = {.rows = 10000};
	struct st_store_checked a = {.done = false};
	while (!a.done) {
		assert_int_equal(st_call_store_check(admin, &m, NULL, &a, NULL), ERR_OK);
		if (a.findings > 0)
			fail_msg("the store's check: %.*s", (int)a.texts.n, (const char *)a.texts.p + 8);
		m.table = a.table;
		memcpy(after, a.after.p, a.after.n);
		m.after = (struct wire_bytes){after, a.after.n};
	}
}

static struct st_inbox_is box;

/* "run/request " of each that waits, page by page. */
static const char *inbox_of(const char *tenant, uint16_t limit)
{
	static char text[4000], run[129], request[129];
	struct st_inbox_get m = {.tenant = tenant, .after_run = "", .after_request = "", .limit = limit};
	size_t n = 0;
	text[0] = '\0';
	box.more = true;
	while (box.more) {
		struct wire_bytes part, rest;
		struct st_approval q;
		bool bad = false;
		unsigned got = 0;
		assert_int_equal(FCGI(st_call_inbox_get(fcgi, &m, NULL, &box, NULL)), ERR_OK);
		for (rest = box.items; wire_list_next(&rest, &part, &bad); got++) {
			assert_true(st_get_approval(part.p, part.n, &q));
			assert_int_equal(q.status, APPROVAL_PENDING);
			assert_string_equal(q.agent, "builtin");
			n += (size_t)snprintf(text + n, sizeof text - n, "%s/%s ", q.run, q.request);
			(void)snprintf(run, sizeof run, "%s", q.run);
			(void)snprintf(request, sizeof request, "%s", q.request);
			m.after_asked = q.requested_at;
		}
		assert_false(bad || (limit != 0 && got > limit) || (box.more && got == 0));
		m.after_run = run;
		m.after_request = request;
	}
	return text;
}

static void inbox(void **state)
{
	(void)state;
	struct st_run_state a;
	assert_string_equal(inbox_of("acme", 0), "");
	assert_false(box.busy);
	struct st_run_create m = rig_run("acme", "titled");
	m.title = "Repair it";
	assert_int_equal(rig_create(fcgi, &m, &a), ERR_OK);
	assert_string_equal(inbox_of("acme", 0), "");
	assert_true(box.busy && box.waiting == 0); /* its agent may ask at any moment */
	assert_int_equal(cancel("titled", &a), ERR_OK);
	/* In the order in which they were asked, whatever their ids. */
	run("z");
	run("b");
	assert_int_equal(ask("z", "q2", 'a'), ERR_OK);
	set_clock(1 * SECOND);
	assert_int_equal(ask("b", "q1", 'a'), ERR_OK);
	set_clock(2 * SECOND);
	assert_int_equal(ask("z", "q1", 'b'), ERR_OK);
	for (uint16_t limit = 0; limit < 4; limit++) {
		assert_string_equal(inbox_of("acme", limit), "z/q2 b/q1 z/q1 ");
		assert_int_equal(box.waiting, 3);
	}
	assert_string_equal(inbox_of("other", 0), "");
	assert_true(!box.busy && box.waiting == 0);
	(void)rig_stop(&rig, SIGKILL);
	rig_start(&rig);
	assert_string_equal(inbox_of("acme", 2), "z/q2 b/q1 z/q1 ");
	assert_int_equal(decide("b", "q1", DECISION_DENY), ERR_OK);
	assert_string_equal(inbox_of("acme", 0), "z/q2 z/q1 ");
	whole();
	/* One whose time is over is not shown, though nobody has told of it. */
	set_clock(600 * SECOND + 1 * SECOND);
	rig_tenant(&rig, "acme");
	assert_string_equal(inbox_of("acme", 0), "z/q1 ");
	assert_int_equal(box.waiting, 1);
	whole();
	/* What was over stays so when the clock is set back. */
	set_clock(3 * SECOND);
	rig_tenant(&rig, "acme");
	assert_string_equal(inbox_of("acme", 0), "z/q1 ");
	whole();
	assert_int_equal(cancel("z", &a), ERR_OK);
	assert_string_equal(inbox_of("acme", 0), "");
	assert_true(box.busy);
	whole();
	assert_int_equal(finish("z", RUN_EV_FAIL, false, "", &a), ERR_OK);
	assert_int_equal(ask("b", "q2", 'a'), ERR_OK);
	assert_string_equal(inbox_of("acme", 0), "b/q2 ");
	assert_int_equal(finish("b", RUN_EV_FAIL, false, "", &a), ERR_OK);
	assert_string_equal(inbox_of("acme", 0), "");
	assert_false(box.busy);
	whole();
}

/* Cards as large as may be: more than one answer holds. */
static void large(void **state)
{
	(void)state;
	static char preview[16001];
	struct st_run_state a;
	char id[16];
	memset(preview, 'p', sizeof preview - 1);
	run("large");
	for (int i = 0; i < LIMIT_APPROVAL_PENDING; i++) {
		(void)snprintf(id, sizeof id, "q%02d", i);
		struct st_agent_event q = {.request = id,
					   .digest = digest_of('a'),
					   .data = BYTES("{\"request_id\":\"q\"}"),
					   .effect = "execute",
					   .preview = preview};
		assert_int_equal(ask_person(gateway, "large", &q), ERR_OK);
	}
	const char *text = inbox_of("acme", 0);
	for (int i = 0; i < LIMIT_APPROVAL_PENDING; i++) {
		(void)snprintf(id, sizeof id, "large/q%02d ", i);
		assert_memory_equal(text + 10 * i, id, 10);
	}
	assert_int_equal(strlen(text), 10 * LIMIT_APPROVAL_PENDING);
	assert_int_equal(box.waiting, LIMIT_APPROVAL_PENDING);
	assert_int_equal(finish("large", RUN_EV_FAIL, false, "", &a), ERR_OK);
	whole();
}

static bool granted(const char *id, const char *request)
{
	struct st_approval q = {.run = ""};
	listed(id, request, &q);
	assert_string_not_equal(q.run, "");
	return q.granted;
}

static void allow(const char *id, const char *request)
{
	enum err e;
	assert_int_equal(decide_as("dev-1", id, request, DECISION_ALLOW_SESSION, '\0', tap("dev-1", id, request, &e)),
			 ERR_OK);
}

static enum err take_back(const char *by, const char *tenant, const char *id, const char *request)
{
	char actor[64];
	struct st_grant_revoke m = {.tenant = tenant,
				    .run = id,
				    .request = request,
				    .device = "phone",
				    .by = by,
				    .actor = actor,
				    .request_id = "rq"};
	struct st_ok ok;
	(void)snprintf(actor, sizeof actor, "device:%s", by);
	return FCGI(st_call_grant_revoke(fcgi, &m, NULL, &ok, NULL));
}

static void grants(void **state)
{
	(void)state;
	struct st_run_state a;
	struct st_ok ok;
	struct st_token_create tool = {
	    .tenant = "acme", .kind = PRINCIPAL_API, .token_id = "tool-1", .hash = digest_of('t'), .label = "tool"};
	struct st_token_create able = {.tenant = "acme",
				       .kind = PRINCIPAL_API,
				       .token_id = "tool-2",
				       .hash = digest_of('u'),
				       .label = "able",
				       .rights = RIGHT_APPROVE};
	assert_int_equal(st_call_token_create(admin, &tool, NULL, &ok, NULL), ERR_OK);
	assert_int_equal(st_call_token_create(admin, &able, NULL, &ok, NULL), ERR_OK);
	run("gr");
	assert_int_equal(ask("gr", "q1", 'a'), ERR_OK);
	assert_int_equal(ask("gr", "q2", 'b'), ERR_OK);
	assert_false(granted("gr", "q1"));
	allow("gr", "q1");
	assert_int_equal(decide("gr", "q2", DECISION_ALLOW_ONCE), ERR_OK);
	assert_int_equal(ask("gr", "q3", 'a'), ERR_OK);
	assert_string_equal(poll_of("gr", "q3"), "allow_session");
	/* By the question that was answered, and no other. */
	assert_true(granted("gr", "q1") && !granted("gr", "q2") && !granted("gr", "q3"));
	whole();
	assert_int_equal(take_back("dev-1", "acme", "gr", "q2"), ERR_GRANT_NOT_FOUND);
	assert_int_equal(take_back("dev-1", "acme", "gr", "q3"), ERR_GRANT_NOT_FOUND);
	assert_int_equal(take_back("dev-1", "acme", "gr", "none"), ERR_GRANT_NOT_FOUND);
	assert_int_equal(take_back("dev-1", "acme", "none", "q1"), ERR_RUN_NOT_FOUND);
	assert_int_equal(take_back("dev-1", "other", "gr", "q1"), ERR_UNAUTHORIZED);
	assert_int_equal(take_back("nobody", "acme", "gr", "q1"), ERR_UNAUTHORIZED);
	assert_int_equal(take_back("tool-1", "acme", "gr", "q1"), ERR_DEVICE_REQUIRED);
	assert_true(granted("gr", "q1"));
	assert_int_equal(take_back("dev-2", "acme", "gr", "q1"), ERR_OK);
	assert_false(granted("gr", "q1"));
	assert_non_null(strstr(events_of("gr", NULL), "approval.grant_revoked "));
	assert_non_null(strstr(last_data("gr"), "{\"requestId\":\"q1\",\"digest\":\"6161"));
	assert_non_null(strstr(last_data("gr"), "6161\",\"device\":\"phone\"}"));
	assert_int_equal(take_back("dev-2", "acme", "gr", "q1"), ERR_GRANT_NOT_FOUND);
	/* The identical action is asked again, also after a kill; what was decided stays so. */
	(void)rig_stop(&rig, SIGKILL);
	rig_start(&rig);
	assert_int_equal(ask("gr", "q4", 'a'), ERR_OK);
	assert_string_equal(poll_of("gr", "q4"), "pending");
	assert_string_equal(poll_of("gr", "q1"), "allow_session");
	allow("gr", "q4");
	assert_true(granted("gr", "q4") && !granted("gr", "q1"));
	assert_int_equal(take_back("tool-2", "acme", "gr", "q4"), ERR_OK);
	/* It ends with its run. */
	assert_int_equal(ask("gr", "q5", 'a'), ERR_OK);
	allow("gr", "q5");
	assert_int_equal(finish("gr", RUN_EV_COMPLETE, true, "", &a), ERR_OK);
	assert_false(granted("gr", "q5"));
	assert_int_equal(take_back("dev-1", "acme", "gr", "q5"), ERR_GRANT_NOT_FOUND);
	whole();
}

/* "run/request kind decision device" of each, newest first. */
static const char *receipts_of(const char *tenant, uint16_t limit)
{
	static char text[4000], last_id[129];
	struct st_receipt_list m = {.tenant = tenant, .before_receipt = "", .limit = limit};
	struct st_receipts_are a = {.more = true};
	uint64_t at = UINT64_MAX;
	size_t n = 0;
	text[0] = '\0';
	while (a.more) {
		struct wire_bytes part;
		struct st_receipt r;
		bool bad = false;
		unsigned got = 0;
		assert_int_equal(FCGI(st_call_receipt_list(fcgi, &m, NULL, &a, NULL)), ERR_OK);
		for (; wire_list_next(&a.items, &part, &bad); got++) {
			assert_true(st_get_receipt(part.p, part.n, &r) && r.at <= at);
			assert_int_equal(r.digest.n, r.request[0] == '\0' ? 0 : 32);
			n += (size_t)snprintf(text + n, sizeof text - n, "%s/%s %s %s %s\n", r.run, r.request,
					      receipt_names[r.kind], decision_names[r.decision], r.device);
			(void)snprintf(last_id, sizeof last_id, "%s", r.receipt);
			at = r.at;
		}
		assert_false(bad || (limit != 0 && got > limit) || (a.more && got == 0));
		m.before_at = at;
		m.before_receipt = last_id;
	}
	return text;
}

static enum err cancel_by(const char *id, const char *by)
{
	struct st_run_cancel m = {.tenant = "acme", .run = id, .by = by, .request_id = ""};
	struct st_run_state a;
	return FCGI(st_call_run_cancel(fcgi, &m, NULL, &a, NULL));
}

static void receipts(void **state)
{
	(void)state;
	static const char want[] = "r2/ cancel  dev-2\n"
				   "r1/q3 answer cancel dev-2\n"
				   "r1/q1 grant_revoke  dev-2\n"
				   "r1/q2 answer deny dev-2\n"
				   "r1/q1 answer allow_session dev-1\n";
	int at = 4;
	char before[4000];
	(void)snprintf(before, sizeof before, "%s", receipts_of("acme", 0)); /* of the tests before */
	run("r1");
	assert_int_equal(ask("r1", "q1", 'a'), ERR_OK);
	assert_int_equal(ask("r1", "q2", 'b'), ERR_OK);
	assert_int_equal(ask("r1", "q3", 'c'), ERR_OK);
	assert_string_equal(receipts_of("acme", 0), before); /* not of a question, nor of a first tap */
	set_clock(at++ * SECOND);
	allow("r1", "q1");
	set_clock(at++ * SECOND);
	assert_int_equal(decide_as("dev-2", "r1", "q2", DECISION_DENY, '\0', ""), ERR_OK);
	assert_int_equal(decide_as("dev-1", "r1", "q2", DECISION_ALLOW_ONCE, '\0', ""), ERR_OK);
	assert_false(last.changed);
	set_clock(at++ * SECOND);
	assert_int_equal(take_back("dev-2", "acme", "r1", "q1"), ERR_OK);
	set_clock(at++ * SECOND);
	assert_int_equal(decide_as("dev-2", "r1", "q3", DECISION_CANCEL, '\0', ""), ERR_OK);
	/* A program's doing is none; nor is what changes nothing. */
	assert_int_equal(cancel_by("r1", "api:tool-2"), ERR_OK);
	assert_int_equal(cancel_by("r1", "device:dev-1"), ERR_OK);
	run("r2");
	set_clock(at++ * SECOND);
	assert_int_equal(cancel_by("r2", "device:dev-2"), ERR_OK);
	/* They outlive run and device. */
	struct st_run_state a;
	struct st_ok ok;
	struct st_run_delete d = {.tenant = "acme", .run = "r1", .by = "x", .request_id = ""};
	struct st_device_revoke end = {.tenant = "acme", .label = "dev-2", .by = "x", .request_id = ""};
	assert_int_equal(finish("r1", RUN_EV_FAIL, false, "", &a), ERR_OK);
	assert_int_equal(FCGI(st_call_run_delete(fcgi, &d, NULL, &ok, NULL)), ERR_OK);
	assert_int_equal(FCGI(st_call_device_revoke(fcgi, &end, NULL, &ok, NULL)), ERR_OK);
	(void)rig_stop(&rig, SIGKILL);
	rig_start(&rig);
	for (uint16_t limit = 0; limit < 4; limit++) {
		const char *all = receipts_of("acme", limit);
		assert_memory_equal(all, want, sizeof want - 1);
		assert_string_equal(all + sizeof want - 1, before);
	}
	assert_string_equal(receipts_of("other", 0), "");
	whole();
}

static void devices(void **state)
{
	(void)state;
	char id[32], after[161];
	/* Ids in another order than labels. */
	for (int i = 0; i < MANY_DEVICES; i++) {
		struct st_ok ok;
		char label[32];
		(void)snprintf(id, sizeof id, "many-%03d", i * 7 % MANY_DEVICES);
		(void)snprintf(label, sizeof label, "m %03d", i);
		uint8_t hash[32] = {9, (uint8_t)i};
		struct st_token_create m = {.tenant = i % 10 == 0 ? "other" : "acme",
					    .kind = PRINCIPAL_DEVICE,
					    .token_id = id,
					    .hash = {hash, sizeof hash},
					    .label = label};
		assert_int_equal(st_call_token_create(admin, &m, NULL, &ok, NULL), ERR_OK);
	}
	static const uint16_t limits[] = {0, 1, 7, 100, 200};
	for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
		struct st_device_list m = {.tenant = "acme", .after = "m", .limit = limits[l]};
		struct st_devices_are a = {.more = true};
		int next = 0;
		(void)snprintf(after, sizeof after, "m");
		while (a.more) {
			struct wire_bytes part;
			struct st_device d;
			bool bad = false;
			unsigned got = 0;
			m.after = after;
			assert_int_equal(FCGI(st_call_device_list(fcgi, &m, NULL, &a, NULL)), ERR_OK);
			for (; wire_list_next(&a.items, &part, &bad); got++) {
				assert_true(st_get_device(part.p, part.n, &d));
				next += next % 10 == 0;
				(void)snprintf(id, sizeof id, "m %03d", next++);
				assert_string_equal(d.label, id);
				(void)snprintf(after, sizeof after, "%s", d.label);
			}
			assert_true(!bad && got > 0 && (limits[l] == 0 || got <= limits[l]));
		}
		assert_int_equal(next, MANY_DEVICES);
	}
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
	const struct CMUnitTest tests[] = {cmocka_unit_test(inbox), cmocka_unit_test(large), cmocka_unit_test(grants),
					   cmocka_unit_test(receipts), cmocka_unit_test(devices)};
	return cmocka_run_group_tests(tests, setup, settable_teardown);
}
