/* What the steward does with a run: start it, say where it is, and end it. */
#include "gen/course_fsm.h"
#include "gen/reasons.h"
#include "lib/json.h"
#include "lib/names.h"
#include "store/blobs.h"
#include "store/op.h"
#include "store/questions.h"
#include "store/run_end.h"
#include "store/t_capability.h"
#include "store/t_event.h"
#include <string.h>

/* data: JSON object text on one line. */
static bool plausible(const char *type, struct wire_bytes data)
{
	return type[0] != '\0' && data.n >= 2 && data.p[0] == '{' && data.p[data.n - 1] == '}' &&
	       memchr(data.p, '\n', data.n) == NULL;
}

static void work_answer(struct txn *t, struct st_run_work *a, const struct rec_run *r, int *out)
{
	*a = (struct st_run_work){.agent = r->agent,
				  .profile = r->profile,
				  .provider = r->provider,
				  .model = r->model,
				  .fingerprint = r->fingerprint,
				  .max_steps = r->max_steps,
				  .wall_seconds = r->wall_seconds,
				  .approval_wait_seconds = r->approval_wait_seconds,
				  .max_requests = r->max_requests,
				  .created_at = r->created_at,
				  .archive = r->archive};
	out[0] = blob_read(t, r->request_sha);
	out[1] = blob_read(t, r->upload_sha);
}

static enum err op_run_start(struct txn *t, const struct st_run_start *m, int *fds, struct st_run_work *a, int *out)
{
	(void)fds;
	struct rec_run r;
	struct rec_capability cap;
	enum err e = run_load(t, m->tenant, m->run, &r);
	if (e != ERR_OK)
		return e;
	if (capability_get(t, m->tenant, m->run, &cap) && cap.expires_at > t->now) {
		/* Asked again because the answer was lost: the same answer. Anything else is a swap. */
		if (cap.expires_at != m->expires_at || cap.used_requests != 0 || r.phase != PHASE_STAGING)
			return ERR_ALREADY_ACTIVE;
		work_answer(t, a, &r, out);
		return ERR_OK;
	}
	bool changed;
	e = run_move(t, m->tenant, m->run, &r, RUN_EV_START, &changed);
	if (e != ERR_OK)
		return e;
	if (m->expires_at <= t->now)
		return ERR_INVALID_REQUEST;
	cap = (struct rec_capability){.model = r.model,
				      .fingerprint = r.fingerprint,
				      .expires_at = m->expires_at,
				      .max_requests = r.max_requests};
	capability_put(t, m->tenant, m->run, &cap);
	r.started_at = t->now;
	static const char none[] = "{}";
	(void)event_add(t, m->tenant, m->run, &r, EVENT_CONTROL, "run.started",
			(struct wire_bytes){(const uint8_t *)none, 2});
	run_phase(t, m->tenant, m->run, &r, PHASE_STAGING);
	run_save(t, m->tenant, m->run, &r);
	struct audit_line l = {.event = AUDIT_RUN_START,
			       .tenant = m->tenant,
			       .run = m->run,
			       .actor = "steward",
			       .v = {{AUDIT_F_AGENT, .text = r.agent},
				     {AUDIT_F_MODEL_PROFILE, .text = r.profile},
				     {AUDIT_F_MODEL, .text = r.model}}};
	txn_audit(t, &l);
	work_answer(t, a, &r, out);
	return ERR_OK;
}
ST_OP(run_start, run_work, 0, 2)

_Static_assert((int)PHASE_WAITING == (int)COURSE_WAITING &&
		   (int)PHASE_AWAITING_APPROVAL == (int)COURSE_AWAITING_APPROVAL &&
		   (int)PHASE_CLEANING == (int)COURSE_CLEANING && (int)PHASE__COUNT == (int)COURSE_STATE__COUNT,
	       "lib/names.h and spec/course.fsm have the phases in one order");

