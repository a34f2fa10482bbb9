/* What people are shown: a run's questions, those of all runs that wait, and what their devices did. Reads only. */
#include "lib/names.h"
#include "store/op.h"
#include "store/t_approval.h"
#include "store/t_receipt.h"
#include "store/t_run.h"

struct listing {
	struct txn *t;
	const char *tenant, *run;
	bool more, ended;
	unsigned limit, found, waiting; /* of the inbox */
	struct wire_list list;
};

/* False: the page is full. */
static bool add_question(struct listing *l, const char *run, const char *request, const struct rec_approval *r,
			 const struct rec_run *of)
{
	/* Over, though it was not told of yet. */
	bool late = r->status == APPROVAL_PENDING && (l->ended || r->expires_at <= l->t->now);
	bool granted = !l->ended && r->status == APPROVAL_DECIDED && r->decision == DECISION_ALLOW_SESSION &&
		       grant_of(l->t, l->tenant, run, r->digest, request);
	struct st_approval item = {.run = run,
				   .request = request,
				   .status = late ? APPROVAL_EXPIRED : r->status,
				   .decision = r->decision,
				   .requested_at = r->requested_at,
				   .decided_at = late ? r->expires_at : r->decided_at,
				   .expires_at = r->expires_at,
				   .digest = r->digest,
				   .action_id = r->action_id,
				   .effect = r->effect,
				   .reason = r->reason,
				   .policy_reason = r->policy_reason,
				   .preview = r->preview,
				   .shortened = r->shortened,
				   .device = r->device,
				   .granted = granted,
				   .agent = of == NULL ? "" : of->agent,
				   .title = of == NULL ? "" : of->title};
	l->more = !LIST_PUT(&l->list, approval, ST_MAX_APPROVAL, &item);
	return !l->more;
}

static bool list_approval(void *with, const char *request, const struct rec_approval *r)
{
	struct listing *l = with;
	return add_question(l, l->run, request, r, NULL);
}

static enum err op_approval_list(struct txn *t, const struct st_approval_list *m, int *fds, struct st_approvals_are *a,
				 int *out)
{
	(void)fds;
	(void)out;
	struct rec_run r;
	enum err e = run_load(t, m->tenant, m->run, &r);
	if (e != ERR_OK)
		return e;
	struct listing l = {.t = t,
			    .tenant = m->tenant,
			    .run = m->run,
			    .ended = run_is_final(&r),
			    .list = {.p = t->page, .cap = STORE_PAGE}};
	approval_each(t, m->tenant, m->run, m->after, list_approval, &l);
	a->more = l.more;
	a->items = wire_list_done(&l.list);
	return ERR_OK;
}
ST_OP(approval_list, approvals_are, 0, 0)

static bool list_waiting(void *with, uint64_t asked, const char *run, const char *request, uint64_t expires_at)
{
	struct listing *l = with;
	struct rec_run r;
	struct rec_approval q;
	(void)asked;
	if (expires_at <= l->t->now)
		return true;
	/* A row that names nothing is a finding of the check, and no card. */
	if (run_load(l->t, l->tenant, run, &r) != ERR_OK || !approval_get(l->t, l->tenant, run, request, &q))
		return l->t->failed == ERR_OK;
	l->more = l->found++ == l->limit;
	return !l->more && add_question(l, run, request, &q, &r);
}

static bool count_waiting(void *with, uint64_t asked, const char *run, const char *request, uint64_t expires_at)
{
	struct listing *l = with;
	(void)asked;
	(void)run;
	(void)request;
	l->waiting += expires_at > l->t->now;
	return true;
}

static bool any_run(void *with, const char *tenant, const char *run, uint8_t state, uint64_t created_at)
{
	(void)tenant;
	(void)run;
	(void)state;
	(void)created_at;
	*(bool *)with = true;
	return false;
}

static enum err op_inbox_get(struct txn *t, const struct st_inbox_get *m, int *fds, struct st_inbox_is *a, int *out)
{
	(void)fds;
	(void)out;
	struct listing l = {
	    .t = t, .tenant = m->tenant, .limit = list_limit(m->limit), .list = {.p = t->page, .cap = STORE_PAGE}};
	waiting_each(t, m->tenant, m->after_asked, m->after_run, m->after_request, list_waiting, &l);
	/* 32 of each run that goes on, at most. */
	waiting_each(t, m->tenant, 0, "", "", count_waiting, &l);
	run_open_each(t, m->tenant, NULL, NULL, any_run, &a->busy);
	a->more = l.more;
	a->waiting = l.waiting;
	a->items = wire_list_done(&l.list);
	return ERR_OK;
}
ST_OP(inbox_get, inbox_is, 0, 0)

static bool list_receipt(void *with, uint64_t at, const char *receipt, const struct rec_receipt *r)
{
	struct listing *l = with;
	struct st_receipt item = {.receipt = receipt,
				  .at = at,
				  .device = r->device,
				  .run = r->run,
				  .request = r->request,
				  .kind = r->kind,
				  .decision = r->decision,
				  .digest = r->digest};
	l->more = l->found++ == l->limit || !LIST_PUT(&l->list, receipt, ST_MAX_RECEIPT, &item);
	return !l->more;
}

static enum err op_receipt_list(struct txn *t, const struct st_receipt_list *m, int *fds, struct st_receipts_are *a,
				int *out)
{
	(void)fds;
	(void)out;
	struct listing l = {.t = t, .limit = list_limit(m->limit), .list = {.p = t->page, .cap = STORE_PAGE}};
	receipt_each(t, m->tenant, m->before_at, m->before_receipt, list_receipt, &l);
	a->more = l.more;
	a->items = wire_list_done(&l.list);
	return ERR_OK;
}
ST_OP(receipt_list, receipts_are, 0, 0)
