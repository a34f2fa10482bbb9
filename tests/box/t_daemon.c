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
#include "tests/box/uids.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <seccomp.h>
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

enum { PATIENCE = 20000 };
static uint32_t uids, box_uids; /* the daemons' and the boxes' */

static char root[64], logs[16384];
static pid_t daemon_pid;
static int log_fd = -1, door[2] = {-1, -1}, peer[2] = {-1, -1};
static const char *const peer_names[2] = {"steward", "gateway"};
enum { STEWARD, GATEWAY };

static const char *in_root(enum place p, const char *rest)
{
	static char path[4][400];
	static int i;
	i = (i + 1) % 4;
	snprintf(path[i], sizeof path[i], "%s%s", place_dir(p), rest);
	return path[i];
}

static void run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void run(const char *fmt, ...)
{
	char line[4096];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	if (system(line) != 0)
		fail_msg("%s", line);
}

/* Processes whose uid is in [from, to). */
static int processes(uid_t from, uid_t to)
{
	int n = 0;
	DIR *d = opendir("/proc");
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		char path[300];
		struct stat st;
		snprintf(path, sizeof path, "/proc/%s", e->d_name);
		n += e->d_name[0] >= '1' && e->d_name[0] <= '9' && stat(path, &st) == 0 && st.st_uid >= from &&
		     st.st_uid < to;
	}
	closedir(d);
	return n;
}

static bool wait_none(uid_t from, uid_t to)
{
	for (int i = 0; i < PATIENCE / 10; i++, usleep(10000))
		if (processes(from, to) == 0)
			return true;
	return false;
}

static int lines_of(const char *path)
{
	FILE *f = fopen(path, "re");
	int n = 0;
	for (int c; f != NULL && (c = getc(f)) != EOF;)
		n += c == '\n';
	fclose(f);
	return n;
}

