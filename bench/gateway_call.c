/*
 * gateway_call REQUESTS CALLERS SECONDS RATE plain|tls: callers of a model, as one epoll thread, so that they cost
 * little beside what they call. REQUESTS is a file of what is sent, as often "PORT BYTES" and a newline before each:
 * the callers take them in turn. Each caller has a connection that is kept.
 *
 * RATE 0: each calls again when it has its answer. Otherwise calls are due at so many a second, at times as of people
 * who do not know of each other, and one that finds no caller free waits; its time is counted from when it was due, so
 * that a stall is felt by all that it delays. SECONDS 0: the streams are opened, "ready" is said when each had its
 * first event, and they stay until standard input ends. Prints one JSON object; times are in microseconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 4096, ROOM = 65536, WARM = 2, DRAIN = 3, AT_ONCE = 64, FILE_MOST = 4 << 20 };

static struct caller {
	int fd;
	SSL *tls;
	const char *ask;
	size_t ask_n, n;
	char *in;
	double due, first; /* of the call that is under way; first: 0 until its first event */
	int busy;
} callers[MOST], *idle[MOST];
static int nidle, begun, epoll; /* begun: answers */
static struct figure {
	double whole, first;
} * figures;
static size_t nfigures, room;
static unsigned long total;
static double began, until; /* 0: still warming up */

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fail(const struct caller *c, const char *what)
{
	fprintf(stderr, "a call failed: %s: %.600s\n", what, c->in && c->n ? c->in : strerror(errno));
	exit(1);
}

static void ask(struct caller *c, double due)
{
	c->busy = 1;
	c->due = due;
	c->first = 0;
	c->n = 0;
	long n = c->tls ? SSL_write(c->tls, c->ask, (int)c->ask_n) : send(c->fd, c->ask, c->ask_n, MSG_NOSIGNAL);
	if (n != (long)c->ask_n)
		fail(c, "it cannot be sent");
}

/* Is the answer whole? Only what ends as it must is one. */
static int whole(struct caller *c)
{
	char *gap = strstr(c->in, "\r\n\r\n");

	if (!gap)
		return 0;
	if (strncmp(c->in, "HTTP/1.1 200", 12) != 0)
		fail(c, "its status");
	const char *length = strcasestr(c->in, "\r\ncontent-length:"), *body = gap + 4;
	if (!c->first && (length && length < gap ? *body : strstr(body, "data:") != NULL))
		c->first = now();
	if (length && length < gap)
		return c->n - (size_t)(body - c->in) >= strtoul(length + 17, NULL, 10);
	if (c->n < 5 || memcmp(c->in + c->n - 5, "0\r\n\r\n", 5) != 0)
		return 0;
	if (strstr(body, "data:") && !strstr(body, "[DONE]"))
		fail(c, "a stream without an end");
	return 1;
}

static int take(struct caller *c)
{
	for (;;) {
		long n = c->tls ? SSL_read(c->tls, c->in + c->n, (int)(ROOM - c->n))
				: recv(c->fd, c->in + c->n, ROOM - c->n, 0);
		if (n <= 0) {
			if (c->tls ? SSL_get_error(c->tls, (int)n) == SSL_ERROR_WANT_READ : n < 0 && errno == EAGAIN)
				return 0;
			fail(c, "its connection ended");
		}
		c->n += (size_t)n;
		c->in[c->n] = '\0';
		if (whole(c))
			return 1;
		if (c->n == ROOM)
			fail(c, "its answer is too long");
	}
}

static void count(const struct caller *c, double at)
{
	if (!began || c->due < began || c->due >= until)
		return;
	if (nfigures == room) {
		room = room ? 2 * room : 65536;
		figures = realloc(figures, room * sizeof *figures);
		if (!figures)
			exit(1);
	}
	figures[nfigures++] = (struct figure){at - c->due, (c->first ? c->first : at) - c->due};
}

static void finish(struct caller *c)
{
	count(c, now());
	c->busy = 0;
	total++;
}

static int by_whole(const void *a, const void *b)
{
	double x = ((const struct figure *)a)->whole, y = ((const struct figure *)b)->whole;
	return (x > y) - (x < y);
}

static int by_first(const void *a, const void *b)
{
	double x = ((const struct figure *)a)->first, y = ((const struct figure *)b)->first;
	return (x > y) - (x < y);
}

static void say(double seconds, size_t lost)
{
	if (nfigures == 0)
		exit(1);
	qsort(figures, nfigures, sizeof *figures, by_whole);
	double p50 = figures[nfigures / 2].whole, p99 = figures[nfigures * 99 / 100].whole;
	qsort(figures, nfigures, sizeof *figures, by_first);
	printf("{\"total\":%lu,\"calls\":%zu,\"late\":%zu,\"rate\":%.1f,\"p50\":%.1f,\"p99\":%.1f,\"first_p50\":%.1f,"
	       "\"first_p99\":%.1f}\n",
	       total, nfigures, lost, (double)nfigures / seconds, p50 * 1e6, p99 * 1e6,
	       figures[nfigures / 2].first * 1e6, figures[nfigures * 99 / 100].first * 1e6);
}

