/*
 * How an operation is written: a function of the transaction, the question and the answer. ST_OP makes
 * the st_on_* function that the generated dispatcher calls: transaction around it, descriptors released
 * whatever happens, wake-up and answer queued only when it committed.
 */
#ifndef STORE_OP_H
#define STORE_OP_H
#include "lib/chan.h"
#include "store/server.h"
#include <string.h>

/* Ends one operation: e is what txn_end said, n the encoded answer's length. Frees the transaction. */
void op_done(struct st_from *from, uint64_t op, struct txn *t, enum err e, size_t n, int *fds, int nfds);

/* name and the answer's name as in store.msg in lower case; takes and gives are their numbers of descriptors. */
#define ST_OP(name, reply, takes, gives)                                                               \
	void st_on_##name(struct st_from *from, uint64_t op, const struct st_##name *m, int *fds)      \
	{                                                                                              \
		struct st_##reply a;                                                                   \
		int out[WIRE_MAX_FDS] = {-1, -1, -1, -1};                                              \
		struct txn t;                                                                          \
		memset(&a, 0, sizeof a);                                                               \
		txn_init(&t, from->server->store, from->server->page);                                 \
		enum err e = txn_end(&t, op_##name(&t, m, fds, &a, out));                              \
		chan_close_fds(fds, takes);                                                            \
		size_t n = e == ERR_OK ? st_put_##reply(from->server->frame, ST_MAXFRAME, op, &a) : 0; \
		op_done(from, op, &t, e, n, out, gives);                                               \
	}
#endif
