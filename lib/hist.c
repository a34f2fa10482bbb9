/* See hist.h. From a flush of the disk to an hour in the queue. */
#include "lib/hist.h"

#define SECOND UINT64_C(1000000)
const uint64_t hist_bounds[HIST_BOUNDS] = {250,         1000,         5000,          25000,
					   100000,      500000,       2 * SECOND,    10 * SECOND,
					   60 * SECOND, 300 * SECOND, 1800 * SECOND, 7200 * SECOND};

void hist_add(struct hist *h, uint64_t us)
{
	int i = 0;
	while (i < HIST_BOUNDS && us > hist_bounds[i])
		i++;
	h->n[i]++;
	h->sum_us += us;
}

void hist_merge(struct hist *to, const struct hist *adds)
{
	for (int i = 0; i <= HIST_BOUNDS; i++)
		to->n[i] += adds->n[i];
	to->sum_us += adds->sum_us;
}
