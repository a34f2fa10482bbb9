/* Keeps memory true to the store: what is wanted now, and what was going on before this process. */
#ifndef STEWARD_SWEEP_H
#define STEWARD_SWEEP_H
#include "steward/app.h"

/* Subscribes (again) and reads all open runs, when it is time to. */
void sweep(struct app *app, uint64_t now);
/* Takes what the subscription has to say. */
void sweep_heard(struct app *app);
/* When sweep has something to do next. */
uint64_t sweep_due(const struct app *app);
#endif
