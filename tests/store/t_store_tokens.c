/* A token's second secret: good beside the first, then in its place, or gone; whoever reads by it, and whenever. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/token.h"
#include "tests/store/settable.h"
#include "tests/store/steps.h"

enum { HOUR = 3600000 };

static const uint8_t one[32] = {1}, two[32] = {2}, three[32] = {3};
static struct st_ok ok;

static enum err made(uint8_t kind, const char *id, uint64_t expires_at)
{
	struct st_token_create m = {
	    .tenant = "acme", .kind = kind, .token_id = id, .hash = {one, 32}, .label = id, .expires_at = expires_at};
	return st_call_token_create(admin, &m, NULL, &ok, NULL);
}

static enum err rotate_as(uint8_t kind, const char *id, const uint8_t *hash, uint64_t expires_at)
{
	struct st_token_rotate m = {
	    .tenant = "acme", .kind = kind, .token_id = id, .hash = {hash, 32}, .expires_at = expires_at};
	return st_call_token_rotate(admin, &m, NULL, &ok, NULL);
}

static enum err rotate(const char *id, const uint8_t *hash)
{
	return rotate_as(PRINCIPAL_API, id, hash, 0);
}

static enum err promote(const char *id)
{
	struct st_token_promote m = {.tenant = "acme", .token_id = id};
	return st_call_token_promote(admin, &m, NULL, &ok, NULL);
}

static enum err drop(const char *id)
{
	struct st_token_drop m = {.tenant = "acme", .token_id = id};
	return st_call_token_drop(admin, &m, NULL, &ok, NULL);
}

static enum err end_token(const char *id)
{
	struct st_token_revoke m = {.tenant = "acme", .token_id = id};
	return st_call_token_revoke(admin, &m, NULL, &ok, NULL);
}

/* Whoever asks for an open stream. */
static enum err stream(const char *id, const uint8_t *hash)
{
	uint8_t items[400];
	struct wire_list list = {.p = items, .cap = sizeof items};
	struct st_stream_item item = {.tenant = "acme", .run = "followed", .token_id = id, .token_hash = {hash, 32}};
	struct st_streams_check m;
	struct st_streams_are are;
	struct wire_bytes part;
	struct st_stream_state s;
	bool bad = false;
	wire_list_add(&list, st_put_stream_item(wire_list_room(&list, ST_MAX_STREAM_ITEM), ST_MAX_STREAM_ITEM, &item));
	m.items = wire_list_done(&list);
	assert_int_equal(FCGI(st_call_streams_check(fcgi, &m, NULL, &are, NULL)), ERR_OK);
	assert_true(wire_list_next(&are.items, &part, &bad) && st_get_stream_state(part.p, part.n, &s));
	return (enum err)s.refused;
}

/* A secret is worth the same wherever it is looked at. */
static enum err worth(const char *id, const uint8_t *hash)
{
	struct st_principal m = {.token_id = id, .hash = {hash, 32}};
	struct st_run_get g = {.tenant = "acme", .run = "followed", .token_id = id, .token_hash = {hash, 32}};
	struct st_principal_is is;
	struct st_run_is run;
	enum err e = FCGI(st_call_principal(fcgi, &m, NULL, &is, NULL));
	assert_int_equal(stream(id, hash) == ERR_OK, e == ERR_OK);
	bool api = e != ERR_OK || is.kind == PRINCIPAL_API;
	enum err by_run = FCGI(st_call_run_get(fcgi, &g, NULL, &run, NULL));
	assert_true(by_run == (e == ERR_OK && api ? ERR_OK : ERR_UNAUTHORIZED));
	return e;
}

static struct st_token_item listed(const char *id)
{
	struct st_tokens_are are;
	struct wire_bytes part;
	struct st_token_item item = {0};
	bool bad = false;
	assert_int_equal(st_call_token_list(admin, &(struct st_token_list){.tenant = "acme"}, NULL, &are, NULL),
			 ERR_OK);
	while (wire_list_next(&are.items, &part, &bad))
		if (st_get_token_item(part.p, part.n, &item) && strcmp(item.token_id, id) == 0)
			return item;
	fail_msg("token %s is not listed", id);
	return item;
}

