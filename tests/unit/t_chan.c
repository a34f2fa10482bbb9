/* Packets with descriptors, listening, and bundles: nothing lost, nothing leaked, nothing half read. */
#include "lib/chan.h"
#include "lib/wire.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static int open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;
	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static void t_packets(void **state)
{
	(void)state;
	int before = open_files(), s[2], got[WIRE_MAX_FDS], n = 0;
	char b[16];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, s), 0);
	int two[] = {s[0], s[1]};
	assert_int_equal(chan_recv(s[1], b, sizeof b, got, &n), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(chan_send(s[0], "hello", 5, two, 2), 0);
	assert_int_equal(chan_recv(s[1], b, sizeof b, got, &n), 5);
	assert_int_equal(n, 2);
	assert_memory_equal(b, "hello", 5);
	assert_true((fcntl(got[0], F_GETFD) & FD_CLOEXEC) != 0);
	chan_close_fds(got, n);
	assert_int_equal(got[0], -1);
	/* Too long for the reader: refused whole, its descriptors closed. */
	assert_int_equal(chan_send(s[0], "0123456789abcdefg", 17, two, 2), 0);
	assert_int_equal(chan_recv(s[1], b, sizeof b, got, &n), -1);
	assert_int_equal(errno, EBADMSG);
	assert_int_equal(n, 0);
	/* Five descriptors, put together by hand. */
	int five[5] = {s[0], s[0], s[0], s[0], s[0]};
	assert_int_equal(chan_send(s[0], "x", 1, five, 5), -1);
	assert_int_equal(errno, EINVAL);
	char control[CMSG_SPACE(sizeof five)] __attribute__((aligned(8))) = {0};
	struct iovec iov = {.iov_base = b, .iov_len = 1};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof five);
	memcpy(CMSG_DATA(c), five, sizeof five);
	assert_int_equal(sendmsg(s[0], &m, 0), 1);
	assert_int_equal(chan_recv(s[1], b, sizeof b, got, &n), -1);
	assert_int_equal(errno, EBADMSG);
	assert_int_equal(open_files(), before + 2);
	/* The end of the peer, and writing to it: an error, no signal. */
	close(s[0]);
	assert_int_equal(chan_recv(s[1], b, sizeof b, got, &n), 0);
	assert_int_equal(chan_send(s[1], "x", 1, NULL, 0), -1);
	assert_int_equal(errno, EPIPE);
	close(s[1]);
	assert_int_equal(open_files(), before);
}

/* Sends so many descriptors, credentials first if asked, more than chan_send would. */
static void send_raw(int to, int fd, int many, bool creds)
{
	static char control[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(64 * sizeof(int))]
	    __attribute__((aligned(8)));
	struct iovec iov = {.iov_base = "x", .iov_len = 1};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	memset(control, 0, sizeof control);
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	size_t used = 0;
	if (creds) {
		struct ucred me = {.pid = getpid(), .uid = getuid(), .gid = getgid()};
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_CREDENTIALS;
		c->cmsg_len = CMSG_LEN(sizeof me);
		memcpy(CMSG_DATA(c), &me, sizeof me);
		used = CMSG_SPACE(sizeof me);
		c = (struct cmsghdr *)(void *)(control + used);
	}
	if (many > 0) {
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN((size_t)many * sizeof(int));
		for (int i = 0; i < many; i++)
			memcpy(CMSG_DATA(c) + (size_t)i * sizeof fd, &fd, sizeof fd);
		used += CMSG_SPACE((size_t)many * sizeof(int));
	}
	m.msg_controllen = used;
	m.msg_control = used > 0 ? control : NULL;
	assert_int_equal(sendmsg(to, &m, 0), 1);
}

/* FAULTS F2: at the limit of descriptors the kernel delivers the data without them. Refused each time, and none is
 * lost. */
static void t_limit(void **state)
{
	static const int many[] = {0, 1, 2, 64};
	(void)state;
	if (getenv("PINFOLD_MEMCHECK") != NULL) /* which keeps this limit to itself: the kernel never sees it */
		skip();
	struct rlimit old, tight;
	int s[2], got[WIRE_MAX_FDS], n, on = 1, before = open_files();
	char b[16];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, s), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	int lowest = dup(0);
	close(lowest);
	tight = (struct rlimit){(rlim_t)lowest + 1, old.rlim_max}; /* room for one */
	for (int i = 0; i < 1000; i++) {
		int sends = many[i % 4];
		bool creds = i / 4 % 2 == 1;
		assert_int_equal(setsockopt(s[1], SOL_SOCKET, SO_PASSCRED, creds ? &on : &(int){0}, sizeof on), 0);
		send_raw(s[0], s[0], sends, creds);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
		ssize_t len = chan_recv(s[1], b, sizeof b, got, &n);
		int error = errno;
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
		if (sends == 0 || (sends == 1 && !creds)) { /* credentials leave no room for what nobody expects */
			assert_true(len == 1 && n == sends && (n == 0 || (fcntl(got[0], F_GETFD) & FD_CLOEXEC) != 0));
			chan_close_fds(got, n);
		} else {
			assert_true(len == -1 && error == EBADMSG && n == 0);
		}
		assert_int_equal(open_files(), before + 2);
	}
	close(s[0]);
	close(s[1]);
}

