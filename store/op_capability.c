/*
 * The budget of a run (R-60...R-66). One transaction looks and charges, so two callers can never
 * spend the same unit; no record, another model or route, expiry and zero all mean no.
 */
#include "gen/conf_msg.h"
#include "lib/json.h"
#include "lib/names.h"
#include "store/op.h"
#include "store/spent.h"
#include "store/t_capability.h"
#include "store/t_event.h"
#include <string.h>

/* Longer than any call takes: model_stream_seconds is 3,600 at most. */
static const uint64_t CALL_MS = 3660000;

static uint64_t plus(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/*
 * So many tokens at most for this call? What is not settled is kept, whoever died. Where the run has too few left only
 * because of calls that are under way, it may ask again when they are over.
 */
static enum err room_in_run(struct txn *t, const char *tenant, const struct rec_run *r, uint64_t tokens)
{
	uint64_t most = quota_run_tokens(t, tenant, r->agent);
	uint64_t over = plus(plus(r->prompt_tokens, r->completion_tokens), r->kept_tokens);
	/* One is used by every call. */
	uint64_t with = plus(over, tokens > 0 ? tokens : 1);
	if (most == 0 || plus(with, r->reserved_tokens) <= most)
		return ERR_OK;
	if (with > most || t->now >= r->reserved_until)
		return ERR_MODEL_TOKEN_BUDGET_EXHAUSTED;
	t->retry_after = 1;
	return ERR_TOO_MANY_MODEL_CALLS;
}

/* The record, or ERR_INACTIVE_RUN_TOKEN; an expired one is deleted for good. */
static enum err active(struct txn *t, const char *tenant, const char *run, struct rec_capability *cap)
{
	if (!capability_get(t, tenant, run, cap))
		return ERR_INACTIVE_RUN_TOKEN;
	if (cap->expires_at > t->now)
		return ERR_OK;
	capability_del(t, tenant, run);
	/* The refusal is the answer, but the deletion is kept: ended here with success. */
	enum err e = txn_end(t, ERR_OK);
	return e != ERR_OK ? e : ERR_INACTIVE_RUN_TOKEN;
}

static enum err op_cap_consume(struct txn *t, const struct st_cap_consume *m, int *fds, struct st_cap_is *a, int *out)
{
	(void)fds;
	(void)out;
	struct rec_capability cap;
	struct rec_run r;
	enum err e = run_load(t, m->tenant, m->run, &r);
	if (e != ERR_OK)
		return e;
	/* Mismatch first: whoever asks for another model must not be able to delete anything. */
	if (!capability_get(t, m->tenant, m->run, &cap) || strcmp(cap.model, m->model) != 0 ||
	    cap.fingerprint.n != m->fingerprint.n || memcmp(cap.fingerprint.p, m->fingerprint.p, m->fingerprint.n) != 0)
		return ERR_INACTIVE_RUN_TOKEN;
	e = active(t, m->tenant, m->run, &cap);
	if (e != ERR_OK)
		return e;
	if (cap.used_requests >= cap.max_requests)
		return ERR_MODEL_REQUEST_BUDGET_EXHAUSTED;
	uint8_t minute[SPENT_MINUTE];
	e = quota_call(t, m->tenant, m->tokens);
	if (e == ERR_OK)
		e = room_in_run(t, m->tenant, &r, m->tokens);
	if (e == ERR_OK)
		e = quota_minute(t, store_quotas(t->store, m->tenant)->max_model_calls_minute, &cap, minute);
	if (e != ERR_OK)
		return e;
	(void)spent_add(t, m->tenant, SPENT_REQUESTS, 1);
	a->reserved_at = spent_add(t, m->tenant, SPENT_TOKENS, m->tokens);
	r.reserved_tokens = plus(r.reserved_tokens, m->tokens);
	if (m->tokens > 0)
		r.reserved_until = t->now + CALL_MS;
	cap.used_requests++;
	capability_put(t, m->tenant, m->run, &cap);
	t->adds.consumed++;
	r.used_requests = cap.used_requests;
	run_save(t, m->tenant, m->run, &r);
	/* The call's own event will wake; but an agent that is frozen while its question waits must not be. */
	t->wake.set = r.phase == PHASE_AWAITING_APPROVAL;
	a->remaining = cap.max_requests - cap.used_requests;
	return ERR_OK;
}
ST_OP_ONCE(cap_consume, cap_is)

static enum err op_cap_check(struct txn *t, const struct st_cap_check *m, int *fds, struct st_cap_is *a, int *out)
{
	(void)fds;
	(void)out;
	struct rec_capability cap;
	struct rec_run r;
	enum err e = run_load(t, m->tenant, m->run, &r);
	if (e == ERR_OK)
		e = active(t, m->tenant, m->run, &cap);
	if (e != ERR_OK)
		return e;
	a->remaining = cap.max_requests > cap.used_requests ? cap.max_requests - cap.used_requests : 0;
	a->agent = r.agent;
	a->profile = r.profile;
	a->model = cap.model;
	a->expires_at = cap.expires_at;
	a->renewed = cap.renewed;
	return ERR_OK;
}
ST_OP(cap_check, cap_is, 0, 0)

static enum err op_cap_renew(struct txn *t, const struct st_cap_renew *m, int *fds, struct st_ok *a, int *out)
{
	(void)fds;
	(void)a;
	(void)out;
	struct rec_capability cap;
	struct rec_run r;
	enum err e = run_load(t, m->tenant, m->run, &r);
	if (e == ERR_OK)
		e = active(t, m->tenant, m->run, &cap);
	if (e != ERR_OK)
		return e;
	if (m->expires_at > cap.expires_at)
		cap.expires_at = m->expires_at;
	cap.renewed = true;
	capability_put(t, m->tenant, m->run, &cap);
	return ERR_OK;
}
ST_OP(cap_renew, ok, 0, 0)

/*
 * Answered early: whoever waits for it has a model's answer in hand, and nothing rests on this line but the line. The
 * unit was made durable by CAP_CONSUME. Also the last look before the answer's bytes leave: a capability that is not
 * there any more, perhaps by an operation of this very batch, keeps them.
 */
static enum err op_model_called(struct txn *t, const struct st_model_called *m, int *fds, struct st_called_is *a,
				int *out)
{
	(void)fds;
	(void)out;
	struct rec_run r;
	struct rec_capability cap;
	enum err e = run_load(t, m->tenant, m->run, &r);
	if (e != ERR_OK)
		return e;
	/* What was used is used, also by a run that has ended meanwhile. */
	uint64_t tokens = plus(m->prompt_tokens, m->completion_tokens);
	uint64_t held = m->reserved < r.reserved_tokens ? m->reserved : r.reserved_tokens;
	uint64_t used = m->keep && held > tokens ? held : tokens;
	spent_settle(t, m->tenant, SPENT_TOKENS, m->reserved_at, held, used);
	t->adds.tokens += tokens;
	if (run_is_final(&r)) {
		e = tokens > 0 || held > 0 ? txn_end(t, ERR_OK) : ERR_OK;
		return e != ERR_OK ? e : ERR_RUN_SESSION_EVENTS_REJECTED;
	}
	r.calls_ended += r.calls_ended < r.used_requests;
	r.reserved_tokens -= held;
	r.kept_tokens = plus(r.kept_tokens, used - tokens);
	r.prompt_tokens += m->prompt_tokens;
	r.completion_tokens += m->completion_tokens;
	own_buf struct buf b;
	struct jw w;
	buf_init(&b, 4096);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kint(&w, "status", m->status);
	jw_kstr(&w, "outcome", m->outcome);
	jw_kint(&w, "promptTokens", (int64_t)m->prompt_tokens);
	jw_kint(&w, "completionTokens", (int64_t)m->completion_tokens);
	jw_kint(&w, "durationMs", m->duration_ms);
	jw_kint(&w, "requestsUsed", r.used_requests);
	jw_kint(&w, "requestsMax", r.max_requests);
	jw_close(&w, '}');
	(void)event_addb(t, m->tenant, m->run, &r, EVENT_CONTROL, "model.called", &b);
	run_save(t, m->tenant, m->run, &r);
	a->deliver = capability_get(t, m->tenant, m->run, &cap) && cap.expires_at > t->now;
	t->early = true;
	return ERR_OK;
}
ST_OP_ONCE(model_called, called_is)
