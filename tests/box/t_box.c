/*
 * Boxes, each wall attacked from inside, limits reached, everything taken down: nothing of a box may be left.
 * Run as root from the build folder; skipped otherwise.
 */
#include "lib/names.h"
#include "lib/own.h"
#include "tests/box/rig.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct rig rig;

static int number(const char *text, const char *key)
{
	char line[128];
	snprintf(line, sizeof line, "\n%s ", key);
	const char *p = strncmp(text, line + 1, strlen(line + 1)) == 0 ? text - 1 : strstr(text, line);
	return p == NULL ? -1 : atoi(p + strlen(line));
}

static unsigned lines_of(const char *path)
{
	FILE *f = fopen(path, "re");
	unsigned n = 0;
	for (int c; f != NULL && (c = getc(f)) != EOF;)
		n += c == '\n';
	if (f != NULL)
		fclose(f);
	return n;
}

/* Processes in the network namespace of this number. */
static unsigned in_net(ino_t net)
{
	unsigned n = 0;
	DIR *d = opendir("/proc");
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		char path[300];
		struct stat st;
		snprintf(path, sizeof path, "/proc/%s/ns/net", e->d_name);
		n += e->d_name[0] >= '1' && e->d_name[0] <= '9' && stat(path, &st) == 0 && st.st_ino == net;
	}
	closedir(d);
	return n;
}

/* Processes on the machine whose real uid is one of the boxes'. */
static unsigned survivors(void)
{
	unsigned n = 0;
	DIR *d = opendir("/proc");
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		char path[300];
		struct stat st;
		snprintf(path, sizeof path, "/proc/%s", e->d_name);
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && stat(path, &st) == 0 &&
		    st.st_uid - rig.boxes.uid_base < 1000)
			n++;
	}
	closedir(d);
	return n;
}

