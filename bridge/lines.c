/* See lines.h. */
#include "bridge/lines.h"
#include "lib/json.h"
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

/* The 16 bits of an escape at p; -1: there is none. */
static long unit(const char *p, size_t n)
{
	char digits[5] = {0};
	char *end;

	if (n < 6 || p[0] != '\\' || p[1] != 'u')
		return -1;
	memcpy(digits, p + 2, 4);
	long v = strtol(digits, &end, 16);
	return end == digits + 4 && digits[0] != '-' && digits[0] != '+' && digits[0] != ' ' ? v : -1;
}

bool line_mend(char *line, size_t n)
{
	bool any = false;

	for (size_t i = 0, at; !utf8_valid(line + i, n - i, &at); i += at + 1) {
		line[i + at] = '?';
		any = true;
	}
	for (size_t i = 0; i < n; i++) {
		if (line[i] != '\\')
			continue;
		long v = unit(line + i, n - i), next = v >= 0 ? unit(line + i + 6, n - i - 6) : -1;
		bool pair = v >= 0xd800 && v < 0xdc00 && next >= 0xdc00 && next < 0xe000;
		if (v == 0 || (v >= 0xd800 && v < 0xe000 && !pair)) {
			memcpy(line + i + 2, "fffd", 4);
			any = true;
		}
		i += pair ? 11 : v >= 0 ? 5 : 1;
	}
	return any;
}
