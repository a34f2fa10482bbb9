/*
 * What clients do wrong: frames that lie, the wrong uid, not reading, leaving early. Only the one who does
 * it may notice.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/chan.h"
#include "lib/names.h"
#include "tests/store/steps.h"

static unsigned descriptors(void)
{
	char path[64];
	unsigned n = 0;
	(void)snprintf(path, sizeof path, "/proc/%d/fd", (int)rig.pid);
	DIR *d = opendir(path);
	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

/* Descriptors that stored holds once it has seen every connection end. */
static unsigned settled(unsigned most)
{
	(void)WAIT_FOR(descriptors() <= most);
	return descriptors();
}

static int shaken(enum rig_role role)
{
	uint8_t buf[4096];
	int none[WIRE_MAX_FDS], n;
	struct st_hello h = {.version = ST_VERSION};
	int fd = rig_connect(&rig, role);
	assert_true(fd >= 0);
	assert_int_equal(chan_send(fd, buf, st_put_hello(buf, sizeof buf, 1, &h), NULL, 0), 0);
	assert_true(chan_recv(fd, buf, sizeof buf, none, &n) > 0);
	return fd;
}

/* The connection ends without an answer. */
static void expect_closed(int fd)
{
	static uint8_t buf[200000];
	int fds[WIRE_MAX_FDS], n;
	ssize_t got = chan_recv(fd, buf, sizeof buf, fds, &n);
	assert_true(got == 0 || (got < 0 && errno == ECONNRESET));
	close(fd);
}

static void alive(void)
{
	struct st_ping m = {0};
	struct st_ok ok;
	assert_int_equal(FCGI(st_call_ping(fcgi, &m, NULL, &ok, NULL)), ERR_OK);
}

static void frames_that_lie(void **state)
{
	(void)state;
	static uint8_t buf[200000], big[210000];
	unsigned before = descriptors();
	struct st_run_get get = {.tenant = "acme", .run = "x"};
	size_t n = st_put_run_get(buf, sizeof buf, 7, &get);
	/* Every truncation, one byte too many, a length of 4 GB. */
	for (size_t cut = 1; cut < n; cut++) {
		int fd = shaken(RIG_FCGI);
		assert_int_equal(chan_send(fd, buf, cut, NULL, 0), 0);
		expect_closed(fd);
	}
	int fd = shaken(RIG_FCGI);
	assert_int_equal(chan_send(fd, buf, n + 1, NULL, 0), 0);
	expect_closed(fd);
	fd = shaken(RIG_FCGI);
	memset(buf + WIRE_HEADER, 0xff, 4);
	assert_int_equal(chan_send(fd, buf, n, NULL, 0), 0);
	expect_closed(fd);
	/* Unknown number, wrong version, the answering side's message, a frame above the maximum. */
	n = st_put_run_get(buf, sizeof buf, 7, &get);
	buf[0] = 0x7f;
	fd = shaken(RIG_FCGI);
	assert_int_equal(chan_send(fd, buf, n, NULL, 0), 0);
	expect_closed(fd);
	n = st_put_run_get(buf, sizeof buf, 7, &get);
	buf[2] ^= 0xff;
	fd = shaken(RIG_FCGI);
	assert_int_equal(chan_send(fd, buf, n, NULL, 0), 0);
	expect_closed(fd);
	struct st_welcome w = {.version = 1};
	fd = shaken(RIG_FCGI);
	assert_int_equal(chan_send(fd, buf, st_put_welcome(buf, sizeof buf, 1, &w), NULL, 0), 0);
	expect_closed(fd);
	fd = shaken(RIG_FCGI);
	int room = 500000;
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
	assert_int_equal(chan_send(fd, big, sizeof big, NULL, 0), 0);
	expect_closed(fd);
	alive();
	assert_true(settled(before) <= before);
}

