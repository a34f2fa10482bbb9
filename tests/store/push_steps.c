/* See push_steps.h. */
#include "tests/store/push_steps.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

struct ask *push;
static uint8_t key[65] = {4}, point[65] = {4, 1}, auth[16] = {7};

void push_ready(char letter)
{
	struct st_push_ready m = {.public_key = {key, sizeof key}};
	struct st_ok ok;
	if (push == NULL)
		push = rig_ask(&rig, RIG_PUSH);
	assert_non_null(push);
	key[1] = (uint8_t)letter;
	assert_int_equal(PUSHING(st_call_push_ready(push, &m, NULL, &ok, NULL)), ERR_OK);
}

enum err push_put_at(const char *tenant, const char *id, const char *endpoint)
{
	char own[300];
	(void)snprintf(own, sizeof own, "https://push.example.com/send/%s/%s", tenant, id);
	struct st_push_put m = {.tenant = tenant,
				.token_id = id,
				.endpoint = endpoint != NULL ? endpoint : own,
				.p256dh = {point, sizeof point},
				.auth = {auth, sizeof auth},
				.by = "device:x",
				.request_id = "rq"};
	struct st_ok ok;
	return FCGI(st_call_push_put(fcgi, &m, NULL, &ok, NULL));
}

bool push_has(const char *tenant, const char *id)
{
	struct st_push_state m = {.tenant = tenant, .token_id = id};
	struct st_push_state_is a;
	assert_int_equal(FCGI(st_call_push_state(fcgi, &m, NULL, &a, NULL)), ERR_OK);
	return a.subscribed;
}
