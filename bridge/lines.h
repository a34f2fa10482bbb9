/* Lines from a pipe, as they come, each of bounded length. */
#ifndef BRIDGE_LINES_H
#define BRIDGE_LINES_H
#include <stdbool.h>
#include <stddef.h>

enum { LINE_MAX_BYTES = 8 << 20 };

struct lines {
	int fd;
	char *p;
	size_t n, room, taken;
	bool over, skipping; /* the other side closed; what comes belongs to a line that was too long */
	unsigned skipped;    /* lines that were too long, and are left out */
};

void lines_init(struct lines *l, int fd);
void lines_free(struct lines *l);
/* Reads once what is there. False: no memory, or the pipe failed. */
bool lines_fill(struct lines *l);
/* The next whole line, without its end, until the next call of these two; NULL: there is none yet. Behind the last one
 * what had no end counts as a line. */
char *lines_next(struct lines *l, size_t *n);
/* Puts U+FFFD for what our JSON does not take and an agent's writer lets through: the escapes of NUL and of halves of a
 * pair, and "?" for bytes that are no UTF-8. False: nothing was put. */
bool line_mend(char *line, size_t n);
#endif
