/*
 * Questions of agents, looked for by the gateway and decided by the public side (asked: op_events.c). A request id is
 * good for one question (D-47); what waits is never pushed out by what comes (D-48); the first decision stays; what was
 * allowed for the rest of the run is allowed for the identical action alone (D-45); allow_session takes two steps of
 * one device (D-44).
 */
#include "gen/limits.h"
#include "lib/digest.h"
#include "lib/secret.h"
#include "lib/token.h"
#include "store/op.h"
#include "store/questions.h"
#include "store/run_end.h"
#include "store/t_receipt.h"
#include "store/t_token.h"
#include <errno.h>
#include <string.h>

enum { NONCE = 32 };

static void audit(struct txn *t, enum audit_event event, const char *tenant, const char *run, const char *actor,
		  const char *request_id, const char *request, struct wire_bytes digest, const char *label)
{
	char *text = arena_get(&t->arena, SHA256_HEX);
	if (text == NULL) {
		txn_fail(t, store_error(errno));
		return;
	}
	if (digest.n == SHA256_SIZE)
		hex(digest.p, SHA256_SIZE, text);
	struct audit_line l = {.event = event,
			       .tenant = tenant,
			       .run = run,
			       .actor = actor,
			       .request_id = request_id,
			       .v = {{AUDIT_F_APPROVAL, .text = request}, {AUDIT_F_DIGEST, .text = text}}};
	if (label != NULL)
		l.v[2] = (struct audit_value){AUDIT_F_LABEL, .text = label};
	txn_audit(t, &l);
}

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
	if (!approval_get(t, m->tenant, m->run, m->request, &q))
		return t->failed;
	if (question_late(t, m->tenant, m->run, &r, m->request, &q))
		run_save(t, m->tenant, m->run, &r);
	*a = (struct st_approval_is){
	    .status = q.status, .decision = q.decision, .decided_at = q.decided_at, .digest = q.digest};
	return ERR_OK;
}
ST_OP(approval_get, approval_is, 0, 0)

/* Is who decides still one who may, in this very transaction? The request may have taken long since it was asked. */
static enum err decider(struct txn *t, const char *tenant, const char *by)
{
	struct rec_token k;
	if (!token_get(t, by, &k) || k.revoked || strcmp(k.tenant, tenant) != 0)
		return ERR_UNAUTHORIZED;
	bool device = k.kind == PRINCIPAL_DEVICE;
	if (!token_alive(&k, t->now))
		return device ? ERR_DEVICE_EXPIRED : ERR_UNAUTHORIZED;
	return device || (k.rights & RIGHT_APPROVE) != 0 ? ERR_OK : ERR_DEVICE_REQUIRED;
}

/* The question, if it may be decided: it waits, and is the one that was shown. An error may leave something to keep. */
static enum err open_question(struct txn *t, const char *tenant, const char *run, const char *request, const char *by,
			      struct wire_bytes digest, struct rec_run *r, struct rec_approval *q)
{
	enum approval_state to = APPROVAL_PENDING;
	enum err e = decider(t, tenant, by);
	if (e == ERR_OK)
		e = run_load(t, tenant, run, r);
	if (e != ERR_OK)
		return e;
	bool there = approval_get(t, tenant, run, request, q);
	if (t->failed != ERR_OK)
		return t->failed;
	if (!there)
		return run_is_final(r) ? ERR_RUN_IS_TERMINAL : ERR_APPROVAL_NOT_FOUND;
	if (run_is_final(r) && q->status != APPROVAL_DECIDED)
		return ERR_RUN_IS_TERMINAL;
	if (question_late(t, tenant, run, r, request, q)) {
		run_save(t, tenant, run, r);
		/* The refusal is the answer, but that it is over is kept, and told to whoever follows the run. */
		e = txn_end(t, ERR_OK);
		return e != ERR_OK ? e : ERR_APPROVAL_EXPIRED;
	}
	e = approval_step((enum approval_state)q->status, APPROVAL_EV_DECIDE, &to);
	if (e == ERR_OK && digest.n != 0 && !secret_equal(digest.p, digest.n, q->digest.p, q->digest.n))
		return ERR_DIGEST_MISMATCH;
	return e;
}

static enum err op_approval_confirm(struct txn *t, const struct st_approval_confirm *m, int *fds,
				    struct st_approval_nonce *a, int *out)
{
	(void)fds;
	(void)out;
	struct rec_run r;
	struct rec_approval q;
	uint8_t nonce[NONCE], hash[SHA256_SIZE];
	enum err e = open_question(t, m->tenant, m->run, m->request, m->by, m->digest, &r, &q);
	if (e != ERR_OK)
		return e;
	if (q.shortened)
		return ERR_DECISION_NOT_OFFERED;
	random_bytes(nonce, sizeof nonce);
	char *text = arena_get(&t->arena, 2 * NONCE);
	if (text == NULL || b64url_encode(nonce, sizeof nonce, text, 2 * NONCE) == 0 ||
	    !sha256(text, strlen(text), hash))
		return store_error(errno);
	q.confirm = (struct wire_bytes){hash, sizeof hash};
	q.confirm_by = m->by;
	q.confirm_until = t->now + LIMIT_APPROVAL_CONFIRM_SECONDS * UINT64_C(1000);
	approval_put(t, m->tenant, m->run, m->request, &q);
	audit(t, AUDIT_APPROVAL_ALLOW_SESSION_FIRST, m->tenant, m->run, m->by, m->request_id, m->request, q.digest,
	      NULL);
	*a = (struct st_approval_nonce){.nonce = text, .expires_at = q.confirm_until};
	return ERR_OK;
}
ST_OP(approval_confirm, approval_nonce, 0, 0)

