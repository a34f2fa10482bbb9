/*
 * Faults around the real pinfold-sandboxd: no descriptors left, hostile folders and settings at its start, peers that
 * go away in the middle. Run as root from the build folder; skipped otherwise.
 */
#include "gen/sandbox_msg.h"
#include "lib/chan.h"
#include "lib/names.h"
#include "lib/own.h"
#include "lib/place.h"
#include "tests/box/daemon_rig.h"
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* The limit below which so many numbers of sandboxd's descriptors are free. */
static rlim_t limit_for(int room)
{
	char path[64];
	for (rlim_t n = 0;; n++) {
		struct stat st;
		snprintf(path, sizeof path, "/proc/%d/fd/%llu", (int)daemon_pid, (unsigned long long)n);
		if (lstat(path, &st) != 0 && room-- == 0)
			return n;
	}
}

/* FAULTS F2: at its limit of descriptors the kernel drops those of a message. The message is refused, its channel
 * closed, nothing is lost, and once there is room again all is as before. */
static void no_room_for_descriptors(void **state)
{
	(void)state;
	daemon_up();
	close(daemon_spawn("before", BOX_WORK, "hold"));
	daemon_expect(STEWARD, SBX_SPAWNED, NULL);
	daemon_expect(GATEWAY, SBX_OPEN, NULL);
	int had = daemon_descriptors(daemon_pid);
	for (int room = 0; room < 2; room++) { /* for none of the two, for one */
		struct rlimit old, tight;
		assert_int_equal(prlimit(daemon_pid, RLIMIT_NOFILE, NULL, &old), 0);
		tight = (struct rlimit){limit_for(room), old.rlim_max};
		assert_int_equal(prlimit(daemon_pid, RLIMIT_NOFILE, &tight, NULL), 0);
		close(daemon_spawn("lost", BOX_WORK, "hold"));
		assert_true(daemon_logged("channel of pinfold-steward closed"));
		assert_int_equal(prlimit(daemon_pid, RLIMIT_NOFILE, &old, NULL), 0);
		daemon_meet(STEWARD);
		(void)WAIT_FOR(daemon_descriptors(daemon_pid) == had);
		assert_int_equal(daemon_descriptors(daemon_pid), had);
		daemon_logs[0] = '\0';
	}
	daemon_send_kill("before", BOX_WORK);
	daemon_expect(STEWARD, SBX_EXITED, NULL);
	daemon_expect(STEWARD, SBX_GONE, NULL);
	daemon_down();
}

/* FAULTS F1: as many questions as there is room for, whose answers nobody reads, with signals in between. */
static void peers_that_go_away(void **state)
{
	(void)state;
	daemon_up();
	int had = daemon_descriptors(daemon_pid), asked = 0;
	uint8_t f[SBX_MAX_KILL];
	const struct sbx_kill m = {.run = "never-there", .kind = BOX_WORK};
	size_t n = sbx_put_kill(f, sizeof f, 6, &m);
	for (; asked < 1000 && send(daemon_peer[STEWARD], f, n, MSG_DONTWAIT) == (ssize_t)n; asked++)
		if (asked % 10 == 0)
			kill(daemon_pid, SIGCHLD);
	assert_true(asked > 50);
	close(daemon_peer[STEWARD]);
	daemon_peer[STEWARD] = -1;
	daemon_meet(STEWARD);
	assert_int_equal(kill(daemon_pid, 0), 0);
	assert_int_equal(daemon_descriptors(daemon_pid), had);
	close(daemon_spawn("after", BOX_WORK, "true"));
	daemon_expect(STEWARD, SBX_SPAWNED, NULL);
	daemon_expect(STEWARD, SBX_EXITED, NULL);
	daemon_down();
}

static void lavish(void)
{
	umask(0);
}

static void mean(void)
{
	umask(0777);
}

