/*
 * The judge as a process: forked from the steward, confined before it reads a byte, killed when it takes
 * too long. It has no secret (the caller's forget), no descriptor but the three it needs, no way to open,
 * connect or execute anything (seccomp allow-list, any other call kills it), and bounded memory, time and
 * output. The parent trusts nothing of what it writes.
 */
#include "lib/chan.h"
#include "lib/confine.h"
#include "lib/own.h"
#include "steward/judge.h"
#include "steward/patch.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AT_UPLOAD = 3, AT_RESULT, AT_OUT, AT__END };
/* What its exit code says; a sanitizer's or a death's is none of them. */
enum { ENDED_WELL = 0, ENDED_BADLY = 1, ENDED_LACKING = 3 };
enum { JUDGE_CPU_SECONDS = 15, JUDGE_MEMORY = 512 << 20, JUDGE_OUTPUT = 48 << 20 };
enum { PER_CPU_SECOND = 16 << 20 };

static bool place_fds(int upload, int result, int out)
{
	int from[] = {upload, result, out};
	for (int i = 0; i < 3; i++)
		if ((from[i] = fcntl(from[i], F_DUPFD, 64)) < 0)
			return false;
	for (int i = 0; i < 3; i++)
		if (dup2(from[i], AT_UPLOAD + i) < 0)
			return false;
	/* Not even the log: what it has to say, it says in frames. Descriptor 0 is /dev/null. */
	if (dup2(0, 1) < 0 || dup2(0, 2) < 0)
		return false;
	return close_range(AT__END, ~0u, 0) == 0;
}

static bool limit(int what, rlim_t value)
{
	struct rlimit r = {value, value};
	return setrlimit((__rlimit_resource_t)what, &r) == 0;
}

static uint64_t size_of(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

/* What sanitizers need more of: time and space. Both bundles are mapped. */
static bool limit_more(void)
{
	uint64_t given = size_of(AT_UPLOAD) + size_of(AT_RESULT), seconds = JUDGE_CPU_SECONDS + given / PER_CPU_SECOND;
#ifdef CONFINE_LESS
	return limit(RLIMIT_CPU, 10 * seconds);
#else
	return limit(RLIMIT_CPU, seconds) && limit(RLIMIT_AS, JUDGE_MEMORY + given);
#endif
}

/* As much as a tree that is handed on, and what the judge says at most. */
static bool limit_output(void)
{
	return limit(RLIMIT_FSIZE, JUDGE_OUTPUT + size_of(AT_RESULT));
}

static void child(pid_t parent, judge_work work, int upload, int result, const struct judge_rules *rules, int out,
		  void (*forget)(void *), void *arg)
{
	if (forget != NULL)
		forget(arg);
	bool ok = signal(SIGTERM, SIG_DFL) != SIG_ERR && signal(SIGINT, SIG_DFL) != SIG_ERR &&
		  place_fds(upload, result, out) && patch_init();
	ok = ok && limit_output() && limit(RLIMIT_NOFILE, AT__END + 1 /* to be confined with */);
	ok = ok && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent;
	ok = ok && limit_more() && confine(CONFINE_JUDGE, NULL, 0);
	enum err e = ok ? work(AT_UPLOAD, AT_RESULT, rules, AT_OUT) : ERR_RESOURCES_EXHAUSTED;
	_exit(e == ERR_OK ? ENDED_WELL : err_row(e)->retry ? ENDED_LACKING : ENDED_BADLY);
}

bool judge_start(struct judge *j, judge_work work, int upload, int result, const struct judge_rules *rules,
		 void (*forget)(void *), void *arg)
{
	own_fd int out = bundle_new("judge");
	if (out < 0)
		return false;
	pid_t parent = getpid();
	pid_t pid = fork();
	if (pid < 0)
		return false;
	if (pid == 0)
		child(parent, work, upload, result, rules, out, forget, arg);
	int pidfd = pidfd_open(pid, 0);
	if (pidfd < 0) {
		int why = errno;
		kill(pid, SIGKILL); /* our own unreaped child: the number cannot be anyone else's */
		waitpid(pid, NULL, 0);
		errno = why;
		return false;
	}
	*j = (struct judge){.pid = pid, .pidfd = pidfd, .out = steal_fd(&out)};
	return true;
}

bool judge_ended(const struct judge *j)
{
	struct pollfd p = {.fd = j->pidfd, .events = POLLIN};
	return j->pid != 0 && poll(&p, 1, 0) > 0;
}

enum err judge_end(struct judge *j)
{
	int status = 0;
	bool ended = waitpid(j->pid, &status, WNOHANG) == j->pid;
	if (!ended) {
		pidfd_send_signal(j->pidfd, SIGKILL, NULL, 0);
		waitpid(j->pid, NULL, 0);
	}
	close(j->pidfd);
	j->pidfd = -1;
	j->pid = 0;
	if (!ended || !WIFEXITED(status))
		return ERR_SANDBOX_RESULT_INVALID;
	if (WEXITSTATUS(status) == ENDED_WELL && bundle_seal(j->out))
		return ERR_OK;
	return WEXITSTATUS(status) == ENDED_LACKING ? ERR_RESOURCES_EXHAUSTED : ERR_SANDBOX_RESULT_INVALID;
}