/* The second tap: of the same device, in time, with the nonce of the first. */
static enum err confirmed(const struct txn *t, const struct st_approval_decide *m, const struct rec_approval *q)
{
	uint8_t hash[SHA256_SIZE];
	if (q->confirm.n != SHA256_SIZE || q->confirm_until <= t->now || strcmp(q->confirm_by, m->by) != 0)
		return ERR_CONFIRM_INVALID;
	if (!sha256(m->confirm, strlen(m->confirm), hash))
		return store_error(errno);
	return secret_equal(hash, sizeof hash, q->confirm.p, q->confirm.n) ? ERR_OK : ERR_CONFIRM_INVALID;
}

static enum err op_approval_decide(struct txn *t, const struct st_approval_decide *m, int *fds,
				   struct st_approval_decided *a, int *out)
{
	(void)fds;
	(void)out;
	static const enum audit_event events[DECISION__COUNT] = {[DECISION_ALLOW_ONCE] = AUDIT_APPROVAL_ALLOW_ONCE,
								 [DECISION_ALLOW_SESSION] =
								     AUDIT_APPROVAL_ALLOW_SESSION,
								 [DECISION_DENY] = AUDIT_APPROVAL_REFUSE,
								 [DECISION_CANCEL] = AUDIT_APPROVAL_CANCEL};
	struct rec_run r;
	struct rec_approval q;
	if (m->decision == DECISION_NONE || m->decision >= DECISION__COUNT)
		return ERR_INVALID_APPROVAL_DECISION;
	enum err e = open_question(t, m->tenant, m->run, m->request, m->by, m->digest, &r, &q);
	if (e == ERR_ALREADY_DECIDED) {
		*a = (struct st_approval_decided){.decision = q.decision, .decided_at = q.decided_at};
		return ERR_OK;
	}
	if (e != ERR_OK)
		return e;
	if (m->decision == DECISION_ALLOW_SESSION && q.shortened)
		return ERR_DECISION_NOT_OFFERED;
	if (m->decision == DECISION_ALLOW_SESSION && (e = confirmed(t, m, &q)) != ERR_OK)
		return e;
	q.decision = m->decision;
	q.device = m->device;
	q.by = m->by;
	q.confirm = (struct wire_bytes){NULL, 0};
	if (m->decision == DECISION_ALLOW_SESSION)
		grant_put(t, m->tenant, m->run, q.digest, m->request);
	e = question_step(t, m->tenant, m->run, &r, m->request, &q, APPROVAL_EV_DECIDE, NULL);
	if (e != ERR_OK)
		return e;
	run_save(t, m->tenant, m->run, &r);
	struct rec_receipt receipt = {
	    .run = m->run, .request = m->request, .kind = RECEIPT_ANSWER, .decision = m->decision, .digest = q.digest};
	receipt_add(t, m->tenant, m->actor, &receipt);
	audit(t, events[m->decision], m->tenant, m->run, m->actor, m->request_id, m->request, q.digest, m->device);
	*a = (struct st_approval_decided){.changed = true, .decision = q.decision, .decided_at = q.decided_at};
	return ERR_OK;
}
ST_OP_ONCE(approval_decide, approval_decided)

static enum err op_wait_look(struct txn *t, const struct st_wait_look *m, int *fds, struct st_wait_is *a, int *out)
{
	(void)fds;
	(void)out;
	struct rec_run r;
	enum err e = run_load(t, m->tenant, m->run, &r);
	if (e != ERR_OK || r.phase != PHASE_AWAITING_APPROVAL || r.state != RUN_RUNNING)
		return e;
	uint32_t waited = r.pending;
	uint64_t next = questions_late(t, m->tenant, m->run, &r);
	if (r.pending != waited)
		run_save(t, m->tenant, m->run, &r);
	*a = (struct st_wait_is){.waits = r.pending > 0,
				 .calling = r.used_requests > r.calls_ended,
				 .left_ms = next > t->now ? next - t->now : 0};
	return ERR_OK;
}
ST_OP(wait_look, wait_is, 0, 0)

/* What was allowed for the rest of the run is asked again from now on. */
static enum err op_grant_revoke(struct txn *t, const struct st_grant_revoke *m, int *fds, struct st_ok *a, int *out)
{
	(void)fds;
	(void)a;
	(void)out;
	struct rec_run r;
	struct rec_approval q;
	char digest[SHA256_HEX];
	enum err e = decider(t, m->tenant, m->by);
	if (e == ERR_OK)
		e = run_load(t, m->tenant, m->run, &r);
	if (e != ERR_OK)
		return e;
	/* It ended with the run. */
	if (run_is_final(&r) || !approval_get(t, m->tenant, m->run, m->request, &q) ||
	    !grant_of(t, m->tenant, m->run, q.digest, m->request))
		return t->failed != ERR_OK ? t->failed : ERR_GRANT_NOT_FOUND;
	grant_del(t, m->tenant, m->run, q.digest);
	struct rec_receipt receipt = {
	    .run = m->run, .request = m->request, .kind = RECEIPT_GRANT_REVOKE, .digest = q.digest};
	receipt_add(t, m->tenant, m->actor, &receipt);
	hex(q.digest.p, SHA256_SIZE, digest); /* it has one, or there were no grant */
	grant_gone(t, m->tenant, m->run, &r, m->request, digest, m->device);
	run_save(t, m->tenant, m->run, &r);
	audit(t, AUDIT_APPROVAL_GRANT_REVOKE, m->tenant, m->run, m->actor, m->request_id, m->request, q.digest,
	      m->device);
	return ERR_OK;
}
ST_OP_ONCE(grant_revoke, ok)
