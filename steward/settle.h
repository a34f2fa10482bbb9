/*
 * The one way out of every run, whatever happened: capability revoked, boxes gone (or known not to be),
 * artifacts stored, terminal state committed last. Each part is tried on its own; none skips the next.
 */
#ifndef STEWARD_SETTLE_H
#define STEWARD_SETTLE_H
#include "steward/app.h"

/* True: the terminal state is committed (or was before). False: the store is away, try again. */
bool settle_try(struct app *app, struct run *r);
#endif
