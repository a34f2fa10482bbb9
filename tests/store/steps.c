/* See steps.h. */
#include "tests/store/steps.h"
#include "lib/token.h"
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

#include <cmocka.h>

struct rig rig;
struct ask *fcgi, *gateway, *steward, *admin;

int steps_connect(void)
{
	rig_tenant(&rig, "acme");
	rig_tenant(&rig, "other");
	fcgi = rig_ask(&rig, RIG_FCGI);
	gateway = rig_ask(&rig, RIG_GATEWAY);
	steward = rig_ask(&rig, RIG_STEWARD);
	admin = rig_ask(&rig, RIG_ADMIN);
	if (fcgi != NULL && gateway != NULL && steward != NULL && admin != NULL)
		return 0;
	rig_close(&rig);
	return -1;
}

int steps_setup(void **state)
{
	(void)state;
	rig_open(&rig, NULL);
	rig_start(&rig);
	return steps_connect();
}

int steps_teardown(void **state)
{
	(void)state;
	ask_free(fcgi);
	ask_free(gateway);
	ask_free(steward);
	ask_free(admin);
	rig_close(&rig);
	return 0;
}

const char *events_of(const char *run, bool *terminal)
{
	static char all[200000];
	struct st_events_read m = {.tenant = "acme", .run = run};
	struct st_events_are a;
	uint64_t next = 1;
	all[0] = '\0';
	do {
		assert_int_equal(FCGI(st_call_events_read(fcgi, &m, NULL, &a, NULL)), ERR_OK);
		struct wire_bytes part;
		bool bad = false;
		while (wire_list_next(&a.events, &part, &bad)) {
			struct st_event ev;
			assert_true(st_get_event(part.p, part.n, &ev));
			assert_int_equal(ev.sequence, next++);
			if (strlen(all) + strlen(ev.type) + 2 < sizeof all) {
				strcat(all, ev.type);
				strcat(all, " ");
			}
		}
		assert_false(bad);
		assert_int_equal(a.last, next - 1);
		m.after = a.last;
	} while (a.more);
	if (terminal != NULL)
		*terminal = a.terminal;
	return all;
}

const char *last_data(const char *run)
{
	static char data[70000];
	struct st_run_get g = {.tenant = "acme", .run = run};
	struct st_run_is is;
	assert_int_equal(FCGI(st_call_run_get(fcgi, &g, NULL, &is, NULL)), ERR_OK);
	struct st_events_read m = {.tenant = "acme", .run = run, .after = is.last_sequence - 1};
	struct st_events_are a;
	assert_int_equal(FCGI(st_call_events_read(fcgi, &m, NULL, &a, NULL)), ERR_OK);
	struct wire_bytes part;
	bool bad = false;
	struct st_event ev;
	assert_true(wire_list_next(&a.events, &part, &bad) && st_get_event(part.p, part.n, &ev));
	(void)snprintf(data, sizeof data, "%.*s", (int)ev.data.n, (const char *)ev.data.p);
	return data;
}

struct st_run_is run_is(const char *run)
{
	struct st_run_get m = {.tenant = "acme", .run = run};
	struct st_run_is a;
	assert_int_equal(FCGI(st_call_run_get(fcgi, &m, NULL, &a, NULL)), ERR_OK);
	return a;
}

enum err finish(const char *run, enum run_event ev, bool success, const char *error, struct st_run_state *a)
{
	struct st_run_finish m = {.tenant = "acme",
				  .run = run,
				  .event = (uint8_t)ev,
				  .success = success,
				  .exited = true,
				  .terminal_reason = ev == RUN_EV_COMPLETE  ? "completed"
						     : ev == RUN_EV_UNCLEAN ? "sandbox_cleanup_failed"
						     : ev == RUN_EV_RESTART ? "controller_restarted"
									    : "agent_failed",
				  .error = error,
				  .summary = BYTES("\"did it\""),
				  .changed_files = BYTES("[\"a.py\"]"),
				  .verification = BYTES("[]")};
	return STEWARD(st_call_run_finish(steward, &m, NULL, a, NULL));
}