static void walls_hold(void **state)
{
	static const struct {
		const char *name;
		int errors[3]; /* any of these; 0 in the first place: it must work */
	} rows[] = {
	    {"unshare_user", {EPERM}},
	    {"unshare_net", {EPERM}},
	    {"setns", {EPERM}},
	    {"clone_user", {EPERM}},
	    {"clone3", {ENOSYS}},
	    {"mount", {EPERM}},
	    {"umount", {EPERM}},
	    {"open_tree", {ENOSYS}},
	    {"pivot_root", {EPERM}},
	    {"chroot", {EPERM}},
	    {"ptrace", {EPERM}},
	    {"ptrace_1", {EPERM}},
	    {"process_vm", {EPERM}},
	    {"keyctl", {EPERM}},
	    {"add_key", {EPERM}},
	    {"bpf", {EPERM}},
	    {"io_uring", {ENOSYS}},
	    {"perf", {EPERM}},
	    {"userfaultfd", {ENOSYS}},
	    {"open_by_handle", {ENOSYS}},
	    {"unknown_call", {ENOSYS}},
	    {"netlink", {EAFNOSUPPORT}},
	    {"packet", {EAFNOSUPPORT}},
	    {"vsock", {EAFNOSUPPORT}},
	    {"alg", {EAFNOSUPPORT}},
	    {"netlink_high", {EAFNOSUPPORT}},
	    {"raw", {EPERM}},
	    {"tiocsti", {EPERM}},
	    {"tiocsti_high", {EPERM}},
	    {"tioclinux", {EPERM}},
	    {"tiocsetd", {EPERM}},
	    {"personality", {ENOSYS}},
	    {"core_sched", {EINVAL}},
	    {"unknown_prctl", {EINVAL}},
	    {"tcp_ulp", {ENOPROTOOPT}},
	    {"udp_encap", {ENOPROTOOPT}},
	    {"huge_mmap", {ENOMEM}},
	    {"huge_memfd", {EINVAL}},
	    {"huge_shm", {EPERM}},
	    {"sctp", {EPROTONOSUPPORT}},
	    {"mptcp", {EPROTONOSUPPORT}},
	    {"rdm", {ESOCKTNOSUPPORT}},
	    {"pair_netlink", {EAFNOSUPPORT}},
	    {"x32", {ENOSYS}},
	    {"int80", {SIGSYS}},
	    {"tty", {ENOENT}},
	    {"kill_1", {EPERM}},
	    {"proc_1", {ENOENT}},
	    {"proc_1_dir", {ENOENT}},
	    {"proc_sys", {ENOENT}},
	    {"kcore", {ENOENT}},
	    {"sysrq", {ENOENT}},
	    {"shadow", {ENOENT}},
	    {"root_dir", {ENOENT}},
	    {"sys", {ENOENT}},
	    {"host_run", {ENOENT}},
	    {"write_usr", {EACCES, EROFS}},
	    {"write_opt", {EACCES, EROFS}},
	    {"write_runner", {EACCES, EROFS, ETXTBSY}},
	    {"write_etc", {EACCES, EROFS}},
	    {"write_root", {EACCES, EROFS}},
	    {"write_dev", {EACCES, EROFS}},
	    {"mknod", {EPERM}},
	    {"chown", {EPERM}},
	    {"setuid_0", {EPERM}},
	    {"setgroups", {EPERM}},
	    {"sethostname", {EPERM, ENOSYS}},
	    {"own_gateway", {0}},
	    {"host_loopback", {ECONNREFUSED}},
	    {"host_loopback_6", {ECONNREFUSED, EADDRNOTAVAIL}},
	    {"metadata", {ENETUNREACH}},
	    {"dns", {ENETUNREACH}},
	    {"abstract", {ECONNREFUSED}},
	    {"workspace", {0}},
	    {"tmp", {0}},
	    {"shm", {0}},
	    {"null", {0}},
	    {"urandom", {0}},
	    {"list_root", {0}},
	};
	(void)state;
	/* Two doors of the host that are open to anybody outside. */
	own_fd int tcp = socket(AF_INET, SOCK_STREAM, 0), local = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof a;
	assert_int_equal(bind(tcp, (struct sockaddr *)&a, sizeof a) | listen(tcp, 4) |
			     getsockname(tcp, (struct sockaddr *)&a, &n),
			 0);
	struct sockaddr_un u = {.sun_family = AF_UNIX};
	int len = snprintf(u.sun_path + 1, sizeof u.sun_path - 1, "pinfold-test-%u", ntohs(a.sin_port));
	assert_int_equal(bind(local, (struct sockaddr *)&u, (socklen_t)(sizeof(sa_family_t) + 1 + (size_t)len)) |
			     listen(local, 4),
			 0);
	char what[64];
	snprintf(what, sizeof what, "attempts %u %d", ntohs(a.sin_port), RIG_PORT);
	own_free char *text = rig_run(&rig, "walls", what);
	int wrong = 0;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		int got = number(text, rows[i].name);
		bool right =
		    got == rows[i].errors[0] || (got > 0 && (got == rows[i].errors[1] || got == rows[i].errors[2]));
		if (!right)
			print_error("%s: %d (%s)\n", rows[i].name, got, got < 0 ? "not reached" : strerror(got));
		wrong += !right;
	}
	assert_int_equal(wrong, 0);
}

static void what_is_allowed_works(void **state)
{
	(void)state;
	own_free char *text = rig_run(&rig, "groups", "groups");
	int n = 0;
	for (char *save = NULL, *l = strtok_r(text, "\n", &save); l != NULL; l = strtok_r(NULL, "\n", &save), n++)
		if (strcmp(l + strcspn(l, " "), " 0") != 0)
			fail_msg("%s", l);
	assert_int_equal(n, 19);
}

static void only_listed_descriptors(void **state)
{
	(void)state;
	own_free char *runner = rig_run(&rig, "fds-runner", "runner");
	/* 0-2 null, 3-6, then one group a tree; what the directory listing itself opens is left out */
	assert_non_null(strstr(runner, "fd 0 /dev/null\nfd 1 /dev/null\nfd 2 /dev/null\nfd 3 /memfd:upload "
				       "(deleted)\nfd 4 /memfd:result (deleted)\nfd 5 pipe:"));
	char *cpu = strstr(runner, "\nfd 6 ");
	assert_true(cpu != NULL && strstr(cpu, "/cpu.stat\n") != NULL &&
		    strstr(cpu, "/cpu.stat\n") < strchr(cpu + 1, '\n'));
	int trees = 0;
	for (int fd = 7; fd < 100; fd++) {
		char key[16], *at;
		snprintf(key, sizeof key, "\nfd %d ", fd);
		if ((at = strstr(runner, key)) == NULL)
			continue;
		assert_true(fd < 10);
		assert_non_null(strstr(at, trees == 0 ? "cgroup.procs" : "tasks"));
		trees++;
	}
	int want = 0; /* one in each tree that limits the agent */
	for (int i = 0; i < rig.boxes.cg.trees; i++)
		want += rig.boxes.cg.tree[i].v2 || (rig.boxes.cg.tree[i].what & (CG_MEMORY | CG_PIDS)) != 0;
	assert_int_equal(trees, want);
	assert_non_null(strstr(runner, "CapPrm:\t00000000000000e4\n")); /* DAC_READ_SEARCH KILL SETGID SETUID */
	assert_non_null(strstr(runner, "CapBnd:\t0000000000000000\n"));
	own_free char *agent = rig_run(&rig, "fds-agent", "descriptors");
	assert_string_equal(agent, "fd 0 /dev/null\nfd 1 /dev/null\nfd 2 /dev/null\nfd 4 /memfd:result (deleted)\n");
}

