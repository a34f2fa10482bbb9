/* See questions.h. Every way a question ends comes through question_step(), which tells of it in event and audit. */
#include "store/questions.h"
#include "gen/course_fsm.h"
#include "gen/limits.h"
#include "lib/digest.h"
#include "lib/json.h"
#include "store/env.h"
#include "store/pushes.h"
#include "store/run_end.h"
#include "store/t_event.h"
#include <errno.h>
#include <string.h>

/* How each way of ending is told. why: what is said where nobody says more. */
static const struct {
	const char *type, *why;
} told[APPROVAL_EVENT__COUNT] = {
    [APPROVAL_EV_GRANT] = {"approval.resolved", NULL},
    [APPROVAL_EV_REJECT] = {"approval.rejected", "too many questions wait"},
    [APPROVAL_EV_DECIDE] = {"approval.resolved", NULL},
    [APPROVAL_EV_LATE] = {"approval.expired", "nobody answered in time"},
    [APPROVAL_EV_ABANDON] = {"approval.abandoned", NULL},
};
enum { AUDIT_KEPT = LIMIT_APPROVAL_BATCH + 2 /* lines that others of the same transaction may need */ };

/* executing <-> awaiting_approval, where the run's course lets it. */
static void move(struct txn *t, const char *tenant, const char *run, struct rec_run *r, enum course_event ev)
{
	enum course_state to = (enum course_state)r->phase;
	if (r->state != RUN_RUNNING || course_step((enum course_state)r->phase, ev, &to) != ERR_OK ||
	    to == (enum course_state)r->phase)
		return;
	run_phase(t, tenant, run, r, (enum run_phase)to);
}

static void tell(struct txn *t, const char *tenant, const char *run, struct rec_run *r, const char *request,
		 const struct rec_approval *q, const char *type, const char *why)
{
	own_buf struct buf b;
	struct jw w;
	char digest[SHA256_HEX];
	buf_init(&b, 4 * QUESTION_EVENT);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "requestId", request);
	if (q->status == APPROVAL_DECIDED) {
		jw_kstr(&w, "decision", decision_names[q->decision]);
		jw_kint(&w, "decidedAt", (int64_t)q->decided_at);
		if (q->digest.n == SHA256_SIZE) {
			hex(q->digest.p, SHA256_SIZE, digest);
			jw_kstr(&w, "digest", digest);
		}
		if (q->device != NULL && q->device[0] != '\0')
			jw_kstr(&w, "device", q->device);
	}
	if (why != NULL)
		jw_kstr(&w, "reason", why);
	jw_close(&w, '}');
	(void)event_addb(t, tenant, run, r, EVENT_CONTROL, type, &b);
}

/* Of what no person decided; a person's decision has its line from where its device is known. */
static void audit(struct txn *t, const char *tenant, const char *run, const char *request, enum approval_state status,
		  const char *why)
{
	struct audit_line l = {.event = status == APPROVAL_EXPIRED ? AUDIT_APPROVAL_EXPIRE : AUDIT_APPROVAL_DENY,
			       .tenant = tenant,
			       .run = run,
			       .actor = "system",
			       .v = {{AUDIT_F_APPROVAL, .text = request}}};
	if (status == APPROVAL_EXPIRED) {
		l.v[1] = (struct audit_value){AUDIT_F_REASON, .text = why};
	} else {
		l.v[1] = (struct audit_value){AUDIT_F_DECISION, .text = decision_names[DECISION_DENY]};
		l.v[2] = (struct audit_value){AUDIT_F_REASON, .text = why};
	}
	/* All that wait end at once where a run ends; the events tell of each. */
	if (t->naudit < TXN_AUDIT - AUDIT_KEPT)
		txn_audit(t, &l);
}

static void audit_granted(struct txn *t, const char *tenant, const char *run, const struct st_agent_event *m)
{
	char *text = arena_get(&t->arena, SHA256_HEX);
	if (text == NULL) {
		txn_fail(t, store_error(errno));
		return;
	}
	hex(m->digest.p, SHA256_SIZE, text);
	struct audit_line l = {.event = AUDIT_APPROVAL_GRANTED,
			       .tenant = tenant,
			       .run = run,
			       .actor = "system",
			       .v = {{AUDIT_F_APPROVAL, .text = m->request}, {AUDIT_F_DIGEST, .text = text}}};
	txn_audit(t, &l);
}

void grant_gone(struct txn *t, const char *tenant, const char *run, struct rec_run *r, const char *request,
		const char *digest, const char *device)
{
	own_buf struct buf b;
	struct jw w;
	buf_init(&b, QUESTION_EVENT);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "requestId", request);
	jw_kstr(&w, "digest", digest);
	jw_kstr(&w, "device", device);
	jw_close(&w, '}');
	(void)event_addb(t, tenant, run, r, EVENT_CONTROL, "approval.grant_revoked", &b);
}