enum err cancel(const char *run, struct st_run_state *a)
{
	struct st_run_cancel m = {.tenant = "acme", .run = run, .by = "tests \"x\""};
	return FCGI(st_call_run_cancel(fcgi, &m, NULL, a, NULL));
}

enum err consume(const char *run, struct st_cap_is *a)
{
	struct st_run_create like = rig_run("acme", run);
	struct st_cap_consume m = {.tenant = "acme", .run = run, .model = like.model, .fingerprint = like.fingerprint};
	return GATEWAY(st_call_cap_consume(gateway, &m, NULL, a, NULL));
}

enum err append(const char *run, const char *type, size_t size, unsigned times, struct st_events_taken *a)
{
	static uint8_t page[180000];
	static char data[64000];
	struct wire_list l = {.p = page, .cap = sizeof page};
	memset(data, ' ', sizeof data);
	data[0] = '{';
	data[size - 1] = '}';
	struct st_agent_event ev = {.type = type, .data = {(const uint8_t *)data, (uint32_t)size}};
	for (unsigned i = 0; i < times; i++) {
		uint8_t *p = wire_list_room(&l, 200 + size);
		assert_non_null(p);
		wire_list_add(&l, st_put_agent_event(p, 200 + size, &ev));
	}
	struct st_events_append m = {.tenant = "acme", .run = run, .events = wire_list_done(&l)};
	return GATEWAY(st_call_events_append(gateway, &m, NULL, a, NULL));
}

enum err ask_person(struct ask *a, const char *run, const struct st_agent_event *q)
{
	static uint8_t page[100000];
	struct st_agent_event ev = *q;
	struct st_events_taken taken;
	struct wire_list l = {.p = page, .cap = sizeof page};
	ev.type = "approval.requested";
	wire_list_add(&l, st_put_agent_event(wire_list_room(&l, sizeof page - 4), sizeof page - 4, &ev));
	struct st_events_append m = {.tenant = "acme", .run = run, .events = wire_list_done(&l)};
	return GATEWAY(st_call_events_append(a, &m, NULL, &taken, NULL));
}

void deciding_device(const char *token_id)
{
	static uint8_t hash[32];
	struct st_ok ok;
	hash[0]++;
	struct st_token_create m = {.tenant = "acme",
				    .kind = PRINCIPAL_DEVICE,
				    .token_id = token_id,
				    .hash = {hash, sizeof hash},
				    .label = token_id};
	assert_int_equal(st_call_token_create(admin, &m, NULL, &ok, NULL), ERR_OK);
}

uint64_t figure(const char *name)
{
	struct st_metrics m = {0};
	struct st_metrics_are a;
	static char text[160001];
	char want[128];
	assert_int_equal(st_call_metrics(admin, &m, NULL, &a, NULL), ERR_OK);
	(void)snprintf(text, sizeof text, "\n%.*s", (int)a.text.n, (const char *)a.text.p);
	(void)snprintf(want, sizeof want, "\n%s ", name);
	const char *at = strstr(text, want);
	return at == NULL ? 0 : strtoull(at + strlen(want), NULL, 10);
}

unsigned questions_of(const char *tenant, const char *run, const char *request, struct st_approval *out)
{
	struct st_approval_list m = {.tenant = tenant, .run = run, .after = ""};
	struct st_approvals_are a = {.more = true};
	static char after[129];
	unsigned waiting = 0;
	while (a.more) {
		struct wire_bytes part;
		struct st_approval q;
		bool bad = false;
		assert_int_equal(FCGI(st_call_approval_list(fcgi, &m, NULL, &a, NULL)), ERR_OK);
		while (wire_list_next(&a.items, &part, &bad)) {
			assert_true(st_get_approval(part.p, part.n, &q));
			waiting += q.status == APPROVAL_PENDING;
			if (out != NULL && strcmp(q.request, request) == 0)
				*out = q;
			(void)snprintf(after, sizeof after, "%s", q.request);
		}
		assert_false(bad);
		m.after = after;
	}
	return waiting;
}
