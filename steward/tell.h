/*
 * What the steward writes into the store about a run.
 *
 * Phases, events and lines for the audit log are tales: they are put into one list and told in that order, at once
 * while the store answers, and when it is back where it does not. A run's end is told after all its tales, so that
 * whoever reads the events of a run that ended finds them complete.
 */
#ifndef STEWARD_TELL_H
#define STEWARD_TELL_H
#include "gen/audit.h"
#include "steward/app.h"

void tell_phase(struct app *app, const struct run *r, enum run_phase phase);
/* data: JSON object text. */
void tell_event(struct app *app, const struct run *r, const char *type, struct buf *data);
/* Into the audit log: what happened to a box. tenant may be "" where it is not known. */
void tell_box(struct app *app, enum audit_event event, const char *tenant, const char *run, enum box_kind kind);
/* What is counted here, where it has changed and the store answers. */
void tell_figures(struct app *app);
/* Tells what is still to be told. False: the store is away, and something is left. */
bool tell_all(struct app *app);
/* When tell_all has something to do; 0: nothing is left. */
uint64_t tell_due(const struct app *app);
/* A further life for the capability. False: the store is away; try again. */
bool tell_renew(struct app *app, const struct run *r);
/* ERR_STORE_UNAVAILABLE means try again. */
enum err tell_revoke(struct app *app, struct run *r);
enum err tell_artifact(struct app *app, struct run *r, enum artifact name, const void *p, size_t n);
/* Notes whether the store answered, so that not each question waits for it anew. Returns e. */
enum err tell_heard(struct app *app, enum err e);
/* It did not a moment ago: do not ask now. */
bool tell_quiet(const struct app *app);
#endif
