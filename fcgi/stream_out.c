/*
 * What a stream's connection is written: records of FastCGI, framed here, since libfcgi has given the connection away.
 * Never waits: what does not go now goes when the connection says that there is room. Reads nothing from it but the
 * wish to end.
 */
#include "fcgi/stream.h"
#include "lib/num.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { ABORT_REQUEST = 2, END_REQUEST = 3, STDOUT = 6, HEADER = 8, RECORD = 65528, LAST = 24 };

uint32_t stream_now(void)
{
	return (uint32_t)timer_ms();
}

struct chunk *chunk_new(struct streams *s, const void *p, size_t n)
{
	struct chunk *c = malloc(sizeof *c + n);
	if (c == NULL)
		return NULL;
	c->refs = 1;
	c->n = (uint32_t)n;
	memcpy(c->p, p, n);
	s->held += n;
	return c;
}

void chunk_drop(struct streams *s, struct chunk *c)
{
	if (--c->refs > 0)
		return;
	s->held -= c->n;
	free(c);
}

static void head_of(uint8_t p[HEADER], uint8_t kind, uint16_t request, uint32_t n)
{
	const uint8_t head[HEADER] = {1,         kind, (uint8_t)(request >> 8), (uint8_t)request, (uint8_t)(n >> 8),
				      (uint8_t)n};
	memcpy(p, head, HEADER);
}

uint32_t stream_framed(uint32_t n)
{
	return n + (n + RECORD - 1) / RECORD * HEADER;
}

size_t stream_parts(uint16_t request, const uint8_t *p, uint32_t n, uint32_t sent, uint8_t head[8],
		    struct iovec parts[2])
{
	uint32_t from = sent / (HEADER + RECORD) * RECORD, at = sent % (HEADER + RECORD);
	uint32_t len = n - from < RECORD ? n - from : RECORD;
	size_t k = 0;
	head_of(head, STDOUT, request, len);
	if (at < HEADER)
		parts[k++] = (struct iovec){head + at, HEADER - at};
	uint32_t skip = at > HEADER ? at - HEADER : 0;
	parts[k++] = (struct iovec){(void *)(uintptr_t)(p + from + skip), len - skip};
	return k;
}

/* Of all that is to be written now, what is left. 0: nothing. */
static uint32_t left(const struct stream *st)
{
	return (st->chunk != NULL ? stream_framed(st->chunk->n) : st->ending ? LAST : st->sent) - st->sent;
}

static ssize_t write_some(struct stream *st)
{
	uint8_t head[HEADER], last[LAST] = {0};
	struct iovec parts[2];
	struct msghdr m = {.msg_iov = parts, .msg_iovlen = 1};
	if (st->chunk != NULL) {
		m.msg_iovlen = stream_parts(st->request, st->chunk->p, st->chunk->n, st->sent, head, parts);
	} else {
		head_of(last, STDOUT, st->request, 0);
		head_of(last + HEADER, END_REQUEST, st->request, 8); /* all zero: it ended well */
		parts[0] = (struct iovec){last + st->sent, LAST - st->sent};
	}
	return sendmsg(st->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Writes until there is no room or nothing left. False: the stream is over. */
static bool write_on(struct streams *s, struct stream *st)
{
	while (left(st) > 0) {
		ssize_t n = write_some(st);
		if (n < 0 && errno == EINTR)
			continue;
		/* For want of memory in the kernel, too: who reads makes room, who does not is cut. */
		if (n < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM))
			return true;
		if (n < 0) {
			stream_close(s, st, false);
			return false;
		}
		st->sent += (uint32_t)n;
		st->moved = stream_now();
		if (left(st) > 0)
			continue;
		st->sent = 0;
		st->wrote = st->moved;
		if (st->chunk == NULL) {
			stream_close(s, st, st->keep);
			return false;
		}
		chunk_drop(s, st->chunk);
		st->chunk = NULL;
	}
	return true;
}

void stream_put(struct streams *s, struct stream *st, struct chunk *c)
{
	c->refs++;
	st->chunk = c;
	st->sent = 0;
	st->moved = stream_now();
	if (write_on(s, st) && st->chunk == NULL)
		stream_kick(s, st);
}

void stream_end(struct streams *s, struct stream *st)
{
	if (st->ending)
		return;
	stream_forget(s, st);
	st->ending = true;
	st->moved = stream_now();
	(void)write_on(s, st);
}

/* The web server has nothing to say here but that it wants no more. False: the stream is over. */
static bool hear(struct streams *s, struct stream *st)
{
	uint8_t p[HEADER + 255];
	ssize_t n = recv(st->fd, p, sizeof p, MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n > 0 && n < HEADER)
		return true; /* more will come, and wake again */
	bool wish = n >= HEADER && p[0] == 1 && p[1] == ABORT_REQUEST && (p[2] << 8 | p[3]) == st->request &&
		    (p[4] | p[5]) == 0;
	if (wish && n < HEADER + p[6])
		return true;
	/* In the middle of a record there is no end but the connection's. */
	if (!wish || st->sent > 0 || recv(st->fd, p, (size_t)HEADER + p[6], MSG_DONTWAIT) < 0) {
		stream_close(s, st, false);
		return false;
	}
	if (st->chunk != NULL)
		chunk_drop(s, st->chunk);
	st->chunk = NULL;
	stream_end(s, st);
	return false;
}

void stream_ready(struct streams *s, struct stream *st, uint32_t events)
{
	if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
		stream_close(s, st, false);
		return;
	}
	if ((events & EPOLLIN) != 0 && !hear(s, st))
		return;
	if ((events & EPOLLOUT) != 0 && left(st) > 0 && write_on(s, st) && st->chunk == NULL)
		stream_kick(s, st);
}
