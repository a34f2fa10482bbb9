/*
 * Stands in for the runner in the tests of boxes: process 1 of a box, static. The upload is not a bundle but
 * one line that says what to do; answers are written to the result as lines. Does what an attacker would.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum { UPLOAD = 3, RESULT = 4, CONTROL = 5, GROUPS = 7, GROUPS_END = 10, AGENT = 1000 };

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *fmt, ...)
{
	char line[4096];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	ssize_t done = write(RESULT, line, (size_t)n);
	(void)done;
}

static long try(long r)
{
	return r < 0 ? errno : 0;
}

static long reach(int family, int type, const struct sockaddr *to, socklen_t n)
{
	int s = socket(family, type, 0);
	if (s < 0)
		return errno;
	long e = try(connect(s, to, n));
	close(s);
	return e;
}

static long reach4(uint32_t addr, uint16_t port, int type)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(addr)};
	return reach(AF_INET, type, (struct sockaddr *)&a, sizeof a);
}

static long open_to(const char *path, int flags)
{
	int fd = open(path, flags, 0644);
	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

/* Calls of the machine's other architectures: the process must not come back. */
static void foreign(void)
{
#ifdef __x86_64__
	say("x32 %ld\n", try(syscall(0x40000000 | SYS_getpid)));
	int status = 0;
	pid_t p = fork();
	if (p == 0) {
		long r = 20; /* getpid of the 32-bit table */
		__asm__ volatile("int $0x80" : "+a"(r) : : "memory");
		_exit(0);
	}
	waitpid(p, &status, 0);
	say("int80 %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
#else
	say("x32 %d\nint80 %d\n", ENOSYS, SIGSYS);
#endif
}

/* One call of each group of spec/seccomp.tab that boxes may make. */
static void groups(void)
{
	int ends[2], pair[2], fd = open("/workspace/g", O_RDWR | O_CREAT, 0600);
	char byte = 'x';
	struct timespec t;
	say("read_write %ld\n", try(pwrite(fd, &byte, 1, 0) + pread(fd, &byte, 1, 0) - 2));
	say("walk %ld\n", try(access("/workspace/g", R_OK)));
	say("change %ld\n", try(rename("/workspace/g", "/workspace/h")));
	say("chown %ld\n", try(fchown(fd, AGENT, AGENT)));
	say("xattr %ld\n", try(flistxattr(fd, NULL, 0)));
	say("last %ld\n", try(fsync(fd)));
	say("pipe %ld\n", try(pipe2(ends, O_CLOEXEC)));
	say("wait %ld\n", try(poll(&(struct pollfd){.fd = ends[0], .events = POLLIN}, 1, 0)));
	say("pair %ld\n", try(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair)));
	say("memory %ld\n",
	    mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED
		? (long)errno
		: 0);
	pid_t p = fork();
	if (p == 0)
		_exit(0);
	say("start %ld\n", try(waitpid(p, NULL, 0)));
	say("know %ld\n", try(getpid()));
	say("oneself %ld\n", try(prctl(PR_SET_NAME, "x", 0, 0, 0)));
	say("signals %ld\n", try(kill(getpid(), 0)));
	say("time %ld\n", try(clock_gettime(CLOCK_REALTIME, &t)));
	say("futex %ld\n", try(syscall(SYS_futex, &(int){0}, 1, 1, NULL, NULL, 0)));
	say("sysv %ld\n", try(syscall(SYS_shmget, 0, 4096, 0600)));
	say("random %ld\n", try(syscall(SYS_getrandom, &byte, 1, 0)));
	say("confine %ld\n", try(syscall(SYS_landlock_create_ruleset, NULL, 0, 1)));
}

