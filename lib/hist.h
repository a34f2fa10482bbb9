/* How long things take, counted by bounds that are the same for all of them. Prometheus' histograms, without its text.
 */
#ifndef LIB_HIST_H
#define LIB_HIST_H
#include <stdint.h>

enum { HIST_BOUNDS = 12 };

struct hist {
	uint64_t n[HIST_BOUNDS + 1]; /* up to each bound and above the one before; the last: above all */
	uint64_t sum_us;
};
/* Microseconds, growing. */
extern const uint64_t hist_bounds[HIST_BOUNDS];
void hist_add(struct hist *h, uint64_t us);
void hist_merge(struct hist *to, const struct hist *adds);
#endif
