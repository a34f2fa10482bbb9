/*
 * Each role of lib/confine.c in a child that then tries what its process never does, and what it needs. As root the
 * child has everything to lose; without root the same must hold.
 */
#include "lib/confine.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned passed, failed;
static char own[64];
static int abi;

static void check(bool good, const char *role, const char *what, int got)
{
	if (good)
		passed++;
	else if (++failed < 40)
		printf("FAIL %s: %s: %s\n", role, what, got == 0 ? "allowed" : strerror(got));
}

enum {
	READ_ETC,
	READ_ROOT,
	WRITE_ELSEWHERE,
	WRITE_OWN,
	RUN,
	TRACE,
	UNSHARE,
	SETUID,
	FORK,
	THREAD,
	CODE,
	SIGNAL,
	SOCKET,
	CONNECT,
	BIND,
	KEEP,
	RESOLVE,
	TRIES
};

#ifndef CONFINE_LESS
static int try(long r)
{
	return r < 0 ? errno : 0;
}

static int open_at(const char *dir, const char *name, int flags)
{
	char path[200];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	return try(open(path, flags | O_CLOEXEC, 0600));
}

static void *nothing(void *arg)
{
	return arg;
}

static int start_thread(void)
{
	pthread_t t;
	int e = pthread_create(&t, NULL, nothing, NULL);
	return e != 0 ? e : pthread_join(t, NULL);
}

static int start_process(void)
{
	pid_t p = fork();
	if (p == 0)
		_exit(0);
	return p < 0 ? errno : try(waitpid(p, NULL, 0));
}