/* FAULTS F7: whatever umask it is started with, what it makes has the modes that are meant, from its birth. */
static void umask_does_not_matter(void **state)
{
	static const struct {
		enum place in;
		const char *name;
		mode_t mode;
	} want[] = {
	    {PLACE_RUN, "", 0711},
	    {PLACE_RUN, "/public", 0750},
	    {PLACE_RUN, "/store", 0710},
	    {PLACE_RUN, "/admin", 0700},
	    {PLACE_RUN, "/box", 0700},
	    {PLACE_RUN, "/" PLACE_STORE_SOCK, 0660},
	    {PLACE_RUN, "/" PLACE_ADMIN_SOCK, 0600},
	    {PLACE_RUN, "/" PLACE_FCGI_SOCK, 0660},
	    {PLACE_STATE, "", 0711},
	    {PLACE_STATE, "/store", 0700},
	    {PLACE_LOG, "", 0700},
	};
	void (*const masks[])(void) = {lavish, mean};
	(void)state;
	for (int i = 0; i < 2; i++) {
		daemon_run("rm -rf %s %s", place_dir(PLACE_STATE), place_dir(PLACE_LOG));
		daemon_launch(masks[i]);
		daemon_meet(STEWARD);
		daemon_meet(GATEWAY);
		for (size_t k = 0; k < sizeof want / sizeof want[0]; k++) {
			struct stat st;
			assert_int_equal(stat(daemon_in_root(want[k].in, want[k].name), &st), 0);
			if ((st.st_mode & 07777) != want[k].mode)
				fail_msg("%s has mode %o", daemon_in_root(want[k].in, want[k].name), st.st_mode);
		}
		daemon_down();
	}
}

/* FAULTS F7: something else where a socket or a folder goes. */
static void squatters(void **state)
{
	static const char *const makers[] = {"touch", "mkfifo", "mkdir", "ln -s /etc/passwd", "ln -s nowhere"};
	(void)state;
	const char *sockets[] = {daemon_in_root(PLACE_RUN, "/" PLACE_FCGI_SOCK),
				 daemon_in_root(PLACE_RUN, "/" PLACE_STORE_SOCK)};
	daemon_run("mkdir -p %s/public %s/store", place_dir(PLACE_RUN), place_dir(PLACE_RUN));
	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) {
			daemon_run("rm -rf %s && %s %s", sockets[k], makers[i],
				   sockets[k]); /* refusing leaves sockets */
			struct stat before, after;
			assert_int_equal(lstat(sockets[k], &before), 0);
			daemon_refuses(NULL, "cannot listen at");
			assert_non_null(strstr(daemon_logs, sockets[k]));
			assert_int_equal(lstat(sockets[k], &after), 0); /* and leaves it alone */
			assert_true(before.st_ino == after.st_ino && before.st_mode == after.st_mode &&
				    before.st_uid == after.st_uid);
			daemon_run("rm -rf %s", sockets[k]);
		}
	daemon_run("rmdir %s/public && mkfifo %s/public", place_dir(PLACE_RUN), place_dir(PLACE_RUN));
	daemon_refuses(NULL, "is a link or no folder");
	daemon_run("rm %s/public", place_dir(PLACE_RUN));
	/* a socket is what an earlier life left, whose processes may be dying still */
	daemon_up();
	kill(daemon_pid, SIGKILL);
	waitpid(daemon_pid, NULL, 0);
	daemon_up();
	(void)WAIT_FOR(daemon_processes(daemon_uids, daemon_uids + 4) == 4);
	daemon_down();
}

/* FAULTS F3, as a rule of the source: root signals by pidfd and group; by number only its own child that it has not
 * reaped. */
static void kills_no_numbers(void **state)
{
	(void)state;
	daemon_run("! grep -nE '(^|[^a-z_])(kill|killpg|tgkill)\\(' %s/sandboxd/*.c | grep -v 'ours and not reaped'",
		   getenv("srcdir") != NULL ? getenv("srcdir") : ".");
}

static void deny(int call, int error)
{
	scmp_filter_ctx c = seccomp_init(SCMP_ACT_ALLOW);
	seccomp_rule_add(c, SCMP_ACT_ERRNO((uint32_t)error), call, 0);
	seccomp_load(c);
}

static void no_landlock(void)
{
	deny(SCMP_SYS(landlock_create_ruleset), EOPNOTSUPP);
}

static void no_user_namespaces(void)
{
	deny(SCMP_SYS(unshare), EPERM);
}

