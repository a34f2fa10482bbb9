/*
 * One operation's transaction, and the tables as bytes. Nothing of Berkeley DB shows here.
 * The first failure is latched: t_*.c files read on or write on without checking, txn_end tells.
 * The transaction begins with the first write, so an operation that only reads costs none.
 * Everything read lives in the transaction's arena until txn_free.
 */
#ifndef STORE_TXN_H
#define STORE_TXN_H
#include "gen/errors.h"
#include "lib/buf.h"
#include "lib/wire.h"
#include "store/audit.h"
#include "store/figures.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum table {
	T_TENANT,
	T_TOKEN,
	T_RUN,
	T_RUN_BY_AGE,
	T_RUN_OPEN,
	T_CAPABILITY,
	T_EVENT,
	T_APPROVAL,
	T_ARTIFACT,
	T_BLOB,
	T_BLOB_CONTENT,
	T_BLOB_USE,
	T_IDEMPOTENCY,
	T_IDEMPOTENCY_BY_AGE,
	T_CLOCK,
	T_OPERATION,
	T_RUN_ENDED,
	T_META,
	T_PAIRING,
	T_GRANT,
	T_WAITING,
	T_RECEIPT,
	T_PUSH_SUBSCRIPTION,
	T_PUSH,
	T_PUSH_DUE,
	T_PUSH_BUDGET,
	T_SPENT,
	T_SOURCE,
	T_SOURCE_BY_USE,
	T__COUNT
};
extern const char *const table_names[T__COUNT];
enum { TXN_AUDIT = 16, TXN_UNUSED = 16 };
enum { STORE_SCRATCH = 200000, STORE_KEY = 600, STORE_PAGE = 180000, STORE_ID = 129, OPERATION_ROLES = 4 };

struct store;

/* A run that changed; subscribers hear of it after the flush. */
struct wake {
	bool set;
	bool revoked; /* its capability was taken away */
	bool push;    /* there is something to push about it */
	uint8_t state, phase;
	uint64_t last_sequence;
	char tenant[STORE_ID], run[STORE_ID];
};

struct txn {
	struct store *store;
	void *handle; /* NULL until the first write */
	enum err failed;
	uint64_t now;
	bool early;     /* its answer need not wait for the flush */
	bool kept;      /* it was committed: an operation may end with a refusal all the same */
	int operations; /* rows added, of this role */
	uint8_t operations_of;
	/* What this transaction adds to the figures, if it commits (store/figures.h). */
	struct figures adds;
	/* Blobs that nobody names any more, if it commits. */
	uint8_t unused[TXN_UNUSED][32];
	unsigned nunused;
	/* And to the queue and the stored bytes of this one tenant (store/queues.h). */
	char queue[STORE_ID];
	int64_t queued, stored;
	uint32_t retry_after; /* of a refusal, in seconds; 0: not known */
	struct arena arena;
	struct wake wake;
	struct audit_line audit[TXN_AUDIT]; /* written before the commit, in this order */
	unsigned naudit;
	uint8_t *page; /* STORE_PAGE bytes for an answer's list; shared, so one list an operation */
};

/* A record key under construction: gen/records.h's rec_key_* write into p. */
struct key {
	uint8_t p[STORE_KEY];
	size_t n;
};

void txn_init(struct txn *t, struct store *s, uint8_t *page);
/* Commits when result and every step were ERR_OK, else undoes everything. Returns what to answer. */
enum err txn_end(struct txn *t, enum err result);
/* Releases what was read. The transaction must have ended. */
void txn_free(struct txn *t);
/* Latches e unless something failed before. */
void txn_fail(struct txn *t, enum err e);
/* Names the one tenant whose queue and stored bytes it changes. */
void txn_tenant(struct txn *t, const char *tenant);

/* False: absent, or the transaction has failed. */
bool table_get(struct txn *t, enum table which, const struct key *key, struct wire_bytes *value);
bool table_has(struct txn *t, enum table which, const struct key *key);
void table_put(struct txn *t, enum table which, const struct key *key, const uint8_t *value, size_t n);
/* True: it was there. */
bool table_del(struct txn *t, enum table which, const struct key *key);
/* Has this line written with the transaction; its texts must live until txn_end. */
void txn_audit(struct txn *t, const struct audit_line *line);
/* audit_mark.c: how far the log belongs to what was committed. False: nothing is recorded yet. */
struct audit_mark {
	uint64_t seq, synced;
	uint8_t config[32];
	char hash[65]; /* of line seq; "" where it was written before hashes were kept */
};
bool audit_mark_get(struct txn *t, struct audit_mark *mark);
void audit_mark_put(struct txn *t, const struct audit_mark *mark);
/* Removes every row whose key begins with prefix; the number removed. */
uint64_t table_clear(struct txn *t, enum table which, const struct key *prefix);
/* The same for at most so many rows. */
uint64_t table_clear_some(struct txn *t, enum table which, const struct key *prefix, uint64_t most);
/* A buffer of STORE_SCRATCH bytes to encode one record into, until the next table_put. */
uint8_t *txn_scratch(struct txn *t);

/* One row of a scan; valid during the call. False ends the scan. It may read other tables, write none. */
typedef bool table_row(void *with, struct wire_bytes key, struct wire_bytes value);
/* Rows whose key begins with prefix, from the first key >= from (NULL: from the prefix). */
void table_scan(struct txn *t, enum table which, const struct key *prefix, const struct key *from, table_row *row,
		void *with);
/* The next NUL-ended part of a key. "" when there is none. */
const char *key_part(struct wire_bytes *rest);
uint64_t key_u64(struct wire_bytes *rest);
/* A prefix of one or two NUL-ended parts (b may be NULL). */
struct key key_prefix(const char *a, const char *b);
#endif
