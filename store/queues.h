/*
 * How many runs of each tenant are queued, and how many bytes its sources and artifacts have: counted once at start,
 * then kept by committed transactions, so that a creation need not count them. A blob that two runs name counts twice:
 * what one tenant may store does not depend on what others do.
 */
#ifndef STORE_QUEUES_H
#define STORE_QUEUES_H
#include "store/txn.h"

struct queues {
	struct tenant_queue *v;
	size_t n;
};

/* Counts. Ends the program when there is no memory. */
void queues_open(struct queues *q, struct txn *t);
void queues_free(struct queues *q);
/* Ends the program when there is no memory: what is committed must be counted. */
void queues_add(struct queues *q, const char *tenant, int64_t queued, int64_t stored);
uint64_t queues_of(const struct queues *q, const char *tenant);
uint64_t queues_stored(const struct queues *q, const char *tenant);
#endif
