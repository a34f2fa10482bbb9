/* A bound on how often something may be said: a few at once, then one now and again; the rest is counted. */
#ifndef LIB_PACE_H
#define LIB_PACE_H
#include <stdbool.h>
#include <stdint.h>

/* What is said at once at most, and every how many milliseconds one more. */
struct pace_rate {
	unsigned burst;
	uint32_t every_ms;
};

struct pace {
	uint64_t since; /* timer_ms of the last refill; 0: never used */
	unsigned left;
	uint32_t held; /* not said since the last one that was */
};

/* True: say it, and that *suppressed others were not said before it. now: timer_ms(). Not for several threads. */
bool pace_take(struct pace *p, struct pace_rate rate, uint64_t now, uint32_t *suppressed);
/* For lines of the audit log that somebody outside can cause: of one source, and of all of a role. */
extern const struct pace_rate pace_source, pace_role;
#endif