static int descriptors(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	int n = 0;
	DIR *d = opendir(path);
	while (d != NULL && readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static void read_logs(int ms)
{
	struct pollfd p = {.fd = log_fd, .events = POLLIN};
	while (poll(&p, 1, ms) == 1) {
		size_t n = strlen(logs);
		if (n > sizeof logs / 2)
			memmove(logs, logs + n / 2, n - n / 2 + 1), n = strlen(logs);
		ssize_t got = read(log_fd, logs + n, sizeof logs - 1 - n);
		logs[n + (size_t)(got > 0 ? got : 0)] = '\0';
		if (got <= 0)
			return;
		ms = 0;
	}
}

static bool logged(const char *text)
{
	for (int i = 0; i < PATIENCE / 10; i++) {
		read_logs(10);
		if (strstr(logs, text) != NULL)
			return true;
	}
	return false;
}

static void launch(void (*first)(void))
{
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	logs[0] = '\0';
	daemon_pid = fork();
	if (daemon_pid == 0) {
		dup2(ends[1], 2);
		for (int fd = 3; fd < 20; fd++) /* FAULTS F6: what a careless parent leaves open */
			dup2(1, fd);
		if (first != NULL)
			first();
		execl("sandboxd/pinfold-sandboxd", "pinfold-sandboxd", NULL);
		_exit(127);
	}
	close(ends[1]);
	if (log_fd >= 0)
		close(log_fd);
	log_fd = ends[0];
}

static void take_peer(int which)
{
	struct pollfd p = {.fd = door[which], .events = POLLIN};
	if (peer[which] >= 0)
		close(peer[which]);
	if (poll(&p, 1, PATIENCE) != 1)
		fail_msg("no %s: %s", peer_names[which], (read_logs(0), logs));
	peer[which] = accept4(door[which], NULL, NULL, SOCK_CLOEXEC);
	assert_true(peer[which] >= 0);
}

static ssize_t hear(int which, uint8_t *frame, int *fd)
{
	int fds[WIRE_MAX_FDS], n = 0;
	struct pollfd p = {.fd = peer[which], .events = POLLIN};
	if (poll(&p, 1, PATIENCE) != 1)
		fail_msg("nothing from sandboxd: %s", (read_logs(0), logs));
	ssize_t got = chan_recv(peer[which], frame, SBX_MAXFRAME, fds, &n);
	if (fd != NULL)
		*fd = n == 1 ? fds[0] : -1;
	else
		chan_close_fds(fds, n);
	return got;
}

/* The next message must be of this number. */
static uint8_t *expect(int which, uint16_t number, int *fd)
{
	static uint8_t frame[SBX_MAXFRAME];
	ssize_t n = hear(which, frame, fd);
	uint16_t got = 0;
	uint64_t op;
	if (n <= 0 || !wire_peek(frame, (size_t)n, &got, &op) || got != number)
		fail_msg("message %u instead of %u from sandboxd; %s", got, number, (read_logs(0), logs));
	return frame;
}

static void tell(int which, const uint8_t *frame, size_t n, const int *fds, int nfds)
{
	assert_int_equal(chan_send(peer[which], frame, n, fds, nfds), 0);
}

static void hello(int which)
{
	uint8_t f[SBX_MAX_HELLO];
	const struct sbx_hello m = {.version = SBX_VERSION};
	tell(which, f, sbx_put_hello(f, sizeof f, 1, &m), NULL, 0);
	expect(which, SBX_WELCOME, NULL);
}

static void meet(int which)
{
	take_peer(which);
	hello(which);
}

static size_t put_spawn(uint8_t *f, const char *name, uint8_t kind)
{
	const struct sbx_spawn m = {.run = name,
				    .tenant = "t",
				    .kind = kind,
				    .wall_seconds = 60,
				    .memory_bytes = 128u << 20,
				    .pids = 64,
				    .workspace_bytes = 8u << 20,
				    .workspace_inodes = 1024};
	return sbx_put_spawn(f, SBX_MAX_SPAWN, 5, &m);
}

static void bundles(int fds[2], const char *what, bool seal)
{
	fds[0] = memfd_create("upload", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	fds[1] = memfd_create("result", MFD_CLOEXEC);
	assert_true(fds[0] >= 0 && fds[1] >= 0 && write_all(fds[0], what, strlen(what)));
	if (seal)
		assert_true(bundle_seal(fds[0]));
}

static int spawn(const char *name, uint8_t kind, const char *what)
{
	uint8_t f[SBX_MAX_SPAWN];
	int fds[2];
	bundles(fds, what, true);
	tell(STEWARD, f, put_spawn(f, name, kind), fds, 2);
	close(fds[0]);
	return fds[1];
}

static void send_kill(const char *name, uint8_t kind)
{
	uint8_t f[SBX_MAX_KILL];
	const struct sbx_kill m = {.run = name, .kind = kind};
	tell(STEWARD, f, sbx_put_kill(f, sizeof f, 6, &m), NULL, 0);
}

static void make_root(void)
{
	run("rm -rf %s && mkdir -p -m 755 %s && mkdir -p -m 755 %s %s/box && mkdir -p -m 700 %s", root, root,
	    place_dir(PLACE_SYSCONF), place_dir(PLACE_LIBEXEC), in_root(PLACE_SYSCONF, "/secrets"));
	static const char *const names[] = {"conf", "stored", "gateway", "fcgi", "steward"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		run("install -m 755 tests/box/fake_child %s/pinfold-%s", place_dir(PLACE_LIBEXEC), names[i]);
	run("install -m 755 tests/box/probe_runner %s/box/pinfold-runner", place_dir(PLACE_LIBEXEC));
	run("chmod 755 %s/usr %s/usr/local %s/usr/local/* 2>/dev/null || true", root, root, root);
	run("printf secret >%s && chmod 640 %s", in_root(PLACE_SYSCONF, "/secrets/key"),
	    in_root(PLACE_SYSCONF, "/secrets/key"));
}

static void up(void)
{
	launch(NULL);
	meet(STEWARD);
	meet(GATEWAY);
}

static void down(void)
{
	int status;
	uint64_t from = timer_ms();
	kill(daemon_pid, SIGTERM);
	int i = 0;
	while (i++ < 900 && waitpid(daemon_pid, &status, WNOHANG) == 0)
		usleep(10000);
	daemon_pid = i <= 900 ? 0 : daemon_pid;
	assert_in_range(timer_ms() - from, 0, 5000);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("status %x: %s", (unsigned)status, (read_logs(0), logs));
	assert_int_equal(processes(uids, box_uids + 100), 0);
	assert_int_not_equal(access(place_dir(PLACE_RUN), F_OK), 0);
	uint64_t hash = 14695981039346656037u; /* as sandboxd names its group */
	for (const char *p = place_dir(PLACE_RUN); *p != '\0'; p++)
		hash = (hash ^ (unsigned char)*p) * 1099511628211u;
	run("! find /sys/fs/cgroup -maxdepth 4 -name 'pinfold-%016llx' | grep .", (unsigned long long)hash);
}

/* It must end by itself, saying this. */
static void refuses(void (*first)(void), const char *text)
{
	int status;
	launch(first);
	assert_int_equal(waitpid(daemon_pid, &status, 0), daemon_pid);
	daemon_pid = 0;
	read_logs(100);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 1 || strstr(logs, text) == NULL)
		fail_msg("status %x, not \"%s\" but: %s", (unsigned)status, text, logs);
	assert_int_equal(processes(uids, box_uids + 100), 0);
}

/* After a test that failed half-way. */
static int stop_daemon(void **state)
{
	(void)state;
	if (daemon_pid > 0) {
		kill(daemon_pid, SIGKILL);
		waitpid(daemon_pid, NULL, 0);
	}
	daemon_pid = 0;
	return wait_none(uids, box_uids + 100) ? 0 : -1;
}

static void a_box_from_hello_to_gone(void **state)
{
	(void)state;
	make_root();
	int mounts = lines_of("/proc/self/mountinfo");
	up();
	own_fd int result = spawn("run-1", BOX_WORK, "term");
	expect(STEWARD, SBX_SPAWNED, NULL);
	own_fd int listener = -1, again = -1, copy = -1;
	expect(GATEWAY, SBX_OPEN, &listener);
	assert_true(listener >= 0);
	/* the gateway restarts: it gets the listener again */
	close(peer[GATEWAY]);
	peer[GATEWAY] = -1;
	meet(GATEWAY);
	expect(GATEWAY, SBX_OPEN, &again);
	assert_true(again >= 0);
	/* the steward restarts: it finds its box and its result */
	close(peer[STEWARD]);
	peer[STEWARD] = -1;
	meet(STEWARD);
	uint8_t f[SBX_MAX_LIST];
	const struct sbx_list list = {0};
	tell(STEWARD, f, sbx_put_list(f, sizeof f, 2, &list), NULL, 0);
	struct sbx_box box;
	uint8_t *frame = expect(STEWARD, SBX_BOX, &copy);
	assert_true(sbx_get_box(frame, (size_t)WIRE_HEADER + 4 + 5 + 1 + 4 + 1 + 1 + 2, &box) || copy >= 0);
	expect(STEWARD, SBX_LISTED, NULL);
	struct stat a, b;
	assert_int_equal(fstat(result, &a) | fstat(copy, &b), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	send_kill("run-1", BOX_WORK);
	expect(STEWARD, SBX_EXITED, NULL);
	expect(STEWARD, SBX_GONE, NULL);
	expect(GATEWAY, SBX_CLOSE, NULL);
	assert_int_equal(processes(box_uids, box_uids + 100), 0);
	assert_int_equal(lines_of("/proc/self/mountinfo"), mounts);
	send_kill("never-there", BOX_WORK);
	expect(STEWARD, SBX_GONE, NULL);
	assert_true(logged("narrowed to 0600"));
	down();
}

static void daemons_have_only_theirs(void **state)
{
	(void)state;
	up();
	for (int k = 0; k < PATIENCE / 10 && processes(uids, uids + 4) != 4; k++)
		usleep(10000);
	DIR *d = opendir("/proc");
	int seen = 0;
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		char path[400], text[4096];
		struct stat st;
		snprintf(path, sizeof path, "/proc/%s", e->d_name);
		if (e->d_name[0] < '1' || e->d_name[0] > '9' || stat(path, &st) != 0 || st.st_uid < uids ||
		    st.st_uid >= uids + 4)
			continue;
		seen++;
		const ssize_t clean = (ssize_t)sizeof "PATH=/usr/local/bin:/usr/bin:/bin\0LANG=C.UTF-8\0TZ=UTC";
		ssize_t env = 0; /* another one before it has become its program */
		for (int k = 0; env != clean && k < PATIENCE / 10; k++, usleep(10000)) {
			snprintf(path, sizeof path, "/proc/%s/environ", e->d_name);
			own_fd int from = open(path, O_RDONLY);
			env = read(from, text, sizeof text);
		}
		assert_int_equal(env, clean);
		snprintf(path, sizeof path, "/proc/%s/status", e->d_name);
		own_fd int fd = open(path, O_RDONLY);
		ssize_t n = read(fd, text, sizeof text - 1);
		text[n > 0 ? n : 0] = '\0';
		assert_non_null(strstr(text, "NoNewPrivs:\t1"));
		char groups[32];
		snprintf(groups, sizeof groups, "Groups:\t%u \n", uids + 9);
		assert_non_null(strstr(text, groups));
		assert_non_null(strstr(text, "CapPrm:\t0000000000000000"));
		/* 0-2, control, configuration, secrets, perhaps listeners and the test's own door; "." and ".." */
		bool stored = st.st_uid == uids, fcgi = st.st_uid == uids + 2;
		int want = 2 + 6 + (stored ? 2 : fcgi ? 1 : 1);
		for (int k = 0; k < PATIENCE / 10 && descriptors((pid_t)atoi(e->d_name)) != want; k++)
			usleep(10000);
		assert_int_equal(descriptors((pid_t)atoi(e->d_name)), want);
	}
	closedir(d);
	assert_int_equal(seen, 4);
	struct stat st;
	assert_int_equal(stat(in_root(PLACE_RUN, "/" PLACE_FCGI_SOCK), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	assert_int_equal(st.st_gid, uids + 8);
	assert_int_equal(stat(in_root(PLACE_RUN, "/public"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0750);
	assert_int_equal(stat(in_root(PLACE_RUN, "/" PLACE_ADMIN_SOCK), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat(in_root(PLACE_STATE, "/store"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(st.st_uid, uids);
	down();
}

/* FAULTS F1, F2: whatever the steward sends, it is restarted, sandboxd is not, and nothing is left. */
static void lies_cost_only_the_liar(void **state)
{
	(void)state;
	up();
	int before = 0;
	for (int i = 0; i < 14; i++) {
		uint8_t f[SBX_MAXFRAME * 2];
		int fds[2] = {-1, -1}, nfds = 0;
		memset(f, 0xff, sizeof f);
		bundles(fds, "hold", true);
		const struct sbx_hello h = {.version = i == 3 ? 99 : SBX_VERSION};
		const struct sbx_open down_only = {.run = "x", .tenant = "t"};
		size_t n = put_spawn(f, "lie", BOX_WORK);
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
			close(peer[STEWARD]);
			peer[STEWARD] = -1;
			take_peer(STEWARD);
			break; /* before HELLO */
		}
		tell(STEWARD, f, n, fds, nfds);
		close(fds[0]);
		close(fds[1]);
		meet(STEWARD);
		assert_int_equal(kill(daemon_pid, 0), 0);
		assert_int_equal(processes(box_uids, box_uids + 100), 0);
		if (i == 0)
			before = descriptors(daemon_pid);
		else
			assert_int_equal(descriptors(daemon_pid), before);
		read_logs(0);
	}
	/* what is decoded but makes no sense is refused, without a restart */
	uint8_t f[SBX_MAX_SPAWN];
	int fds[2];
	bundles(fds, "hold", false);
	for (int i = 0; i < 300; i++) {
		tell(STEWARD, f, put_spawn(f, "unsealed", BOX_WORK), fds, 2);
		expect(STEWARD, SBX_REFUSED, NULL);
	}
	tell(STEWARD, f, put_spawn(f, "kind", 7), fds, 2);
	expect(STEWARD, SBX_REFUSED, NULL);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(descriptors(daemon_pid), before);
	/* the gateway may not ask for boxes */
	tell(GATEWAY, f, put_spawn(f, "gw", BOX_WORK), NULL, 0);
	meet(GATEWAY);
	down();
}

/* FAULTS G3, G10: killed at any moment, sandboxd takes everything along; the next life sweeps and works. */
static void its_death_is_everyones(void **state)
{
	(void)state;
	int mounts = lines_of("/proc/self/mountinfo");
	for (int i = 0; i < 12; i++) {
		up();
		if (i == 0) {
			close(spawn("bomb", BOX_WORK, "bomb 60"));
			expect(STEWARD, SBX_SPAWNED, NULL);
			for (int k = 0; k < 500 && processes(box_uids, box_uids + 100) < 40; k++)
				usleep(10000);
		} else {
			close(spawn("a", BOX_WORK, "hold"));
			close(spawn("b", BOX_CHECK, "bomb 10 forking"));
			usleep((unsigned)i * 300);
		}
		kill(daemon_pid, SIGKILL);
		waitpid(daemon_pid, NULL, 0);
		daemon_pid = 0;
		assert_true(wait_none(uids, box_uids + 100));
		assert_int_equal(lines_of("/proc/self/mountinfo"), mounts);
	}
	up();
	close(spawn("after", BOX_WORK, "true"));
	expect(STEWARD, SBX_SPAWNED, NULL);
	expect(STEWARD, SBX_EXITED, NULL);
	down();
}

static void stops_with_boxes_at_work(void **state)
{
	(void)state;
	up();
	close(spawn("a", BOX_WORK, "bomb 100"));
	close(spawn("b", BOX_WORK, "hold"));
	expect(STEWARD, SBX_SPAWNED, NULL);
	expect(STEWARD, SBX_SPAWNED, NULL);
	down();
}

static void only_one_of_an_instance(void **state)
{
	(void)state;
	up();
	pid_t first = daemon_pid;
	int first_log = log_fd;
	log_fd = -1;
	int status;
	launch(NULL);
	assert_int_equal(waitpid(daemon_pid, &status, 0), daemon_pid);
	assert_true(logged("another pinfold-sandboxd runs this instance"));
	daemon_pid = first;
	close(log_fd);
	log_fd = first_log;
	down();
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

/* FAULTS G7, F7: fewer walls, foreign folders, or no root: it does not start, and says why. */
static void refuses_to_start(void **state)
{
	(void)state;
	make_root();
	refuses(no_landlock, "Landlock is missing");
	refuses(no_user_namespaces, "no sandbox can be built on this machine: namespaces: Operation not permitted");
	refuses(no_namespaces, "no sandbox can be built on this machine: namespaces: Function not implemented");
	refuses(no_pivot, "no sandbox can be built on this machine: pivot_root: Operation not permitted");
	refuses(nobody, "must be started as root");
	run("mv %s/box/pinfold-runner %s/box/away", place_dir(PLACE_LIBEXEC), place_dir(PLACE_LIBEXEC));
	refuses(NULL, "pinfold-runner is missing");
	run("mv %s/box/away %s/box/pinfold-runner", place_dir(PLACE_LIBEXEC), place_dir(PLACE_LIBEXEC));
	static const char *const spoilt[][3] = {{"chmod g+w", "chmod g-w", "may be written by others"},
						{"chown 12345", "chown 0", "is owned by uid 12345"}};
	const char *dirs[] = {place_dir(PLACE_STATE), in_root(PLACE_RUN, "/public"),
			      in_root(PLACE_SYSCONF, "/secrets")};
	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; k < 2; k++) {
			run("mkdir -p %s && %s %s", dirs[k], spoilt[i][0], dirs[k]);
			refuses(NULL, spoilt[i][2]);
			assert_non_null(strstr(logs, dirs[k]));
			run("%s %s", spoilt[i][1], dirs[k]);
		}
	run("rm -rf %s && ln -s /etc %s", dirs[1], dirs[1]);
	refuses(NULL, "is a link or no folder");
	run("rm %s && mkdir -p %s && touch %s/fcgi.sock", dirs[1], dirs[1], dirs[1]);
	refuses(NULL, "cannot listen at");
	run("rm -rf %s && chown 12345 %s", dirs[1], root);
	refuses(NULL, "is owned by uid 12345");
	run("chown 0 %s", root);
}

int main(void)
{
	if (geteuid() != 0) {
		puts("skipped: needs root");
		return 77;
	}
	umask(022);
	snprintf(root, sizeof root, "/tmp/pfd.XXXXXX");
	if (mkdtemp(root) == NULL || setenv("PINFOLD_ROOT", root, 1) != 0 || !place_init())
		return 1;
	uids = test_uids(root);
	box_uids = uids + 10000;
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; i < 2; i++) {
		struct sockaddr_un u = {.sun_family = AF_UNIX};
		int n = snprintf(u.sun_path + 1, sizeof u.sun_path - 1, "%s/%s", place_dir(PLACE_RUN), peer_names[i]);
		door[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		if (bind(door[i], (struct sockaddr *)&u, (socklen_t)(sizeof(sa_family_t) + 1 + (size_t)n)) != 0 ||
		    listen(door[i], 64) != 0)
			return 1;
	}
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(a_box_from_hello_to_gone, stop_daemon),
	    cmocka_unit_test_teardown(daemons_have_only_theirs, stop_daemon),
	    cmocka_unit_test_teardown(lies_cost_only_the_liar, stop_daemon),
	    cmocka_unit_test_teardown(its_death_is_everyones, stop_daemon),
	    cmocka_unit_test_teardown(stops_with_boxes_at_work, stop_daemon),
	    cmocka_unit_test_teardown(only_one_of_an_instance, stop_daemon),
	    cmocka_unit_test_teardown(refuses_to_start, stop_daemon),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	run("rm -rf %s", root);
	return failed;
}