/* Nothing leads back to waiting. */
static const enum course_event leads_to[PHASE__COUNT] = {
    [PHASE_WAITING] = COURSE_EVENT__COUNT,  [PHASE_STAGING] = COURSE_EV_STAGE,
    [PHASE_EXECUTING] = COURSE_EV_EXECUTE,  [PHASE_AWAITING_APPROVAL] = COURSE_EV_ASK,
    [PHASE_COLLECTING] = COURSE_EV_COLLECT, [PHASE_VERIFYING] = COURSE_EV_VERIFY,
    [PHASE_CLEANING] = COURSE_EV_CLEAN};

static enum err op_run_phase(struct txn *t, const struct st_run_phase *m, int *fds, struct st_run_state *a, int *out)
{
	(void)fds;
	(void)out;
	struct rec_run r;
	enum err e = run_load(t, m->tenant, m->run, &r);
	if (e != ERR_OK)
		return e;
	if (m->phase >= PHASE__COUNT)
		return ERR_INVALID_REQUEST;
	enum course_state to = (enum course_state)r.phase;
	if (run_is_final(&r) || r.state == RUN_QUEUED || m->phase == PHASE_WAITING)
		return ERR_ILLEGAL_RUN_TRANSITION;
	/* What the steward began goes on, while a question waits. */
	if (m->phase == PHASE_EXECUTING && r.phase == PHASE_AWAITING_APPROVAL && r.pending > 0) {
		run_state_answer(a, &r, false);
		return ERR_OK;
	}
	e = course_step((enum course_state)r.phase, leads_to[m->phase], &to);
	if (e != ERR_OK)
		return e;
	bool changed = r.phase != m->phase;
	if (changed) {
		run_phase(t, m->tenant, m->run, &r, (enum run_phase)m->phase);
		/* It asked before its steward had heard that it runs. */
		if (m->phase == PHASE_EXECUTING && r.pending > 0)
			run_phase(t, m->tenant, m->run, &r, PHASE_AWAITING_APPROVAL);
		/* Nobody is there to hear of a decision. */
		if (run_agent_gone(&r))
			questions_end(t, m->tenant, m->run, &r, "the agent has ended");
		run_save(t, m->tenant, m->run, &r);
	}
	run_state_answer(a, &r, changed);
	return ERR_OK;
}
ST_OP(run_phase, run_state, 0, 0)

static enum err op_run_event(struct txn *t, const struct st_run_event *m, int *fds, struct st_ok *a, int *out)
{
	(void)fds;
	(void)a;
	(void)out;
	struct rec_run r;
	enum err e = run_load(t, m->tenant, m->run, &r);
	if (e != ERR_OK)
		return e;
	if (!plausible(m->type, m->data))
		return ERR_INVALID_REQUEST;
	if (run_is_final(&r))
		return ERR_RUN_SESSION_EVENTS_REJECTED;
	if (event_add(t, m->tenant, m->run, &r, EVENT_CONTROL, m->type, m->data))
		run_save(t, m->tenant, m->run, &r);
	return ERR_OK;
}
ST_OP_ONCE(run_event, ok)

static enum err op_cap_revoke(struct txn *t, const struct st_cap_revoke *m, int *fds, struct st_ok *a, int *out)
{
	(void)fds;
	(void)a;
	(void)out;
	struct rec_run r;
	enum err e = run_load(t, m->tenant, m->run, &r);
	struct rec_capability cap;
	if (e != ERR_OK || !capability_get(t, m->tenant, m->run, &cap))
		return e;
	capability_del(t, m->tenant, m->run);
	run_wake(t, m->tenant, m->run, &r);
	struct audit_line l = {
	    .event = AUDIT_CAPABILITY_REVOKE, .tenant = m->tenant, .run = m->run, .actor = "steward"};
	txn_audit(t, &l);
	return ERR_OK;
}
ST_OP(cap_revoke, ok, 0, 0)

