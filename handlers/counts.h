/* What the public side counts of its answers, told to stored (FIGURES) and shown by METRICS. For several threads. */
#ifndef HANDLERS_COUNTS_H
#define HANDLERS_COUNTS_H
#include "gen/errors.h"
#include "lib/wire.h"
#include <stdbool.h>
#include <stdint.h>

struct app;
struct ask;
struct counts;
struct reply;

/* NULL: no memory. */
struct counts *counts_new(void);
/* A request was answered, or its caller is gone. */
void counts_answered(struct counts *c, const struct reply *rp);
/* Refused for who asks, or for how: worth a line in the audit log. */
bool counts_denial(enum err e);
enum { COUNTS_BYTES = 48000 };
/* All of it, and the streams' figures, as FIGURES wants it: at most COUNTS_BYTES at p. */
struct wire_bytes counts_put(const struct app *app, uint8_t *p);
/* Tells stored, in memory of its own. */
enum err counts_tell(const struct app *app, struct ask *ask);
#endif
