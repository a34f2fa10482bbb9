/*
 * Questions of agents: how they are asked, decided and end. A run's record counts them, and its phase says whether one
 * waits; the caller saves the run.
 */
#ifndef STORE_QUESTIONS_H
#define STORE_QUESTIONS_H
#include "lib/names.h"
#include "store/t_approval.h"
#include "store/t_run.h"

enum { QUESTION_EVENT = 1000 /* room for the events about one, beyond what the agent said */ };

/* A new one is decided by q->status and q->decision, or waits. why: of what no person decided; may be NULL. */
void question_add(struct txn *t, const char *tenant, const char *run, struct rec_run *r, const char *request,
		  const struct rec_approval *q, const char *why);
/* One that waits is decided, or over (APPROVAL_EXPIRED), as q says by now. */
void question_done(struct txn *t, const char *tenant, const char *run, struct rec_run *r, const char *request,
		   const struct rec_approval *q, const char *why);
/* Its time is over and it was not yet told. True: it was, and now is; the run must be saved. */
bool question_late(struct txn *t, const char *tenant, const char *run, struct rec_run *r, const char *request,
		   struct rec_approval *q);
/* The same of all that wait; who asked for them may have given up looking. */
void questions_late(struct txn *t, const char *tenant, const char *run, struct rec_run *r);
/* What waits is over, undecided: the run is cancelled or ends, or its agent has, as why says. */
void questions_end(struct txn *t, const char *tenant, const char *run, struct rec_run *r, const char *why);
#endif
