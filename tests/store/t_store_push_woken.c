/*
 * Web Push in the store: when the one that sends is woken, and that what waits for it has room. As t_store_push.
 */
#include "tests/store/pushing.h"
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lib/chan.h"
#include "lib/own.h"

/* No more rows for a device than there is room for, however long questions wait. */
static void full(void **state)
{
	(void)state;
	char run[32], request[8];
	(void)rig_stop(&rig, SIGTERM);
	rig.push_per_hour = rig.push_per_minute = 1000;
	rig_start(&rig);
	ready('a');
	for (int r = 0; r < 10; r++) {
		struct st_run_start start = {.tenant = "acme", .run = run, .expires_at = UINT64_MAX};
		struct st_run_work work;
		(void)snprintf(run, sizeof run, "full-%d", r);
		struct st_run_create create = rig_run("acme", run);
		create.approval_wait_seconds = 86400;
		assert_int_equal(rig_create(fcgi, &create, NULL), ERR_OK);
		assert_int_equal(STEWARD(st_call_run_start(steward, &start, NULL, &work, NULL)), ERR_OK);
	}
	/* Thirty an hour, and each waits a day: more than there is room for, were the oldest not forgotten. */
	unsigned sent = 0;
	past_budgets();
	for (int i = 0; i < 300; i++) {
		if (i % 30 == 0)
			pass(HOUR + MINUTE);
		else if (i % 10 == 0)
			pass(MINUTE + SECOND);
		(void)snprintf(run, sizeof run, "full-%d", i % 10);
		(void)snprintf(request, sizeof request, "q%d", i);
		question("acme", run, request);
		sent += strcmp(send_all(), "c") == 0;
	}
	assert_int_equal(sent, 300);
	assert_int_equal(findings(), 0);
	unsigned waiting = 0;
	for (int r = 0; r < 10; r++) {
		struct st_run_state s;
		(void)snprintf(run, sizeof run, "full-%d", r);
		waiting += cards("acme", run);
		assert_int_equal(cancel(run, &s), ERR_OK);
	}
	assert_int_equal(waiting, 300);
	size_t taken_back = strlen(send_all());
	assert_true(taken_back > 200 && taken_back <= 256);
	assert_int_equal(findings(), 0);
}

/* Is this connection woken about that run? NULL: it is not to be, and would have been by now. */
static bool woken(int fd, const char *run)
{
	static uint8_t frame[ST_MAXFRAME];
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int fds[WIRE_MAX_FDS], n = 0;
	struct st_woken m;
	uint64_t op;
	uint16_t number;
	if (poll(&p, 1, run != NULL ? PATIENCE_MS : 0) != 1)
		return false;
	ssize_t got = chan_recv(fd, frame, sizeof frame, fds, &n);
	assert_true(got > 0 && wire_peek(frame, (size_t)got, &number, &op));
	assert_int_equal(number, ST_WOKEN);
	assert_true(st_get_woken(frame, (size_t)got, &m));
	if (run != NULL)
		assert_string_equal(m.run, run);
	return true;
}

static void wakes(void **state)
{
	(void)state;
	struct st_push_is a;
	static uint8_t frame[4096];
	past_budgets();
	rig_become(RIG_PUSH);
	own_fd int fd = rig_connect(&rig, RIG_PUSH);
	rig_become(RIG_ADMIN);
	int fds[WIRE_MAX_FDS], nfds = 0;
	assert_true(fd >= 0);
	struct st_hello hello = {.version = ST_VERSION};
	struct st_subscribe all = {.tenant = "", .run = ""};
	(void)chan_send(fd, frame, st_put_hello(frame, sizeof frame, 1, &hello), NULL, 0);
	(void)chan_send(fd, frame, st_put_subscribe(frame, sizeof frame, 2, &all), NULL, 0);
	for (int i = 0; i < 2; i++) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
		assert_true(chan_recv(fd, frame, sizeof frame, fds, &nfds) > 0);
	}
	/* Of a question that is pushed, of one that must be taken back, and of nothing else. */
	working("acme", "wakes");
	question("acme", "wakes", "q1");
	assert_true(woken(fd, "wakes"));
	assert_false(woken(fd, NULL));
	assert_string_equal(send_all(), "c");
	assert_int_equal(decided("acme", "wakes", "q1"), ERR_OK);
	assert_true(woken(fd, "wakes"));
	assert_string_equal(send_all(), "x");
	question("acme", "wakes", "q2");
	assert_true(woken(fd, "wakes"));
	/* It was not sent, so there is nothing to take back and nobody to wake; the next one wakes. */
	assert_int_equal(decided("acme", "wakes", "q2"), ERR_OK);
	working("acme", "wakes-2");
	question("acme", "wakes-2", "q1");
	assert_true(woken(fd, "wakes-2"));
	assert_false(woken(fd, NULL));
	assert_int_equal(next(&a), 'c');
	assert_int_equal(done(&a, PUSH_SENT, 0), ERR_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(wakes), cmocka_unit_test(full)};
	return cmocka_run_group_tests(tests, pushing_phone, pushing_teardown);
}
