/* What stored counts: gathered in memory by committed transactions, shown by METRICS. */
#ifndef STORE_FIGURES_H
#define STORE_FIGURES_H
#include "gen/run_fsm.h"
#include <stdint.h>

struct figures {
	/* There are now; a transaction may add less than 0: */
	int64_t runs[RUN_STATE__COUNT], keys, subscriptions;
	/* Since the start: */
	uint64_t created, deleted, events, truncated, consumed, tokens;
	uint64_t pushes_sent, pushes_failed, pushes_held, pushes_evicted;
};
void figures_add(struct figures *to, const struct figures *adds);
#endif
