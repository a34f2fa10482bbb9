/* Ending in order, within 5 s: the steward, the boxes, the gateway and the public side, the store. */
#ifndef SANDBOXD_STOP_H
#define SANDBOXD_STOP_H
#include <stdint.h>

struct app;
void stop_begin(struct app *app);
/* Moves on when a phase is over or its time is up; when to come again (timer_ms, 0: no need). */
uint64_t stop_tick(struct app *app, uint64_t now);
#endif