static void out_of_turn(void **state)
{
	(void)state;
	uint8_t buf[4096];
	unsigned before = descriptors();
	struct st_ping ping = {0};
	struct st_hello hello = {.version = ST_VERSION};
	/* Before HELLO; HELLO twice. */
	int fd = rig_connect(&rig, RIG_FCGI);
	assert_int_equal(chan_send(fd, buf, st_put_ping(buf, sizeof buf, 1, &ping), NULL, 0), 0);
	expect_closed(fd);
	fd = shaken(RIG_FCGI);
	assert_int_equal(chan_send(fd, buf, st_put_hello(buf, sizeof buf, 2, &hello), NULL, 0), 0);
	expect_closed(fd);
	/* What another role may do. */
	struct st_cap_check check = {.tenant = "acme", .run = "x"};
	fd = shaken(RIG_FCGI);
	assert_int_equal(chan_send(fd, buf, st_put_cap_check(buf, sizeof buf, 3, &check), NULL, 0), 0);
	expect_closed(fd);
	struct st_tenant_put put = {.tenant = "mine"};
	fd = shaken(RIG_GATEWAY);
	assert_int_equal(chan_send(fd, buf, st_put_tenant_put(buf, sizeof buf, 3, &put), NULL, 0), 0);
	expect_closed(fd);
	/* Descriptors where none belong, and none where two do. */
	int fds[3] = {rig_memfd("x", 1), rig_memfd("y", 1), rig_memfd("z", 1)};
	fd = shaken(RIG_FCGI);
	assert_int_equal(chan_send(fd, buf, st_put_ping(buf, sizeof buf, 4, &ping), fds, 3), 0);
	expect_closed(fd);
	struct st_run_create create = rig_run("acme", "fds");
	for (int i = 0; i < 4; i++) {
		if (i == 2)
			continue;
		fd = shaken(RIG_FCGI);
		assert_int_equal(chan_send(fd, buf, st_put_run_create(buf, sizeof buf, 5, &create), fds, i), 0);
		expect_closed(fd);
	}
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	/* Another version is told before it is closed. */
	hello.version = 99;
	fd = rig_connect(&rig, RIG_FCGI);
	assert_int_equal(chan_send(fd, buf, st_put_hello(buf, sizeof buf, 6, &hello), NULL, 0), 0);
	struct st_fail fail;
	int none[WIRE_MAX_FDS], nnone;
	ssize_t n = chan_recv(fd, buf, sizeof buf, none, &nnone);
	assert_true(n > 0 && st_get_fail(buf, (size_t)n, &fail) && fail.code == ERR_INVALID_REQUEST);
	expect_closed(fd);
	alive();
	assert_true(settled(before) <= before);
}

static void wrong_uid(void **state)
{
	(void)state;
	assert_null(rig_ask(&rig, RIG_NOBODY));
	assert_true(rig_logged(&rig, "that uid has no role here"));
	/* Root is no role on store.sock; only root is on admin.sock. */
	int fd = chan_connect(rig.sock);
	expect_closed(fd);
	for (int role = RIG_FCGI; role <= RIG_STEWARD; role++) {
		rig_become((enum rig_role)role);
		fd = chan_connect(rig.admin);
		rig_become(RIG_ADMIN);
		expect_closed(fd);
	}
	alive();
}

