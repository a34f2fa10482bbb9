/* See daemon_rig.h. What goes wrong here fails the running test. */
#include "tests/box/daemon_rig.h"
#include "gen/sandbox_msg.h"
#include "lib/chan.h"
#include "lib/die.h"
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

uint32_t daemon_uids, daemon_box_uids;
char daemon_root[64], daemon_logs[16384];
pid_t daemon_pid;
size_t daemon_heard;
int daemon_log_fd = -1, daemon_door[2] = {-1, -1}, daemon_peer[2] = {-1, -1};
const char *const daemon_peer_names[2] = {"steward", "gateway"};

const char *daemon_in_root(enum place p, const char *rest)
{
	static char path[4][400];
	static int i;
	i = (i + 1) % 4;
	snprintf(path[i], sizeof path[i], "%s%s", place_dir(p), rest);
	return path[i];
}

void daemon_run(const char *fmt, ...)
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
int daemon_processes(uid_t from, uid_t to)
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

bool daemon_wait_none(uid_t from, uid_t to)
{
	return WAIT_FOR(daemon_processes(from, to) == 0);
}

int daemon_lines_of(const char *path)
{
	FILE *f = fopen(path, "re");
	int n = 0;
	for (int c; f != NULL && (c = getc(f)) != EOF;)
		n += c == '\n';
	fclose(f);
	return n;
}

int daemon_descriptors(pid_t pid)
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

void daemon_read_logs(int ms)
{
	struct pollfd p = {.fd = daemon_log_fd, .events = POLLIN};
	while (poll(&p, 1, ms) == 1) {
		size_t n = strlen(daemon_logs);
		if (n > sizeof daemon_logs / 2)
			memmove(daemon_logs, daemon_logs + n / 2, n - n / 2 + 1), n = strlen(daemon_logs);
		ssize_t got = read(daemon_log_fd, daemon_logs + n, sizeof daemon_logs - 1 - n);
		daemon_logs[n + (size_t)(got > 0 ? got : 0)] = '\0';
		if (got <= 0)
			return;
		ms = 0;
	}
}

bool daemon_logged(const char *text)
{
	return WAIT_FOR((daemon_read_logs(0), strstr(daemon_logs, text) != NULL));
}

void daemon_launch(void (*first)(void))
{
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	daemon_logs[0] = '\0';
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
	if (daemon_log_fd >= 0)
		close(daemon_log_fd);
	daemon_log_fd = ends[0];
}

void daemon_take_peer(int which)
{
	struct pollfd p = {.fd = daemon_door[which], .events = POLLIN};
	if (daemon_peer[which] >= 0)
		close(daemon_peer[which]);
	if (poll(&p, 1, PATIENCE_MS) != 1)
		fail_msg("no %s: %s", daemon_peer_names[which], (daemon_read_logs(0), daemon_logs));
	daemon_peer[which] = accept4(daemon_door[which], NULL, NULL, SOCK_CLOEXEC);
	assert_true(daemon_peer[which] >= 0);
}

static ssize_t hear(int which, uint8_t *frame, int *fd)
{
	int fds[WIRE_MAX_FDS], n = 0;
	struct pollfd p = {.fd = daemon_peer[which], .events = POLLIN};
	if (poll(&p, 1, PATIENCE_MS) != 1)
		fail_msg("nothing from sandboxd: %s", (daemon_read_logs(0), daemon_logs));
	ssize_t got = chan_recv(daemon_peer[which], frame, SBX_MAXFRAME, fds, &n);
	if (fd != NULL)
		*fd = n == 1 ? fds[0] : -1;
	else
		chan_close_fds(fds, n);
	return got;
}

/* The next message must be of this number (0: any). */
uint8_t *daemon_expect(int which, uint16_t number, int *fd)
{
	static uint8_t frame[SBX_MAXFRAME];
	ssize_t n = hear(which, frame, fd);
	daemon_heard = n > 0 ? (size_t)n : 0;
	uint16_t got = 0;
	uint64_t op;
	if (n <= 0 || !wire_peek(frame, (size_t)n, &got, &op) || (number != 0 && got != number))
		fail_msg("message %u instead of %u from sandboxd; %s", got, number, (daemon_read_logs(0), daemon_logs));
	return frame;
}

void daemon_tell(int which, const uint8_t *frame, size_t n, const int *fds, int nfds)
{
	assert_int_equal(chan_send(daemon_peer[which], frame, n, fds, nfds), 0);
}

static void hello(int which)
{
	uint8_t f[SBX_MAX_HELLO];
	const struct sbx_hello m = {.version = SBX_VERSION};
	daemon_tell(which, f, sbx_put_hello(f, sizeof f, 1, &m), NULL, 0);
	daemon_expect(which, SBX_WELCOME, NULL);
}

void daemon_meet(int which)
{
	daemon_take_peer(which);
	hello(which);
}

size_t daemon_put_spawn(uint8_t *f, const char *name, uint8_t kind)
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

