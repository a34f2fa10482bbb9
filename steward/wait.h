/*
 * Waiting for a person (D-50): the run's wall time stands still, and its agent is frozen unless a model answers. What
 * waits is the store's to say; how long it may, this process measures by its own timer.
 */
#ifndef STEWARD_WAIT_H
#define STEWARD_WAIT_H
#include "steward/app.h"

/* Before the run begins: how long it may wait in all, in milliseconds, by its limits.approvalWaitSeconds. */
uint64_t wait_most(uint32_t approval_wait_seconds);
/* The store says that something of it changed: this is the phase that it has there. */
void wait_heard(struct run *r, uint8_t phase);
/* It waits no longer, whatever the store says: the clock goes on and the agent with it. */
void wait_end(struct app *app, struct run *r);
/* Its box is no more, or is being killed: nothing is said to it. */
void wait_forget(struct run *r);
/* Does what is due. */
void wait_tick(struct app *app, struct run *r, uint64_t now);
/* When it wants wait_tick next; 0: never. */
uint64_t wait_due(const struct run *r);
#endif