static void a_second_owner(void **state)
{
	(void)state;
	struct rig second = rig;
	second.pid = 0;
	second.control = -1;
	rig_start(&second);
	int status = rig_stop(&second, 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	assert_true(rig_logged(&rig, "another process owns this store; stop it first"));
	alive();
}

static void leaving_early(void **state)
{
	(void)state;
	uint8_t buf[4096];
	unsigned before = descriptors();
	struct st_run_list list = {.tenant = "acme", .before_run = "", .limit = 100};
	size_t n = st_put_run_list(buf, sizeof buf, 7, &list);
	for (int i = 0; i < 1000; i++) {
		int fd = shaken(RIG_FCGI);
		assert_int_equal(chan_send(fd, buf, n, NULL, 0), 0);
		close(fd);
	}
	alive();
	assert_true(settled(before) <= before);
}

static void not_reading(void **state)
{
	(void)state;
	uint8_t buf[4096];
	struct st_events_taken a;
	unsigned before = descriptors();
	assert_int_equal(rig_running(fcgi, steward, "acme", "large", 5), ERR_OK);
	assert_int_equal(append("large", "big", 60000, 2, &a), ERR_OK);
	struct st_events_read m = {.tenant = "acme", .run = "large"};
	size_t n = st_put_events_read(buf, sizeof buf, 7, &m);
	int fd = shaken(RIG_FCGI);
	/* Asks until it is thrown out; never reads an answer of 120 kB. */
	int sent = 0;
	while (chan_send(fd, buf, n, NULL, 0) == 0)
		sent++;
	assert_true(sent >= 3);
	close(fd);
	assert_true(rig_logged(&rig, "it does not read its answers"));
	alive();
	assert_true(settled(before) <= before);
}

static void a_slow_subscriber(void **state)
{
	(void)state;
	struct ask *slow = rig_ask(&rig, RIG_FCGI);
	struct st_subscribe m = {.tenant = "", .run = ""};
	struct st_ok ok;
	struct st_events_taken a;
	assert_int_equal(st_call_subscribe(slow, &m, NULL, &ok, NULL), ERR_OK);
	assert_int_equal(rig_running(fcgi, steward, "acme", "busy", 5), ERR_OK);
	/* More wake-ups than its socket holds; it misses none that matters. */
	for (int i = 0; i < 2500; i++)
		assert_int_equal(append("busy", "t", 2, 1, &a), ERR_OK);
	uint64_t last = 0;
	struct ask_answer got;
	struct st_woken w;
	while (last < a.last_sequence) {
		assert_int_equal(ask_wait(slow, 10000, &got), 1);
		assert_true(st_get_woken(got.frame, got.len, &w));
		assert_true(w.last_sequence > last || strcmp(w.run, "busy") != 0);
		last = w.last_sequence;
	}
	ask_free(slow);
	alive();
}

static void too_many(void **state)
{
	(void)state;
	enum { MANY = 700 };
	static int fds[MANY];
	unsigned before = descriptors();
	for (int i = 0; i < MANY; i++) {
		fds[i] = rig_connect(&rig, RIG_GATEWAY);
		assert_true(fds[i] >= 0);
	}
	assert_true(rig_logged(&rig, "too many are open"));
	alive();
	/* The operator still gets in. */
	struct ask *root = rig_ask(&rig, RIG_ADMIN);
	assert_non_null(root);
	ask_free(root);
	for (int i = 0; i < MANY; i++)
		close(fds[i]);
	assert_true(settled(before) <= before);
	alive();
}

/* How many descriptors stored may have; as its own user, who needs no right for that. */
static void may_have(rlim_t n)
{
	pid_t pid = fork();
	int status;
	if (pid == 0) {
		struct rlimit l;
		if (setresgid(RIG_UID, RIG_UID, RIG_UID) != 0 || setresuid(RIG_UID, RIG_UID, RIG_UID) != 0 ||
		    prlimit(rig.pid, RLIMIT_NOFILE, NULL, &l) != 0)
			_exit(1);
		l.rlim_cur = n < l.rlim_max ? n : l.rlim_max;
		_exit(prlimit(rig.pid, RLIMIT_NOFILE, &l, NULL) != 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Want of descriptors is no fault of the question: it passes, and is told as what it is. */
static void out_of_descriptors(void **state)
{
	(void)state;
	enum { LARGE = 20000 };
	static char bytes[LARGE];
	struct st_run_create m = rig_run("acme", "wanted");
	struct st_run_get g = {.tenant = "acme", .run = "wanted"};
	struct st_artifact_get get = {.tenant = "acme", .run = "wanted", .name = ART_PATCH};
	struct st_run_start s = {.tenant = "acme", .run = "wanted", .expires_at = UINT64_MAX};
	struct st_artifact_put put = {.tenant = "acme", .run = "wanted", .name = ART_PATCH};
	struct st_run_state a;
	struct st_run_work work;
	struct st_run_is is;
	struct st_artifact_is artifact;
	struct st_ok ok;
	for (int small = 0; small < 2; small++) {
		g.run = m.run = get.run = put.run = s.run = small ? "wanted-small" : "wanted";
		int fd = rig_memfd(bytes, small ? 100 : LARGE);
		assert_int_equal(rig_create(fcgi, &m, &a), ERR_OK);
		assert_int_equal(STEWARD(st_call_run_start(steward, &s, NULL, &work, NULL)), ERR_OK);
		assert_int_equal(STEWARD(st_call_artifact_put(steward, &put, &fd, &ok, NULL)), ERR_OK);
		assert_int_equal(finish(m.run, RUN_EV_FAIL, false, "agent_failed", &a), ERR_OK);
		close(fd);
		may_have(3);
		assert_int_equal(FCGI(st_call_run_get(fcgi, &g, NULL, &is, NULL)), ERR_STORE_UNAVAILABLE);
		assert_int_equal(FCGI(st_call_artifact_get(fcgi, &get, NULL, &artifact, NULL)), ERR_STORE_UNAVAILABLE);
		may_have(RLIM_INFINITY);
		assert_int_equal(FCGI(st_call_run_get(fcgi, &g, NULL, &is, NULL)), ERR_OK);
		assert_int_equal(FCGI(st_call_artifact_get(fcgi, &get, NULL, &artifact, NULL)), ERR_OK);
	}
	alive();
}

/* Data files copied without their logs are refused with a sentence, not served and not repaired. */
static void without_logs(void **state)
{
	(void)state;
	struct rig bad;
	char command[200];
	rig_open(&bad, NULL);
	rig_start(&bad);
	rig_tenant(&bad, "acme");
	int status = rig_stop(&bad, SIGTERM);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	(void)snprintf(command, sizeof command, "rm %s/store/log.*", bad.state);
	assert_int_equal(system(command), 0);
	rig_start(&bad);
	assert_true(rig_logged(&bad, "the store's logs are missing"));
	status = rig_stop(&bad, 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	rig_close(&bad);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(frames_that_lie),   cmocka_unit_test(out_of_turn),   cmocka_unit_test(wrong_uid),
	    cmocka_unit_test(a_second_owner),    cmocka_unit_test(leaving_early), cmocka_unit_test(not_reading),
	    cmocka_unit_test(a_slow_subscriber), cmocka_unit_test(too_many),      cmocka_unit_test(out_of_descriptors),
	    cmocka_unit_test(without_logs),
	};
	return cmocka_run_group_tests(tests, steps_setup, steps_teardown);
}