static void open_caller(struct caller *c, int port, SSL_CTX *ctx)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int one = 1;

	at.sin_port = htons((uint16_t)port);
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	c->in = malloc(ROOM + 1);
	if (!c->in || connect(c->fd, (struct sockaddr *)&at, sizeof at) != 0)
		fail(c, "no connection");
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	/* Whose certificate it is does not matter to what is measured. */
	if (ctx && (!(c->tls = SSL_new(ctx)) || SSL_set_fd(c->tls, c->fd) != 1 || SSL_connect(c->tls) != 1))
		fail(c, "no TLS");
	fcntl(c->fd, F_SETFL, O_NONBLOCK);
}

/* Takes what has come, or waits for it for so long (below 0: for ever). */
static void turn(double seconds)
{
	struct epoll_event ev[256];
	struct timespec wait = {.tv_sec = (time_t)seconds, .tv_nsec = (long)(fmod(seconds, 1) * 1e9)};
	int n = epoll_pwait2(epoll, ev, 256, seconds < 0 ? NULL : &wait, NULL);

	for (int i = 0; i < n; i++) {
		struct caller *c = ev[i].data.ptr;
		double had = c->first;
		if (take(c)) {
			finish(c);
			idle[nidle++] = c;
		}
		begun += !had && c->first;
	}
}

static void warm(int n)
{
	for (int k = 0; k < WARM; k++) {
		while (nidle > 0)
			ask(idle[--nidle], now());
		while (nidle < n)
			turn(-1);
	}
}

static void closed(double seconds)
{
	began = now();
	until = began + seconds;
	while (now() < until) {
		while (nidle > 0)
			ask(idle[--nidle], now());
		turn(fmax(until - now(), 0));
	}
}

/* Returns when the next is due that was not asked for any more. */
static double due_at(double rate, double seconds)
{
	double due = began = now();
	until = began + seconds;
	while ((due += -log(1 - drand48()) / rate) < until && now() < until + DRAIN) {
		for (double wait; (wait = due - now()) > 0 || nidle == 0;)
			turn(wait > 0 ? wait : 1);
		ask(idle[--nidle], due);
	}
	return due;
}

static void hold(int n)
{
	for (int asked = 0; begun < n;) {
		while (asked < n && asked - begun < AT_ONCE)
			ask(idle[--nidle], now()), asked++;
		turn(-1);
	}
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
}

/* The requests of a file, by their number; how many. */
static int read_requests(const char *path, int ports[], const char *text[], size_t length[])
{
	static char file[FILE_MOST];
	FILE *f = fopen(path, "r");
	size_t size = f ? fread(file, 1, sizeof file - 1, f) : 0;
	int n = 0, used;

	for (char *p = file; n < MOST && sscanf(p, "%d %zu\n%n", &ports[n], &length[n], &used) == 2; n++) {
		text[n] = p + used;
		p += (size_t)used + length[n];
		if (p > file + size)
			return 0;
	}
	return n;
}

int main(int argc, char **argv)
{
	static int ports[MOST];
	static const char *text[MOST];
	static size_t length[MOST];
	struct rlimit files;

	if (argc != 6)
		return 2;
	int nrequests = read_requests(argv[1], ports, text, length), n = atoi(argv[2]);
	double seconds = atof(argv[3]), rate = atof(argv[4]);
	SSL_CTX *ctx = strcmp(argv[5], "tls") == 0 ? SSL_CTX_new(TLS_client_method()) : NULL;
	if (nrequests == 0 || n < 1 || n > MOST)
		return 2;
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	for (int i = 0; i < n; i++) {
		struct caller *c = &callers[i];
		struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
		int r = i % nrequests;
		c->ask = text[r];
		c->ask_n = length[r];
		open_caller(c, ports[r], ctx);
		epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &e);
		idle[nidle++] = c;
	}
	if (seconds == 0) {
		hold(n);
		return 0;
	}
	warm(n);
	if (rate == 0)
		closed(seconds);
	double due = rate > 0 ? due_at(rate, seconds) : until, enough = until + DRAIN;
	while (nidle < n && now() < enough)
		turn(fmax(enough - now(), 0));
	size_t late = 0;
	for (int i = 0; i < n; i++)
		if (callers[i].busy) {
			count(&callers[i], now());
			late++;
		}
	for (; due < until; due += 1 / rate) {
		struct caller never = {.due = due};
		count(&never, now());
		late++;
	}
	say(seconds, late);
	return 0;
}
