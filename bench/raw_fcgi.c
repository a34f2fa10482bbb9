/*
 * raw_fcgi SOCKET: a FastCGI responder without libfcgi, as fast as two epoll threads make it. Skips parameters and
 * body by their lengths, answers the same 16 bytes as trivial_fcgi, checks nothing. For benchmarks only.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { THREADS = 2, EVENTS = 64, HEADER = 8, BEGIN = 1, END = 3, STDIN = 5, STDOUT = 6, KEEP = 1 };

static int listener;

/* One connection, and where in the stream of records it is. */
struct conn {
	int fd;
	size_t skip; /* bytes of a record's content and padding that are still to come */
	size_t have; /* bytes of head */
	uint8_t head[2 * HEADER];
	int keep;
};

static void answer(struct conn *c)
{
	static const char text[] = "Content-Type: application/json\r\n\r\n{\"answer\":\"yes\"}";
	enum { N = sizeof text - 1, PAD = (8 - N % 8) % 8 };
	uint8_t id1 = c->head[2], id0 = c->head[3], out[HEADER + N + PAD + HEADER + 2 * HEADER] = {0};
	uint8_t *p = out;
	memcpy(p, (uint8_t[]){1, STDOUT, id1, id0, N >> 8, N & 255, PAD, 0}, HEADER);
	memcpy(p + HEADER, text, N);
	p += HEADER + N + PAD;
	memcpy(p, (uint8_t[]){1, STDOUT, id1, id0, 0, 0, 0, 0}, HEADER);
	memcpy(p + HEADER, (uint8_t[]){1, END, id1, id0, 0, 8, 0, 0}, HEADER);
	(void)!send(c->fd, out, sizeof out, MSG_NOSIGNAL);
}

/* Takes n bytes. False: the connection is over. */
static int feed(struct conn *c, const uint8_t *p, size_t n)
{
	while (n > 0) {
		size_t k = c->skip < n ? c->skip : n;
		c->skip -= k, p += k, n -= k;
		/* Of BEGIN_REQUEST the content counts as well: its flags. */
		size_t want = c->have >= HEADER && c->head[1] == BEGIN ? 2 * HEADER : HEADER;
		if (n == 0 && !(c->skip == 0 && c->have == want))
			break;
		k = want - c->have < n ? want - c->have : n;
		memcpy(c->head + c->have, p, k);
		c->have += k, p += k, n -= k;
		if (c->have < HEADER || (c->head[1] == BEGIN && c->have < 2 * HEADER))
			continue;
		size_t len = (size_t)(c->head[4] << 8 | c->head[5]);
		c->skip = len + c->head[6];
		c->have = 0;
		if (c->head[1] == BEGIN) {
			c->keep = c->head[HEADER + 2] & KEEP;
			c->skip -= HEADER;
		} else if (c->head[1] == STDIN && len == 0) {
			answer(c);
			if (!c->keep)
				return 0;
		}
	}
	return 1;
}

/* Reads what is there. */
static void serve(int epoll, struct conn *c, int fresh)
{
	uint8_t buf[65536];
	for (;;) {
		ssize_t n = recv(c->fd, buf, sizeof buf, MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0 || !feed(c, buf, (size_t)n)) {
			close(c->fd);
			free(c);
			return;
		}
		if ((size_t)n < sizeof buf)
			break;
	}
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
	if (fresh && epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &e) != 0)
		perror("epoll_ctl");
}

static void *work(void *arg)
{
	(void)arg;
	int epoll = epoll_create1(0);
	struct epoll_event ev[EVENTS] = {{.events = EPOLLIN | EPOLLEXCLUSIVE, .data.ptr = NULL}};
	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, ev) != 0)
		exit(1);
	for (;;) {
		int n = epoll_wait(epoll, ev, EVENTS, -1);
		for (int i = 0; i < n; i++) {
			if (ev[i].data.ptr != NULL) {
				serve(epoll, ev[i].data.ptr, 0);
				continue;
			}
			int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
			struct conn *c = fd < 0 ? NULL : calloc(1, sizeof *c);
			if (c == NULL)
				continue;
			c->fd = fd;
			serve(epoll, c, 1);
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	pthread_t t;
	if (argc != 2 || strlen(argv[1]) >= sizeof a.sun_path) {
		fputs("usage: raw_fcgi SOCKET\n", stderr);
		return 2;
	}
	memcpy(a.sun_path, argv[1], strlen(argv[1]) + 1);
	(void)unlink(argv[1]);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&a, sizeof a) != 0 || chmod(argv[1], 0666) != 0 ||
	    listen(listener, 1024) != 0) {
		perror(argv[1]);
		return 1;
	}
	for (int i = 1; i < THREADS; i++)
		if (pthread_create(&t, NULL, work, NULL) != 0)
			return 1;
	work(NULL);
	return 0;
}