static void agent_has_nothing(void **state)
{
	static const char *const want[] = {"CapPrm:\t0000000000000000",
					   "CapEff:\t0000000000000000",
					   "CapBnd:\t0000000000000000",
					   "CapAmb:\t0000000000000000",
					   "NoNewPrivs:\t1",
					   "Seccomp:\t2",
					   "Uid:\t1000\t1000\t1000\t1000",
					   "Gid:\t1000\t1000\t1000\t1000",
					   "Groups:\t \n"};
	(void)state;
	own_free char *text = rig_run(&rig, "status", "status");
	for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
		if (strstr(text, want[i]) == NULL)
			fail_msg("%s is not in:\n%s", want[i], text);
	assert_non_null(strstr(text, "Max core file size        1"));
	assert_non_null(strstr(text, "Max open files            1024"));
	assert_non_null(strstr(text, "Max address space         unlimited"));
}

static void mounts_are_few(void **state)
{
	(void)state;
	own_free char *text = rig_run(&rig, "mounts", "mounts");
	char *save = NULL;
	for (char *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
		char at[256], options[256];
		assert_int_equal(sscanf(line, "%*s %*s %*s %*s %255s %255s", at, options), 2);
		assert_null(strstr(line, "shared:"));
		assert_null(strstr(line, "master:"));
		assert_non_null(strstr(options, "nosuid"));
		if (strcmp(at, "/dev") != 0)
			assert_non_null(strstr(options, "nodev"));
		bool writable = strcmp(at, "/workspace") == 0 || strcmp(at, "/tmp") == 0 || strcmp(at, "/dev/shm") == 0;
		if (!writable && strcmp(at, "/proc") != 0)
			assert_int_equal(strncmp(options, "ro,", 3), 0);
	}
}

static void programs_work(void **state)
{
	(void)state;
	own_free char *text =
	    rig_run(&rig, "tools",
		    "shell set -e; python3 -c 'import ssl,json,subprocess,multiprocessing; print(6*7)'; "
		    "git -c init.defaultBranch=m init -q r; cd r; echo 'int main(void){return 3;}' >a.c; git add a.c; "
		    "git -c user.name=a -c user.email=a@b commit -qm x; git log --oneline | wc -l; "
		    "if command -v gcc >/dev/null; then gcc -o a a.c; ./a || echo built $?; else echo built 3; fi; "
		    "id -un; ls / | tr '\\n' ' '; cat /etc/hostname; ls -d /home /root /var/lib 2>/dev/null || true");
	if (strstr(text, "42\n1\nbuilt 3\nagent\n") == NULL)
		fail_msg("it said:\n%s", text);
	assert_non_null(strstr(text, "\nstatus 0\n"));
	assert_null(strstr(text, "/home"));
}

static void processes_are_bounded(void **state)
{
	(void)state;
	struct box_limits l = rig_limits();
	l.pids = 40;
	own_fd int result = rig_spawn(&rig, "pids", BOX_WORK, &l, "pids");
	struct rig_told *t = rig_told(&rig, "pids");
	assert_true(rig_until(&rig, &t->exited, PATIENCE_MS));
	own_free char *text = rig_text(result);
	assert_in_range(number(text, "forks"), 30, 40);
	box_kill(&rig.boxes, 1, "pids", BOX_WORK, 0);
	assert_true(rig_until(&rig, &t->gone, PATIENCE_MS));
	assert_true(t->clean);
}

