/*
 * The store's environment: one directory, one owner, one thread.
 * store_open ends the program with one sentence when the directory cannot be used; afterwards a
 * broken environment (DB_RUNRECOVERY, a flush that fails) ends it too, and recovery at the next
 * start brings back every commit that was answered.
 */
#ifndef STORE_ENV_H
#define STORE_ENV_H
#include "store/figures.h"
#include <stdbool.h>
#include <stdint.h>

struct store;
struct blobs;
struct operations;

struct store_stats {
	uint64_t runs, commits, flushes, log_bytes;
	struct figures figures;
};

/* state_dir: as configured; the environment is its sub-directory "store". Never NULL. */
struct store *store_open(const char *state_dir);
/* Last checkpoint, then everything closed. */
void store_close(struct store *s);
/* Makes every commit since the last call durable. Does nothing when there was none. */
void store_flush(struct store *s);
/* A new batch begins: looks at the clock and forgets the last measure of free space. */
void store_turn(struct store *s);
/* Nothing to do: checkpoints when it is time. Returns the milliseconds until it wants to be called
 * again, or -1. */
int store_idle(struct store *s);
/* This batch's moment, milliseconds since the epoch; see clock.c for what a step back does. */
uint64_t store_now(const struct store *s);
/* Has the clock gone on without a leap for a day, or since the start? */
bool store_settled(const struct store *s);
/* Is there room for new work? Revocations and terminal states do not ask. */
bool store_roomy(struct store *s);
/* Was the ballast given up since the last call? Then what failed for want of space may be tried again. */
bool store_gave_way(struct store *s);
struct blobs *store_blobs(struct store *s);
struct operations *store_operations(struct store *s);
/* How many runs of this tenant are queued. */
uint64_t store_queued(const struct store *s, const char *tenant);
struct audit;
/* From now on operations write into this audit log. */
void store_audit(struct store *s, struct audit *a);
void store_stat(struct store *s, struct store_stats *out);
#endif
