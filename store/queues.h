/*
 * How many runs of each tenant are queued: counted once at start, then kept by committed transactions, so that
 * a creation need not count them.
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
void queues_add(struct queues *q, const char *tenant, int64_t n);
uint64_t queues_of(const struct queues *q, const char *tenant);
#endif