/* Each as the agent; the test knows what must come out. `port` is one that the host listens on. */
static void attempts(uint16_t port, uint16_t gateway)
{
	struct sockaddr_un abstract = {.sun_family = AF_UNIX};
	int n = snprintf(abstract.sun_path + 1, sizeof abstract.sun_path - 1, "pinfold-test-%u", port);
	struct sockaddr_in6 six = {
	    .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	char byte = 0;
	int udp = socket(AF_INET, SOCK_DGRAM, 0);
	struct iovec iov = {&byte, 1};
	say("unshare_user %ld\n", try(unshare(CLONE_NEWUSER)));
	say("unshare_net %ld\n", try(unshare(CLONE_NEWNET)));
	say("setns %ld\n", try(syscall(SYS_setns, 0, 0)));
	say("clone_user %ld\n", try(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)));
	say("clone3 %ld\n", try(syscall(SYS_clone3, NULL, 0)));
	say("mount %ld\n", try(mount("x", "/tmp", "tmpfs", 0, NULL)));
	say("umount %ld\n", try(umount2("/proc", MNT_DETACH)));
	say("open_tree %ld\n", try(syscall(SYS_open_tree, AT_FDCWD, "/", 1)));
	say("pivot_root %ld\n", try(syscall(SYS_pivot_root, ".", ".")));
	say("chroot %ld\n", try(chroot("/tmp")));
	say("ptrace %ld\n", try(ptrace(PTRACE_TRACEME, 0, 0, 0)));
	say("ptrace_1 %ld\n", try(ptrace(PTRACE_ATTACH, 1, 0, 0)));
	say("process_vm %ld\n", try(syscall(SYS_process_vm_readv, 1, &iov, 1, &iov, 1, 0)));
	say("keyctl %ld\n", try(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0)));
	say("add_key %ld\n", try(syscall(SYS_add_key, "user", "x", "y", 1, KEY_SPEC_PROCESS_KEYRING)));
	say("bpf %ld\n", try(syscall(SYS_bpf, 0, NULL, 0)));
	say("io_uring %ld\n", try(syscall(SYS_io_uring_setup, 4, NULL)));
	say("perf %ld\n", try(syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0)));
	say("userfaultfd %ld\n", try(syscall(SYS_userfaultfd, 0)));
	say("open_by_handle %ld\n", try(syscall(SYS_open_by_handle_at, AT_FDCWD, NULL, 0)));
	say("unknown_call %ld\n", try(syscall(1023)));
	say("netlink %ld\n", try(socket(AF_NETLINK, SOCK_RAW, 0)));
	say("packet %ld\n", try(socket(AF_PACKET, SOCK_RAW, 0)));
	say("vsock %ld\n", try(socket(AF_VSOCK, SOCK_STREAM, 0)));
	say("alg %ld\n", try(socket(AF_ALG, SOCK_SEQPACKET, 0)));
	say("netlink_high %ld\n", try(syscall(SYS_socket, (1L << 32) | AF_NETLINK, SOCK_RAW, 0)));
	say("raw %ld\n", try(socket(AF_INET, SOCK_RAW, 1)));
	say("tiocsti %ld\n", try(ioctl(0, TIOCSTI, &byte)));
	say("tiocsti_high %ld\n", try(syscall(SYS_ioctl, 0, (1L << 32) | TIOCSTI, &byte)));
	say("tioclinux %ld\n", try(ioctl(1, TIOCLINUX, &byte)));
	say("tiocsetd %ld\n", try(ioctl(1, TIOCSETD, &byte)));
	say("personality %ld\n", try(syscall(SYS_personality, 0xffffffff)));
	say("core_sched %ld\n", try(prctl(62, 1, 0, 1, 0)));
	say("unknown_prctl %ld\n", try(prctl(9999, 0, 0, 0, 0)));
	say("tcp_ulp %ld\n", try(setsockopt(udp, IPPROTO_TCP, 31, "tls", 3)));
	say("udp_encap %ld\n", try(setsockopt(udp, IPPROTO_UDP, 100, &(int){1}, 4)));
	say("huge_mmap %ld\n",
	    mmap(NULL, 1 << 21, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0) == MAP_FAILED ? (long)errno
													   : 0);
	say("huge_memfd %ld\n", try(syscall(SYS_memfd_create, "x", 4)));
	say("huge_shm %ld\n", try(syscall(SYS_shmget, 0, 1 << 21, 04000 | 0600)));
	say("sctp %ld\n", try(socket(AF_INET, SOCK_STREAM, 132)));
	say("mptcp %ld\n", try(socket(AF_INET, SOCK_STREAM, 262)));
	say("rdm %ld\n", try(socket(AF_INET, SOCK_RDM, 0)));
	say("pair_netlink %ld\n", try(socketpair(AF_NETLINK, SOCK_RAW, 0, (int[2]){0})));
	foreign();
	say("tty %ld\n", open_to("/dev/tty", O_RDWR));
	say("kill_1 %ld\n", try(kill(1, SIGKILL)));
	say("proc_1 %ld\n", open_to("/proc/1/environ", O_RDONLY));
	say("proc_1_dir %ld\n", open_to("/proc/1", O_RDONLY));
	say("proc_sys %ld\n", open_to("/proc/sys/kernel/core_pattern", O_RDONLY));
	say("kcore %ld\n", open_to("/proc/kcore", O_RDONLY));
	say("sysrq %ld\n", open_to("/proc/sysrq-trigger", O_WRONLY));
	say("shadow %ld\n", open_to("/etc/shadow", O_RDONLY));
	say("root_dir %ld\n", open_to("/root", O_RDONLY));
	say("sys %ld\n", open_to("/sys", O_RDONLY));
	say("host_run %ld\n", open_to("/run", O_RDONLY));
	say("write_usr %ld\n", open_to("/usr/bin/x", O_WRONLY | O_CREAT));
	say("write_opt %ld\n", open_to("/opt/pinfold/x", O_WRONLY | O_CREAT));
	say("write_runner %ld\n", open_to("/opt/pinfold/pinfold-runner", O_WRONLY));
	say("write_etc %ld\n", open_to("/etc/passwd", O_WRONLY));
	say("write_root %ld\n", open_to("/x", O_WRONLY | O_CREAT));
	say("write_dev %ld\n", open_to("/dev/x", O_WRONLY | O_CREAT));
	say("mknod %ld\n", try(mknod("/workspace/dev", S_IFCHR | 0666, makedev(1, 1))));
	say("chown %ld\n", try(chown("/workspace", 0, 0)));
	say("setuid_0 %ld\n", try(setresuid(0, 0, 0)));
	say("setgroups %ld\n", try(syscall(SYS_setgroups, 0, NULL)));
	say("sethostname %ld\n", try(sethostname("x", 1)));
	say("own_gateway %ld\n", reach4(INADDR_LOOPBACK, gateway, SOCK_STREAM));
	say("host_loopback %ld\n", reach4(INADDR_LOOPBACK, port, SOCK_STREAM));
	say("host_loopback_6 %ld\n", reach(AF_INET6, SOCK_STREAM, (struct sockaddr *)&six, sizeof six));
	say("metadata %ld\n", reach4(0xa9fea9fe, 80, SOCK_STREAM));
	say("dns %ld\n", reach4(0x08080808, 53, SOCK_DGRAM));
	say("abstract %ld\n", reach(AF_UNIX, SOCK_STREAM, (struct sockaddr *)&abstract,
				    (socklen_t)(sizeof(sa_family_t) + 1 + (size_t)n)));
	say("workspace %ld\n", open_to("/workspace/x", O_WRONLY | O_CREAT));
	say("tmp %ld\n", open_to("/tmp/x", O_WRONLY | O_CREAT));
	say("shm %ld\n", open_to("/dev/shm/x", O_WRONLY | O_CREAT));
	say("null %ld\n", open_to("/dev/null", O_WRONLY | O_TRUNC));
	say("urandom %ld\n", open_to("/dev/urandom", O_RDONLY));
	say("list_root %ld\n", open_to("/", O_RDONLY | O_DIRECTORY));
}

