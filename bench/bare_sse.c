/*
 * bare_sse SOCKET FIFO: the least that a FastCGI server of event streams can be, as the measure for ours. Each request
 * is answered with the head of a stream; each line that is written into the FIFO goes to all of them as an event. One
 * epoll thread, no store, no tokens, no cursors; whoever does not take all at once is closed. For benchmarks only.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { MOST = 8192, HEADER = 8, STDOUT = 6, LISTENER = MOST, FIFO };

static struct {
	int fd;
	uint8_t tail[HEADER]; /* the last bytes that came: an empty STDIN record is the request's end */
	int streams;
} conns[MOST];
static int used;

static int put(int fd, const char *text, size_t n)
{
	uint8_t out[4096 + HEADER] = {1, STDOUT, 0, 1, (uint8_t)(n >> 8), (uint8_t)n, 0, 0};
	memcpy(out + HEADER, text, n);
	return send(fd, out, n + HEADER, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)(n + HEADER);
}

static void take(int epoll, int i)
{
	static const char head[] = "Content-Type: text/event-stream\r\nX-Accel-Buffering: no\r\n\r\nretry: 2000\n\n";
	static const uint8_t end[HEADER] = {1, 5, 0, 1};
	uint8_t buf[65536 + HEADER];
	memcpy(buf, conns[i].tail, HEADER);
	ssize_t n = recv(conns[i].fd, buf + HEADER, sizeof buf - HEADER, MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		close(conns[i].fd);
		conns[i].fd = -1;
		conns[i].streams = 0;
		return;
	}
	memcpy(conns[i].tail, buf + n, HEADER);
	if (!conns[i].streams && memcmp(conns[i].tail, end, 6) == 0) {
		conns[i].streams = 1;
		(void)put(conns[i].fd, head, sizeof head - 1);
	}
	(void)epoll;
}

static void tell(char *line, size_t n)
{
	static unsigned sequence;
	char text[4096];
	int k = snprintf(text, sizeof text, "id: %u\nevent: agent.note\ndata: %.*s\n\n", ++sequence, (int)n, line);
	for (int i = 0; i < used; i++)
		if (conns[i].streams && !put(conns[i].fd, text, (size_t)k))
			shutdown(conns[i].fd, SHUT_RDWR);
}

static void watch(int epoll, int fd, int what)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLRDHUP, .data.u32 = (uint32_t)what};
	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e);
}

int main(int argc, char **argv)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct rlimit r;
	if (argc != 3 || strlen(argv[1]) >= sizeof at.sun_path) {
		fputs("usage: bare_sse SOCKET FIFO\n", stderr);
		return 2;
	}
	getrlimit(RLIMIT_NOFILE, &r);
	r.rlim_cur = r.rlim_max;
	setrlimit(RLIMIT_NOFILE, &r);
	memcpy(at.sun_path, argv[1], strlen(argv[1]) + 1);
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), fifo, epoll = epoll_create1(0);
	if (bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || chmod(argv[1], 0666) != 0 ||
	    listen(listener, 4096) != 0 || mkfifo(argv[2], 0600) != 0 ||
	    (fifo = open(argv[2], O_RDWR | O_NONBLOCK)) < 0) {
		perror(argv[0]);
		return 1;
	}
	watch(epoll, listener, LISTENER);
	watch(epoll, fifo, FIFO);
	for (;;) {
		struct epoll_event ev[256];
		int n = epoll_wait(epoll, ev, 256, -1);
		for (int i = 0; i < n; i++) {
			if (ev[i].data.u32 == LISTENER) {
				int fd;
				while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
					int k = 0;
					while (k < used && conns[k].fd >= 0)
						k++;
					if (k == MOST) {
						close(fd);
						continue;
					}
					used = k == used ? used + 1 : used;
					conns[k].fd = fd;
					watch(epoll, fd, k);
					take(epoll, k);
				}
			} else if (ev[i].data.u32 == FIFO) {
				char buf[4096], *p = buf, *nl;
				ssize_t got = read(fifo, buf, sizeof buf);
				for (; got > 0 && (nl = memchr(p, '\n', (size_t)(buf + got - p))) != NULL; p = nl + 1)
					tell(p, (size_t)(nl - p));
			} else {
				take(epoll, (int)ev[i].data.u32);
			}
		}
	}
}
