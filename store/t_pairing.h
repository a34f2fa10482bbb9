/* The codes by which devices are paired, one a tenant; only hashes of them. */
#ifndef STORE_T_PAIRING_H
#define STORE_T_PAIRING_H
#include "gen/records.h"
#include "store/txn.h"
bool pairing_get(struct txn *t, const char *tenant, struct rec_pairing *out);
void pairing_put(struct txn *t, const char *tenant, const struct rec_pairing *r);
void pairing_del(struct txn *t, const char *tenant);
/* All there are: none may be used any more. */
void pairings_drop(struct txn *t);
/* Every tenant's. False from row ends it. */
typedef bool pairing_row(void *with, const char *tenant, const struct rec_pairing *r);
void pairing_each(struct txn *t, pairing_row *row, void *with);
#endif
