/* The side that connects; apart from chan.c, since root's daemon never does. */
#include "lib/chan.h"
#include "lib/own.h"
#include <errno.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

int chan_connect(const char *path)
{
	struct sockaddr_un to;
	if (!chan_address(path, &to))
		return -1;
	own_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	/* A full backlog would block without end. */
	struct timeval bound = {.tv_sec = 1}, none = {0};
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof bound) != 0)
		return -1;
	int r;
	do
		r = connect(fd, (const struct sockaddr *)&to, sizeof to);
	while (r != 0 && errno == EINTR);
	if (r != 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none) != 0)
		return -1;
	return steal_fd(&fd);
}

int chan_reach(const char *path)
{
	struct sockaddr_un to;
	if (!chan_address(path, &to))
		return -1;
	own_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof to) != 0)
		return -1;
	return steal_fd(&fd);
}

bool chan_peer(int fd, uid_t *uid, pid_t *pid)
{
	struct ucred who;
	socklen_t n = sizeof who;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) != 0 || n != sizeof who)
		return false;
	*uid = who.uid;
	*pid = who.pid;
	return true;
}
