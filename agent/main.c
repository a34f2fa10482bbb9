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
#include "agent/response.h"
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
	own_tokens struct tokens tokens = {0};

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

	const char *file, *why = tokenfiles_take(workspace, &tokens, &file);
	if (why != NULL)
		fatal("%s: %s", file, why);
	why = task_read(&w.task, workspace);
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
	w.model = (struct model){.http = http, .token = &tokens.model, .task = &w.task, .tools = tools_described};
	w.events = (struct events){.http = http, .token = &tokens.events, .task = &w.task};
	w.approve = (struct approve){http, &tokens.approvals, &w.events, &w.task};
	work_run(&w);
	own_buf struct buf response;
	buf_init(&response, RESPONSE_BYTES);
	work_response(&w, &response);
	if (!response_leave(workspace, &response))
		log_error("response.json cannot be written: %s", strerror(errno));

	talk_free(&w.talk);
	http_free(http);
	task_free(&w.task);
	return w.success ? 0 : 1;
}
