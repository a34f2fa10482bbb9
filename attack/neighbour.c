/* See neighbour.h. */
#include "attack/neighbour.h"
#include "attack/talk.h"
#include "attack/tried.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/msg.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void offer_sockets(void)
{
	struct sockaddr_un u = {.sun_family = AF_UNIX};
	struct sockaddr_in a = {
	    .sin_family = AF_INET, .sin_port = htons(NEAR_PORT), .sin_addr.s_addr = htonl(INADDR_ANY)};
	int one = 1, s = socket(AF_UNIX, SOCK_STREAM, 0), t = socket(AF_INET, SOCK_STREAM, 0);
	memcpy(u.sun_path + 1, NEAR_ABSTRACT, sizeof NEAR_ABSTRACT - 1);
	if (bind(s, (struct sockaddr *)&u,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof NEAR_ABSTRACT)) == 0)
		listen(s, 8);
	setsockopt(t, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(t, (struct sockaddr *)&a, sizeof a) == 0)
		listen(t, 8);
}

static void offer_files(void)
{
	static const char *const paths[] = {"/tmp/pinfold-neighbour", "/dev/shm/pinfold-neighbour",
					    "/workspace/pinfold-neighbour"};
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		int fd = open(paths[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
		if (fd >= 0)
			close(fd);
	}
}

int neighbour_live(void)
{
	static const char *const spaces[] = {"mnt", "pid", "net", "ipc", "uts", "cgroup", "user"};
	char model[TOKEN_MAX] = "", events[TOKEN_MAX] = "", approvals[TOKEN_MAX] = "", data[4000], map[1000];
	const char *run = getenv("PINFOLD_RUN_ID");
	unsigned a = 0, b = 0;
	umask(0);
	offer_sockets();
	offer_files();
	shmget(NEAR_KEY, 4096, IPC_CREAT | 0666);
	msgget(NEAR_KEY, IPC_CREAT | 0666);
	struct mq_attr small = {.mq_maxmsg = 1, .mq_msgsize = 64}; /* the default is more than a box may have */
	mq_open(NEAR_QUEUE, O_CREAT | O_RDWR, 0666, &small);
	talk_token(".pinfold-run-token", model);
	talk_token(".pinfold-event-token", events);
	talk_token(".pinfold-approval-token", approvals);
	if (read_text("/proc/self/uid_map", map, sizeof map) > 0)
		sscanf(map, "%*u %u %*u %*u %u", &a, &b);
	size_t n = (size_t)snprintf(data, sizeof data,
				    "{\"model\":\"%s\",\"events\":\"%s\",\"approvals\":\"%s\",\"uid\":\"%u,%u\"", model,
				    events, approvals, a, b);
	for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
		char path[64], at[64] = "";
		snprintf(path, sizeof path, "/proc/self/ns/%s", spaces[i]);
		if (readlink(path, at, sizeof at - 1) > 0)
			n += (size_t)snprintf(data + n, sizeof data - n, ",\"%s\":\"%s\"", spaces[i], at);
	}
	snprintf(data + n, sizeof data - n, "}");
	if (run == NULL || talk_event("neighbour", run, "1", data) != 202)
		return 1;
	for (;;)
		pause();
}

int neighbour_spoil(void)
{
	/* The check runs the tree's own code anyway; here that code is this program. */
	if (system("git config core.whitespace -trailing-space; git config core.fsmonitor true; git commit -qam spoilt;"
		   "echo '* -whitespace' > .git/info/attributes; printf '[core]\\n\\twhitespace = -trailing-space\\n' "
		   "> /tmp/.gitconfig;"
		   "(sleep 300 &) ; for f in *.md; do printf 'clean\\n' > $f; done") == -1)
		return 1;
	return 0;
}
