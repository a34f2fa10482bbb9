/*
 * What tests do to wait: for a condition, never for time to pass. PATIENCE_MS is for what must come: a sanitized build
 * on a machine with other work to do may be a hundred times slower than a plain one that is alone, and whoever passes
 * does not wait so long. What must not come is looked for after something else that can only come later.
 */
#ifndef TESTS_PATIENCE_H
#define TESTS_PATIENCE_H
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_MS = 120000, PATIENCE_PAUSE_MS = 5 };

/* By the machine's own timer: some tests turn that of their program. */
static inline uint64_t patience_now(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Pauses; false: it has been waited for long enough. */
static inline bool patience_until(uint64_t end)
{
	const struct timespec pause = {.tv_nsec = PATIENCE_PAUSE_MS * 1000000L};
	(void)nanosleep(&pause, NULL);
	return patience_now() < end;
}

/* Waits until the condition holds, and is whether it does. */
#define WAIT_FOR(condition)                                             \
	({                                                              \
		const uint64_t end_ = patience_now() + PATIENCE_MS;     \
		bool holds_;                                            \
		while (!(holds_ = (condition)) && patience_until(end_)) \
			;                                               \
		holds_;                                                 \
	})

/* The same for who must look again at once: pauses of so many microseconds. */
#define WAIT_CLOSELY(us, condition)                                      \
	({                                                               \
		const uint64_t end_ = patience_now() + PATIENCE_MS;      \
		bool holds_;                                             \
		while (!(holds_ = (condition)) && patience_now() < end_) \
			(void)usleep(us);                                \
		holds_;                                                  \
	})
#endif
