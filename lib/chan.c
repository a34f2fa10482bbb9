/*
 * Packets with descriptors over Unix sockets. Trusts neither length nor count of what arrives; a
 * received descriptor is either handed to the caller or closed, never lost.
 */
#include "lib/own_fd.h"
#include "lib/packet.h"
#include "lib/wire.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * WIRE_MAX_FDS)];
};

int chan_send(int fd, const void *p, size_t n, const int *fds, int nfds)
{
	if (nfds < 0 || nfds > WIRE_MAX_FDS) {
		errno = EINVAL;
		return -1;
	}
	union control control;
	struct iovec iov = {.iov_base = (void *)(uintptr_t)p, .iov_len = n};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	if (nfds > 0) {
		size_t size = sizeof(int) * (size_t)nfds;
		memset(&control, 0, sizeof control);
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(size);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(size);
		memcpy(CMSG_DATA(c), fds, size);
	}
	ssize_t sent;
	do
		sent = sendmsg(fd, &msg, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -1 : 0;
}

ssize_t chan_recv(int fd, void *p, size_t cap, int *fds, int *nfds)
{
	union control control;
	struct iovec iov = {.iov_base = p, .iov_len = cap};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes};
	int got[WIRE_MAX_FDS];
	int count = 0;
	bool bad = false;
	ssize_t n;
	*nfds = 0;
	memset(&control, 0, sizeof control);
	do {
		msg.msg_controllen = sizeof control.bytes;
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -1;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c != NULL; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t many = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < many; i++) {
			int one;
			memcpy(&one, CMSG_DATA(c) + i * sizeof(int), sizeof one);
			if (count < WIRE_MAX_FDS) {
				got[count++] = one;
			} else {
				close(one);
				bad = true;
			}
		}
	}
	if ((msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 || (n == 0 && count > 0) || (fds == NULL && count > 0))
		bad = true;
	if (bad) {
		chan_close_fds(got, count);
		errno = EBADMSG;
		return -1;
	}
	if (count > 0)
		memcpy(fds, got, sizeof(int) * (size_t)count);
	*nfds = count;
	return n;
}

void chan_close_fds(int *fds, int nfds)
{
	for (int i = 0; i < nfds; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

bool chan_address(const char *path, struct sockaddr_un *to)
{
	size_t n = strlen(path);
	if (n == 0 || n >= sizeof to->sun_path) {
		errno = ENAMETOOLONG;
		return false;
	}
	*to = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(to->sun_path, path, n + 1);
	return true;
}

/* Unlinks a socket of an earlier life, of which a process may still be dying; anything else there stays: EADDRINUSE. */
static bool remove_old(const char *path)
{
	struct stat st;
	if (lstat(path, &st) != 0)
		return errno == ENOENT;
	errno = EADDRINUSE;
	return S_ISSOCK(st.st_mode) && unlink(path) == 0;
}

int chan_listen(const char *path, int type, mode_t mode, uid_t uid, gid_t gid, int backlog)
{
	struct sockaddr_un at;
	if (!chan_address(path, &at) || !remove_old(path))
		return -1;
	own_fd int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	/* The node is born with no permission at all and nobody can connect before listen, so there is
	 * no moment at which the wrong user gets in. */
	if (fchmod(fd, 0) != 0 || bind(fd, (const struct sockaddr *)&at, sizeof at) != 0)
		return -1;
	if (lchown(path, uid, gid) != 0 || chmod(path, mode) != 0 || listen(fd, backlog) != 0) {
		int why = errno;
		unlink(path);
		errno = why;
		return -1;
	}
	return steal_fd(&fd);
}
