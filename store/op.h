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

/*
 * name and the answer's name as in store.msg in lower case; takes and gives are their numbers of descriptors.
 * An operation that met a full disk is done once more when the ballast was given up for it: the end of a
 * run must not fail for want of the space that was kept for it.
 */
#define ST_OP(name, reply, takes, gives)                                                               \
	void st_on_##name(struct st_from *from, uint64_t op, const struct st_##name *m, int *fds)      \
	{                                                                                              \
		struct store *store = from->server->store;                                             \
		struct st_##reply a;                                                                   \
		int out[WIRE_MAX_FDS] = {-1, -1, -1, -1};                                              \
		struct txn t;                                                                          \
		enum err e;                                                                            \
		for (bool again = false;; again = true) {                                              \
			memset(&a, 0, sizeof a);                                                       \
			txn_init(&t, store, from->server->page);                                       \
			e = txn_end(&t, op_##name(&t, m, fds, &a, out));                               \
			if (e != ERR_STORAGE_FULL || again || !store_gave_way(store))                  \
				break;                                                                 \
			chan_close_fds(out, WIRE_MAX_FDS);                                             \
			txn_free(&t);                                                                  \
		}                                                                                      \
		chan_close_fds(fds, takes);                                                            \
		size_t n = e == ERR_OK ? st_put_##reply(from->server->frame, ST_MAXFRAME, op, &a) : 0; \
		op_done(from, op, &t, e, n, out, gives);                                               \
	}
#endif
