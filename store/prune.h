/*
 * Retention: what is older than its setting goes, in small transactions between those of callers. Nothing goes within
 * a day after the clock made a leap, so that a clock that is wrong for an hour does not empty the store.
 */
#ifndef STORE_PRUNE_H
#define STORE_PRUNE_H
#include "store/txn.h"
#include <stdbool.h>
#include <stdint.h>

/* Milliseconds; 0: for ever. */
struct keep {
	uint64_t artifacts, runs, tokens;
};

struct pruned {
	uint32_t artifacts, runs, keys, tokens; /* artifacts: runs that lost theirs */
};

struct prune {
	struct keep keep;
	uint64_t due;          /* timer_ms of the next step */
	bool keys_done;        /* in this round */
	char tenant[STORE_ID]; /* whose idempotency keys were looked at last */
	char token[STORE_ID];  /* where the round through the tokens stands */
};

void prune_init(struct prune *p, const struct keep *keep);
/* Another setting; where it stands stays. */
void prune_keep(struct prune *p, const struct keep *keep);
/* One step in this transaction; true: there may be more. out gets what this step took, in addition. */
bool prune_step(struct prune *p, struct txn *t, struct pruned *out);
/* Between batches: a step when it is time. Returns the milliseconds until the next. */
int prune_turn(struct prune *p, struct store *s);
#endif
