/*
 * Questions of agents. Until people can answer, each is denied at once and says so; a request id is
 * good for one question (D-47).
 */
#include "lib/json.h"
#include "lib/names.h"
#include "store/op.h"
#include "store/t_approval.h"
#include "store/t_event.h"

static enum err op_approval_ask(struct txn *t, const struct st_approval_ask *m, int *fds, struct st_ok *a, int *out)
{
	(void)fds;
	(void)a;
	(void)out;
	struct rec_run r;
	struct rec_approval q;
	enum err e = run_load(t, m->tenant, m->run, &r);
	if (e != ERR_OK)
		return e;
	if (run_is_final(&r))
		return ERR_RUN_SESSION_EVENTS_REJECTED;
	if (m->data.n < 2 || m->data.p[0] != '{' || m->data.p[m->data.n - 1] != '}')
		return ERR_INVALID_EVENT_APPEND;
	if (approval_get(t, m->tenant, m->run, m->request, &q))
		return ERR_OK;
	if (!store_roomy(t->store))
		return ERR_STORAGE_FULL;
	/* Both events are the agent's doing, so they come out of its part of the buffer. */
	if (r.events_truncated || !event_fits(&r, m->run, "approval.requested", m->data.n + 1000))
		return ERR_RUN_SESSION_EVENTS_REJECTED;
	(void)event_add(t, m->tenant, m->run, &r, EVENT_AGENT, "approval.requested", m->data);
	q = (struct rec_approval){.status = APPROVAL_DECIDED,
				  .decision = DECISION_DENY,
				  .requested_at = t->now,
				  .decided_at = t->now,
				  .digest = m->digest};
	approval_put(t, m->tenant, m->run, m->request, &q);
	own_buf struct buf b;
	struct jw w;
	buf_init(&b, 1000);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "requestId", m->request);
	jw_kstr(&w, "decision", decision_names[DECISION_DENY]);
	jw_kstr(&w, "reason", "approvals are not available");
	jw_close(&w, '}');
	(void)event_addb(t, m->tenant, m->run, &r, EVENT_CONTROL, "approval.resolved", &b);
	run_save(t, m->tenant, m->run, &r);
	struct audit_line l = {.event = AUDIT_APPROVAL_DENY,
			       .tenant = m->tenant,
			       .run = m->run,
			       .actor = "system",
			       .v = {{AUDIT_F_APPROVAL, .text = m->request},
				     {AUDIT_F_DECISION, .text = decision_names[DECISION_DENY]},
				     {AUDIT_F_REASON, .text = "policy"}}};
	txn_audit(t, &l);
	return ERR_OK;
}
ST_OP(approval_ask, ok, 0, 0)

static enum err op_approval_get(struct txn *t, const struct st_approval_get *m, int *fds, struct st_approval_is *a,
				int *out)
{
	(void)fds;
	(void)out;
	struct rec_run r;
	struct rec_approval q;
	enum err e = run_load(t, m->tenant, m->run, &r);
	if (e != ERR_OK)
		return e;
	if (run_is_final(&r))
		return ERR_APPROVAL_NOT_FOUND;
	/* Not seen yet is pending: the question may still be on its way. */
	*a = (struct st_approval_is){.status = APPROVAL_PENDING, .decision = DECISION_NONE};
	if (approval_get(t, m->tenant, m->run, m->request, &q))
		*a = (struct st_approval_is){
		    .status = q.status, .decision = q.decision, .decided_at = q.decided_at, .digest = q.digest};
	return ERR_OK;
}
ST_OP(approval_get, approval_is, 0, 0)
