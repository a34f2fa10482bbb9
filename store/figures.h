/* What stored counts: gathered in memory by committed transactions, shown by METRICS. */
#ifndef STORE_FIGURES_H
#define STORE_FIGURES_H
#include "gen/approval_fsm.h"
#include "gen/course_fsm.h"
#include "gen/run_fsm.h"
#include "lib/hist.h"
#include <stdint.h>

struct figures {
	/* There are now; a transaction may add less than 0: */
	int64_t runs[RUN_STATE__COUNT], keys, subscriptions;
	/* Since the start: */
	uint64_t created, deleted, events, truncated, consumed, tokens;
	uint64_t pushes_sent, pushes_failed, pushes_held, pushes_evicted;
	struct hist phases[COURSE_STATE__COUNT],
	    waits[APPROVAL_STATE__COUNT]; /* of phases left, of questions by how they ended */
};
/* Since when something went on until now, both in ms of the same clock; nothing where since is 0 or later. */
void figures_took(struct hist *h, uint64_t since, uint64_t now);
void figures_add(struct figures *to, const struct figures *adds);
#endif
