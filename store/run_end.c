/* The end of a run, written once. */
#include "store/run_end.h"
#include "gen/errors.h"
#include "gen/reasons.h"
#include "lib/json.h"
#include "store/questions.h"
#include "store/t_capability.h"
#include "store/t_event.h"
#include <stdio.h>

void run_state_answer(struct st_run_state *a, const struct rec_run *r, bool changed)
{
	*a = (struct st_run_state){.state = r->state, .phase = r->phase, .changed = changed};
}

static void phase_left(struct txn *t, const struct rec_run *r)
{
	if (r->phase < PHASE__COUNT)
		figures_took(&t->adds.phases[r->phase], r->phase_at, t->now);
}

void run_phase(struct txn *t, const char *tenant, const char *run, struct rec_run *r, enum run_phase phase)
{
	own_buf struct buf b;
	struct jw w;
	phase_left(t, r);
	r->phase = (uint8_t)phase;
	r->phase_at = t->now;
	buf_init(&b, 256);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "phase", phase_names[phase]);
	jw_close(&w, '}');
	(void)event_addb(t, tenant, run, r, EVENT_CONTROL, "run.phase", &b);
}

bool run_agent_gone(const struct rec_run *r)
{
	return r->phase == PHASE_COLLECTING || r->phase == PHASE_VERIFYING || r->phase == PHASE_CLEANING;
}

void run_overruled(struct txn *t, const char *tenant, const char *run, const struct rec_run *r, const char *actor,
		   const char *request_id, const char *reason, const char *error)
{
	struct audit_line l = {.event = AUDIT_RUN_OVERRULED,
			       .tenant = tenant,
			       .run = run,
			       .actor = actor,
			       .request_id = request_id,
			       .v = {{AUDIT_F_STATE, .text = run_public((enum run_state)r->state)},
				     {AUDIT_F_REASON, .text = reason},
				     {AUDIT_F_ERROR, .text = error}}};
	txn_audit(t, &l);
}

void run_end(struct txn *t, const char *tenant, const char *run, struct rec_run *r, const char *actor,
	     const char *request_id)
{
	char type[64];
	own_buf struct buf b;
	struct jw w;
	phase_left(t, r);
	capability_del(t, tenant, run);
	questions_end(t, tenant, run, r, "the run has ended");
	if (r->state == RUN_CANCELLED) {
		r->terminal_reason = reason_name(REASON_CANCELLED_BY_REQUEST);
		r->error = err_code(ERR_CANCELLED_BY_REQUEST);
	}
	(void)snprintf(type, sizeof type, "run.%s", run_public((enum run_state)r->state));
	buf_init(&b, 4096);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "terminalReason", r->terminal_reason == NULL ? "" : r->terminal_reason);
	jw_kstr(&w, "error", r->error == NULL ? "" : r->error);
	jw_close(&w, '}');
	(void)event_addb(t, tenant, run, r, EVENT_LAST, type, &b);
	struct audit_line l = {.event = AUDIT_RUN_FINISH,
			       .tenant = tenant,
			       .run = run,
			       .actor = actor,
			       .request_id = request_id,
			       .v = {{AUDIT_F_STATE, .text = run_public((enum run_state)r->state)},
				     {AUDIT_F_REASON, .text = r->terminal_reason},
				     {AUDIT_F_ERROR, .text = r->error}}};
	txn_audit(t, &l);
}