void daemon_bundles(int fds[2], const char *what, bool seal)
{
	fds[0] = memfd_create("upload", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	fds[1] = memfd_create("result", MFD_CLOEXEC);
	assert_true(fds[0] >= 0 && fds[1] >= 0 && write_all(fds[0], what, strlen(what)));
	if (seal)
		assert_true(bundle_seal(fds[0]));
}

int daemon_spawn(const char *name, uint8_t kind, const char *what)
{
	uint8_t f[SBX_MAX_SPAWN];
	int fds[2];
	daemon_bundles(fds, what, true);
	daemon_tell(STEWARD, f, daemon_put_spawn(f, name, kind), fds, 2);
	close(fds[0]);
	return fds[1];
}

void daemon_send_kill(const char *name, uint8_t kind)
{
	uint8_t f[SBX_MAX_KILL];
	const struct sbx_kill m = {.run = name, .kind = kind};
	daemon_tell(STEWARD, f, sbx_put_kill(f, sizeof f, 6, &m), NULL, 0);
}

void daemon_make_root(void)
{
	daemon_run("rm -rf %s && mkdir -p -m 755 %s && mkdir -p -m 755 %s %s/box && mkdir -p -m 700 %s", daemon_root,
		   daemon_root, place_dir(PLACE_SYSCONF), place_dir(PLACE_LIBEXEC),
		   daemon_in_root(PLACE_SYSCONF, "/secrets"));
	static const char *const names[] = {"conf", "stored", "gateway", "fcgi", "steward", "push"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		daemon_run("install -m 755 tests/box/fake_child %s/pinfold-%s", place_dir(PLACE_LIBEXEC), names[i]);
	daemon_run("install -m 755 tests/box/probe_runner %s/box/pinfold-runner", place_dir(PLACE_LIBEXEC));
	daemon_run("chmod 755 %s/usr %s/usr/local %s/usr/local/* 2>/dev/null || true", daemon_root, daemon_root,
		   daemon_root);
	daemon_run("printf secret >%s && chmod 640 %s", daemon_in_root(PLACE_SYSCONF, "/secrets/key"),
		   daemon_in_root(PLACE_SYSCONF, "/secrets/key"));
	daemon_run("umask 077 && printf 01234567890123456789012345678901 >%s",
		   daemon_in_root(PLACE_SYSCONF, "/secrets/run-token"));
}

/* The name of sandboxd's group, as it makes it. */
static const char *group_name(void)
{
	static char name[40];
	uint64_t hash = 14695981039346656037u;
	for (const char *p = place_dir(PLACE_RUN); *p != '\0'; p++)
		hash = (hash ^ (unsigned char)*p) * 1099511628211u;
	snprintf(name, sizeof name, "pinfold-%016llx", (unsigned long long)hash);
	return name;
}

static void no_groups(void)
{
	daemon_run("! find /sys/fs/cgroup -maxdepth 4 -name '%s' | grep .", group_name());
}

const char *daemon_group(void)
{
	static char path[400];
	char line[200];
	snprintf(line, sizeof line, "find /sys/fs/cgroup -maxdepth 4 -path '*/%s/cgroup.kill'", group_name());
	FILE *f = popen(line, "re");
	assert_non_null(f);
	assert_non_null(fgets(path, sizeof path, f));
	pclose(f);
	*strrchr(path, '/') = '\0';
	return path;
}

void daemon_up(void)
{
	daemon_launch(NULL);
	daemon_meet(STEWARD);
	daemon_meet(GATEWAY);
}

void daemon_down(void)
{
	int status;
	kill(daemon_pid, SIGTERM);
	if (!WAIT_FOR(waitpid(daemon_pid, &status, WNOHANG) != 0))
		fail_msg("it does not end: %s", (daemon_read_logs(0), daemon_logs));
	daemon_pid = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("status %x: %s", (unsigned)status, (daemon_read_logs(0), daemon_logs));
	assert_int_equal(daemon_processes(daemon_uids, daemon_box_uids + 100), 0);
	assert_int_not_equal(access(place_dir(PLACE_RUN), F_OK), 0);
	no_groups();
}

/* It must end by itself, saying this. */
void daemon_refuses(void (*first)(void), const char *text)
{
	int status;
	daemon_launch(first);
	if (!WAIT_FOR(waitpid(daemon_pid, &status, WNOHANG) != 0))
		fail_msg("it does not end, saying \"%s\": %s", text, (daemon_read_logs(0), daemon_logs));
	daemon_pid = 0;
	daemon_read_logs(100);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != UNFIT || strstr(daemon_logs, text) == NULL)
		fail_msg("status %x, not \"%s\" but: %s", (unsigned)status, text, daemon_logs);
	assert_int_equal(daemon_processes(daemon_uids, daemon_box_uids + 100), 0);
	no_groups();
}

/* After a test that failed half-way. */
int daemon_stop(void **state)
{
	(void)state;
	if (daemon_pid > 0) {
		kill(daemon_pid, SIGKILL);
		waitpid(daemon_pid, NULL, 0);
	}
	daemon_pid = 0;
	return daemon_wait_none(daemon_uids, daemon_box_uids + 100) ? 0 : -1;
}

bool daemon_begin(void)
{
	if (geteuid() != 0) {
		puts("skipped: needs root");
		return false;
	}
	umask(022);
	snprintf(daemon_root, sizeof daemon_root, "/tmp/pfd.XXXXXX");
	if (mkdtemp(daemon_root) == NULL || setenv("PINFOLD_ROOT", daemon_root, 1) != 0 || !place_init())
		exit(1);
	daemon_uids = test_uids(daemon_root);
	daemon_box_uids = daemon_uids + 10000;
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; i < 2; i++) {
		struct sockaddr_un u = {.sun_family = AF_UNIX};
		int n = snprintf(u.sun_path + 1, sizeof u.sun_path - 1, "%s/%s", place_dir(PLACE_RUN),
				 daemon_peer_names[i]);
		daemon_door[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		if (bind(daemon_door[i], (struct sockaddr *)&u, (socklen_t)(sizeof(sa_family_t) + 1 + (size_t)n)) !=
			0 ||
		    listen(daemon_door[i], 64) != 0)
			exit(1);
	}
	daemon_make_root();
	return true;
}
