/* Idempotency keys of POST /v1/runs: under which key which run was made, for 24 hours. */
#ifndef STORE_T_IDEMPOTENCY_H
#define STORE_T_IDEMPOTENCY_H
#include "gen/records.h"
#include "store/txn.h"
/* False: no such key, or it has expired. */
bool idempotency_get(struct txn *t, const char *tenant, const char *key, struct rec_idempotency *out);
/* Writes it, in place of an expired one. */
void idempotency_put(struct txn *t, const char *tenant, const char *key, const struct rec_idempotency *r);
/* Removes some of the tenant's expired keys, the oldest first: more than a creation adds, and few. */
void idempotency_prune(struct txn *t, const char *tenant);
#endif
