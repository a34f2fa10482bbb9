/*
 * What the files that speak Berkeley DB (env.c, txn.c, clock.c, push_clock.c, care.c) share. Nothing else includes
 * this, and nothing else in the project includes <db.h>.
 */
#ifndef STORE_BDB_H
#define STORE_BDB_H
#include "gen/errors.h"
#include "store/blobs.h"
#include "store/env.h"
#include "store/floor.h"
#include "store/queues.h"
#include "store/t_operation.h"
#include "store/txn.h"
#include <db.h>

enum { STORE_UNUSED = 1024 }; /* what does not fit is swept at the next start */

struct store {
	DB_ENV *env;
	DB *db[T__COUNT];
	int dir, lock;
	struct floor floor;
	struct blobs blobs;
	struct operations operations;
	struct audit *audit;             /* NULL until store_audit */
	bool unflushed;                  /* commits that are not durable yet */
	bool log_grew;                   /* since the last checkpoint */
	bool holding;                    /* the last checkpoint failed: said once */
	bool held;                       /* store_hold: nothing that a backup may need goes */
	uint64_t checkpointed;           /* timer_ms */
	uint64_t checkpoint_at;          /* the same by the clock; 0: not in this life */
	uint64_t now, highest, recorded; /* clock.c */
	uint64_t tick, tick_base;        /* push_clock.c */
	const struct conf *conf;         /* the tenants' quotas; NULL: none are known, as where a store is restored */
	uint32_t push_minute, push_hour; /* of all tenants */
	uint64_t leapt;                  /* timer_ms of the clock's last leap forward; 0: none */
	uint64_t commits, flushes, looked;
	struct figures figures;
	struct hist flush;
	struct queues queues;
	/* Files of blobs that committed transactions stopped naming; removed behind the next flush. */
	uint8_t unused[STORE_UNUSED][32];
	unsigned nunused;
	uint8_t scratch[STORE_SCRATCH]; /* one record being encoded */
};

/* What a failed call means for the operation. Ends the program when the environment is broken. */
enum err bdb_error(struct store *s, int ret, const char *doing);
/* txn.c: removes the unused blobs' files; nothing of theirs may be unflushed. */
void blobs_release(struct store *s);
/* clock.c: reads the highest clock ever acted upon; then, each turn, moves s->now. */
void clock_open(struct store *s);
void clock_turn(struct store *s);
/* Called inside each writing transaction before its commit. */
void clock_record(struct txn *t);
#endif
