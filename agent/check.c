/*
 * A check is the project's own code and may do anything an agent's tool may: it gets a process group, a
 * time limit, an environment made from nothing and no descriptor but its three. When it ends, what it
 * left in its group is killed; what left the group ends with the box.
 */
#include "agent/check.h"
#include "lib/num.h"
#include "lib/own.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { NOT_STARTED = 127 };

/*
 * Python takes a cached .pyc for current when size and second of the source are unchanged: an edit that swaps one
 * character within a second of the last check would be tested as if it had not been made. So no cache is written.
 */
static char *const environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8",
				    "PYTHONDONTWRITEBYTECODE=1", NULL};

/* Between fork and exec. */
static void __attribute__((noreturn)) child(const struct task_check *check, int root, int out)
{
	own_fd int null = open("/dev/null", O_RDONLY);
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (null < 0 || fchdir(root) != 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 ||
	    close_range(3, ~0u, 0) != 0)
		_exit(NOT_STARTED);
	environ = (char **)environment;
	execvp(check->argv[0], (char *const *)check->argv);
	_exit(NOT_STARTED);
}

/* Keeps the first half of what came and, once there is too much, the last part of the rest. */
static void take(struct buf *all, size_t most, const char *p, size_t n, bool *cut)
{
	static const size_t least = 1024;
	size_t limit = most < least ? least : most, head = limit / 2;
	while (n > 0) {
		if (all->n >= limit) {
			size_t keep = limit / 4;
			memmove(all->p + head, all->p + all->n - keep, keep);
			all->n = head + keep;
			*cut = true;
		}
		size_t room = limit - all->n, part = n < room ? n : room;
		buf_add(all, p, part);
		if (buf_failed(all))
			return;
		p += part;
		n -= part;
	}
}

static void deliver(const struct buf *all, size_t most, bool cut, struct buf *out)
{
	static const char gap[] = "\n[... a part was left out ...]\n";
	size_t limit = most < 1024 ? 1024 : most, head = limit / 2;
	for (size_t i = 0; i < all->n; i++) {
		uint8_t c = all->p[i];
		if (cut && i == head)
			buf_adds(out, gap);
		buf_addc(out, (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f ? '?' : (char)c);
	}
}

/* Reads until the check has ended and its pipe is empty, or time is up. */
static void follow(pid_t pid, int fd, uint64_t end, size_t most, struct buf *all, struct check_end *result)
{
	char block[16384];
	bool ended = false;
	for (;;) {
		int status;
		if (!ended && waitpid(pid, &status, WNOHANG) == pid) {
			ended = true;
			result->status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
			kill(-pid, SIGKILL);
		}
		if (!ended && timer_ms() >= end && !result->timed_out) {
			result->timed_out = true;
			kill(-pid, SIGKILL);
		}
		struct pollfd p = {.fd = fd, .events = POLLIN};
		int ready = poll(&p, 1, ended ? 0 : 20);
		if (ready > 0) {
			ssize_t got = read(fd, block, sizeof block);
			if (got > 0) {
				take(all, most, block, (size_t)got, &result->truncated);
				/* Someone who left the group may write for ever. */
				if (!ended || timer_ms() < end)
					continue;
			}
			if (got < 0 && (errno == EINTR || errno == EAGAIN))
				continue;
			if (got <= 0 && !ended) {
				/* Output closed early; poll would return at once from now on. */
				struct pollfd nothing = {.fd = -1};
				poll(&nothing, 1, 20);
				continue;
			}
		}
		if (ended)
			return;
	}
}

struct check_end check_run(const struct task_check *check, int root, uint64_t limit_ms, size_t most, struct buf *out)
{
	struct check_end result = {0};
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) != 0)
		return result;
	own_fd int in = ends[0], outward = ends[1];
	pid_t pid = fork();
	if (pid < 0)
		return result;
	if (pid == 0)
		child(check, root, outward);
	setpgid(pid, pid); /* whichever of us is first */
	close(steal_fd(&outward));
	own_buf struct buf all;
	buf_init(&all, 2 * most + 4096);
	result.started = true;
	follow(pid, in, timer_ms() + limit_ms, most, &all, &result);
	deliver(&all, most, result.truncated, out);
	return result;
}