static void both_then_one(void **state)
{
	(void)state;
	assert_int_equal(made(PRINCIPAL_API, "ci", 0), ERR_OK);
	assert_int_equal(promote("ci"), ERR_TOKEN_NEXT_MISSING);
	assert_int_equal(drop("ci"), ERR_TOKEN_NEXT_MISSING);
	assert_false(listed("ci").next);
	assert_int_equal(rotate("ci", one), ERR_TOKEN_NEXT_EXISTS); /* the same secret is no second one */
	assert_int_equal(rotate_as(PRINCIPAL_DEVICE, "ci", two, 0), ERR_TOKEN_NOT_FOUND);
	assert_int_equal(rotate("ci", two), ERR_OK);
	assert_int_equal(rotate("ci", two), ERR_OK); /* asked again */
	assert_int_equal(rotate("ci", three), ERR_TOKEN_NEXT_EXISTS);
	assert_int_equal(worth("ci", one), ERR_OK);
	assert_int_equal(worth("ci", two), ERR_OK);
	assert_int_equal(worth("ci", three), ERR_UNAUTHORIZED);
	struct st_token_item item = listed("ci");
	assert_true(item.next && item.next_at >= item.secret_at && item.next_expires_at == 0);
	uint64_t next_at = item.next_at;
	assert_int_equal(promote("ci"), ERR_OK);
	assert_int_equal(worth("ci", one), ERR_UNAUTHORIZED);
	assert_int_equal(worth("ci", two), ERR_OK);
	item = listed("ci");
	assert_true(!item.next && item.secret_at == next_at && item.created_at <= next_at);
	assert_int_equal(rotate("ci", three), ERR_OK);
	assert_int_equal(drop("ci"), ERR_OK);
	assert_int_equal(worth("ci", two), ERR_OK);
	assert_int_equal(worth("ci", three), ERR_UNAUTHORIZED);
	/* What is revoked is so with both its secrets, and neither comes back. */
	assert_int_equal(rotate("ci", three), ERR_OK);
	assert_int_equal(end_token("ci"), ERR_OK);
	assert_int_equal(worth("ci", two), ERR_UNAUTHORIZED);
	assert_int_equal(worth("ci", three), ERR_UNAUTHORIZED);
	assert_int_equal(rotate("ci", three), ERR_TOKEN_OVER);
	assert_int_equal(promote("ci"), ERR_TOKEN_OVER);
	assert_int_equal(drop("ci"), ERR_TOKEN_OVER);
}

static void not_others(void **state)
{
	(void)state;
	struct st_token_rotate r = {.tenant = "other", .kind = 1, .token_id = "mine", .hash = {two, 32}};
	struct st_token_promote p = {.tenant = "other", .token_id = "mine"};
	struct st_token_drop d = {.tenant = "other", .token_id = "mine"};
	assert_int_equal(made(PRINCIPAL_API, "mine", 0), ERR_OK);
	assert_int_equal(rotate("mine", two), ERR_OK);
	assert_int_equal(st_call_token_rotate(admin, &r, NULL, &ok, NULL), ERR_TOKEN_NOT_FOUND);
	assert_int_equal(st_call_token_promote(admin, &p, NULL, &ok, NULL), ERR_TOKEN_NOT_FOUND);
	assert_int_equal(st_call_token_drop(admin, &d, NULL, &ok, NULL), ERR_TOKEN_NOT_FOUND);
	assert_int_equal(rotate("nobody", two), ERR_TOKEN_NOT_FOUND);
	r = (struct st_token_rotate){.tenant = "acme", .kind = 1, .token_id = "mine", .hash = {two, 31}};
	assert_int_equal(st_call_token_rotate(admin, &r, NULL, &ok, NULL), ERR_INVALID_REQUEST);
	assert_int_equal(rotate_as(1, "mine", two, 1), ERR_INVALID_REQUEST); /* over before it begins */
	assert_int_equal(worth("mine", one), ERR_OK);
	assert_int_equal(worth("mine", two), ERR_OK);
	/* An empty hash is no secret, whatever slot is empty. */
	struct st_principal none = {.token_id = "mine"};
	struct st_principal_is is;
	assert_int_equal(drop("mine"), ERR_OK);
	assert_int_equal(FCGI(st_call_principal(fcgi, &none, NULL, &is, NULL)), ERR_UNAUTHORIZED);
}

