/* Starting a run: what is committed, minted and packed before its boxes. */
#ifndef STEWARD_LAUNCH_H
#define STEWARD_LAUNCH_H
#include "steward/app.h"

/* Starts queued runs while there are slots. Also ends those that have waited too long. */
void launch_queued(struct app *app);
/* A sealed bundle for the next check's box: upload, allowed changes, that check. -1: could not be made. */
int launch_check_bundle(const struct run *r);
/* The same for the work box: upload, request, tokens, the agent's command. */
int launch_work_bundle(const struct app *app, const struct run *r);
/* What one check may take. */
uint32_t launch_check_seconds(const struct run *r);
/* An empty memfd for a box's result; and the end of writing to it. False: something still holds it, or it
 * is larger than anything that would be read, by more than this. */
int launch_result(void);
bool launch_seal(int fd, uint64_t more);
/* In a child that must know nothing: arg is the app. */
void launch_forget(void *arg);
#endif
