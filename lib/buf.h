/*
 * A growing byte buffer. The first failure (memory, cap) is latched with its reason: check buf_failed once, at the end.
 * Contents are wiped when freed or grown, so that a buffer may hold a secret.
 */
#ifndef LIB_BUF_H
#define LIB_BUF_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	uint8_t *p;
	size_t n, room, cap; /* cap: most bytes it may ever hold */
	int why;             /* errno of the first failure; 0: none */
};

void buf_init(struct buf *b, size_t cap);
void buf_free(struct buf *b);
void buf_reset(struct buf *b);
/* True: errno is that of the first failure again, whatever came after it. EOVERFLOW is the cap. */
bool buf_failed(const struct buf *b);
/* Latches a failure of what was to be added; a reason that is there already stays. */
void buf_fail(struct buf *b, int why);
/* Makes room for n more bytes, which then need no memory. False: latched, as everything. */
bool buf_room(struct buf *b, size_t n);
void buf_add(struct buf *b, const void *p, size_t n);
void buf_adds(struct buf *b, const char *s);
void buf_addc(struct buf *b, char c);
void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The contents as a C string (a NUL is added behind them); NULL after a failure. */
const char *buf_cstr(struct buf *b);
#define own_buf __attribute__((cleanup(buf_free)))

/* A bag of small allocations that end together; memory comes zeroed. NULL when memory or cap is out. */
struct arena {
	struct arena_block *head;
	size_t used, cap;
};
void arena_init(struct arena *a, size_t cap);
void arena_free(struct arena *a);
void *arena_get(struct arena *a, size_t n);
char *arena_dup(struct arena *a, const char *s, size_t n); /* adds a NUL */
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define own_arena __attribute__((cleanup(arena_free)))
#endif
