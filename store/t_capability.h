/* Run capabilities: what a run may still ask a model. */
#ifndef STORE_T_CAPABILITY_H
#define STORE_T_CAPABILITY_H
#include "gen/records.h"
#include "store/txn.h"
bool capability_get(struct txn *t, const char *tenant, const char *run, struct rec_capability *out);
void capability_put(struct txn *t, const char *tenant, const char *run, const struct rec_capability *r);
void capability_del(struct txn *t, const char *tenant, const char *run); /* absent is fine */
#endif
