/* What devices did: kept beside the runs, and longer. */
#ifndef STORE_T_RECEIPT_H
#define STORE_T_RECEIPT_H
#include "gen/records.h"
#include "lib/names.h"
#include "store/txn.h"

/* Writes one where actor is a device ("device:ID", as in the audit log); others leave none. request and digest (n 0)
 * may be empty. */
void receipt_add(struct txn *t, const char *tenant, const char *actor, const struct rec_receipt *r);
/* A tenant's, newest first, strictly behind (before, receipt); before 0: from the newest. False from row ends it. */
typedef bool receipt_row(void *with, uint64_t at, const char *receipt, const struct rec_receipt *r);
void receipt_each(struct txn *t, const char *tenant, uint64_t before, const char *receipt, receipt_row *row,
		  void *with);
/* Removes at most so many of a tenant that are from that moment or before; how many. */
unsigned receipts_prune(struct txn *t, const char *tenant, uint64_t until, unsigned most);
#endif
