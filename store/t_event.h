/*
 * A run's events, dense from 1. event_add numbers and counts in the run's record, which the caller saves.
 */
#ifndef STORE_T_EVENT_H
#define STORE_T_EVENT_H
#include "lib/buf.h"
#include "store/t_run.h"

/* Whose part of the buffer it uses (CONTRACT.md section 5). LAST is the terminal event: always taken. */
enum event_part { EVENT_AGENT, EVENT_CONTROL, EVENT_LAST };

/* False: did not fit (or the transaction failed); nothing was written. data is JSON object text. */
bool event_add(struct txn *t, const char *tenant, const char *run, struct rec_run *r, enum event_part part,
	       const char *type, struct wire_bytes data);
/* The same from a buffer under construction; a failed buffer fails the transaction. */
bool event_addb(struct txn *t, const char *tenant, const char *run, struct rec_run *r, enum event_part part,
		const char *type, const struct buf *data);
/* Writes events.truncated, once a run. */
void event_truncated(struct txn *t, const char *tenant, const char *run, struct rec_run *r);
/* All of a run's, at most the 10,000 that it may have. */
void events_del(struct txn *t, const char *tenant, const char *run);
/* The oldest of them, at most so many; true: there may be more. */
bool events_del_some(struct txn *t, const char *tenant, const char *run, uint64_t most);
/* Would an agent's event of this much data fit? */
bool event_fits(const struct rec_run *r, const char *run, const char *type, size_t data);

typedef bool event_row(void *with, uint64_t sequence, const struct rec_event *r);
/* Sequences above after, in order. */
void event_each(struct txn *t, const char *tenant, const char *run, uint64_t after, event_row *row, void *with);
#endif