static bool same_bytes(struct wire_bytes a, struct wire_bytes b)
{
	return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

/* Is the recorded end the one that this message asks for (because its answer was lost)? */
static bool ended_so(const struct rec_run *r, const struct st_run_finish *m)
{
	enum run_state state = (enum run_state)r->state, running = RUN_STATE__COUNT, cancelling = RUN_STATE__COUNT;
	enum run_event ev = (enum run_event)m->event;
	bool normal = run_step(RUN_RUNNING, ev, &running) == ERR_OK && running == state;
	bool cancelled = run_step(RUN_CANCELLING, ev, &cancelling) == ERR_OK && cancelling == state;
	return run_final(state) && (normal || cancelled) && r->success == m->success && r->exited == m->exited &&
	       r->exit_code == m->exit_code &&
	       (state == RUN_CANCELLED ||
		(strcmp(r->terminal_reason, m->terminal_reason) == 0 && strcmp(r->error, m->error) == 0)) &&
	       same_bytes(r->summary, m->summary) && same_bytes(r->changed_files, m->changed_files) &&
	       same_bytes(r->verification, m->verification);
}

/* Does the reason go with the event? A run that was cancelled ends as such by whatever its steward says last. */
static bool reason_fits(const struct st_run_finish *m, const struct rec_run *r)
{
	const char *status = reason_status(reason_find(m->terminal_reason));
	switch ((enum run_event)m->event) {
	case RUN_EV_COMPLETE:
		return strcmp(status, "completed") == 0;
	case RUN_EV_FAIL:
	case RUN_EV_RESTART:
		return strcmp(status, "failed") == 0 ||
		       (strcmp(status, "cancelled") == 0 && r->state != RUN_QUEUED && r->state != RUN_RUNNING);
	case RUN_EV_UNCLEAN:
		return strcmp(m->terminal_reason, reason_name(REASON_SANDBOX_CLEANUP_FAILED)) == 0;
	case RUN_EV_START:
	case RUN_EV_CANCEL:
	case RUN_EVENT__COUNT:
	default:
		return false;
	}
}

static enum err op_run_finish(struct txn *t, const struct st_run_finish *m, int *fds, struct st_run_state *a, int *out)
{
	(void)fds;
	(void)out;
	struct rec_run r;
	enum err e = run_load(t, m->tenant, m->run, &r);
	if (e != ERR_OK)
		return e;
	if (!reason_fits(m, &r))
		return ERR_INVALID_REQUEST;
	bool changed = false, was_final = run_is_final(&r);
	e = run_move(t, m->tenant, m->run, &r, (enum run_event)m->event, &changed);
	run_state_answer(a, &r, changed);
	if (was_final && ended_so(&r, m))
		return ERR_OK;
	/* The first end stays, and a cancel outweighs what the box came to. */
	bool cancel_wins =
	    r.state == RUN_CANCELLED && strcmp(m->terminal_reason, reason_name(REASON_CANCELLED_BY_REQUEST)) != 0;
	if (was_final || (changed && cancel_wins))
		run_overruled(t, m->tenant, m->run, &r, "steward", NULL, m->terminal_reason, m->error);
	if (was_final && e != ERR_OK) {
		/* The refusal is the answer; the line is kept. */
		enum err kept = txn_end(t, ERR_OK);
		return kept != ERR_OK ? kept : e;
	}
	if (e != ERR_OK || !changed)
		return e;
	r.success = m->success;
	r.exited = m->exited;
	r.exit_code = m->exit_code;
	r.terminal_reason = m->terminal_reason;
	r.error = m->error;
	r.summary = m->summary;
	r.changed_files = m->changed_files;
	r.verification = m->verification;
	run_end(t, m->tenant, m->run, &r, "steward", NULL);
	run_save(t, m->tenant, m->run, &r);
	return ERR_OK;
}
ST_OP_ONCE(run_finish, run_state)
