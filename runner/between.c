/*
 * See between.h. The pipes of the agent's standard input and output are its own, so that it can open /dev/stdin and
 * /dev/stdout again; what the bridge prints goes through one that is the bridge's, which the agent cannot read.
 */
#include "runner/between.h"
#include "lib/bridged.h"
#include "runner/collect.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SAID, HEARD, OUT, READY, ENDED, PIPES };
enum { OPEN_FILES = 64, ASIDE = 64 };
static const uid_t owners[PIPES] = {
    [SAID] = LAUNCH_UID, [HEARD] = LAUNCH_UID, [OUT] = LAUNCH_BRIDGE_UID, [READY] = 0, [ENDED] = 0};
static const char *const environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "TZ=UTC", NULL};

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static bool make_pipes(int p[PIPES][2])
{
	for (int i = 0; i < PIPES; i++) {
		if (!launch_as(owners[i]))
			return false;
		int bad = pipe2(p[i], O_CLOEXEC);
		launch_as(0);
		if (bad)
			return false;
	}
	return !fcntl(p[OUT][0], F_SETFL, O_NONBLOCK);
}

/* In the child: exactly what lib/bridged.h says, and nothing besides. */
static bool arrange(const struct launch *l, int p[PIPES][2])
{
	int from[BRIDGE_FD__FIRST_FREE] = {[BRIDGE_FD_FROM] = p[SAID][0],   [BRIDGE_FD_OUT] = p[OUT][1],
					   [BRIDGE_FD_OUT + 1] = p[OUT][1], [BRIDGE_FD_UPLOAD] = l->upload,
					   [BRIDGE_FD_CLAIM] = l->claim,    [BRIDGE_FD_READY] = p[READY][1],
					   [BRIDGE_FD_ENDED] = p[ENDED][0], [BRIDGE_FD_TO] = p[HEARD][1]};
	for (int i = 0; i < BRIDGE_FD__FIRST_FREE; i++) /* out of the way of each other first */
		if ((from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, ASIDE)) < 0)
			return false;
	for (int i = 0; i < BRIDGE_FD__FIRST_FREE; i++)
		if (dup2(from[i], i) != i)
			return false;
	return true;
}

static void become_bridge(const struct warden *w, const struct launch *l, int p[PIPES][2])
{
	setsid();
	umask(077);
	if (!launch_join(w) || !arrange(l, p) || !launch_become(LAUNCH_BRIDGE_UID) ||
	    !launch_lower(RLIMIT_FSIZE, COLLECT_CLAIM_MAX) || !launch_lower(RLIMIT_NOFILE, OPEN_FILES) || chdir("/"))
		return;
	launch_default_signals();
	execve(l->bridge[0], (char *const *)(uintptr_t)l->bridge, (char *const *)(uintptr_t)environment);
}

bool between_start(struct between *b, const struct warden *w, const struct launch *l)
{
	int p[PIPES][2], told[2] = {-1, -1}, error = 0;
	for (int i = 0; i < PIPES; i++)
		p[i][0] = p[i][1] = -1;
	if (make_pipes(p) && !pipe2(told, O_CLOEXEC))
		b->pid = fork();
	else
		error = errno;
	if (b->pid == 0 && error == 0) {
		become_bridge(w, l, p);
		(void)!write(told[1], &errno, sizeof errno);
		_exit(1);
	}
	error = b->pid < 0 ? errno : error;
	close_one(&told[1]);
	/* Its end, which exec brings, is the good end. */
	if (error == 0 && read(told[0], &error, sizeof error) != sizeof error)
		error = 0;
	close_one(&told[0]);
	*b = (struct between){.pid = error == 0 ? b->pid : 0,
			      .said = p[SAID][1],
			      .heard = p[HEARD][0],
			      .ready = p[READY][0],
			      .out = p[OUT][0],
			      .ended = p[ENDED][1]};
	close_one(&p[SAID][0]);
	close_one(&p[HEARD][1]);
	close_one(&p[OUT][1]);
	close_one(&p[READY][1]);
	close_one(&p[ENDED][0]);
	close(l->upload); /* it holds the tokens */
	if (error == 0)
		return true;
	between_close(b);
	errno = error;
	return false;
}

bool between_ready(const struct between *b)
{
	char said = 0;
	if (read(b->ready, &said, 1) != 1 || (said != BRIDGE_TALKS && said != BRIDGE_QUIET)) {
		errno = EPIPE;
		return false;
	}
	return said == BRIDGE_QUIET || dup2(b->heard, 0) == 0;
}

void between_agent_has(struct between *b)
{
	close_one(&b->said);
	close_one(&b->heard);
	close_one(&b->ready);
}

void between_close(struct between *b)
{
	between_agent_has(b);
	close_one(&b->out);
	close_one(&b->ended);
}
