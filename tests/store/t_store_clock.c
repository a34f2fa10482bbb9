/* A clock that is set back revives nothing, and does not stop what is new. */
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

#include "tests/store/settable.h"
#include "tests/store/steps.h"

enum { MINUTE = 60000, HOUR = 60 * MINUTE };

static const uint8_t hash[32] = {4};

static void token(const char *id, uint64_t expires_at)
{
	struct st_token_create m = {
	    .tenant = "acme", .kind = 1, .token_id = id, .hash = {hash, 32}, .label = "", .expires_at = expires_at};
	struct st_ok ok;
	assert_int_equal(st_call_token_create(admin, &m, NULL, &ok, NULL), ERR_OK);
}

static enum err principal(const char *id)
{
	struct st_principal m = {.token_id = id, .hash = {hash, 32}};
	struct st_principal_is is;
	return FCGI(st_call_principal(fcgi, &m, NULL, &is, NULL));
}

static void set_back(void **state)
{
	bool restarted = *state != NULL;
	const char *old = restarted ? "old-2" : "old", *new = restarted ? "new-2" : "new";
	const char *brief = restarted ? "brief-2" : "brief", *lasting = restarted ? "long-2" : "long";
	struct st_cap_is cap;
	struct st_run_is is;
	assert_int_equal(rig_running(fcgi, steward, "acme", old, 5), ERR_OK); /* for an hour */
	token(brief, clock_ms() + HOUR);
	token(lasting, clock_ms() + 4 * HOUR);
	assert_int_equal(consume(old, &cap), ERR_OK);
	assert_int_equal(principal(brief), ERR_OK);
	/* Two hours on. Something else is written, nobody looks at the capability. */
	set_clock(2 * HOUR);
	rig_tenant(&rig, "acme");
	rig_tenant(&rig, restarted ? "t2" : "t1");
	if (restarted) {
		assert_true(WIFSIGNALED(rig_stop(&rig, SIGKILL)));
		set_clock(0);
		rig_start(&rig);
	}
	set_clock(0);
	assert_int_equal(consume(old, &cap), ERR_INACTIVE_RUN_TOKEN);
	assert_int_equal(principal(brief), ERR_UNAUTHORIZED);
	assert_int_equal(principal(lasting), ERR_OK);
	assert_int_equal(rig_running(fcgi, steward, "acme", new, 5), ERR_OK);
	assert_int_equal(consume(new, &cap), ERR_OK);
	is = run_is(new);
	assert_true(is.created_at < clock_ms() + MINUTE);
	assert_true(rig_logged(&rig, "what had expired stays expired"));
}

/* A small step is no step: time stands still for it, and nothing is taken away. */
static void small_step(void **state)
{
	(void)state;
	struct st_cap_is cap;
	assert_int_equal(rig_running(fcgi, steward, "acme", "small", 5), ERR_OK);
	assert_int_equal(consume("small", &cap), ERR_OK);
	uint64_t before = run_is("small").updated_at;
	set_clock(-3000);
	assert_int_equal(consume("small", &cap), ERR_OK);
	assert_true(run_is("small").updated_at >= before);
	set_clock(0);
}

/* A key lives for 24 hours; then it is free again, and creations remove the old ones, a few at a time. */
static void keys_expire(void **state)
{
	(void)state;
	char key[16], run[32];
	struct st_run_state a;
	uint64_t had = figure("pinfold_idempotency_keys");
	set_clock(0);
	for (int i = 0; i < 20; i++) {
		(void)snprintf(key, sizeof key, "key-%d", i);
		(void)snprintf(run, sizeof run, "keyed-%d", i);
		struct st_run_create m = rig_run("acme", run);
		m.idempotency = key;
		assert_int_equal(rig_create(fcgi, &m, &a), ERR_OK);
	}
	assert_int_equal(figure("pinfold_idempotency_keys"), had + 20);
	struct st_run_create m = rig_run("acme", "keyed-again");
	m.idempotency = "key-5";
	set_clock(24 * HOUR - 5 * MINUTE);
	assert_int_equal(rig_create(fcgi, &m, &a), ERR_OK);
	assert_string_equal(a.run, "keyed-5");
	set_clock(24 * HOUR + MINUTE);
	assert_int_equal(rig_create(fcgi, &m, &a), ERR_OK);
	assert_string_equal(a.run, "keyed-again");
	assert_true(a.changed);
	uint64_t left = figure("pinfold_idempotency_keys");
	assert_true(left < had + 20 && left > had + 1);
	for (int i = 0; i < 4; i++) {
		(void)snprintf(run, sizeof run, "unkeyed-%d", i);
		m = rig_run("acme", run);
		assert_int_equal(rig_create(fcgi, &m, &a), ERR_OK);
	}
	assert_int_equal(figure("pinfold_idempotency_keys"), 1);
	/* It holds again, for the new run. */
	m = rig_run("acme", "keyed-third");
	m.idempotency = "key-5";
	assert_int_equal(rig_create(fcgi, &m, &a), ERR_OK);
	assert_string_equal(a.run, "keyed-again");
}

int main(void)
{
	static bool restarted = true;
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(small_step),
	    cmocka_unit_test_prestate(set_back, NULL),
	    cmocka_unit_test_prestate(set_back, &restarted),
	    cmocka_unit_test(keys_expire),
	};
	return cmocka_run_group_tests(tests, settable_setup, settable_teardown);
}
