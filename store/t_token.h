/*
 * Principals' tokens, by the public id inside them; only hashes of the secrets. A token has one secret, and while it is
 * rotated a second, NEXT, beside it. Each has its own end.
 */
#ifndef STORE_T_TOKEN_H
#define STORE_T_TOKEN_H
#include "gen/records.h"
#include "store/txn.h"
bool token_get(struct txn *t, const char *token_id, struct rec_token *out);
/* Is it a valid API token of this tenant? True also for an empty id: who asks has asked PRINCIPAL before. */
bool token_vouched(struct txn *t, const char *token_id, struct wire_bytes hash, const char *tenant);
/* What a presented secret is worth: ERR_OK, ERR_UNAUTHORIZED or ERR_DEVICE_EXPIRED. Both secrets are compared. */
enum err token_proof(const struct rec_token *r, struct wire_bytes hash, uint64_t now);
/* Is it not revoked, and one of its secrets not expired? */
bool token_alive(const struct rec_token *r, uint64_t now);
/* Of the record in memory: NEXT is gone; NEXT has taken the first one's place. */
void token_next_drop(struct rec_token *r);
void token_promote(struct rec_token *r);
/* Takes the first secret away, NEXT, or both: NEXT takes the first one's place, and without any the token is revoked.
 * False: nothing, for there was nothing to lose. */
bool token_lose(struct rec_token *r, bool first, bool second, uint64_t now);
/* Takes away what had expired at a moment, so that no clock brings it back: a secret, or the whole. False: nothing. */
bool token_settle(struct rec_token *r, uint64_t at, uint64_t now);
void token_put(struct txn *t, const char *token_id, const struct rec_token *r);
/* Every token of every tenant; the callee picks. False from row ends it. */
typedef bool token_row(void *with, const char *token_id, const struct rec_token *r);
void token_each(struct txn *t, token_row *row, void *with);
/* A device that is neither revoked nor expired? */
bool token_is_device(const struct rec_token *r, uint64_t now);
/* The tenant's device of that label. id: STORE_ID bytes, may be NULL. */
bool token_device(struct txn *t, const char *tenant, const char *label, char *id, struct rec_token *out);
#endif