static void memory_is_bounded(void **state)
{
	(void)state;
	struct box_limits l = rig_limits();
	l.memory_bytes = 48u << 20;
	own_fd int result = rig_spawn(&rig, "memory", BOX_WORK, &l, "memory");
	struct rig_told *t = rig_told(&rig, "memory");
	assert_true(rig_until(&rig, &t->exited, PATIENCE_MS));
	own_free char *text = rig_text(result);
	assert_int_equal(number(text, "killed"), SIGKILL);
	assert_true(t->oom);
	assert_int_equal(t->status, 0); /* the runner lived to tell */
	assert_in_range(t->peak_bytes, 32u << 20, 96u << 20);
	assert_true(t->cpu_us > 0);
	box_kill(&rig.boxes, 1, "memory", BOX_WORK, 0);
	assert_true(rig_until(&rig, &t->gone, PATIENCE_MS));
}

static void files_are_bounded(void **state)
{
	(void)state;
	struct box_limits l = rig_limits();
	l.workspace_inodes = 100;
	l.workspace_bytes = 2u << 20;
	static const char *const what[] = {"inodes", "bytes"};
	for (int i = 0; i < 2; i++) {
		own_fd int result = rig_spawn(&rig, what[i], BOX_CHECK, &l, what[i]);
		struct rig_told *t = rig_told(&rig, what[i]);
		assert_true(rig_until(&rig, &t->exited, PATIENCE_MS));
		own_free char *text = rig_text(result);
		if (i == 0)
			assert_in_range(number(text, "files"), 90, 100);
		else
			assert_in_range(number(text, "bytes"), 1u << 20, 2u << 20);
		box_kill(&rig.boxes, 1, what[i], BOX_CHECK, 0);
		assert_true(rig_until(&rig, &t->gone, PATIENCE_MS));
	}
}

static void check_box_has_no_gateway(void **state)
{
	(void)state;
	struct box_limits l = rig_limits();
	own_fd int result = rig_spawn(&rig, "check", BOX_CHECK, &l, "attempts 1 9797");
	struct rig_told *t = rig_told(&rig, "check");
	assert_true(rig_until(&rig, &t->exited, PATIENCE_MS));
	own_free char *text = rig_text(result);
	assert_int_equal(number(text, "own_gateway"), ECONNREFUSED);
	assert_int_equal(t->listener, -1);
	box_kill(&rig.boxes, 1, "check", BOX_CHECK, 0);
	assert_true(rig_until(&rig, &t->gone, PATIENCE_MS));
}

static void everything_dies(void **state)
{
	/* the last: stopped, out of its session, and forked twice */
	static const char *const what[] = {
	    "bomb 200", "bomb 20 forking", "hold",
	    "shell (kill -STOP $BASHPID) & setsid sh -c 'sleep 1000 & echo ready; sleep 1000' & sleep 1000"};
	(void)state;
	for (size_t i = 0; i < sizeof what / sizeof what[0]; i++) {
		unsigned mounts = lines_of("/proc/self/mountinfo");
		char run[32];
		snprintf(run, sizeof run, "bomb-%zu", i);
		struct box_limits l = rig_limits();
		own_fd int result = rig_spawn(&rig, run, BOX_WORK, &l, what[i]);
		struct rig_told *t = rig_told(&rig, run);
		assert_true(rig_until_says(&rig, result, "ready", PATIENCE_MS));
		if (i < 2)
			assert_true(survivors() > 20);
		char path[64];
		struct stat net;
		snprintf(path, sizeof path, "/proc/%d/ns/net", (int)boxes_find(&rig.boxes, run, BOX_WORK)->pid);
		assert_int_equal(stat(path, &net), 0);
		assert_true(in_net(net.st_ino) > 0);
		uint64_t from = rig_ns();
		box_kill(&rig.boxes, 1, run, BOX_WORK, 0);
		assert_true(rig_until(&rig, &t->gone, PATIENCE_MS));
		print_message("          %.20s: gone after %.1f ms\n", what[i], (double)(t->gone_ns - from) / 1e6);
		assert_true(t->clean && t->exited && t->closed);
		assert_true(t->status == -SIGKILL || t->status == 0); /* its process 1 may see the others' end first */
		assert_int_equal(survivors(), 0);
		assert_int_equal(lines_of("/proc/self/mountinfo"), mounts);
		assert_int_equal(in_net(net.st_ino), 0);
		struct stat st;
		for (int g = 0; g < rig.boxes.cg.trees; g++)
			assert_int_not_equal(fstatat(rig.boxes.cg.tree[g].base, "s0", &st, 0), 0);
	}
}

