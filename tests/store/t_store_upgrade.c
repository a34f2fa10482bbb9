/*
 * A store that an older program left is brought into the present form, whatever is killed meanwhile; one of a newer
 * program is left alone.
 */
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

#include "tests/store/old_form.h"
#include "tests/store/steps.h"

enum { ENDED = 900, OPEN = 20, WAITING = 30, PRESENT = 6 };

static const uint8_t hash[32] = {4};

static enum err principal(const char *id)
{
	struct st_principal m = {.token_id = id, .hash = {hash, 32}};
	struct st_principal_is is;
	return FCGI(st_call_principal(fcgi, &m, NULL, &is, NULL));
}

static void token(const char *id)
{
	struct st_token_create m = {.tenant = "acme", .kind = 1, .token_id = id, .hash = {hash, 32}, .label = ""};
	struct st_ok ok;
	assert_int_equal(st_call_token_create(admin, &m, NULL, &ok, NULL), ERR_OK);
}

static void revoke_token(const char *id)
{
	struct st_token_revoke m = {.tenant = "acme", .token_id = id};
	struct st_ok ok;
	assert_int_equal(st_call_token_revoke(admin, &m, NULL, &ok, NULL), ERR_OK);
}

static void fill(void)
{
	char id[32];
	struct st_run_state a;
	for (int i = 0; i < ENDED + OPEN; i++) {
		(void)snprintf(id, sizeof id, "run-%d", i);
		struct st_run_create m = rig_run("acme", id);
		assert_int_equal(rig_create(fcgi, &m, &a), ERR_OK);
		if (i < ENDED)
			assert_int_equal(cancel(id, &a), ERR_OK);
	}
	token("good");
	token("bad");
	revoke_token("bad");
	for (int i = 0; i < WAITING; i++) {
		(void)snprintf(id, sizeof id, "q%02d", i);
		struct st_agent_event q = {.request = id,
					   .digest = {hash, 32},
					   .data = BYTES("{\"request_id\":\"q\"}"),
					   .effect = "execute",
					   .preview = "make"};
		if (i == 0)
			assert_int_equal(rig_running(fcgi, steward, "acme", "asks", 3), ERR_OK);
		assert_int_equal(ask_person(gateway, "asks", &q), ERR_OK);
	}
}

static uint32_t waiting(void)
{
	struct st_inbox_get m = {.tenant = "acme", .after_run = "", .after_request = ""};
	struct st_inbox_is is;
	assert_int_equal(FCGI(st_call_inbox_get(fcgi, &m, NULL, &is, NULL)), ERR_OK);
	return is.waiting;
}

static void all_there(void)
{
	char id[32];
	struct st_run_state a;
	assert_int_equal(waiting(), WAITING);
	for (int i = 0; i < ENDED + OPEN; i += 50) {
		(void)snprintf(id, sizeof id, "run-%d", i);
		assert_int_equal(run_is(id).finished, i < ENDED);
	}
	assert_int_equal(principal("good"), ERR_OK);
	assert_int_equal(principal("bad"), ERR_UNAUTHORIZED);
	/* Records of the old version are written in the present one. */
	(void)snprintf(id, sizeof id, "run-%d", ENDED);
	assert_int_equal(cancel(id, &a), ERR_OK);
	assert_true(run_is(id).finished);
	revoke_token("good");
	assert_int_equal(principal("good"), ERR_UNAUTHORIZED);
}

static void old_becomes_new(void **state)
{
	(void)state;
	fill();
	assert_int_equal(rig_stop(&rig, SIGTERM), 0);
	assert_int_equal(ended_rows(rig.state), ENDED);
	assert_int_equal(old_form(rig.state), ENDED + OPEN + 1 + 2);
	assert_int_equal(form_of(rig.state), 0);
	/* Killed at moments that move through the start. */
	unsigned kills = 0;
	for (unsigned us = 0; us < 60000; us += 1500) {
		rig_start(&rig);
		(void)usleep(us);
		kills += WIFSIGNALED(rig_stop(&rig, SIGKILL));
	}
	rig_start(&rig);
	all_there();
	assert_true(rig_logged(&rig, "the store is upgraded to form 2"));
	assert_int_equal(rig_stop(&rig, SIGTERM), 0);
	assert_int_equal(form_of(rig.state), PRESENT);
	assert_int_equal(ended_rows(rig.state), ENDED + 1);
	rig_start(&rig);
	print_message("killed %u times\n", kills);
}

static void newer_is_refused(void **state)
{
	(void)state;
	assert_true(run_is("run-0").finished); /* it has begun to listen to signals */
	assert_int_equal(rig_stop(&rig, SIGTERM), 0);
	form_set(rig.state, PRESENT + 1);
	rig_start(&rig);
	int status = rig_stop(&rig, 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	assert_true(rig_logged(&rig, "this program knows forms up to 6"));
	form_set(rig.state, PRESENT);
	rig_start(&rig);
	assert_true(run_is("run-0").finished);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(old_becomes_new), cmocka_unit_test(newer_is_refused)};
	return cmocka_run_group_tests(tests, steps_setup, steps_teardown);
}
