/* A bound on how often something may be said: a few at once, then one now and again; the rest is counted. */
#ifndef LIB_PACE_H
#define LIB_PACE_H
#include <stdbool.h>
#include <stdint.h>

enum { PACE_BURST = 10, PACE_EVERY_MS = 5000 };

struct pace {
	uint64_t since; /* timer_ms of the last refill; 0: never used */
	unsigned left;
	uint32_t held; /* not said since the last one that was */
};

/* True: say it, and that *suppressed others were not said before it. now: timer_ms(). Not for several threads. */
bool pace_take(struct pace *p, uint64_t now, uint32_t *suppressed);
#endif