static void show_file(const char *path)
{
	char text[8192];
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
	close(fd);
	ssize_t done = n > 0 ? write(RESULT, text, (size_t)n) : 0;
	(void)done;
}

static void show_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
		char path[300], to[256];
		snprintf(path, sizeof path, "/proc/self/fd/%s", e->d_name);
		ssize_t n = readlink(path, to, sizeof to - 1);
		if (e->d_name[0] == '.' || n < 0 || atoi(e->d_name) == dirfd(d))
			continue;
		to[n] = '\0';
		say("fd %s %s\n", e->d_name, to);
	}
	if (d != NULL)
		closedir(d);
}

static void die_of(const char *step)
{
	say("cannot %s: %s\n", step, strerror(errno));
	_exit(99);
}

/* As the real runner does it: into the agent's groups first, then the agent's uid. */
static void become_agent(bool keep_result)
{
	for (int fd = GROUPS; fd < GROUPS_END; fd++)
		if (fcntl(fd, F_GETFD) >= 0 && write(fd, "0", 1) != 1)
			die_of("enter the agent's group");
	if (syscall(SYS_setgroups, 0, NULL) != 0 || setresgid(AGENT, AGENT, AGENT) != 0 ||
	    setresuid(AGENT, AGENT, AGENT) != 0)
		die_of("become the agent");
	close_range(CONTROL, ~0u, 0);
	close(UPLOAD);
	if (!keep_result)
		close(RESULT);
	if (chdir("/workspace") != 0)
		die_of("enter the workspace");
}

static void hold(void) __attribute__((noreturn));
static void hold(void)
{
	for (;;)
		pause();
}

/* Processes that try to stay: own session, second fork, stopped, deaf. */
static void bomb(int many, bool forking)
{
	for (int i = 0; i < many; i++) {
		pid_t p = fork();
		if (p != 0)
			continue;
		setsid();
		if (i % 3 == 0 && fork() != 0)
			_exit(0);
		for (int s = 1; s < NSIG; s++)
			signal(s, SIG_IGN);
		if (i % 5 == 0)
			raise(SIGSTOP);
		while (forking)
			if (fork() < 0)
				sched_yield();
		hold();
	}
}

