/* See lines.h. What is in a line is not looked at. */
#include "bridge/lines.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEP = 65536 };

void lines_init(struct lines *l, int fd)
{
	*l = (struct lines){.fd = fd};
}

void lines_free(struct lines *l)
{
	free(l->p);
	*l = (struct lines){.fd = -1, .over = true};
}

static void forget_taken(struct lines *l)
{
	if (l->taken == 0)
		return;
	memmove(l->p, l->p + l->taken, l->n - l->taken);
	l->n -= l->taken;
	l->taken = 0;
}

bool lines_fill(struct lines *l)
{
	forget_taken(l);
	if (l->n > LINE_MAX_BYTES) { /* of one line, and more comes */
		l->skipped += !l->skipping;
		l->skipping = true;
		l->n = 0;
	}
	if (l->room < l->n + STEP + 1) {
		size_t room = l->room == 0 ? 2 * STEP : 2 * l->room;
		char *p = realloc(l->p, room);
		if (p == NULL)
			return false;
		l->p = p;
		l->room = room;
	}
	ssize_t got = read(l->fd, l->p + l->n, STEP);
	if (got < 0)
		return errno == EINTR || errno == EAGAIN;
	l->over = got == 0;
	l->n += (size_t)got;
	return true;
}

char *lines_next(struct lines *l, size_t *n)
{
	while (l->taken < l->n) {
		char *line = l->p + l->taken, *end = memchr(line, '\n', l->n - l->taken);
		if (end == NULL && !l->over)
			return NULL;
		*n = end != NULL ? (size_t)(end - line) : l->n - l->taken;
		l->taken += *n + (end != NULL);
		line[*n] = '\0'; /* fill keeps a byte of room behind the last one */
		if (l->skipping || *n > LINE_MAX_BYTES) {
			l->skipped += !l->skipping;
			l->skipping = false;
			continue;
		}
		return line;
	}
	return NULL;
}
