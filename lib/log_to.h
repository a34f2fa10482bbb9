/*
 * Where a daemon's log lines go (log_to of pinfold.conf), and how many of the same: a line that comes again and again
 * is counted, and told once a minute.
 */
#ifndef LIB_LOG_TO_H
#define LIB_LOG_TO_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/die.h"

/* From here on this process writes there; path: of the socket, empty: the usual one. Call it before the process is
 * confined and while there is one thread. Where nobody listens, a line goes to standard error. */
void log_to(enum log_to where, const char *path);

/* A minute: so many of the same line, so many of one kind that warn. */
enum { LOG_MINUTE_MS = 60000, LOG_SAME = 10, LOG_ALIKE = 200, LOG_ROWS = 64, LOG_TOLD = 240 };
struct log_rows {
	struct log_row {
		uint64_t key, since; /* since: timer_ms of the first one; key 0: free */
		uint32_t said, kept;
		char text[LOG_TOLD + 1]; /* of the last kept one, from its level on */
	} row[LOG_ROWS];
};
/* May this line be written now? If not, it is counted. now: timer_ms. */
bool log_may(struct log_rows *r, uint64_t now, const char *kind, const char *line, size_t n);
/* A line about some that were kept back, whose minute is over, or whatever of them (all). Returns its length; 0: none.
 */
size_t log_due(struct log_rows *r, uint64_t now, bool all, char out[LOG_TOLD + 64]);
#endif
