/*
 * Runs that wait for a slot. Fair across tenants: each free slot goes to the next tenant in turn that has
 * something to start and is below its own limit; within a tenant the oldest goes first.
 */
#ifndef STEWARD_QUEUE_H
#define STEWARD_QUEUE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { QUEUE_MAX = 20000 }; /* what does not fit is found again by the next sweep */

struct waiting {
	char tenant[129], run[129];
	uint64_t created_at; /* ms since the epoch */
};

struct queue {
	struct waiting *v;
	size_t n, room;
	char last[129]; /* the tenant served last */
};

void queue_free(struct queue *q);
/* Nothing happens if it is there already, or if there is no room. */
void queue_add(struct queue *q, const char *tenant, const char *run, uint64_t created_at);
bool queue_remove(struct queue *q, const char *tenant, const char *run);
/* Takes out the next to start. may tells whether a tenant may start one more now. */
bool queue_take(struct queue *q, bool (*may)(void *arg, const char *tenant), void *arg, struct waiting *out);
/* Takes out one that was created before the given moment. */
bool queue_take_older(struct queue *q, uint64_t created_before, struct waiting *out);
#endif
