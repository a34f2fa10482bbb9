/* See questions.h. Every way a question ends comes through finish() below, which tells of it in event and audit. */
#include "store/questions.h"
#include "gen/course_fsm.h"
#include "lib/digest.h"
#include "lib/json.h"
#include "store/env.h"
#include "store/run_end.h"
#include "store/t_event.h"
#include <errno.h>
#include <string.h>

static const char late[] = "nobody answered in time";

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
static void audit(struct txn *t, const char *tenant, const char *run, const char *request, enum approval_status status,
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
	if (t->naudit < TXN_AUDIT - 2)
		txn_audit(t, &l);
}

static void finish(struct txn *t, const char *tenant, const char *run, struct rec_run *r, const char *request,
		   const struct rec_approval *q, const char *why)
{
	if (q->status == APPROVAL_DECIDED)
		tell(t, tenant, run, r, request, q, why == NULL ? "approval.resolved" : "approval.rejected", why);
	else
		tell(t, tenant, run, r, request, q, why == late ? "approval.expired" : "approval.abandoned", why);
	if (why != NULL)
		audit(t, tenant, run, request, (enum approval_status)q->status, why);
}

void question_add(struct txn *t, const char *tenant, const char *run, struct rec_run *r, const char *request,
		  const struct rec_approval *q, const char *why)
{
	approval_put(t, tenant, run, request, q);
	r->approvals++;
	if (q->status != APPROVAL_PENDING) {
		finish(t, tenant, run, r, request, q, why == NULL && q->status == APPROVAL_EXPIRED ? late : why);
		return;
	}
	r->pending++;
	move(t, tenant, run, r, COURSE_EV_ASK);
}

void question_done(struct txn *t, const char *tenant, const char *run, struct rec_run *r, const char *request,
		   const struct rec_approval *q, const char *why)
{
	approval_put(t, tenant, run, request, q);
	r->pending -= r->pending > 0;
	finish(t, tenant, run, r, request, q, why);
	if (r->pending == 0)
		move(t, tenant, run, r, COURSE_EV_EXECUTE);
}

bool question_late(struct txn *t, const char *tenant, const char *run, struct rec_run *r, const char *request,
		   struct rec_approval *q)
{
	if (q->status != APPROVAL_PENDING || q->expires_at > t->now)
		return false;
	q->status = APPROVAL_EXPIRED;
	q->decided_at = t->now;
	question_done(t, tenant, run, r, request, q, late);
	return true;
}

/* Of what waits, all whose time is over by then. */
static void over(struct txn *t, const char *tenant, const char *run, struct rec_run *r, uint64_t then, const char *why)
{
	char request[STORE_ID];
	struct rec_approval q;
	/* One at a time: a scan must not write, and few ever wait. */
	while (r->pending > 0 && t->failed == ERR_OK && approval_pending(t, tenant, run, then, request) &&
	       approval_get(t, tenant, run, request, &q)) {
		const char *id = arena_dup(&t->arena, request, strlen(request));
		if (id == NULL) {
			txn_fail(t, store_error(errno));
			return;
		}
		q.status = APPROVAL_EXPIRED;
		q.decided_at = t->now;
		question_done(t, tenant, run, r, id, &q, why);
	}
}

void questions_late(struct txn *t, const char *tenant, const char *run, struct rec_run *r)
{
	over(t, tenant, run, r, t->now, late);
}

void questions_end(struct txn *t, const char *tenant, const char *run, struct rec_run *r, const char *why)
{
	over(t, tenant, run, r, UINT64_MAX, why);
}
