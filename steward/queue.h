/*
 * Runs that wait for a slot. Fair across tenants: each free slot goes to the next tenant in turn that has
 * something to start and is below its own limit; within a tenant whoever has waited longest goes first.
 * Waiting is measured by the timer: nobody is let in or thrown out because the wall clock was set.
 */
#ifndef STEWARD_QUEUE_H
#define STEWARD_QUEUE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { QUEUE_MAX = 20000 }; /* what does not fit is found again by the next sweep */

struct waiting {
	char tenant[129], run[129];
	int64_t since; /* timer_ms; before the machine's start it is negative */
	/* A start that was asked for and not answered: with this expiry, at this timer_ms. */
	uint64_t expires_at, asked_at;
};

struct queue {
	struct waiting *v;
	/* Of v's tenant and run, and of its tenant alone: a long queue is looked through often. */
	uint64_t *hash, *tenant;
	size_t n, room;
	char last[129]; /* the tenant served last */
};

void queue_free(struct queue *q);
/* Nothing happens if it is there already, or if there is no room. */
void queue_add(struct queue *q, const char *tenant, const char *run, int64_t since);
/* What was taken out and not started; it goes before those of its tenant that came later. */
void queue_put_back(struct queue *q, const struct waiting *w);
/* When the start of one that is there was asked for; 0: it was not. */
uint64_t queue_asked(const struct queue *q, const char *tenant, const char *run);
bool queue_remove(struct queue *q, const char *tenant, const char *run);
/* Takes out the next to start. may tells whether a tenant may start one more now. */
bool queue_take(struct queue *q, bool (*may)(void *arg, const char *tenant), void *arg, struct waiting *out);
/* Takes out one that has waited since before the given moment and whose start was not asked for. */
bool queue_take_older(struct queue *q, int64_t before, struct waiting *out);
#endif