/* FAULTS F3: the number of a box's process 1 is somebody else's after its end; killing the box does not touch that one.
 */
static void a_number_used_again(void **state)
{
	(void)state;
	struct box_limits l = rig_limits();
	close(rig_spawn(&rig, "number", BOX_WORK, &l, "true"));
	struct rig_told *t = rig_told(&rig, "number");
	assert_true(rig_until(&rig, &t->spawned, PATIENCE_MS));
	pid_t number = boxes_find(&rig.boxes, "number", BOX_WORK)->pid;
	assert_true(rig_until(&rig, &t->exited, PATIENCE_MS));
	struct clone_args args = {.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&number, .set_tid_size = 1};
	long again = syscall(SYS_clone3, &args, sizeof args);
	if (again == 0)
		for (;;)
			pause();
	if (again < 0)
		skip(); /* taken, or the kernel cannot choose numbers */
	assert_int_equal(again, number);
	box_kill(&rig.boxes, 1, "number", BOX_WORK, 5000);
	assert_true(rig_until(&rig, &t->gone, PATIENCE_MS) && t->clean);
	assert_int_equal(waitpid(number, NULL, WNOHANG), 0);
	kill(number, SIGKILL);
	waitpid(number, NULL, 0);
}

static void kill_is_gentle_first(void **state)
{
	(void)state;
	struct box_limits l = rig_limits();
	own_fd int result = rig_spawn(&rig, "term", BOX_WORK, &l, "term");
	struct rig_told *t = rig_told(&rig, "term");
	/* It may say so before it is known to be alive, and what is not is killed at once. */
	assert_true(rig_until_says(&rig, result, "ready", PATIENCE_MS) && rig_until(&rig, &t->spawned, PATIENCE_MS));
	box_kill(&rig.boxes, 1, "term", BOX_WORK, 30000);
	assert_true(rig_until(&rig, &t->gone, PATIENCE_MS));
	assert_int_equal(t->status, 7);
	/* and one that does not listen */
	own_fd int deaf = rig_spawn(&rig, "deaf", BOX_WORK, &l, "hold");
	t = rig_told(&rig, "deaf");
	assert_true(rig_until_says(&rig, deaf, "ready", PATIENCE_MS));
	box_kill(&rig.boxes, 1, "deaf", BOX_WORK, 50);
	assert_true(rig_until(&rig, &t->gone, PATIENCE_MS));
	/* its process 1 may see the end of the others before its own */
	assert_true(t->status == -SIGKILL || t->status == 0);
}

static void wall_time_ends_a_box(void **state)
{
	(void)state;
	struct box_limits l = rig_limits();
	l.wall_seconds = 1;
	own_fd int result = rig_spawn(&rig, "wall", BOX_WORK, &l, "hold");
	struct rig_told *t = rig_told(&rig, "wall");
	assert_true(rig_until(&rig, &t->exited, PATIENCE_MS));
	assert_true(t->timed_out);
	bool never = false;
	rig_until(&rig, &never, 50);
	assert_false(t->gone); /* kept until it is killed */
	assert_non_null(boxes_find(&rig.boxes, "wall", BOX_WORK));
	box_kill(&rig.boxes, 1, "wall", BOX_WORK, 0);
	assert_true(t->gone && t->clean);
	assert_true(result >= 0);
}

static void slots_and_names_are_checked(void **state)
{
	(void)state;
	struct box_limits l = rig_limits();
	char run[16];
	int results[8];
	for (unsigned i = 0; i < rig.boxes.slots; i++) {
		snprintf(run, sizeof run, "full-%u", i);
		results[i] = rig_spawn(&rig, run, BOX_WORK, &l, "hold");
		assert_true(rig_until(&rig, &rig_told(&rig, run)->spawned, PATIENCE_MS));
	}
	close(rig_spawn(&rig, "one-more", BOX_WORK, &l, "hold"));
	assert_true(rig_told(&rig, "one-more")->refused);
	assert_int_equal(rig_told(&rig, "one-more")->code, ERR_SANDBOX_CAPACITY);
	close(rig_spawn(&rig, "full-0", BOX_WORK, &l, "hold"));
	assert_true(rig_told(&rig, "full-0")->refused);
	assert_int_equal(rig_told(&rig, "full-0")->code, ERR_SANDBOX_SPAWN_FAILED);
	boxes_destroy_all(&rig.boxes);
	bool never = false;
	for (int i = 0; i < 500 && boxes_busy(&rig.boxes) > 0; i++)
		rig_until(&rig, &never, 10);
	assert_int_equal(boxes_busy(&rig.boxes), 0);
	assert_int_equal(survivors(), 0);
	for (unsigned i = 0; i < rig.boxes.slots; i++)
		close(results[i]);
}

