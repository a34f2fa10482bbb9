/*
 * Runs and their two indexes (newest first; not final). The state changes in run_move alone, which asks
 * run.fsm; the caller saves afterwards.
 */
#ifndef STORE_T_RUN_H
#define STORE_T_RUN_H
#include "gen/records.h"
#include "gen/run_fsm.h"
#include "store/txn.h"

/* ERR_OK or ERR_RUN_NOT_FOUND, which another tenant's run is too. */
enum err run_load(struct txn *t, const char *tenant, const char *run, struct rec_run *out);
void run_add(struct txn *t, const char *tenant, const char *run, const struct rec_run *r);
/* Writes the record with updated_at now, and has subscribers told. */
void run_save(struct txn *t, const char *tenant, const char *run, struct rec_run *r);
/* Has subscribers told, though the record stays as it is. */
void run_wake(struct txn *t, const char *tenant, const char *run, const struct rec_run *r);
/* Steps r's state and keeps the indexes. ERR_OK also where the machine stays; then *changed is false. */
enum err run_move(struct txn *t, const char *tenant, const char *run, struct rec_run *r, enum run_event ev,
		  bool *changed);
/* Removes the record of a run that has ended, and what indexes it. */
void run_del(struct txn *t, const char *tenant, const char *run, const struct rec_run *r);
bool run_is_final(const struct rec_run *r);
/* Its artifacts are gone: from now on the record says so, and so does the index of ended runs. */
void run_artifacts_gone(struct txn *t, const char *tenant, const char *run, struct rec_run *r);
/* Enters a run into the index of ended runs; for an upgrade, since run_move does it otherwise. */
void run_index_ended(struct txn *t, const char *tenant, const char *run, const struct rec_run *r);
struct key run_ended_key(const char *tenant, const char *run, const struct rec_run *r);

/* The run that ended first among those whose artifacts are there (or, gone, no more). False: there is none. */
struct run_ended {
	uint64_t ended;
	char tenant[STORE_ID], run[STORE_ID];
};
bool run_ended_first(struct txn *t, bool gone, struct run_ended *out);
/* Rows of an index; false ends. */
typedef bool run_row(void *with, const char *tenant, const char *run, uint8_t state, uint64_t created_at);
/* Of one tenant, newest first, strictly behind (before_created, before_run); 0 starts at the newest. */
void run_by_age_each(struct txn *t, const char *tenant, uint64_t before_created, const char *before_run, run_row *row,
		     void *with);
/* Runs that are not final, in key order strictly behind (after_tenant, after_run). tenant NULL: all. */
void run_open_each(struct txn *t, const char *tenant, const char *after_tenant, const char *after_run, run_row *row,
		   void *with);
#endif
