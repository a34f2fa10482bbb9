/*
 * Growing buffers and arenas. Bounded by their cap, whoever fills them; never hands out memory beyond it.
 */
#include "lib/buf.h"
#include "lib/secret.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_init(struct buf *b, size_t cap)
{
	*b = (struct buf){.cap = cap};
}

void buf_free(struct buf *b)
{
	if (b->p != NULL) {
		wipe(b->p, b->room);
		free(b->p);
	}
	*b = (struct buf){.cap = b->cap};
}

void buf_reset(struct buf *b)
{
	if (b->p != NULL)
		wipe(b->p, b->n);
	b->n = 0;
	b->why = 0;
}

bool buf_failed(const struct buf *b)
{
	if (b->why != 0)
		errno = b->why;
	return b->why != 0;
}

void buf_fail(struct buf *b, int why)
{
	if (b->why == 0)
		b->why = why;
}

/* And a NUL behind them. */
bool buf_room(struct buf *b, size_t n)
{
	if (b->why != 0)
		return false;
	if (n > b->cap - b->n) {
		buf_fail(b, EOVERFLOW); /* the caller's bound, and no want of memory */
		return false;
	}
	size_t need = b->n + n + 1;
	if (need <= b->room)
		return true;
	size_t room = b->room < 256 ? 256 : b->room;
	while (room < need)
		room = room > SIZE_MAX / 2 ? need : room * 2;
	if (room - 1 > b->cap)
		room = b->cap + 1;
	/* Not realloc: the old copy must be wiped. */
	uint8_t *p = malloc(room);
	if (p == NULL) {
		buf_fail(b, ENOMEM);
		return false;
	}
	if (b->p != NULL) {
		memcpy(p, b->p, b->n);
		wipe(b->p, b->room);
		free(b->p);
	}
	b->p = p;
	b->room = room;
	return true;
}

void buf_add(struct buf *b, const void *p, size_t n)
{
	if (!buf_room(b, n) || n == 0)
		return;
	memcpy(b->p + b->n, p, n);
	b->n += n;
}

void buf_adds(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_addc(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0) {
		buf_fail(b, errno == 0 ? EINVAL : errno);
		return;
	}
	if (!buf_room(b, (size_t)n))
		return;
	va_start(ap, fmt);
	vsnprintf((char *)b->p + b->n, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->n += (size_t)n;
}

const char *buf_cstr(struct buf *b)
{
	if (!buf_room(b, 0))
		return NULL;
	b->p[b->n] = 0;
	return (const char *)b->p;
}

struct arena_block {
	struct arena_block *next;
	size_t at, room;
	_Alignas(16) uint8_t bytes[];
};

enum { ARENA_ALIGN = 16, ARENA_BLOCK = 8192 - sizeof(struct arena_block), ARENA_BLOCK_MAX = 256 * 1024 };

void arena_init(struct arena *a, size_t cap)
{
	*a = (struct arena){.cap = cap};
}

void arena_free(struct arena *a)
{
	for (struct arena_block *b = a->head; b != NULL;) {
		struct arena_block *next = b->next;
		free(b);
		b = next;
	}
	*a = (struct arena){.cap = a->cap};
}

void *arena_get(struct arena *a, size_t n)
{
	size_t whole = n == 0 ? ARENA_ALIGN : (n / ARENA_ALIGN + (n % ARENA_ALIGN != 0)) * ARENA_ALIGN;
	if (n > SIZE_MAX / 2 || a->used > a->cap || whole > a->cap - a->used) {
		errno = EOVERFLOW;
		return NULL;
	}
	n = whole;
	struct arena_block *b = a->head;
	if (b == NULL || n > b->room - b->at) {
		size_t room = b == NULL ? ARENA_BLOCK : b->room * 2;
		if (room > ARENA_BLOCK_MAX)
			room = ARENA_BLOCK_MAX;
		if (room < n)
			room = n;
		b = calloc(1, sizeof *b + room);
		if (b == NULL)
			return NULL;
		b->room = room;
		b->next = a->head;
		a->head = b;
	}
	void *p = b->bytes + b->at;
	b->at += n;
	a->used += n;
	return p;
}

char *arena_dup(struct arena *a, const char *s, size_t n)
{
	if (n > SIZE_MAX / 4)
		return NULL;
	char *p = arena_get(a, n + 1);
	if (p != NULL && n > 0)
		memcpy(p, s, n);
	return p;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return NULL;
	char *p = arena_get(a, (size_t)n + 1);
	if (p == NULL)
		return NULL;
	va_start(ap, fmt);
	vsnprintf(p, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return p;
}
