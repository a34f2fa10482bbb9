/*
 * gateway_model FOLDER: a provider that costs as little as one over TLS can, so that what is measured is what stands
 * before it. Says "listening PORT"; its authority is FOLDER/ca.pem. One epoll thread. A chat is answered with a word,
 * or with a stream of EVENTS events where its body says "stream":true: the first, those between in a chunk
 * each, and the end, in three records. One
 * whose body has HOLD in it gets the first event (or nothing) and then no more. For benchmarks only.
 */
#include "tests/model/model.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS = 16, MOST = 65536 };

struct conn {
	SSL *tls;
	int fd;
	size_t n;
	char *in;
};

static SSL_CTX *ctx;
static char answer[1024], head[300], first[500], more[EVENTS * 500], last[1000];

static void chunk(char *to, size_t room, const char *event)
{
	snprintf(to, room, "%zx\r\n%s\r\n", strlen(event), event);
}

static void write_texts(void)
{
	static const char says[] =
	    "{\"id\":\"c1\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"scripted-1\","
	    "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"ok\"},"
	    "\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":300,\"completion_tokens\":"
	    "1,\"total_tokens\":301}}";
#define PIECE(delta, finish)                                                                                \
	"data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"scripted-1\"," \
	"\"choices\":[{\"index\":0,\"delta\":{" delta "},\"finish_reason\":" finish "}]}\n\n"
	snprintf(answer, sizeof answer,
		 "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", strlen(says),
		 says);
	snprintf(head, sizeof head,
		 "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
	chunk(first, sizeof first, PIECE("\"role\":\"assistant\",\"content\":\"\"", "null"));
	for (int i = 2; i < EVENTS; i++)
		chunk(more + strlen(more), 500, PIECE("\"content\":\" word\"", "null"));
	chunk(last, sizeof last,
	      PIECE("", "\"stop\"") "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":"
				    "\"scripted-1\",\"choices\":[],\"usage\":{\"prompt_tokens\":300,"
				    "\"completion_tokens\":16,\"total_tokens\":316}}\n\ndata: [DONE]\n\n");
	strcat(last, "0\r\n\r\n");
}

static void drop(struct conn *c)
{
	close(c->fd);
	SSL_free(c->tls);
	free(c->in);
	free(c);
}

static int put(struct conn *c, const char *text)
{
	return SSL_write(c->tls, text, (int)strlen(text)) > 0;
}

static int reply(struct conn *c, const char *body)
{
	int holds = strstr(body, "HOLD") != NULL;
	if (!strstr(body, "\"stream\":true"))
		return holds || put(c, answer);
	char begin[sizeof head + sizeof first];
	snprintf(begin, sizeof begin, "%s%s", head, first);
	return put(c, begin) && (holds || (put(c, more) && put(c, last)));
}

/* Whole? Then where its body begins. */
static const char *whole(const struct conn *c)
{
	const char *gap = strstr(c->in, "\r\n\r\n");
	const char *length = gap ? strcasestr(c->in, "\r\ncontent-length:") : NULL;

	if (!gap)
		return NULL;
	gap += 4;
	size_t n = c->n - (size_t)(gap - c->in);
	if (length && length < gap)
		return n >= strtoul(length + 17, NULL, 10) ? gap : NULL;
	return n >= 5 && memcmp(c->in + c->n - 5, "0\r\n\r\n", 5) == 0 ? gap : NULL;
}

static void take(struct conn *c)
{
	for (;;) {
		if (!c->in && !(c->in = malloc(MOST + 1)))
			exit(1);
		ERR_clear_error(); /* of others' connections */
		int n = SSL_read(c->tls, c->in + c->n, (int)(MOST - c->n));
		if (n <= 0) {
			int why = SSL_get_error(c->tls, n);
			if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
				drop(c);
			else if (c->n == 0) { /* it is the provider's memory that is not to be the measure */
				free(c->in);
				c->in = NULL;
			}
			return;
		}
		c->n += (size_t)n;
		c->in[c->n] = '\0';
		const char *body = whole(c);
		if (body && !reply(c, body)) {
			drop(c);
			return;
		}
		if (body)
			c->n = 0;
	}
}

static void welcome(int epoll, int listener)
{
	int fd, one = 1;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct conn *c = calloc(1, sizeof *c);
		struct epoll_event e = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = c};
		if (!c || !(c->tls = SSL_new(ctx)))
			exit(1);
		c->fd = fd;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		SSL_set_fd(c->tls, fd);
		SSL_set_accept_state(c->tls);
		epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof at;
	struct rlimit files;
	char cert[500], key[500];

	if (argc != 2)
		return 2;
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	write_texts();
	cert_make(argv[1], NULL);
	snprintf(cert, sizeof cert, "%s/cert.pem", argv[1]);
	snprintf(key, sizeof key, "%s/key.pem", argv[1]);
	ctx = SSL_CTX_new(TLS_server_method());
	if (!ctx || SSL_CTX_use_certificate_chain_file(ctx, cert) != 1 ||
	    SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1)
		return 1;
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	int epoll = epoll_create1(0), listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct epoll_event in = {.events = EPOLLIN, .data.ptr = NULL}, ev[256];
	if (bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 4096) != 0 ||
	    getsockname(listener, (struct sockaddr *)&at, &size) != 0 ||
	    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &in) != 0) {
		perror(argv[0]);
		return 1;
	}
	printf("listening %d\n", ntohs(at.sin_port));
	fflush(stdout);
	for (;;) {
		int n = epoll_wait(epoll, ev, 256, -1);
		for (int i = 0; i < n; i++) {
			if (ev[i].data.ptr)
				take(ev[i].data.ptr);
			else
				welcome(epoll, listener);
		}
	}
}
