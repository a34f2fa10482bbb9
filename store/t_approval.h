/* An agent's questions and their answers, and what was allowed for the rest of its run. */
#ifndef STORE_T_APPROVAL_H
#define STORE_T_APPROVAL_H
#include "gen/records.h"
#include "store/txn.h"
bool approval_get(struct txn *t, const char *tenant, const char *run, const char *request, struct rec_approval *out);
/* Writes it, and keeps the index of those that wait in step. */
void approval_put(struct txn *t, const char *tenant, const char *run, const char *request,
		  const struct rec_approval *r);
/* The one that waits whose time is over first, and when that is; request: STORE_ID bytes, "" where none waits. */
uint64_t approval_pending(struct txn *t, const char *tenant, const char *run, char *request);
/* A run's, in the order of their ids, strictly behind after ("": from the first). False from row ends it. */
typedef bool approval_row(void *with, const char *request, const struct rec_approval *r);
void approval_each(struct txn *t, const char *tenant, const char *run, const char *after, approval_row *row,
		   void *with);
/* Is what has this digest (32 bytes) allowed for the rest of the run? */
bool grant_has(struct txn *t, const char *tenant, const char *run, struct wire_bytes digest);
void grant_put(struct txn *t, const char *tenant, const char *run, struct wire_bytes digest, const char *request);
/* Was it this question that allowed it? */
bool grant_of(struct txn *t, const char *tenant, const char *run, struct wire_bytes digest, const char *request);
void grant_del(struct txn *t, const char *tenant, const char *run, struct wire_bytes digest);
/* Those of a tenant that wait, oldest first, strictly behind (asked, run, request); asked 0: from the oldest. False
 * from row ends it. */
typedef bool waiting_row(void *with, uint64_t asked, const char *run, const char *request, uint64_t expires_at);
void waiting_each(struct txn *t, const char *tenant, uint64_t asked, const char *run, const char *request,
		  waiting_row *row, void *with);
/* Where the index has a question that was asked then. */
struct key waiting_key(const char *tenant, uint64_t asked, const char *run, const char *request);
/* All of a run's questions and grants. */
void approvals_del(struct txn *t, const char *tenant, const char *run);
#endif