/* Port 0 is bound to, another one is connected to. */
static int reach(uint16_t port)
{
	struct sockaddr_in a = {
	    .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int s = socket(AF_INET, SOCK_STREAM, 0);
	return s < 0       ? errno
	       : port != 0 ? try(connect(s, (struct sockaddr *)&a, sizeof a))
			   : try(bind(s, (struct sockaddr *)&a, sizeof a));
}

static const char *const names[TRIES] = {"read /etc",
					 "list /",
					 "write elsewhere",
					 "write its own",
					 "execve",
					 "ptrace",
					 "unshare",
					 "setuid",
					 "fork",
					 "thread",
					 "executable memory",
					 "signal its parent",
					 "socket UNIX",
					 "connect",
					 "bind",
					 "lock memory",
					 "look up a name"};

static void tries(int *out)
{
	char *argv[] = {(char[]){"true"}, NULL};
	out[READ_ETC] = open_at("/etc", "passwd", O_RDONLY);
	out[READ_ROOT] = open_at("/", ".", O_RDONLY | O_DIRECTORY);
	out[WRITE_ELSEWHERE] = open_at("/var/tmp", "pinfold-confine", O_WRONLY | O_CREAT);
	out[WRITE_OWN] = open_at(own, "x", O_WRONLY | O_CREAT);
	out[RUN] = try(execve("/bin/true", argv, argv + 1));
	out[TRACE] = try(ptrace(PTRACE_TRACEME, 0, 0, 0));
	out[UNSHARE] = try(syscall(SYS_unshare, 0x10000000));
	out[SETUID] = try(syscall(SYS_setuid, 1));
	out[FORK] = start_process();
	out[THREAD] = start_thread();
	out[CODE] =
	    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? errno : 0;
	out[SIGNAL] = try(kill(getppid(), 0));
	out[SOCKET] = try(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	out[CONNECT] = reach(1);
	out[BIND] = reach(0);
	out[KEEP] = try(mlock(own, sizeof own));
	struct addrinfo *found = NULL;
	out[RESOLVE] = getaddrinfo("localhost", "80", NULL, &found) != 0 ? ENOENT : 0;
	if (found != NULL)
		freeaddrinfo(found);
}
#endif

static bool says(pid_t p, const char *line)
{
	char path[64], text[8192];
	snprintf(path, sizeof path, "/proc/%d/status", (int)p);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	close(fd);
	text[n < 0 ? 0 : n] = '\0';
	return strstr(text, line) != NULL;
}

/* The child of a role: confined it writes what came out of its tries, then waits for the end of `go`. */
static pid_t start(enum confine_role who, int *from, int *go, void (*act)(int out))
{
	int out[2], in[2];
	const struct landlock_rule mine = {own, LL_ALL};
	if (pipe2(out, O_CLOEXEC) != 0 || pipe2(in, O_CLOEXEC) != 0)
		exit(1);
	pid_t p = fork();
	if (p == 0) {
		close(in[1]);
		close(out[0]);
		const uint16_t port = 443;
		if (who == CONFINE_PUSH && !confine_tcp(&port, 1) && errno != ENOSYS)
			_exit(97);
		if (!confine(who, &mine, who == CONFINE_STORED ? 1 : 0))
			_exit(99);
		act(out[1]);
		char byte;
		_exit(read(in[0], &byte, 1) != 0);
	}
	close(in[0]);
	close(out[1]);
	*from = out[0];
	*go = in[1];
	return p;
}

static void tell(int out)
{
	int results[32] = {0};
#ifndef CONFINE_LESS
	tries(results);
#endif
	if (write(out, results, sizeof results) != (ssize_t)sizeof results)
		_exit(98);
}

static int end(pid_t p, int go)
{
	int status = -1;
	close(go);
	waitpid(p, &status, 0);
	return status;
}

static void role(const char *name, enum confine_role who, const int *want)
{
	int from, go, got[32], status;
	pid_t p = start(who, &from, &go, tell);
	bool whole = read(from, got, sizeof got) == (ssize_t)sizeof got;
	check(whole, name, "it speaks", EIO);
	check(says(p, "NoNewPrivs:\t1\n"), name, "no_new_privs", EIO);
	check(says(p, "CapPrm:\t0000000000000000\n") && says(p, "CapEff:\t0000000000000000\n") &&
		  says(p, "CapAmb:\t0000000000000000\n"),
	      name, "capabilities", EIO);
#ifndef CONFINE_LESS
	check(says(p, "Seccomp:\t2\n"), name, "a filter", EIO);
	for (int i = 0; whole && i < TRIES; i++)
		check(got[i] == want[i] || want[i] < 0, name, names[i], got[i]);
#else
	(void)want;
#endif
	status = end(p, go);
	check(status == 0, name, "its end", status);
	close(from);
}

#ifndef CONFINE_LESS
static void open_a_file(int out)
{
	(void)out;
	open("/etc/passwd", O_RDONLY | O_CLOEXEC);
}
static void start_one(int out)
{
	(void)out;
	fork();
}
static void make_code(int out)
{
	int e = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? errno : 0;
	if (write(out, &e, sizeof e) != (ssize_t)sizeof e)
		_exit(98);
}

static void connect_to_443(int out)
{
	int e = reach(443);
	if (write(out, &e, sizeof e) != (ssize_t)sizeof e)
		_exit(98);
}

/* The one port that was named for it; another one is among the tries of its role. */
static void push_port(void)
{
	int from, go, e = 0;
	pid_t p = start(CONFINE_PUSH, &from, &go, connect_to_443);
	check(read(from, &e, sizeof e) == (ssize_t)sizeof e && (e == 0 || e == ECONNREFUSED), "push", "port 443", e);
	check(end(p, go) == 0, "push", "its end", 0);
	close(from);
}

/* Any call that it does not need ends it. */
static void judge(void)
{
	static void (*const acts[])(int) = {open_a_file, start_one};
	int from, go, e = 0;
	for (size_t i = 0; i < 2; i++) {
		pid_t p = start(CONFINE_JUDGE, &from, &go, acts[i]);
		int status = end(p, go);
		check(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "judge", "another call", 0);
		close(from);
	}
	pid_t p = start(CONFINE_JUDGE, &from, &go, make_code);
	check(read(from, &e, sizeof e) == (ssize_t)sizeof e && e == EPERM, "judge", "executable memory", e);
	check(says(p, "NoNewPrivs:\t1\n") && says(p, "CapPrm:\t0000000000000000\n") && says(p, "Seccomp:\t2\n"),
	      "judge", "its status", EIO);
	check(end(p, go) == 0, "judge", "its end", 0);
	close(from);
}
#endif

int main(void)
{
	alarm(120); /* a child that was not ended as it should be */
	abi = landlock_abi();
	snprintf(own, sizeof own, "/tmp/pinfold-confine.XXXXXX");
	if (mkdtemp(own) == NULL)
		return 1;
	const int no = abi >= LL_ABI_LEAST ? EACCES : -1, sig = abi >= LL_ABI_SCOPES ? EPERM : 0,
		  tcp = abi >= LL_ABI_TCP ? EACCES : -1;
	/*                          etc  /   else own  run     trace   unshare setuid  fork    thread  code   signal
	 * socket        connect       bind          lock */
	const int stored[TRIES] = {no,     no,    no,  0,      ENOSYS, ENOSYS, ENOSYS, ENOSYS, ENOSYS,
				   ENOSYS, EPERM, sig, ENOSYS, ENOSYS, ENOSYS, 0,      ENOENT};
	const int fcgi[TRIES] = {no, no,    no,  no, ENOSYS,       ENOSYS,       ENOSYS, ENOSYS, EPERM,
				 0,  EPERM, sig, 0,  EAFNOSUPPORT, EAFNOSUPPORT, 0,      ENOENT};
	const int gateway[TRIES] = {0,     no, no, no,  ENOSYS, ENOSYS,       ENOSYS, ENOSYS,
				    EPERM, 0,  0,  sig, 0,      ECONNREFUSED, tcp,    0};
	const int steward[TRIES] = {no, no,    no,  no, ENOSYS,       ENOSYS,       ENOSYS, ENOSYS, 0,
				    -1, EPERM, sig, 0,  EAFNOSUPPORT, EAFNOSUPPORT, 0,      ENOENT};
	const int conf[TRIES] = {0,      no, no,  no, ENOSYS,       ENOSYS,       ENOSYS, ENOSYS, ENOSYS,
				 ENOSYS, 0,  sig, 0,  EAFNOSUPPORT, EAFNOSUPPORT, 0,      -1};
	const int push[TRIES] = {0,      no,    no, no, ENOSYS, ENOSYS, ENOSYS,
				 ENOSYS, EPERM, 0,  0,  sig,    0,      abi >= LL_ABI_TCP ? EACCES : ECONNREFUSED,
				 ENOSYS, 0};
	role("stored", CONFINE_STORED, stored);
	role("fcgi", CONFINE_FCGI, fcgi);
	role("gateway", CONFINE_GATEWAY, gateway);
	role("steward", CONFINE_STEWARD, steward);
	role("conf", CONFINE_CONF, conf);
	role("push", CONFINE_PUSH, push);
	const int bridge[TRIES] = {no,     no,    no,  no,           ENOSYS,       ENOSYS, ENOSYS, ENOSYS, ENOSYS,
				   ENOSYS, EPERM, sig, EAFNOSUPPORT, ECONNREFUSED, ENOSYS, 0,      ENOENT};
	role("bridge", CONFINE_BRIDGE, bridge);
#ifndef CONFINE_LESS
	push_port();
	judge();
#endif
	char path[80];
	snprintf(path, sizeof path, "%s/x", own);
	unlink(path);
	rmdir(own);
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
