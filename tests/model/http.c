/* Reads HTTP/1.1 requests from a raw or TLS socket, as little as the scripted model needs. */
#include "tests/model/model.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

long peer_read(struct peer *p, void *data, size_t n)
{
	if (p->ssl)
		return SSL_read(p->ssl, data, n > 65536 ? 65536 : (int)n);
	ssize_t got;
	do
		got = recv(p->fd, data, n, 0);
	while (got < 0 && errno == EINTR);
	return (long)got;
}

bool peer_write(struct peer *p, const void *data, size_t n)
{
	const uint8_t *at = data;
	while (n > 0) {
		long put =
		    p->ssl ? SSL_write(p->ssl, at, n > 65536 ? 65536 : (int)n) : (long)send(p->fd, at, n, MSG_NOSIGNAL);
		if (put < 0 && !p->ssl && errno == EINTR)
			continue;
		if (put <= 0)
			return false;
		at += put;
		n -= (size_t)put;
	}
	return true;
}

void peer_close(struct peer *p)
{
	if (p->ssl)
		SSL_free(p->ssl);
	close(p->fd);
}

static bool take_line(struct http_request *rq, char *line, unsigned row, long *length, bool *expect)
{
	if (row == 0) {
		char version[16];
		return sscanf(line, "%15s %255s %15s", rq->method, rq->path, version) == 3;
	}
	char *colon = strchr(line, ':');
	if (!colon || rq->nnames == HEADERS_MAX)
		return false;
	*colon = 0;
	const char *value = colon + 1;
	while (*value == ' ')
		value++;
	for (char *c = line; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	rq->names[rq->nnames++] = line;
	if (strcmp(line, "content-length") == 0)
		*length = strtol(value, NULL, 10);
	else if (strcmp(line, "authorization") == 0)
		rq->authorization = arena_dup(&rq->arena, value, strlen(value));
	else if (strcmp(line, "x-api-key") == 0 || strcmp(line, "x-goog-api-key") == 0)
		rq->api_key = arena_dup(&rq->arena, value, strlen(value));
	else if (strcmp(line, "anthropic-version") == 0)
		rq->version = arena_dup(&rq->arena, value, strlen(value));
	else if (strcmp(line, "anthropic-beta") == 0)
		rq->beta = arena_dup(&rq->arena, value, strlen(value));
	else if (strcmp(line, "connection") == 0 && strcasecmp(value, "close") == 0)
		rq->keep_alive = false;
	else if (strcmp(line, "expect") == 0)
		*expect = true;
	return true;
}

bool http_read(struct peer *p, struct http_request *rq)
{
	char *head = arena_get(&rq->arena, HEAD_MAX);
	size_t n = 0;
	long length = 0;
	bool expect = false;
	char *end = NULL;

	rq->keep_alive = true;
	while (head && !end) {
		long got = n < HEAD_MAX - 1 ? peer_read(p, head + n, HEAD_MAX - 1 - n) : 0;
		if (got <= 0)
			return false;
		n += (size_t)got;
		head[n] = 0;
		end = strstr(head, "\r\n\r\n");
	}
	if (!head)
		return false;
	char *rest = end + 4, *line = head;
	size_t have = n - (size_t)(rest - head);
	end[2] = 0;
	for (unsigned row = 0; *line; row++) {
		char *stop = strstr(line, "\r\n");
		*stop = 0;
		if (!take_line(rq, line, row, &length, &expect))
			return false;
		line = stop + 2;
	}
	if (length < 0 || length > BODY_MAX || (rq->body = arena_get(&rq->arena, (size_t)length + 1)) == NULL)
		return false;
	if (expect && !peer_write(p, "HTTP/1.1 100 Continue\r\n\r\n", 25))
		return false;
	rq->body_len = have < (size_t)length ? have : (size_t)length;
	memcpy(rq->body, rest, rq->body_len);
	while (rq->body_len < (size_t)length) {
		long got = peer_read(p, rq->body + rq->body_len, (size_t)length - rq->body_len);
		if (got <= 0)
			return false;
		rq->body_len += (size_t)got;
	}
	return true;
}
