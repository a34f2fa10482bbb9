/*
 * sse_clients PORT PATH TOKEN CLIENTS EVENTS: opens so many event streams at 127.0.0.1, says "ready" when each has its
 * head, and reads until each has had so many events with "t":NANOSECONDS of CLOCK_MONOTONIC in them. Then it says how
 * many came, and the median and the 99th percentile of their age in microseconds when they came. Ends with its standard
 * input.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static struct client {
	int fd, ready, seen;
	size_t have;
	char part[4096]; /* what may still become an event */
} * clients;
static uint32_t *ages;
static size_t nages, most;
static int ready;

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int by_age(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

static void take(struct client *c)
{
	for (;;) {
		ssize_t n = recv(c->fd, c->part + c->have, sizeof c->part - 1 - c->have, MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			fprintf(stderr, "a stream ended: %s\n", n < 0 ? strerror(errno) : c->part);
			exit(1);
		}
		uint64_t at = now();
		c->have += (size_t)n;
		c->part[c->have] = '\0';
		if (!c->ready && strstr(c->part, "retry:") != NULL) {
			c->ready = 1;
			ready++;
		}
		char *p = c->part, *t;
		while ((t = strstr(p, "\"t\":")) != NULL && strchr(t, '}') != NULL) {
			uint64_t then = strtoull(t + 4, NULL, 10);
			if (nages < most)
				ages[nages++] = (uint32_t)((at - then) / 1000);
			p = t + 4;
		}
		/* The last bytes may be the beginning of one. */
		size_t rest = c->have - (size_t)(p - c->part), keep = t != NULL ? strlen(t) : rest < 8 ? rest : 8;
		memmove(c->part, c->part + c->have - keep, keep);
		c->have = keep;
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rlimit r;
	char ask[2048];
	if (argc != 6)
		return 2;
	int n = atoi(argv[4]), events = atoi(argv[5]), epoll = epoll_create1(0);
	most = (size_t)n * (size_t)events;
	clients = calloc((size_t)n, sizeof *clients);
	ages = calloc(most + 1, sizeof *ages);
	getrlimit(RLIMIT_NOFILE, &r);
	r.rlim_cur = r.rlim_max;
	setrlimit(RLIMIT_NOFILE, &r);
	at.sin_port = htons((uint16_t)atoi(argv[1]));
	int k = snprintf(ask, sizeof ask, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n\r\n",
			 argv[2], argv[3]);
	struct epoll_event in = {.events = EPOLLIN, .data.ptr = NULL}, ev[256];
	for (int i = 0; i < n; i++) {
		struct epoll_event e = {.events = EPOLLIN, .data.ptr = &clients[i]};
		int fd = clients[i].fd = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(fd, (struct sockaddr *)&at, sizeof at) != 0 || send(fd, ask, (size_t)k, 0) != k ||
		    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) != 0) {
			perror("connect");
			return 1;
		}
		/* A few at a time: the servers' queues are not what is measured. */
		while (ready + 64 < i) {
			int m = epoll_wait(epoll, ev, 256, -1);
			for (int j = 0; j < m; j++)
				take(ev[j].data.ptr);
		}
	}
	epoll_ctl(epoll, EPOLL_CTL_ADD, 0, &in);
	for (int said = 0; nages < most;) {
		int m = epoll_wait(epoll, ev, 256, -1);
		for (int j = 0; j < m; j++) {
			if (ev[j].data.ptr == NULL)
				return 1;
			take(ev[j].data.ptr);
		}
		if (!said && ready == n) {
			puts("ready");
			fflush(stdout);
			said = 1;
		}
	}
	qsort(ages, nages, sizeof *ages, by_age);
	printf("%zu %u %u\n", nages, ages[nages / 2], ages[nages * 99 / 100]);
	fflush(stdout);
	while (read(0, ask, sizeof ask) > 0)
		continue;
	return 0;
}
