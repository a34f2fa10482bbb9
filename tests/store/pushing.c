/* See pushing.h. */
#include "tests/store/pushing.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { PRINCIPAL_DEVICE = 2 };

static long long clock_offset, timer_offset, day = 24LL * HOUR;
static char key_now;
static const char kinds[PUSH_KIND__COUNT] = {[PUSH_CARD] = 'c', [PUSH_CLEAR] = 'x', [PUSH_SUMMARY] = 's'};

int pushing_setup(void **state)
{
	if (settable_setup(state) != 0)
		return -1;
	timer_offset = day;
	set_timer(timer_offset);
	ready('a');
	device("acme", "judge-acme", 0);
	device("other", "judge-other", 0);
	return 0;
}

int pushing_phone(void **state)
{
	if (pushing_setup(state) != 0)
		return -1;
	device("acme", "phone", 0);
	return subscribe("acme", "phone") == ERR_OK ? 0 : -1;
}

int pushing_teardown(void **state)
{
	ask_free(push);
	return settable_teardown(state);
}

void pass(long long ms)
{
	timer_offset += ms;
	set_timer(timer_offset);
	step_clock(ms);
}

void step_clock(long long ms)
{
	clock_offset += ms;
	set_clock(clock_offset);
}

uint64_t there(void)
{
	return clock_ms() + (uint64_t)clock_offset;
}

void restart(bool anew)
{
	(void)rig_stop(&rig, SIGKILL);
	if (anew) {
		/* It has been up for a second, whatever the real one has. */
		timer_offset = SECOND - (long long)timer_ms();
		set_timer(timer_offset);
	}
	rig_start(&rig);
	ready(key_now);
}

void ready(char letter)
{
	key_now = letter;
	push_ready(letter);
}

void device(const char *tenant, const char *id, uint64_t expires_at)
{
	static const uint8_t hash[32] = {9};
	struct st_token_create m = {.tenant = tenant,
				    .kind = PRINCIPAL_DEVICE,
				    .token_id = id,
				    .hash = {hash, 32},
				    .label = id,
				    .expires_at = expires_at};
	struct st_ok ok;
	assert_int_equal(st_call_token_create(admin, &m, NULL, &ok, NULL), ERR_OK);
}

enum err subscribe(const char *tenant, const char *id)
{
	return push_put_at(tenant, id, NULL);
}

void revoke_device(const char *tenant, const char *label)
{
	struct st_device_revoke m = {.tenant = tenant, .label = label, .by = "operator", .request_id = ""};
	struct st_ok ok;
	assert_int_equal(FCGI(st_call_device_revoke(fcgi, &m, NULL, &ok, NULL)), ERR_OK);
}

void working(const char *tenant, const char *run)
{
	struct st_run_phase m = {.tenant = tenant, .run = run, .phase = PHASE_EXECUTING};
	struct st_run_state a;
	/* The clock may be anywhere. */
	struct st_run_create create = rig_run(tenant, run);
	struct st_run_start start = {.tenant = tenant, .run = run, .expires_at = UINT64_MAX};
	struct st_run_work work;
	assert_int_equal(rig_create(fcgi, &create, NULL), ERR_OK);
	assert_int_equal(STEWARD(st_call_run_start(steward, &start, NULL, &work, NULL)), ERR_OK);
	assert_int_equal(STEWARD(st_call_run_phase(steward, &m, NULL, &a, NULL)), ERR_OK);
}

void question(const char *tenant, const char *run, const char *request)
{
	static const uint8_t digest[32] = {5};
	static uint8_t page[4096];
	struct wire_list l = {.p = page, .cap = sizeof page};
	struct st_agent_event ev = {.type = "approval.requested",
				    .request = request,
				    .digest = {digest, 32},
				    .data = BYTES("{\"request_id\":\"q\"}"),
				    .action_id = "call-1",
				    .effect = "execute",
				    .reason = "model_tool",
				    .policy_reason = "ask",
				    .preview = "make test"};
	struct st_events_taken taken;
	wire_list_add(&l, st_put_agent_event(wire_list_room(&l, 2048), 2048, &ev));
	struct st_events_append m = {.tenant = tenant, .run = run, .events = wire_list_done(&l)};
	assert_int_equal(GATEWAY(st_call_events_append(gateway, &m, NULL, &taken, NULL)), ERR_OK);
}

enum err decided(const char *tenant, const char *run, const char *request)
{
	char by[160];
	(void)snprintf(by, sizeof by, "judge-%s", tenant);
	struct st_approval_decide m = {.tenant = tenant,
				       .run = run,
				       .request = request,
				       .decision = DECISION_ALLOW_ONCE,
				       .confirm = "",
				       .device = "judge",
				       .by = by,
				       .actor = "device:x",
				       .request_id = "rq"};
	struct st_approval_decided a;
	return FCGI(st_call_approval_decide(fcgi, &m, NULL, &a, NULL));
}

unsigned cards(const char *tenant, const char *run)
{
	return questions_of(tenant, run, NULL, NULL);
}

/* Beyond the next answer, which comes into the same buffer. */
static const char *kept(const char *text)
{
	static char slot[128][300];
	static unsigned at;
	char *copy = slot[at++ % 128];
	(void)snprintf(copy, sizeof slot[0], "%s", text);
	return copy;
}

char next(struct st_push_is *a)
{
	struct st_push_next m = {0};
	assert_int_equal(PUSHING(st_call_push_next(push, &m, NULL, a, NULL)), ERR_OK);
	a->tenant = kept(a->tenant);
	a->label = kept(a->label);
	a->run = kept(a->run);
	a->request = kept(a->request);
	a->topic = kept(a->topic);
	a->endpoint = kept(a->endpoint);
	if (a->id == 0)
		return 'n';
	assert_true(a->kind < PUSH_KIND__COUNT);
	return kinds[a->kind];
}

enum err done(const struct st_push_is *a, uint8_t outcome, uint32_t retry_after)
{
	struct st_push_done m = {.tenant = a->tenant, .id = a->id, .outcome = outcome, .retry_after = retry_after};
	struct st_ok ok;
	return PUSHING(st_call_push_done(push, &m, NULL, &ok, NULL));
}

const char *send_all(void)
{
	static char all[300];
	size_t n = 0;
	for (;;) {
		struct st_push_is a;
		char kind = next(&a);
		if (kind == 'n' && a.wait_ms != 1)
			break;
		if (kind == 'n')
			continue;
		assert_true(n < sizeof all - 1);
		all[n++] = kind;
		assert_int_equal(done(&a, PUSH_SENT, 0), ERR_OK);
	}
	all[n] = '\0';
	return all;
}

unsigned findings(void)
{
	struct st_store_check m = {.after = {(const uint8_t *)"", 0}};
	struct st_store_checked a = {.done = false};
	static uint8_t after[600];
	unsigned n = 0;
	while (!a.done) {
		struct wire_bytes part;
		struct st_text text;
		bool bad = false;
		assert_int_equal(st_call_store_check(admin, &m, NULL, &a, NULL), ERR_OK);
		while (wire_list_next(&a.texts, &part, &bad))
			if (st_get_text(part.p, part.n, &text))
				print_message("%s\n", text.text);
		n += a.findings;
		memcpy(after, a.after.p, a.after.n);
		m.table = a.table;
		m.after = (struct wire_bytes){after, a.after.n};
	}
	return n;
}

void past_budgets(void)
{
	pass(3LL * HOUR);
	(void)send_all();
}
