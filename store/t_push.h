/* Subscriptions to Web Push, one a device, and what is to be sent to each; an index says who is served next. */
#ifndef STORE_T_PUSH_H
#define STORE_T_PUSH_H
#include "gen/limits.h"
#include "gen/records.h"
#include "store/txn.h"

/* The devices of one tenant that have push. */
struct push_devices {
	unsigned n;
	char id[LIMIT_PUSH_DEVICES][STORE_ID];
};
void push_devices_of(struct txn *t, const char *tenant, struct push_devices *out);
bool subscription_get(struct txn *t, const char *tenant, const char *token_id, struct rec_push_subscription *out);
/* due: tick at which it is to be served, 0 never; recorded in r and in the index. added: it is a new one. */
void subscription_put(struct txn *t, const char *tenant, const char *token_id, struct rec_push_subscription *r,
		      uint64_t due, bool added);
/* With everything that is to be sent to it. False: it had none. */
bool subscription_del(struct txn *t, const char *tenant, const char *token_id);

bool push_get(struct txn *t, const char *tenant, const char *token_id, const char *run, const char *request,
	      struct rec_push *out);
void push_put(struct txn *t, const char *tenant, const char *token_id, const char *run, const char *request,
	      const struct rec_push *r);
void push_del(struct txn *t, const char *tenant, const char *token_id, const char *run, const char *request);
/* A device's rows. It may write none of them; false from row ends it. */
typedef bool push_row(void *with, const char *run, const char *request, const struct rec_push *r);
void push_each(struct txn *t, const char *tenant, const char *token_id, push_row *row, void *with);

/* The index, from that tick on, earliest first. out: something is lent, until then. */
typedef bool push_due_row(void *with, uint64_t due, const char *tenant, const char *token_id, bool out);
void push_due_each(struct txn *t, uint64_t from, push_due_row *row, void *with);
struct key push_due_key(uint64_t due, const char *tenant, const char *token_id);
/* Everything that is to be sent to anybody. */
void pushes_drop(struct txn *t);
#endif
