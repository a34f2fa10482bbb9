/*
 * What each tenant used lately, against the quotas of its configuration: runs created within an hour, model requests
 * and tokens within 24 hours; and calls of a run within a minute. Kept in the store, changed in the transaction that
 * uses something, and told by the clock of store/push_clock.h: neither a restart nor a step of the wall clock gives
 * anything back, nor does a deletion. Windows slide by pieces of a minute (an hour's) and of half an hour (a day's):
 * what was used counts until the whole of its piece is out of the window, so never less is counted than there was.
 */
#ifndef STORE_SPENT_H
#define STORE_SPENT_H
#include "gen/records.h"
#include "store/txn.h"

enum { SPENT_ENTRY = 16, SPENT_MINUTE = 32 * SPENT_ENTRY };
enum spent { SPENT_RUNS, SPENT_REQUESTS, SPENT_TOKENS, SPENT__COUNT };
/* One run of so many bytes more? ERR_OK or why not, with t->retry_after. */
enum err quota_run(struct txn *t, const char *tenant, uint64_t bytes);
/* So many bytes more that are stored? Likewise. */
enum err quota_stored(struct txn *t, const char *tenant, uint64_t bytes);
/* One model request more, which may cost so many tokens? */
enum err quota_call(struct txn *t, const char *tenant, uint64_t tokens);
/* How many tokens one run of this agent may use; 0: no limit. */
uint64_t quota_run_tokens(const struct txn *t, const char *tenant, const char *agent);
/* When its piece began: what spent_settle wants to be told. 0: nothing was added. */
uint64_t spent_add(struct txn *t, const char *tenant, enum spent what, uint64_t n);
/* n in place of what was reserved at that moment; one of which nothing counts any more is counted as of now. */
void spent_settle(struct txn *t, const char *tenant, enum spent what, uint64_t at, uint64_t reserved, uint64_t n);
/* One model request more of a run, within a minute (most 0: always)? Counts it in cap, whose bytes are then these. */
enum err quota_minute(struct txn *t, uint64_t most, struct rec_capability *cap, uint8_t bytes[SPENT_MINUTE]);
/* How much counts now. */
uint64_t spent_now(struct txn *t, const char *tenant, enum spent what);

/* For a restore: each piece that counts, told by its age in milliseconds; and taken over, in place of what there is. */
typedef void spent_piece(void *with, const char *tenant, const char *what, uint64_t age, uint64_t n);
void spent_each(struct txn *t, spent_piece *piece, void *with);
void spent_drop(struct txn *t);
/* The pieces of one tenant and kind come one after the other, oldest first. */
void spent_put(struct txn *t, const char *tenant, const char *what, uint64_t age, uint64_t n);
/* Can its record be read? */
bool spent_sound(struct wire_bytes value);
#endif
