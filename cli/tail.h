/* A run's events as they come, each once and in their order, whatever is cut meanwhile. */
#ifndef CLI_TAIL_H
#define CLI_TAIL_H
#include "cli/cli.h"

struct tail;
/* One event: its line, and the same parsed. Both are gone when it returns. */
typedef void tail_take(void *user, const char *line, size_t n, const struct json *event);
enum tail_state { TAIL_GOES_ON, TAIL_ENDED, TAIL_FAILED };

/* From the first event on. NULL after saying what is wrong; *status is the exit status then. */
struct tail *tail_open(const struct cli *cli, const char *run, tail_take *take, void *user, int *status);
/*
 * Takes what has come, and waits for more: for ms at most, less for whatever reason, until fd (-1: none) can be read,
 * which *readable then says. TAIL_ENDED: the last event was taken. TAIL_FAILED: the server does not answer, which was
 * said.
 */
enum tail_state tail_step(struct tail *t, int fd, int ms, bool *readable);
/* The exit status after TAIL_FAILED. */
int tail_status(const struct tail *t);
void tail_free(struct tail *t);
#endif
