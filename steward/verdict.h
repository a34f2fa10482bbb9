/*
 * What the results mean for the run. Reads frames that a box or the judge wrote: typed and bounded, nothing
 * in them is believed beyond its place.
 */
#ifndef STEWARD_VERDICT_H
#define STEWARD_VERDICT_H
#include "gen/bundle_msg.h"
#include "lib/chan.h"
#include "steward/app.h"

/* RAN of the work result; its pointers live until bundle_close(b), which is the caller's in any case. */
bool verdict_ran(const struct run *r, struct bundle *b, struct bn_ran *m);

/* How the agent itself ended, from RAN or BROKEN in the sealed work result; writes the event. */
void verdict_agent(struct app *app, struct run *r);
/* The judge's frames into r. False: they make no sense. A refusal is noted as the run's failure. */
bool verdict_judge(struct app *app, struct run *r);
void verdict_check_started(struct app *app, const struct run *r);
/* The result of the box of check r->check_at: that check and nothing else; events. False: the box itself
 * failed, which is noted as the run's failure. */
bool verdict_check(struct app *app, struct run *r);
/* The same for its box on the upload alone: only the counts are taken, nothing in it can fail the run. */
void verdict_compared(struct app *app, struct run *r);
/* After the last check: the failure, if any. */
void verdict_checks_end(struct run *r);
/* The reason of the same name as the error, where there is one. */
enum reason verdict_reason(enum err e, enum reason otherwise);
/* As a shell would say it: a signal is 128 and its number. */
int32_t verdict_exit_code(bool started, int32_t status);
#endif
