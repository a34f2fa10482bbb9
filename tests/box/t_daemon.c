/*
 * The real pinfold-sandboxd with stand-ins for its daemons. The test speaks for the steward and the gateway,
 * well and badly, kills what it likes, and looks at what is left. Run as root from the build folder.
 */
#include "gen/sandbox_msg.h"
#include "lib/chan.h"
#include "lib/names.h"
#include "lib/num.h"
#include "lib/own.h"
#include "lib/place.h"
#include "tests/box/daemon_rig.h"
#include "tests/box/held.h"
#include "tests/box/uids.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void a_box_from_hello_to_gone(void **state)
{
	(void)state;
	daemon_make_root();
	int mounts = daemon_lines_of("/proc/self/mountinfo");
	daemon_up();
	own_fd int result = daemon_spawn("run-1", BOX_WORK, "term");
	daemon_expect(STEWARD, SBX_SPAWNED, NULL);
	own_fd int listener = -1, again = -1, copy = -1;
	daemon_expect(GATEWAY, SBX_OPEN, &listener);
	assert_true(listener >= 0);
	/* the gateway restarts: it gets the listener again */
	close(daemon_peer[GATEWAY]);
	daemon_peer[GATEWAY] = -1;
	daemon_meet(GATEWAY);
	daemon_expect(GATEWAY, SBX_OPEN, &again);
	assert_true(again >= 0);
	/* the steward restarts: it finds its box and its result */
	close(daemon_peer[STEWARD]);
	daemon_peer[STEWARD] = -1;
	daemon_meet(STEWARD);
	uint8_t f[SBX_MAX_LIST];
	const struct sbx_list list = {0};
	daemon_tell(STEWARD, f, sbx_put_list(f, sizeof f, 2, &list), NULL, 0);
	struct sbx_box box;
	uint8_t *frame = daemon_expect(STEWARD, SBX_BOX, &copy);
	assert_true(sbx_get_box(frame, daemon_heard, &box) && copy >= 0);
	assert_int_equal(box.phase, 1);
	daemon_expect(STEWARD, SBX_LISTED, NULL);
	struct stat a, b;
	assert_int_equal(fstat(result, &a) | fstat(copy, &b), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	daemon_send_kill("run-1", BOX_WORK);
	daemon_expect(STEWARD, SBX_EXITED, NULL);
	daemon_expect(STEWARD, SBX_GONE, NULL);
	daemon_expect(GATEWAY, SBX_CLOSE, NULL);
	assert_int_equal(daemon_processes(daemon_box_uids, daemon_box_uids + 100), 0);
	assert_int_equal(daemon_lines_of("/proc/self/mountinfo"), mounts);
	daemon_send_kill("never-there", BOX_WORK);
	daemon_expect(STEWARD, SBX_GONE, NULL);
	assert_true(daemon_logged("narrowed to 0600"));
	daemon_down();
}

/* How long a daemon's environment is: fixed, but for the two settings that a sanitized build passes on. */
static ssize_t clean_environment(void)
{
	size_t n = sizeof "PATH=/usr/local/bin:/usr/bin:/bin\0LANG=C.UTF-8\0TZ=UTC";
#ifdef __SANITIZE_ADDRESS__
	static const char *const passed[] = {"ASAN_OPTIONS", "UBSAN_OPTIONS"};
	for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
		if (getenv(passed[i]) != NULL)
			n += strlen(passed[i]) + 1 + strlen(getenv(passed[i])) + 1;
#endif
	return (ssize_t)n;
}

static ssize_t environment(const char *pid, char *text, size_t n)
{
	char path[400];
	snprintf(path, sizeof path, "/proc/%s/environ", pid);
	own_fd int from = open(path, O_RDONLY);
	return read(from, text, n);
}

static void daemons_have_only_theirs(void **state)
{
	(void)state;
	daemon_up();
	(void)WAIT_FOR(daemon_processes(daemon_uids, daemon_uids + 4) == 4);
	DIR *d = opendir("/proc");
	int seen = 0;
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		char path[400], text[4096];
		struct stat st;
		snprintf(path, sizeof path, "/proc/%s", e->d_name);
		if (e->d_name[0] < '1' || e->d_name[0] > '9' || stat(path, &st) != 0 || st.st_uid < daemon_uids ||
		    st.st_uid >= daemon_uids + 4)
			continue;
		seen++;
		const ssize_t clean = clean_environment();
		/* another one before it has become its program */
		(void)WAIT_FOR(environment(e->d_name, text, sizeof text) == clean);
		assert_int_equal(environment(e->d_name, text, sizeof text), clean);
		snprintf(path, sizeof path, "/proc/%s/status", e->d_name);
		own_fd int fd = open(path, O_RDONLY);
		ssize_t n = read(fd, text, sizeof text - 1);
		text[n > 0 ? n : 0] = '\0';
		assert_non_null(strstr(text, "NoNewPrivs:\t1"));
		char groups[32];
		snprintf(groups, sizeof groups, "Groups:\t%u \n", daemon_uids + 9);
		assert_non_null(strstr(text, groups));
		assert_non_null(strstr(text, "CapPrm:\t0000000000000000"));
		/* 0-2, control, configuration, secrets, perhaps listeners and the test's own daemon_door; "." and ".."
		 */
		bool stored = st.st_uid == daemon_uids, fcgi = st.st_uid == daemon_uids + 2;
		int want = 2 + 6 + (stored ? 2 : fcgi ? 1 : 1);
		(void)WAIT_FOR(daemon_descriptors((pid_t)atoi(e->d_name)) == want);
		assert_int_equal(daemon_descriptors((pid_t)atoi(e->d_name)), want);
	}
	closedir(d);
	assert_int_equal(seen, 4);
	struct stat st;
	assert_int_equal(stat(daemon_in_root(PLACE_RUN, "/" PLACE_FCGI_SOCK), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	assert_int_equal(st.st_gid, daemon_uids + 8);
	assert_int_equal(stat(daemon_in_root(PLACE_RUN, "/public"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0750);
	assert_int_equal(stat(daemon_in_root(PLACE_RUN, "/" PLACE_ADMIN_SOCK), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat(daemon_in_root(PLACE_STATE, "/store"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(st.st_uid, daemon_uids);
	daemon_down();
}

static void want_queue(const char *text)
{
	daemon_run("printf %s >%s", text, daemon_in_root(PLACE_SYSCONF, "/queue"));
	assert_int_equal(kill(daemon_pid, SIGHUP), 0);
}

/* The attempt's number. */
static uint32_t asked(int who)
{
	struct sbx_load m;
	uint8_t *frame = daemon_expect(who, SBX_LOAD, NULL);
	assert_true(sbx_get_load(frame, daemon_heard, &m));
	return m.number;
}

static void answers(int who, uint32_t number, bool fits)
{
	uint8_t f[SBX_MAX_LOADED];
	const struct sbx_loaded m = {.number = number, .fits = fits, .why = fits ? "" : "not this one"};
	daemon_tell(who, f, sbx_put_loaded(f, sizeof f, 0, &m), NULL, 0);
}

static void decided(int who, bool commit)
{
	struct sbx_decided m;
	uint8_t *frame = daemon_expect(who, SBX_DECIDED, NULL);
	assert_true(sbx_get_decided(frame, daemon_heard, &m));
	assert_int_equal(m.commit, commit);
}

/* All of them, or none: whoever says no, dies in between, or finds a file that is none. */
static void another_configuration(void **state)
{
	(void)state;
	daemon_make_root();
	daemon_up();
	want_queue("100");
	uint32_t n = asked(STEWARD);
	assert_int_equal(asked(GATEWAY), n);
	answers(STEWARD, n, true);
	answers(GATEWAY, n + 7, true); /* of no attempt: it counts for nothing */
	answers(GATEWAY, n, false);
	decided(STEWARD, false);
	decided(GATEWAY, false);
	assert_true(daemon_logged("stays as it was: not this one"));
	/* one that has said yes dies: its successor is asked, and all wait for it; a second wish comes meanwhile */
	want_queue("101");
	answers(STEWARD, asked(STEWARD), true);
	n = asked(GATEWAY);
	close(daemon_peer[STEWARD]);
	daemon_peer[STEWARD] = -1;
	daemon_meet(STEWARD);
	assert_int_equal(kill(daemon_pid, SIGHUP), 0);
	assert_int_equal(asked(STEWARD), n);
	answers(GATEWAY, n, true);
	answers(STEWARD, n, true);
	decided(GATEWAY, true);
	decided(STEWARD, true);
	n = asked(STEWARD);
	answers(STEWARD, n, true);
	answers(GATEWAY, asked(GATEWAY), true);
	decided(GATEWAY, true);
	decided(STEWARD, true);
	/* push, which is not ours, will not */
	want_queue("13");
	n = asked(STEWARD);
	(void)asked(GATEWAY);
	decided(STEWARD, false);
	decided(GATEWAY, false);
	assert_true(daemon_logged("push will not"));
	/* nobody is asked what cannot be read */
	want_queue("none");
	assert_true(daemon_logged("stays as it was: queue: 1: is no number"));
	decided(STEWARD, false);
	decided(GATEWAY, false);
	/* nor where a secret is missing; what was given stays given */
	daemon_run("rm %s", daemon_in_root(PLACE_SYSCONF, "/secrets/run-token"));
	want_queue("102");
	assert_true(daemon_logged("run-token is missing"));
	decided(STEWARD, false);
	close(daemon_peer[STEWARD]);
	daemon_peer[STEWARD] = -1;
	daemon_meet(STEWARD);
	daemon_down();
	daemon_make_root();
}

/* FAULTS F1, F2: whatever the steward sends, it is restarted, sandboxd is not, and nothing is left. */
static void lies_cost_only_the_liar(void **state)
{
	(void)state;
	daemon_up();
	int before = 0;
	for (int i = 0; i < 14; i++) {
		uint8_t f[SBX_MAXFRAME * 2];
		int fds[2] = {-1, -1}, nfds = 0;
		memset(f, 0xff, sizeof f);
		daemon_bundles(fds, "hold", true);
		const struct sbx_hello h = {.version = i == 3 ? 99 : SBX_VERSION};
		const struct sbx_open down_only = {.run = "x", .tenant = "t"};
		size_t n = daemon_put_spawn(f, "lie", BOX_WORK);
		switch (i) {
		case 0:
			memset(f, 0xff, n = 12);
			break; /* no such number */
		case 1:
			n = 1;
			break; /* shorter than a header */
		case 2:
			n = sbx_put_hello(f, sizeof f, 1, &h);
			break; /* HELLO twice */
		case 3:
			n = sbx_put_hello(f, sizeof f, 1, &h);
			break; /* of another version, too */
		case 4:
			n--;
			nfds = 2;
			break; /* cut off */
		case 5:
			n++;
			nfds = 2;
			break; /* a byte too many */
		case 6:
			n = sizeof f;
			break; /* larger than any frame */
		case 7:
			nfds = 0;
			break; /* descriptors missing */
		case 8:
			nfds = 1;
			break;
		case 9:
			memset(f + WIRE_HEADER, 0xff, 4);
			nfds = 2;
			break; /* a length of 4 GiB */
		case 10:
			f[WIRE_HEADER + 4] = '/';
			nfds = 2;
			break; /* not an id */
		case 11:
			n = sbx_put_open(f, sizeof f, 1, &down_only);
			nfds = 1;
			break; /* the other direction */
		case 12:
			f[2] = 9;
			nfds = 2;
			break; /* another version of the frame */
		default:
			nfds = 2;
			close(daemon_peer[STEWARD]);
			daemon_peer[STEWARD] = -1;
			daemon_take_peer(STEWARD);
			break; /* before HELLO */
		}
		daemon_tell(STEWARD, f, n, fds, nfds);
		close(fds[0]);
		close(fds[1]);
		daemon_meet(STEWARD);
		assert_int_equal(kill(daemon_pid, 0), 0);
		assert_int_equal(daemon_processes(daemon_box_uids, daemon_box_uids + 100), 0);
		if (i == 0)
			before = daemon_descriptors(daemon_pid);
		else
			assert_int_equal(daemon_descriptors(daemon_pid), before);
		daemon_read_logs(0);
	}
	/* what is decoded but makes no sense is refused, without a restart */
	uint8_t f[SBX_MAX_SPAWN];
	int fds[2];
	daemon_bundles(fds, "hold", false);
	for (int i = 0; i < 300; i++) {
		daemon_tell(STEWARD, f, daemon_put_spawn(f, "unsealed", BOX_WORK), fds, 2);
		daemon_expect(STEWARD, SBX_REFUSED, NULL);
	}
	daemon_tell(STEWARD, f, daemon_put_spawn(f, "kind", 7), fds, 2);
	daemon_expect(STEWARD, SBX_REFUSED, NULL);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(daemon_descriptors(daemon_pid), before);
	/* the gateway may not ask for boxes */
	daemon_tell(GATEWAY, f, daemon_put_spawn(f, "gw", BOX_WORK), NULL, 0);
	daemon_meet(GATEWAY);
	daemon_down();
}

/* FAULTS G3, G10: killed at any moment, sandboxd takes everything along; the next life sweeps and works. */
static void its_death_is_everyones(void **state)
{
	(void)state;
	int mounts = daemon_lines_of("/proc/self/mountinfo");
	for (int i = 0; i < 24; i++) { /* over all the steps of making a box */
		daemon_up();
		if (i == 0) {
			close(daemon_spawn("bomb", BOX_WORK, "bomb 60"));
			daemon_expect(STEWARD, SBX_SPAWNED, NULL);
			(void)WAIT_FOR(daemon_processes(daemon_box_uids, daemon_box_uids + 100) >= 40);
		} else {
			close(daemon_spawn("a", BOX_WORK, "hold"));
			close(daemon_spawn("b", BOX_CHECK, "bomb 10 forking"));
			usleep((unsigned)i * 400);
		}
		kill(daemon_pid, SIGKILL);
		waitpid(daemon_pid, NULL, 0);
		daemon_pid = 0;
		assert_true(daemon_wait_none(daemon_uids, daemon_box_uids + 100));
		assert_int_equal(daemon_lines_of("/proc/self/mountinfo"), mounts);
	}
	daemon_up();
	close(daemon_spawn("after", BOX_WORK, "true"));
	daemon_expect(STEWARD, SBX_SPAWNED, NULL);
	daemon_expect(STEWARD, SBX_EXITED, NULL);
	daemon_down();
}

/* Asks for the list; how many boxes are in this phase. */
static int listed(uint8_t phase)
{
	uint8_t f[SBX_MAX_LIST];
	const struct sbx_list list = {0};
	daemon_tell(STEWARD, f, sbx_put_list(f, sizeof f, 2, &list), NULL, 0);
	for (int n = 0;;) {
		int result = -1;
		uint8_t *frame = daemon_expect(STEWARD, 0, &result);
		struct sbx_box box;
		struct sbx_listed end;
		if (sbx_get_listed(frame, daemon_heard, &end))
			return n;
		assert_true(sbx_get_box(frame, daemon_heard, &box) && result >= 0);
		close(result);
		n += box.phase == phase;
	}
}

static void fills_slots(const char *name, int many)
{
	char run[16];
	for (int i = 0; i < many; i++) {
		snprintf(run, sizeof run, "%s-%d", name, i);
		close(daemon_spawn(run, BOX_WORK, "hold"));
		daemon_expect(STEWARD, SBX_SPAWNED, NULL);
	}
	close(daemon_spawn("one-more", BOX_WORK, "hold"));
	daemon_expect(STEWARD, SBX_REFUSED, NULL);
}

/* What does not go away is told as not clean and listed as 3; the next life takes away what it can and works without
 * the rest. */
static void quarantine_lasts_for_a_life(void **state)
{
	(void)state;
	char path[500];
	daemon_up();
	close(daemon_spawn("group", BOX_WORK, "hold"));
	daemon_expect(STEWARD, SBX_SPAWNED, NULL);
	close(daemon_spawn("process", BOX_WORK, "bomb 1"));
	daemon_expect(STEWARD, SBX_SPAWNED, NULL);
	daemon_run("mkdir %s/s0/r/stuck", daemon_group());
	snprintf(path, sizeof path, "%s/s1/a", daemon_group());
	pid_t tracer = held_first(path);
	daemon_send_kill("group", BOX_WORK);
	daemon_send_kill("process", BOX_WORK);
	for (int gone = 0; gone < 2;) {
		uint8_t *frame = daemon_expect(STEWARD, 0, NULL);
		struct sbx_gone m;
		if (!sbx_get_gone(frame, daemon_heard, &m))
			continue;
		assert_false(m.clean);
		gone++;
	}
	assert_int_equal(listed(3), 2);
	fills_slots("beside", 2);
	kill(daemon_pid, SIGKILL);
	waitpid(daemon_pid, NULL, 0);
	held_no_more(tracer);
	/* deeper than it looks */
	daemon_run("mkdir -p %s/s2/1/2/3/4/5/6/7/8/9", daemon_group());
	daemon_up();
	assert_int_equal(listed(3), 0);
	fills_slots("next", 3);
	assert_true(daemon_logged("slot 2 is out of use"));
	daemon_run("cd %s && rmdir -p s2/1/2/3/4/5/6/7/8/9", daemon_group());
	daemon_down();
}

static void stops_with_boxes_at_work(void **state)
{
	(void)state;
	daemon_up();
	close(daemon_spawn("a", BOX_WORK, "bomb 100"));
	close(daemon_spawn("b", BOX_WORK, "hold"));
	daemon_expect(STEWARD, SBX_SPAWNED, NULL);
	daemon_expect(STEWARD, SBX_SPAWNED, NULL);
	daemon_down();
}

/* What it says to a service manager: once it serves, and when it begins to end. */
static void tells_its_manager(void **state)
{
	(void)state;
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	socklen_t len = sizeof(sa_family_t);
	own_fd int manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(manager, (struct sockaddr *)&at, len), 0); /* an abstract name of the kernel's choice */
	len = sizeof at;
	assert_int_equal(getsockname(manager, (struct sockaddr *)&at, &len), 0);
	char name[sizeof at.sun_path + 1] = "@", text[32] = "";
	memcpy(name + 1, at.sun_path + 1, len - offsetof(struct sockaddr_un, sun_path) - 1);
	setenv("NOTIFY_SOCKET", name, 1);
	daemon_up();
	unsetenv("NOTIFY_SOCKET");
	struct pollfd p = {.fd = manager, .events = POLLIN};
	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_int_equal(recv(manager, text, sizeof text - 1, 0), 7);
	assert_string_equal(text, "READY=1");
	daemon_down();
	assert_int_equal(recv(manager, text, sizeof text - 1, MSG_DONTWAIT), 10);
	assert_string_equal(text, "STOPPING=1");
}

static void only_one_of_an_instance(void **state)
{
	(void)state;
	daemon_up();
	pid_t first = daemon_pid;
	int first_log = daemon_log_fd;
	daemon_log_fd = -1;
	int status;
	daemon_launch(NULL);
	assert_int_equal(waitpid(daemon_pid, &status, 0), daemon_pid);
	assert_true(daemon_logged("another pinfold-sandboxd runs this instance"));
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1); /* the next try may be luckier */
	daemon_pid = first;
	close(daemon_log_fd);
	daemon_log_fd = first_log;
	daemon_down();
}

int main(void)
{
	if (!daemon_begin())
		return 77;
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(a_box_from_hello_to_gone, daemon_stop),
	    cmocka_unit_test_teardown(another_configuration, daemon_stop),
	    cmocka_unit_test_teardown(daemons_have_only_theirs, daemon_stop),
	    cmocka_unit_test_teardown(lies_cost_only_the_liar, daemon_stop),
	    cmocka_unit_test_teardown(its_death_is_everyones, daemon_stop),
	    cmocka_unit_test_teardown(quarantine_lasts_for_a_life, daemon_stop),
	    cmocka_unit_test_teardown(stops_with_boxes_at_work, daemon_stop),
	    cmocka_unit_test_teardown(only_one_of_an_instance, daemon_stop),
	    cmocka_unit_test_teardown(tells_its_manager, daemon_stop),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	daemon_run("rm -rf %s", daemon_root);
	return failed;
}
