/*
 * One run from its start to its end: what happens to it, and what it does then. Each function may free the
 * run; the caller must not touch it afterwards.
 */
#ifndef STEWARD_RUN_H
#define STEWARD_RUN_H
#include "gen/sandbox_msg.h"
#include "steward/app.h"

/* Enters a new run into the list, in no step yet. NULL: no memory or no place. */
struct run *run_new(struct app *app, const char *tenant, const char *run);
void run_free(struct app *app, struct run *r);
/* The first failure stays. */
void run_fail(struct run *r, enum err error, enum reason reason);
/* To the finally path (settle.c): whatever came before, this comes after. */
void run_settle(struct app *app, struct run *r);

/* After the launch: its first box is to be spawned from bundle_fd. */
void run_begin(struct app *app, struct run *r);
/* A run of an earlier steward. */
void run_adopt(struct app *app, struct run *r);
void run_cancel(struct app *app, struct run *r);

void run_spawned(struct app *app, struct run *r, enum box_kind kind);
void run_refused(struct app *app, struct run *r, enum box_kind kind, uint16_t code, const char *detail);
void run_exited(struct app *app, struct run *r, const struct sbx_exited *m);
void run_gone(struct app *app, struct run *r, enum box_kind kind, bool clean);
void run_judge_ended(struct app *app, struct run *r);
/* Looks at the clock: deadlines and what is to be tried again. */
void run_tick(struct app *app, struct run *r, uint64_t now);
/* When it wants run_tick next; 0: never. */
uint64_t run_due(const struct run *r);
#endif