static void no_namespaces(void)
{
	deny(SCMP_SYS(clone3), ENOSYS);
}

static void no_pivot(void)
{
	deny(SCMP_SYS(pivot_root), EPERM);
}

static void nobody(void)
{
	if (setgid(65534) != 0 || setuid(65534) != 0)
		_exit(9);
}

/* FAULTS G7, F7: fewer walls, foreign folders, or no daemon_root: it does not start, and says why. */
static void refuses_to_start(void **state)
{
	(void)state;
	daemon_make_root();
	daemon_refuses(no_landlock, "Landlock is missing");
	daemon_refuses(no_user_namespaces,
		       "no sandbox can be built on this machine: namespaces: Operation not permitted");
	daemon_refuses(no_namespaces, "no sandbox can be built on this machine: namespaces: Function not implemented");
	daemon_refuses(no_pivot, "no sandbox can be built on this machine: pivot_root: Operation not permitted");
	daemon_refuses(nobody, "must be started as root");
	daemon_run("mv %s/box/pinfold-runner %s/box/away", place_dir(PLACE_LIBEXEC), place_dir(PLACE_LIBEXEC));
	daemon_refuses(NULL, "pinfold-runner is missing");
	daemon_run("mv %s/box/away %s/box/pinfold-runner", place_dir(PLACE_LIBEXEC), place_dir(PLACE_LIBEXEC));
	/* a secret that a daemon cannot do without */
	const char *key = daemon_in_root(PLACE_SYSCONF, "/secrets/run-token");
	daemon_run("rm %s", key);
	daemon_refuses(NULL, "/secrets/run-token is missing: remove it and run pinfold setup");
	daemon_run("printf 0123456789012345678901234567890 >%s", key);
	daemon_refuses(NULL, "/secrets/run-token is too short");
	daemon_run("printf '0123456789012345678901234567890\n' >%s", key);
	daemon_refuses(NULL, "steward needs 32 bytes");
	daemon_run("rm %s && mkfifo %s", key, key);
	daemon_refuses(NULL, "/secrets/run-token must be a regular file of root's");
	daemon_run("rm %s && ln -s key %s", key, key);
	daemon_refuses(NULL, "/secrets/run-token must be a regular file of root's");
	daemon_run("rm %s && printf 01234567890123456789012345678901 >%s", key, key);
	static const char *const spoilt[][3] = {{"chmod g+w", "chmod g-w", "may be written by others"},
						{"chown 12345", "chown 0", "is owned by uid 12345"}};
	const char *dirs[] = {place_dir(PLACE_STATE), daemon_in_root(PLACE_RUN, "/public"),
			      daemon_in_root(PLACE_SYSCONF, "/secrets")};
	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; k < 2; k++) {
			daemon_run("mkdir -p %s && %s %s", dirs[k], spoilt[i][0], dirs[k]);
			daemon_refuses(NULL, spoilt[i][2]);
			assert_non_null(strstr(daemon_logs, dirs[k]));
			daemon_run("%s %s", spoilt[i][1], dirs[k]);
		}
	daemon_run("rm -rf %s && ln -s /etc %s", dirs[1], dirs[1]);
	daemon_refuses(NULL, "is a link or no folder");
	daemon_run("rm %s && mkdir -p %s && touch %s/fcgi.sock", dirs[1], dirs[1], dirs[1]);
	daemon_refuses(NULL, "cannot listen at");
	daemon_run("rm -rf %s && chown 12345 %s", dirs[1], daemon_root);
	daemon_refuses(NULL, "is owned by uid 12345");
	daemon_run("chown 0 %s", daemon_root);
}

int main(void)
{
	if (!daemon_begin())
		return 77;
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(no_room_for_descriptors, daemon_stop),
	    cmocka_unit_test_teardown(peers_that_go_away, daemon_stop),
	    cmocka_unit_test_teardown(umask_does_not_matter, daemon_stop),
	    cmocka_unit_test_teardown(squatters, daemon_stop),
	    cmocka_unit_test(kills_no_numbers),
	    cmocka_unit_test_teardown(refuses_to_start, daemon_stop),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	daemon_run("rm -rf %s", daemon_root);
	return failed;
}