static int run_as_agent(const char *command)
{
	pid_t p = fork();
	if (p == 0) {
		become_agent(true);
		dup2(RESULT, 1);
		dup2(RESULT, 2);
		close(RESULT);
		char *argv[] = {(char[]){"sh"}, (char[]){"-c"}, (char *)(uintptr_t)command, NULL};
		char *env[] = {(char[]){"PATH=/usr/local/bin:/usr/bin:/bin"}, (char[]){"HOME=/workspace"}, NULL};
		execve("/bin/sh", argv, env);
		_exit(98);
	}
	int status = 0;
	while (waitpid(p, &status, 0) != p)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void as_agent(const char *what, const char *rest)
{
	pid_t p = fork();
	if (p != 0) {
		int status;
		while (waitpid(p, &status, 0) != p)
			;
		if (WIFSIGNALED(status))
			say("killed %d\n", WTERMSIG(status));
		return;
	}
	become_agent(true);
	if (strcmp(what, "attempts") == 0) {
		attempts((uint16_t)atoi(rest), (uint16_t)atoi(strchr(rest, ' ') + 1));
	} else if (strcmp(what, "groups") == 0) {
		groups();
	} else if (strcmp(what, "status") == 0) {
		show_file("/proc/self/status");
		show_file("/proc/self/limits");
	} else if (strcmp(what, "mounts") == 0) {
		show_file("/proc/self/mountinfo");
	} else if (strcmp(what, "descriptors") == 0) {
		show_descriptors();
	} else if (strcmp(what, "memory") == 0) {
		for (size_t i = 0; i < 4096; i++)
			memset(mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1,
			       1 << 20);
	} else if (strcmp(what, "pids") == 0) {
		int n = 0;
		for (pid_t c; n < 10000 && (c = fork()) >= 0; n++)
			if (c == 0)
				hold();
		say("forks %d %d\n", n, errno);
	} else if (strcmp(what, "inodes") == 0) {
		char name[32];
		int n = 0, fd;
		for (; snprintf(name, sizeof name, "f%d", n), (fd = open(name, O_CREAT | O_WRONLY, 0600)) >= 0; n++)
			close(fd);
		say("files %d %d\n", n, errno);
	} else if (strcmp(what, "bytes") == 0) {
		static char block[65536];
		int fd = open("big", O_CREAT | O_WRONLY, 0600);
		long n = 0;
		signal(SIGXFSZ, SIG_IGN);
		for (ssize_t w; (w = write(fd, block, sizeof block)) > 0;)
			n += w;
		say("bytes %ld %d\n", n, errno);
	} else if (strcmp(what, "bomb") == 0) {
		bomb(atoi(rest), strstr(rest, "forking") != NULL);
		say("ready\n");
		hold();
	}
	_exit(0);
}

static volatile sig_atomic_t term;
static void on_term(int s)
{
	(void)s;
	term = 1;
}

int main(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (getpid() != 1)
		return 77; /* not in a box */
	char line[4096];
	ssize_t n = pread(UPLOAD, line, sizeof line - 1, 0);
	line[n < 0 ? 0 : n] = '\0';
	char *rest = strchr(line, ' ');
	if (rest != NULL)
		*rest++ = '\0';
	rest = rest == NULL ? line + strlen(line) : rest;
	struct sigaction act = {.sa_handler = on_term};
	if (strcmp(line, "true") == 0)
		return 0;
	if (strcmp(line, "first") == 0) {
		say("%lld\n", (long long)now.tv_sec * 1000000000 + now.tv_nsec);
	} else if (strcmp(line, "exit") == 0) {
		return atoi(rest);
	} else if (strcmp(line, "term") == 0) {
		sigaction(SIGTERM, &act, NULL);
		sigset_t none, was; /* it comes blocked, so that none is lost before this line */
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, &was);
		if (!sigismember(&was, SIGTERM))
			return 56;
		say("ready\n");
		while (!term) {
			struct pollfd p = {.fd = CONTROL};
			if (poll(&p, 1, -1) > 0)
				return 55; /* sandboxd is gone */
		}
		return 7;
	} else if (strcmp(line, "hold") == 0) {
		say("ready\n");
		hold();
	} else if (strcmp(line, "runner") == 0) {
		show_descriptors();
		show_file("/proc/self/status");
	} else if (strcmp(line, "shell") == 0) {
		say("\nstatus %d\n", run_as_agent(rest));
	} else {
		as_agent(line, rest);
	}
	return 0;
}
