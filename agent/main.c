/*
 * pinfold-agent: the built-in agent. It runs inside a box as the box's second user, without a key and
 * without a network but the gateway.
 *
 * Theory of operation: it makes itself unreadable for others of its uid before it touches a token, reads
 * request.json and the three token files (which it removes), then asks the model through the gateway and
 * does what the model calls for, with its own tools, below /workspace/source only. It leaves
 * response.json, which is a claim: patch, changed files and check results are found by the control plane.
 *
 * pinfold-agent [WORKSPACE]: the folder is /workspace unless a test names another.
 * Exit status 0: success claimed; 1: not; 2: wrong use.
 */
#include "agent/loop.h"
#include "agent/tokenfile.h"
#include "agent/tree.h"
#include "lib/die.h"
#include "lib/num.h"
#include "lib/own.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RESPONSE_BYTES = 100000 };

static void take_token(int workspace, const char *name, struct secret *token)
{
	/* A profile with token_delivery wire: the connection says who we are, and calls carry no token. */
	if (faccessat(workspace, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
		return;
	const char *why = tokenfile_take(workspace, name, token);
	if (why != NULL)
		fatal("%s: %s", name, why);
}

/* Written beside its name and then put in place, so that it is never half there. */
static bool leave_response(const struct work *w, int workspace)
{
	static const char name[] = "response.json", beside[] = ".response.json.new";
	own_buf struct buf b;
	buf_init(&b, RESPONSE_BYTES);
	work_response(w, &b);
	buf_addc(&b, '\n');
	if (buf_failed(&b))
		return false;
	unlinkat(workspace, beside, 0);
	own_fd int fd = openat(workspace, beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd >= 0 && write_all(fd, b.p, b.n) && renameat(workspace, beside, workspace, name) == 0;
}

#ifdef __SANITIZE_ADDRESS__
/* The leak sanitizer traces its own process at the end, which one that hides does not let it; it asks here before. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return 1;
}
#endif

int main(int argc, char **argv)
{
	static struct work w; /* large; its end is the program's */
	own_secret struct secret model = {0}, events = {0}, approvals = {0};

	log_open("pinfold-agent");
	if (argc > 2) {
		log_error("usage: pinfold-agent [WORKSPACE]");
		return 2;
	}
	/* Before a token is read: the checks run as the same uid and must not read our memory. */
	if (!undumpable())
		fatal("this process cannot be made undumpable: %s", strerror(errno));
	signal(SIGPIPE, SIG_IGN);
	own_fd int workspace = open(argc == 2 ? argv[1] : "/workspace", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (workspace < 0)
		fatal("the workspace cannot be opened: %s", strerror(errno));
	take_token(workspace, ".pinfold-run-token", &model);
	take_token(workspace, ".pinfold-event-token", &events);
	take_token(workspace, ".pinfold-approval-token", &approvals);

	const char *why = task_read(&w.task, workspace);
	if (why != NULL)
		fatal("%s", why);
	own_fd int root = openat(workspace, "source", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (root < 0 || !tree_confined(root))
		fatal("the source folder cannot be opened so that nothing outside it is reached: %s", strerror(errno));

	struct http *http = http_new(w.task.gateway);
	if (http == NULL || !talk_init(&w.talk, &w.task))
		fatal("out of memory");
	guards_init(&w.guards, &w.task, timer_ms());
	w.tools = (struct tools){root, &w.task, &w.guards};
	w.model = (struct model){.http = http, .token = &model, .task = &w.task, .tools = tools_described};
	w.events = (struct events){.http = http, .token = &events, .task = &w.task};
	w.approve = (struct approve){http, &approvals, &w.events, &w.task};
	work_run(&w);
	if (!leave_response(&w, workspace))
		log_error("response.json cannot be written: %s", strerror(errno));

	talk_free(&w.talk);
	http_free(http);
	task_free(&w.task);
	return w.success ? 0 : 1;
}
