/* Principals' tokens, by the public id inside them; only hashes of the secrets. */
#ifndef STORE_T_TOKEN_H
#define STORE_T_TOKEN_H
#include "gen/records.h"
#include "store/txn.h"
bool token_get(struct txn *t, const char *token_id, struct rec_token *out);
/* Is it a valid API token of this tenant? True also for an empty id: who asks has asked PRINCIPAL before. */
bool token_vouched(struct txn *t, const char *token_id, struct wire_bytes hash, const char *tenant);
void token_put(struct txn *t, const char *token_id, const struct rec_token *r);
/* Every token of every tenant; the callee picks. False from row ends it. */
typedef bool token_row(void *with, const char *token_id, const struct rec_token *r);
void token_each(struct txn *t, token_row *row, void *with);
/* A device that is neither revoked nor expired? */
bool token_is_device(const struct rec_token *r, uint64_t now);
/* The tenant's device of that label. id: STORE_ID bytes, may be NULL. */
bool token_device(struct txn *t, const char *tenant, const char *label, char *id, struct rec_token *out);
#endif
