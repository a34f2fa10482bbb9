/* What every way to a final state has in common, and the answer that most operations on a run give. */
#ifndef STORE_RUN_END_H
#define STORE_RUN_END_H
#include "gen/store_msg.h"
#include "lib/names.h"
#include "store/t_run.h"

/* r has just moved to a final state: revokes, resolves what is open, writes the terminal event, which is
 * thereby the last one. A cancelled run's reason and error are always the same. The caller saves. */
void run_end(struct txn *t, const char *tenant, const char *run, struct rec_run *r, const char *actor,
	     const char *request_id);
/* What came too late, or against a cancel: nothing of it is kept but this line. r is the run as it stays. */
void run_overruled(struct txn *t, const char *tenant, const char *run, const struct rec_run *r, const char *actor,
		   const char *request_id, const char *reason, const char *error);
/* The run is in another phase, which the caller knows to follow: said in an event. */
void run_phase(struct txn *t, const char *tenant, const char *run, struct rec_run *r, enum run_phase phase);
/* Its agent's processes are dead, or are to be: what follows is the control plane's. */
bool run_agent_gone(const struct rec_run *r);
void run_state_answer(struct st_run_state *a, const struct rec_run *r, bool changed);
#endif
