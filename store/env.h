/*
 * The store's environment: one directory, one owner, one thread.
 * store_open ends the program with one sentence when the directory cannot be used; afterwards a
 * broken environment (DB_RUNRECOVERY, a flush that fails) ends it too, and recovery at the next
 * start brings back every commit that was answered.
 */
#ifndef STORE_ENV_H
#define STORE_ENV_H
#include "gen/errors.h"
#include "store/figures.h"
#include <stdbool.h>
#include <stdint.h>

struct store;
struct blobs;
struct operations;

struct store_stats {
	uint64_t runs, commits, flushes, log_bytes;
	uint64_t data_bytes, log_files, log_files_bytes, free_bytes, floor_bytes, checkpoint_at;
	bool ballast;
	struct figures figures;
	struct hist flush;
};

/* What a failed call is told as, by its errno: a store that lacks anything but room on its disk is not available, for
 * which whoever asks knows to wait. */
enum err store_error(int why);
/* state_dir: as configured; the environment is its sub-directory "store". Never NULL. */
struct store *store_open(const char *state_dir);
/* Another sub-directory: a restore makes its store beside the one in use. */
struct store *store_open_at(const char *state_dir, const char *name);
/* Has everything that was committed written into the tables' file. */
void store_checkpoint(struct store *s);
/* Last checkpoint, then everything closed. */
void store_close(struct store *s);
/* Makes every commit since the last call durable. Does nothing when there was none. */
void store_flush(struct store *s);
/* Are there any? */
bool store_owes(const struct store *s);
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
/* How many pushes of all tenants may go out; 0: as many as by default. */
void store_push_limits(struct store *s, uint32_t minute, uint32_t hour);
/* How many runs of this tenant are queued. */
uint64_t store_queued(const struct store *s, const char *tenant);
/* How many bytes its sources and artifacts have. */
uint64_t store_stored(const struct store *s, const char *tenant);
struct conf;
struct cf_tenant;
/* From now on tenants have the quotas of this configuration, which stays the caller's. */
void store_conf(struct store *s, const struct conf *conf);
/* The quotas of a tenant; of one that is not in the configuration all 0, which is no limit. */
const struct cf_tenant *store_quotas(const struct store *s, const char *tenant);
/* How long a source is kept from which no run is made, in milliseconds. */
uint64_t store_source_ms(const struct store *s);
struct cf_agent;
/* An agent's profile; NULL: it is not in the configuration. */
const struct cf_agent *store_agent(const struct store *s, const char *name);
struct audit;
/* From now on operations write into this audit log. */
void store_audit(struct store *s, struct audit *a);
void store_stat(struct store *s, struct store_stats *out);

/* The lock of a store that is not opened here, or the end of the program where another process has it. */
int store_lock(const char *state_dir, const char *name);
/* clock.c: acts as if it had been as late as that. */
void clock_raise(struct store *s, uint64_t highest);

/* --- care.c --------------------------------------------------------------------------------- */
/*
 * A backup begins or ends. While it goes on there is no checkpoint, and no log and no blob's file is removed: a copy
 * of the tables' file, page by page, and then of the logs recovers to the moment when the last log was read.
 */
void store_hold(struct store *s, bool on);
/* The logs' files, in order; false ends. */
typedef bool store_name(void *with, const char *name, uint64_t size);
bool store_logs(struct store *s, store_name *row, void *with);
/* Opens pinfold.db or a log for reading; -1: no such file. */
int store_file(struct store *s, const char *name);
/*
 * Gives free pages of one table back, some at a time. after: where to go on (n 0: from the beginning), at most
 * STORE_KEY bytes; it becomes the next place, n 0 at the table's end. Adds to *pages. Must be in no transaction.
 */
enum err store_compact(struct store *s, unsigned table, uint8_t *after, uint32_t *n, uint64_t *pages);
/* The pages of a store that nobody has open. False: they are damaged, as says was told. */
bool store_verify(const char *state_dir, const char *name, void (*says)(void *with, const char *text));
#endif