enum err question_step(struct txn *t, const char *tenant, const char *run, struct rec_run *r, const char *request,
		       struct rec_approval *q, enum approval_event ev, const char *why)
{
	enum approval_state to = APPROVAL_PENDING;
	enum err e = approval_step((enum approval_state)q->status, ev, &to);
	if (e != ERR_OK || to == (enum approval_state)q->status)
		return e;
	q->status = (uint8_t)to;
	q->decided_at = t->now;
	/* The others were never a person's. */
	if (ev != APPROVAL_EV_GRANT && ev != APPROVAL_EV_REJECT)
		figures_took(&t->adds.waits[to], q->requested_at, t->now);
	approval_put(t, tenant, run, request, q);
	r->pending -= r->pending > 0;
	push_over(t, tenant, run, request);
	why = why != NULL ? why : told[ev].why;
	tell(t, tenant, run, r, request, q, told[ev].type, why);
	if (why != NULL)
		audit(t, tenant, run, request, to, why);
	if (r->pending == 0)
		move(t, tenant, run, r, COURSE_EV_EXECUTE);
	return ERR_OK;
}

/* What becomes of it at once; APPROVAL_EV_ASK: it waits for a person. */
static enum approval_event fate(struct txn *t, const char *tenant, const char *run, const struct rec_run *r,
				const struct rec_approval *q, const char **why)
{
	if (r->state != RUN_RUNNING || run_agent_gone(r)) {
		*why = r->state != RUN_RUNNING ? "the run is cancelled" : "the agent has ended";
		return APPROVAL_EV_ABANDON;
	}
	if (!q->shortened && grant_has(t, tenant, run, q->digest))
		return APPROVAL_EV_GRANT;
	if (r->pending > LIMIT_APPROVAL_PENDING)
		return APPROVAL_EV_REJECT;
	return r->approval_wait_seconds == 0 ? APPROVAL_EV_LATE : APPROVAL_EV_ASK;
}

enum err question_ask(struct txn *t, const char *tenant, const char *run, struct rec_run *r,
		      const struct st_agent_event *m)
{
	struct rec_approval q;
	const char *why = NULL;
	if (approval_get(t, tenant, run, m->request, &q))
		return ERR_OK;
	if (t->failed != ERR_OK)
		return t->failed;
	/* What nobody looks at any more must not have the next one refused. */
	if (r->pending >= LIMIT_APPROVAL_PENDING)
		questions_late(t, tenant, run, r);
	/* Its events are the agent's doing, so they come out of its part of the buffer. */
	if (r->events_truncated || !event_fits(r, run, "approval.requested", m->data.n + QUESTION_EVENT))
		return ERR_RUN_SESSION_EVENTS_REJECTED;
	(void)event_add(t, tenant, run, r, EVENT_AGENT, "approval.requested", m->data);
	q = (struct rec_approval){.status = APPROVAL_PENDING,
				  .requested_at = t->now,
				  .expires_at = t->now + r->approval_wait_seconds * UINT64_C(1000),
				  .digest = m->digest,
				  .action_id = m->action_id,
				  .effect = m->effect,
				  .reason = m->reason,
				  .policy_reason = m->policy_reason,
				  .preview = m->preview,
				  .shortened = m->shortened || m->preview[0] == '\0',
				  .device = "",
				  .by = "",
				  .confirm_by = ""};
	r->approvals++;
	r->pending++;
	enum approval_event ev = fate(t, tenant, run, r, &q, &why);
	if (ev == APPROVAL_EV_ASK) {
		approval_put(t, tenant, run, m->request, &q);
		push_asked(t, tenant, run, m->request, &q);
		move(t, tenant, run, r, COURSE_EV_ASK);
		return ERR_OK;
	}
	if (ev == APPROVAL_EV_GRANT) {
		q.decision = DECISION_ALLOW_SESSION;
		audit_granted(t, tenant, run, m);
	} else if (ev == APPROVAL_EV_REJECT) {
		q.decision = DECISION_DENY;
	}
	return question_step(t, tenant, run, r, m->request, &q, ev, why);
}

bool question_late(struct txn *t, const char *tenant, const char *run, struct rec_run *r, const char *request,
		   struct rec_approval *q)
{
	return q->status == APPROVAL_PENDING && q->expires_at <= t->now &&
	       question_step(t, tenant, run, r, request, q, APPROVAL_EV_LATE, NULL) == ERR_OK;
}

/* Of what waits, all whose time is over by then. */
static void over(struct txn *t, const char *tenant, const char *run, struct rec_run *r, uint64_t then,
		 enum approval_event ev, const char *why)
{
	char request[STORE_ID];
	struct rec_approval q;
	/* One at a time: a scan must not write, and few ever wait. */
	while (r->pending > 0 && t->failed == ERR_OK && approval_pending(t, tenant, run, request) <= then &&
	       request[0] != '\0' && approval_get(t, tenant, run, request, &q)) {
		const char *id = arena_dup(&t->arena, request, strlen(request));
		if (id == NULL) {
			txn_fail(t, store_error(errno));
			return;
		}
		(void)question_step(t, tenant, run, r, id, &q, ev, why);
	}
}

uint64_t questions_late(struct txn *t, const char *tenant, const char *run, struct rec_run *r)
{
	char request[STORE_ID];
	over(t, tenant, run, r, t->now, APPROVAL_EV_LATE, NULL);
	return r->pending > 0 ? approval_pending(t, tenant, run, request) : UINT64_MAX;
}

void questions_end(struct txn *t, const char *tenant, const char *run, struct rec_run *r, const char *why)
{
	over(t, tenant, run, r, UINT64_MAX, APPROVAL_EV_ABANDON, why);
}