/* A device is one as long as one of its secrets is good. */
static bool decides(const char *id)
{
	struct st_devices_are are;
	struct wire_bytes part;
	struct st_device d;
	bool bad = false;
	struct st_device_list m = {.tenant = "acme", .after = ""};
	assert_int_equal(st_call_device_list(admin, &m, NULL, &are, NULL), ERR_OK);
	while (wire_list_next(&are.items, &part, &bad))
		if (st_get_device(part.p, part.n, &d) && strcmp(d.token_id, id) == 0)
			return true;
	return false;
}

static void each_its_end(void **state)
{
	(void)state;
	uint64_t now = clock_ms();
	assert_int_equal(made(PRINCIPAL_DEVICE, "phone", now + HOUR), ERR_OK);
	assert_int_equal(rotate_as(PRINCIPAL_DEVICE, "phone", two, now + 3 * HOUR), ERR_OK);
	assert_int_equal(made(PRINCIPAL_API, "same", now + HOUR), ERR_OK);
	assert_int_equal(rotate("same", two), ERR_OK);
	assert_true(listed("same").next_expires_at == now + HOUR); /* not longer without a word */
	assert_int_equal(made(PRINCIPAL_API, "short", 0), ERR_OK);
	assert_int_equal(rotate_as(PRINCIPAL_API, "short", two, now + HOUR), ERR_OK);
	assert_int_equal(made(PRINCIPAL_API, "lease", now + HOUR), ERR_OK);
	assert_int_equal(rotate_as(PRINCIPAL_API, "lease", two, now + 3 * HOUR), ERR_OK);
	assert_int_equal(promote("lease"), ERR_OK);
	assert_true(listed("lease").expires_at == now + 3 * HOUR);
	set_clock(2 * HOUR);
	assert_int_equal(worth("lease", two), ERR_OK);
	assert_int_equal(worth("phone", one), ERR_DEVICE_EXPIRED);
	assert_int_equal(worth("phone", two), ERR_OK);
	assert_true(decides("phone"));
	assert_int_equal(worth("same", one), ERR_UNAUTHORIZED);
	assert_int_equal(worth("same", two), ERR_UNAUTHORIZED);
	assert_int_equal(promote("same"), ERR_TOKEN_OVER);
	assert_int_equal(worth("short", one), ERR_OK);
	assert_int_equal(worth("short", two), ERR_UNAUTHORIZED);
	assert_int_equal(promote("short"), ERR_TOKEN_OVER); /* it would end it */
	/* The clock goes back: of each what had expired stays so, and nothing else. */
	set_clock(0);
	assert_int_equal(worth("phone", one), ERR_UNAUTHORIZED);
	assert_int_equal(worth("phone", two), ERR_OK);
	assert_false(listed("phone").next);
	assert_int_equal(worth("same", one), ERR_UNAUTHORIZED);
	assert_int_equal(worth("same", two), ERR_UNAUTHORIZED);
	assert_int_equal(worth("short", one), ERR_OK);
	assert_int_equal(worth("short", two), ERR_UNAUTHORIZED);
	set_clock(4 * HOUR);
	assert_false(decides("phone"));
	assert_int_equal(worth("phone", two), ERR_DEVICE_EXPIRED);
	set_clock(0);
}

static int setup(void **state)
{
	int e = settable_setup(state);
	rig_tenant(&rig, "other");
	assert_int_equal(rig_running(fcgi, steward, "acme", "followed", 5), ERR_OK);
	return e;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(both_then_one),
	    cmocka_unit_test(not_others),
	    cmocka_unit_test(each_its_end),
	};
	return cmocka_run_group_tests(tests, setup, settable_teardown);
}
