/* What the steward writes into the store about a run. */
#ifndef STEWARD_TELL_H
#define STEWARD_TELL_H
#include "gen/audit.h"
#include "steward/app.h"

/* Best effort: a run goes on without them, and while the store is away they are not even tried. */
void tell_phase(struct app *app, const struct run *r, enum run_phase phase);
/* data: JSON object text. */
void tell_event(struct app *app, const struct run *r, const char *type, struct buf *data);
/* Into the audit log: what happened to a box. tenant may be "" where it is not known. */
void tell_box(struct app *app, enum audit_event event, const char *tenant, const char *run, enum box_kind kind);
/* These must happen in the end: ERR_STORE_UNAVAILABLE means try again. */
enum err tell_revoke(struct app *app, struct run *r);
enum err tell_artifact(struct app *app, struct run *r, enum artifact name, const void *p, size_t n);
/* Notes whether the store answered, so that best-effort calls do not each wait for it. Returns e. */
enum err tell_heard(struct app *app, enum err e);
#endif
