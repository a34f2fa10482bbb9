/*
 * Questions of agents: how they are asked, decided and end. A run's record counts them, and its phase says whether one
 * waits; the caller saves the run.
 */
#ifndef STORE_QUESTIONS_H
#define STORE_QUESTIONS_H
#include "gen/store_msg.h"
#include "lib/names.h"
#include "store/t_approval.h"
#include "store/t_run.h"

enum { QUESTION_EVENT = 1000 /* room for the events about one, beyond what the agent said */ };

/* A new one of that event: it waits, or what becomes of it is found here. One that is there
 * already changes nothing. ERR_RUN_SESSION_EVENTS_REJECTED: its events do not fit any more. */
enum err question_ask(struct txn *t, const char *tenant, const char *run, struct rec_run *r,
		      const struct st_agent_event *m);
/* What spec/approval.fsm says to this: the refusal, or ERR_OK, and where it moves that is kept and told. q->decision is
 * set before by whoever decides. why: of what no person decided; NULL: the usual words. */
enum err question_step(struct txn *t, const char *tenant, const char *run, struct rec_run *r, const char *request,
		       struct rec_approval *q, enum approval_event ev, const char *why);
/* Its time is over and it was not yet told. True: it was, and now is; the run must be saved. */
bool question_late(struct txn *t, const char *tenant, const char *run, struct rec_run *r, const char *request,
		   struct rec_approval *q);
/* The same of all that wait; who asked for them may have given up looking. When the next is over; UINT64_MAX: none
 * waits. */
uint64_t questions_late(struct txn *t, const char *tenant, const char *run, struct rec_run *r);
/* What waits is over, undecided: the run is cancelled or ends, or its agent has, as why says. */
void questions_end(struct txn *t, const char *tenant, const char *run, struct rec_run *r, const char *why);
/* What was allowed by this one for the rest of the run no longer is, by this device: the event of that. The run must be
 * saved. */
void grant_gone(struct txn *t, const char *tenant, const char *run, struct rec_run *r, const char *request,
		const char *digest, const char *device);
#endif
