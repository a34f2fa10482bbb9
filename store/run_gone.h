/* What takes a run that has ended out of the store: a caller who deletes it, or retention. */
#ifndef STORE_RUN_GONE_H
#define STORE_RUN_GONE_H
#include "store/t_run.h"

/* The names by which a run uses its blobs. */
extern const char run_use_request[], run_use_upload[];

/*
 * Everything that belongs to it but its idempotency key: a creation that is repeated late must not run twice because
 * its run was deleted meanwhile. The transaction gets its audit line; by and request_id must live until its end.
 */
void run_remove(struct txn *t, const char *tenant, const char *run, const struct rec_run *r, const char *by,
		const char *request_id);
/* Artifacts and sources alone; state, results and events stay. */
void run_strip(struct txn *t, const char *tenant, const char *run, struct rec_run *r);
#endif
