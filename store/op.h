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

enum { LIST_MAX = 200 };
/* Of a list that a caller pages through: 0 is as many as may be. */
static inline unsigned list_limit(uint16_t asked)
{
	return asked == 0 || asked > LIST_MAX ? LIST_MAX : asked;
}

/* Adds a struct of store.msg (name in lower case, its most bytes) to an answer's list. False: the list is full. */
#define LIST_PUT(list, name, most, item)                                    \
	({                                                                  \
		uint8_t *p_ = wire_list_room(list, most);                   \
		size_t n_ = p_ == NULL ? 0 : st_put_##name(p_, most, item); \
		if (n_ > 0)                                                 \
			wire_list_add(list, n_);                            \
		n_ > 0;                                                     \
	})

/* Ends one operation: e is what txn_end said, n the encoded answer's length. Frees the transaction. */
void op_done(struct st_from *from, uint64_t op, struct txn *t, enum err e, size_t n, int *fds, int nfds);

/*
 * The caller's last operation again? Then *n is the length of the recorded answer in the server's frame, else
 * 0. An error: this question is older than what its caller asked since.
 */
enum err op_again(struct st_from *from, uint64_t op, struct txn *t, size_t *n);
/* Records the answer of n bytes in the server's frame, in the same transaction. */
void op_keep(struct st_from *from, uint64_t op, struct txn *t, size_t n);

/*
 * name and the answer's name as in store.msg in lower case; takes and gives are their numbers of descriptors.
 * An operation that met a full disk is done once more when the ballast was given up for it: the end of a
 * run must not fail for want of the space that was kept for it.
 */
#define ST_OP_KEPT(name, reply, takes, gives, kept)                                                   \
	void st_on_##name(struct st_from *from, uint64_t op, const struct st_##name *m, int *fds)     \
	{                                                                                             \
		struct store *store = from->server->store;                                            \
		struct st_##reply a;                                                                  \
		int out[WIRE_MAX_FDS] = {-1, -1, -1, -1};                                             \
		struct txn t;                                                                         \
		enum err e;                                                                           \
		size_t n;                                                                             \
		for (bool again = false;; again = true) {                                             \
			memset(&a, 0, sizeof a);                                                      \
			n = 0;                                                                        \
			txn_init(&t, store, from->server->page);                                      \
			e = (kept) ? op_again(from, op, &t, &n) : ERR_OK;                             \
			if (e == ERR_OK && n == 0) {                                                  \
				e = op_##name(&t, m, fds, &a, out);                                   \
				if (e == ERR_OK)                                                      \
					n = st_put_##reply(from->server->frame, ST_MAXFRAME, op, &a); \
				if (e == ERR_OK && (kept))                                            \
					op_keep(from, op, &t, n);                                     \
			}                                                                             \
			e = txn_end(&t, e);                                                           \
			if (e != ERR_STORAGE_FULL || again || !store_gave_way(store))                 \
				break;                                                                \
			chan_close_fds(out, WIRE_MAX_FDS);                                            \
			txn_free(&t);                                                                 \
		}                                                                                     \
		chan_close_fds(fds, takes);                                                           \
		op_done(from, op, &t, e, e == ERR_OK ? n : 0, out, gives);                            \
	}
/* Asked again, it does nothing new by itself and says the same. */
#define ST_OP(name, reply, takes, gives) ST_OP_KEPT(name, reply, takes, gives, false)
/* Asked again, it is not done again: the recorded answer (at most 64 bytes, no descriptor) is given. */
#define ST_OP_ONCE(name, reply) ST_OP_KEPT(name, reply, 0, 0, true)
#endif