static void t_listen(void **state)
{
	(void)state;
	char dir[] = "/tmp/pinfold-test-XXXXXX", path[128], longer[200];
	struct stat st;
	uid_t uid = 1;
	pid_t pid = 0;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/s.sock", dir);
	int fd = chan_listen(path, SOCK_SEQPACKET, 0660, (uid_t)-1, (gid_t)-1, 8);
	assert_true(fd >= 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	int client = chan_connect(path), server = accept(fd, NULL, NULL);
	assert_true(client >= 0 && server >= 0);
	assert_true(chan_peer(server, &uid, &pid));
	assert_true(uid == geteuid() && pid == getpid());
	close(client);
	close(server);
	/* A socket is replaced, though somebody who dies may listen there still; a file is not. */
	int old = fd;
	fd = chan_listen(path, SOCK_SEQPACKET, 0660, (uid_t)-1, (gid_t)-1, 8);
	client = chan_connect(path);
	server = accept(fd, NULL, NULL);
	assert_true(fd >= 0 && client >= 0 && server >= 0);
	close(client);
	close(server);
	close(fd);
	close(old);
	assert_int_equal(chan_connect(path), -1);
	fd = chan_listen(path, SOCK_STREAM, 0600, (uid_t)-1, (gid_t)-1, 8);
	assert_true(fd >= 0);
	close(fd);
	unlink(path);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(chan_listen(path, SOCK_STREAM, 0600, (uid_t)-1, (gid_t)-1, 8), -1);
	assert_int_equal(errno, EADDRINUSE);
	memset(longer, 'x', sizeof longer - 1);
	longer[sizeof longer - 1] = 0;
	assert_int_equal(chan_connect(longer), -1);
	assert_int_equal(errno, ENAMETOOLONG);
	unlink(path);
	rmdir(dir);
}

static void t_bundle(void **state)
{
	(void)state;
	struct bundle b;
	const uint8_t *f;
	size_t n;
	int fd = bundle_new("test");
	assert_true(fd >= 0);
	assert_true(bundle_add(fd, "one", 3));
	assert_true(bundle_add(fd, "three", 5));
	assert_false(bundle_add(fd, "", 0));
	assert_true(bundle_open(&b, fd, 5));
	assert_int_equal(bundle_next(&b, &f, &n), 1);
	assert_true(n == 3 && memcmp(f, "one", 3) == 0);
	assert_int_equal(bundle_next(&b, &f, &n), 1);
	assert_true(n == 5 && memcmp(f, "three", 5) == 0);
	assert_int_equal(bundle_next(&b, &f, &n), 0);
	bundle_close(&b);
	/* A frame above the reader's maximum, a cut one, one of length zero, a cut length. */
	assert_true(bundle_open(&b, fd, 4));
	assert_int_equal(bundle_next(&b, &f, &n), 1);
	errno = EAGAIN; /* of a call before */
	assert_int_equal(bundle_next(&b, &f, &n), -1);
	assert_int_equal(errno, EBADMSG);
	bundle_close(&b);
	for (off_t size = 15; size > 7; size--) {
		assert_int_equal(ftruncate(fd, size), 0);
		assert_true(bundle_open(&b, fd, 5));
		assert_int_equal(bundle_next(&b, &f, &n), 1);
		errno = EAGAIN;
		assert_int_equal(bundle_next(&b, &f, &n), -1);
		assert_int_equal(errno, EBADMSG);
		bundle_close(&b);
	}
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(ftruncate(fd, 8), 0);
	assert_true(bundle_open(&b, fd, 5));
	assert_int_equal(bundle_next(&b, &f, &n), -1);
	bundle_close(&b);
	assert_true(bundle_seal(fd));
	assert_false(bundle_add(fd, "x", 1));
	assert_int_equal(ftruncate(fd, 0), -1);
	close(fd);
	int pipes[2];
	assert_int_equal(pipe(pipes), 0);
	assert_false(bundle_open(&b, pipes[0], 5));
	close(pipes[0]);
	close(pipes[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_packets), cmocka_unit_test(t_limit),
					   cmocka_unit_test(t_listen), cmocka_unit_test(t_bundle)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
