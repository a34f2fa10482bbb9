/* Asking again under the same operation id: done once, answered alike, and what is kept for it stays bounded. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/chan.h"
#include "tests/store/steps.h"

enum { FRAME = 4096, CROWD = 3000 };

/* A connection of that role that names itself client. */
static int greet(enum rig_role role, uint64_t client)
{
	uint8_t b[FRAME];
	int fds[WIRE_MAX_FDS], nfds = 0;
	struct st_hello h = {.version = ST_VERSION, .client = client};
	struct st_welcome w;
	int fd = rig_connect(&rig, role);
	assert_true(fd >= 0);
	assert_int_equal(chan_send(fd, b, st_put_hello(b, sizeof b, 1, &h), NULL, 0), 0);
	ssize_t n = chan_recv(fd, b, sizeof b, fds, &nfds);
	assert_true(n > 0 && st_get_welcome(b, (size_t)n, &w));
	return fd;
}

static size_t put_consume(uint8_t *b, uint64_t op, const char *run)
{
	struct st_run_create like = rig_run("acme", run);
	struct st_cap_consume m = {.tenant = "acme", .run = run, .model = like.model, .fingerprint = like.fingerprint};
	return st_put_cap_consume(b, FRAME, op, &m);
}

/* Sends the n bytes on fd; the answer's remaining units, or minus its error. */
static int64_t exchange(int fd, const uint8_t *question, size_t n, uint64_t op)
{
	uint8_t b[FRAME];
	int fds[WIRE_MAX_FDS], nfds = 0;
	struct st_cap_is is;
	struct st_fail fail;
	uint16_t number;
	uint64_t of = 0;
	assert_int_equal(chan_send(fd, question, n, NULL, 0), 0);
	ssize_t got = chan_recv(fd, b, sizeof b, fds, &nfds);
	assert_true(got > 0 && wire_peek(b, (size_t)got, &number, &of));
	assert_int_equal(of, op);
	if (st_get_cap_is(b, (size_t)got, &is))
		return is.remaining;
	assert_true(st_get_fail(b, (size_t)got, &fail));
	return -(int64_t)fail.code;
}

static int64_t ask_again(enum rig_role role, uint64_t client, uint64_t op, const char *run)
{
	uint8_t b[FRAME];
	int fd = greet(role, client);
	int64_t r = exchange(fd, b, put_consume(b, op, run), op);
	close(fd);
	return r;
}

static void done_once(void **state)
{
	(void)state;
	assert_int_equal(rig_running(fcgi, steward, "acme", "again", 100), ERR_OK);
	assert_int_equal(ask_again(RIG_GATEWAY, 7, 1000, "again"), 99);
	assert_int_equal(ask_again(RIG_GATEWAY, 7, 1000, "again"), 99);
	assert_int_equal(ask_again(RIG_GATEWAY, 7, 1001, "again"), 98);
	assert_int_equal(ask_again(RIG_GATEWAY, 7, 1001, "again"), 98);
	/* Overtaken: what a given-up connection still holds is not done any more. */
	assert_int_equal(ask_again(RIG_GATEWAY, 7, 1000, "again"), -ERR_INVALID_REQUEST);
	assert_int_equal(run_is("again").used_requests, 2);
	/* Another caller's numbers are its own; zero keeps nothing. */
	assert_int_equal(ask_again(RIG_GATEWAY, 8, 1000, "again"), 97);
	assert_int_equal(ask_again(RIG_GATEWAY, 0, 1000, "again"), 96);
	assert_int_equal(ask_again(RIG_GATEWAY, 0, 1000, "again"), 95);
	/* Ids may pass their largest value. */
	assert_int_equal(ask_again(RIG_GATEWAY, 9, UINT64_MAX, "again"), 94);
	assert_int_equal(ask_again(RIG_GATEWAY, 9, 0, "again"), 93);
	assert_int_equal(ask_again(RIG_GATEWAY, 9, UINT64_MAX, "again"), -ERR_INVALID_REQUEST);
}

static void after_a_kill(void **state)
{
	(void)state;
	assert_int_equal(rig_running(fcgi, steward, "acme", "killed", 10), ERR_OK);
	assert_int_equal(ask_again(RIG_GATEWAY, 21, 5, "killed"), 9);
	(void)rig_stop(&rig, SIGKILL);
	rig_start(&rig);
	assert_int_equal(ask_again(RIG_GATEWAY, 21, 5, "killed"), 9);
	(void)rig_stop(&rig, SIGTERM);
	rig_start(&rig);
	assert_int_equal(ask_again(RIG_GATEWAY, 21, 5, "killed"), 9);
	assert_int_equal(run_is("killed").used_requests, 1);
}

static void refusals_are_asked_anew(void **state)
{
	(void)state;
	assert_int_equal(rig_running(fcgi, steward, "acme", "late", 1), ERR_OK);
	assert_int_equal(ask_again(RIG_GATEWAY, 31, 5, "unborn"), -ERR_RUN_NOT_FOUND);
	assert_int_equal(ask_again(RIG_GATEWAY, 31, 6, "late"), 0);
	assert_int_equal(ask_again(RIG_GATEWAY, 31, 7, "late"), -ERR_MODEL_REQUEST_BUDGET_EXHAUSTED);
	assert_int_equal(ask_again(RIG_GATEWAY, 31, 7, "late"), -ERR_MODEL_REQUEST_BUDGET_EXHAUSTED);
	assert_int_equal(ask_again(RIG_GATEWAY, 31, 6, "late"), 0);
	assert_int_equal(run_is("late").used_requests, 1);
}

static void a_crowd_is_bounded(void **state)
{
	(void)state;
	assert_int_equal(rig_running(fcgi, steward, "acme", "crowd", 2 * CROWD), ERR_OK);
	struct st_run_event ev = {.tenant = "acme", .run = "crowd", .type = "note", .data = BYTES("{}")};
	struct st_ok ok;
	assert_int_equal(STEWARD(st_call_run_event(steward, &ev, NULL, &ok, NULL)), ERR_OK);
	for (uint64_t client = 1; client <= CROWD; client++)
		assert_true(ask_again(RIG_GATEWAY, client << 40, 5, "crowd") >= 0);
	uint32_t used = run_is("crowd").used_requests, known = 0;
	assert_int_equal(used, CROWD);
	/* The last come is known; of all, no more than the bound (asking changes who is, hence the margin). */
	assert_true(ask_again(RIG_GATEWAY, (uint64_t)CROWD << 40, 5, "crowd") >= 0);
	assert_int_equal(run_is("crowd").used_requests, used);
	for (uint64_t client = 1; client <= CROWD; client++) {
		assert_true(ask_again(RIG_GATEWAY, client << 40, 5, "crowd") >= 0);
		uint32_t now = run_is("crowd").used_requests;
		known += now == used;
		used = now;
	}
	assert_true(known <= 2048 + 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(done_once), cmocka_unit_test(after_a_kill),
					   cmocka_unit_test(refusals_are_asked_anew),
					   cmocka_unit_test(a_crowd_is_bounded)};
	return cmocka_run_group_tests(tests, steps_setup, steps_teardown);
}