/* Killed at whatever step of being built: refused or ended, and nothing is left. */
static void killed_while_being_built(void **state)
{
	(void)state;
	unsigned mounts = lines_of("/proc/self/mountinfo");
	struct box_limits l = rig_limits();
	for (int i = 0; i < 40; i++) {
		char run[16];
		snprintf(run, sizeof run, "early-%d", i);
		close(rig_spawn(&rig, run, BOX_WORK, &l, "hold"));
		struct rig_told *t = rig_told(&rig, run);
		for (uint64_t until = rig_ns() + (uint64_t)i * 80000; rig_ns() < until;)
			;
		box_kill(&rig.boxes, 1, run, BOX_WORK, 0);
		assert_true(rig_until(&rig, &t->gone, PATIENCE_MS));
		assert_true(t->clean);
	}
	assert_int_equal(survivors(), 0);
	assert_int_equal(lines_of("/proc/self/mountinfo"), mounts);
	close(rig_spawn(&rig, "after", BOX_WORK, &l, "true"));
	assert_true(rig_until(&rig, &rig_told(&rig, "after")->exited, PATIENCE_MS));
	box_kill(&rig.boxes, 1, "after", BOX_WORK, 0);
}

/* Descriptors of sandboxd: as many after a hundred boxes as before. */
static void no_descriptor_is_lost(void **state)
{
	(void)state;
	int before = open("/dev/null", O_RDONLY | O_CLOEXEC), after;
	close(before);
	for (int i = 0; i < 100; i++)
		free(rig_run(&rig, "again", "true"));
	after = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close(after);
	assert_int_equal(before, after);
}

static void missing_runner_is_refused(void **state)
{
	(void)state;
	char from[128], to[128];
	snprintf(from, sizeof from, "%s/programs/pinfold-runner", rig.dir);
	snprintf(to, sizeof to, "%s/programs/elsewhere", rig.dir);
	assert_int_equal(rename(from, to), 0);
	struct box_limits l = rig_limits();
	close(rig_spawn(&rig, "nothing", BOX_WORK, &l, "true"));
	struct rig_told *t = rig_told(&rig, "nothing");
	assert_true(rig_until(&rig, &t->refused, PATIENCE_MS));
	assert_string_equal(t->detail, "exec: No such file or directory");
	assert_int_equal(t->code, ERR_SANDBOX_SPAWN_FAILED);
	assert_int_equal(boxes_busy(&rig.boxes), 0);
	assert_int_equal(rename(to, from), 0);
}

int main(void)
{
	if (geteuid() != 0) {
		puts("skipped: needs root");
		return 77;
	}
	umask(077);
	rig_open(&rig, "tests/box/probe_runner", 4);
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(walls_hold),
	    cmocka_unit_test(what_is_allowed_works),
	    cmocka_unit_test(only_listed_descriptors),
	    cmocka_unit_test(agent_has_nothing),
	    cmocka_unit_test(mounts_are_few),
	    cmocka_unit_test(programs_work),
	    cmocka_unit_test(processes_are_bounded),
	    cmocka_unit_test(memory_is_bounded),
	    cmocka_unit_test(files_are_bounded),
	    cmocka_unit_test(check_box_has_no_gateway),
	    cmocka_unit_test(everything_dies),
	    cmocka_unit_test(a_number_used_again),
	    cmocka_unit_test(kill_is_gentle_first),
	    cmocka_unit_test(wall_time_ends_a_box),
	    cmocka_unit_test(slots_and_names_are_checked),
	    cmocka_unit_test(killed_while_being_built),
	    cmocka_unit_test(no_descriptor_is_lost),
	    cmocka_unit_test(missing_runner_is_refused),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	rig_close(&rig);
	return failed;
}
