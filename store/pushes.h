/*
 * Which questions are pushed, to whom, and what becomes of a push. A question that waits for a person is pushed once to
 * each device of its tenant that has push, as far as the budget goes (store/push_budget.h); its card waits in any case.
 * When it is over, what was sent is retracted, and what was not never is. All of it within the transaction that asks or
 * decides.
 */
#ifndef STORE_PUSHES_H
#define STORE_PUSHES_H
#include "gen/store_msg.h"
#include "store/t_push.h"

enum { PUSH_LENT_MS = 60000, PUSH_OUT_TENANT = 4, PUSH_FAILURES = 5, PUSH_ROWS = 256 /* of a device */ };

/* A new question waits. */
void push_asked(struct txn *t, const char *tenant, const char *run, const char *request, const struct rec_approval *q);
/* It does so no more. */
void push_over(struct txn *t, const char *tenant, const char *run, const char *request);
/* This device is gone, or gives push up. False: it had none. */
bool push_gone(struct txn *t, const char *tenant, const char *token_id);

/* When is this device to be served next? */
uint64_t push_when(struct txn *t, const char *tenant, const char *token_id, const struct rec_push_subscription *s);
/* push_send.c: what is to be sent next, signed by the one of this public key; lends it. */
void push_next(struct txn *t, struct wire_bytes key, struct st_push_is *a);
/* What became of it. */
enum err push_done(struct txn *t, const struct st_push_done *m);
#endif
