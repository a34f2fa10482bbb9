/*
 * GET /v1/runs/{runId}/approvals, POST .../approvals/{requestId} and DELETE .../approvals/{requestId}/grant. Shows what
 * the store has cleaned, and passes on who decided what; decides nothing itself. Whoever cannot be told apart from a
 * process in a sandbox is nobody here.
 */
#include "handlers/approvals.h"
#include "gen/routes.h"
#include "gen/schema.h"
#include "handlers/caller.h"
#include "handlers/runs.h"
#include "lib/ask.h"
#include "lib/digest.h"
#include "lib/lack.h"
#include "lib/names.h"
#include "lib/num.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_BYTES = 8000000, DECISIONS_SHOWN = 256 };

static const char *dup(struct request *rq, const char *s, bool *ok)
{
	char *copy = arena_dup(rq->arena, s, strlen(s));
	*ok = *ok && copy != NULL;
	return copy;
}

/* The answer's buffer is used again for the next page. */
static bool keep(struct request *rq, struct st_approval *q)
{
	bool ok = true, waits = q->status == APPROVAL_PENDING, shown = waits || q->granted;
	char *digest = arena_dup(rq->arena, (const char *)q->digest.p, q->digest.n);
	q->digest.p = (const uint8_t *)digest;
	q->run = q->agent = q->title = "";
	q->request = dup(rq, q->request, &ok);
	q->device = dup(rq, q->device, &ok);
	q->action_id = waits ? dup(rq, q->action_id, &ok) : "";
	q->effect = shown ? dup(rq, q->effect, &ok) : "";
	q->reason = waits ? dup(rq, q->reason, &ok) : "";
	q->policy_reason = waits ? dup(rq, q->policy_reason, &ok) : "";
	q->preview = shown ? dup(rq, q->preview, &ok) : "";
	return ok && digest != NULL;
}

enum err questions_fetch(struct request *rq, struct questions *out)
{
	struct st_approval_list question = {.tenant = rq->who->tenant, .run = rq->arg[0], .after = ""};
	struct st_approvals_are are = {.more = true};
	*out = (struct questions){NULL, 0};
	while (are.more) {
		enum err e = st_call_approval_list(rq->ask, &question, NULL, &are, NULL);
		if (e != ERR_OK)
			return e;
		struct wire_bytes rest = are.items, part;
		size_t n = 0;
		bool bad = false;
		while (wire_list_next(&rest, &part, &bad))
			n++;
		if (bad || (are.more && n == 0))
			return ERR_INTERNAL_ERROR;
		struct st_approval *v = arena_get(rq->arena, (out->n + n + 1) * sizeof *v);
		if (v == NULL)
			return ERR_RESOURCES_EXHAUSTED;
		if (out->n > 0)
			memcpy(v, out->v, out->n * sizeof *v);
		out->v = v;
		rest = are.items;
		while (wire_list_next(&rest, &part, &bad)) {
			if (!st_get_approval(part.p, part.n, &v[out->n]))
				return ERR_INTERNAL_ERROR;
			if (!keep(rq, &v[out->n++]))
				return ERR_RESOURCES_EXHAUSTED;
		}
		if (out->n > 0)
			question.after = v[out->n - 1].request;
	}
	return ERR_OK;
}

/* Those that wait first, oldest first; then the others, latest first. */
static int in_order(const void *a, const void *b)
{
	const struct st_approval *p = a, *q = b;
	bool pw = p->status == APPROVAL_PENDING, qw = q->status == APPROVAL_PENDING;
	if (pw != qw)
		return pw ? -1 : 1;
	uint64_t x = pw ? p->requested_at : q->decided_at, y = pw ? q->requested_at : p->decided_at;
	return x != y ? (x < y ? -1 : 1) : strcmp(p->request, q->request);
}

void put_digest(struct jw *w, struct wire_bytes digest)
{
	char text[SHA256_HEX] = "";
	if (digest.n == SHA256_SIZE)
		hex(digest.p, SHA256_SIZE, text);
	jw_kstr(w, "digest", text);
}

void question_put(struct jw *w, const struct st_approval *q, const char *run)
{
	jw_open(w, '{');
	if (run != NULL) {
		jw_kstr(w, "runId", run);
		jw_kstr(w, "agent", q->agent);
		put_text(w, "title", q->title);
	}
	jw_kstr(w, "requestId", q->request);
	jw_kstr(w, "actionId", q->action_id);
	jw_kstr(w, "effect", q->effect);
	jw_kstr(w, "reason", q->reason);
	jw_kstr(w, "policyReason", q->policy_reason);
	jw_kstr(w, "preview", q->preview);
	put_digest(w, q->digest);
	jw_kbool(w, "textShortened", q->shortened);
	jw_kint(w, "requestedAt", (int64_t)q->requested_at);
	jw_kint(w, "expiresAt", (int64_t)q->expires_at);
	jw_close(w, '}');
}

static void put_decision(struct jw *w, const struct st_approval *q)
{
	bool decided = q->status == APPROVAL_DECIDED && q->decision < DECISION__COUNT;
	jw_open(w, '{');
	jw_kstr(w, "requestId", q->request);
	jw_kstr(w, "decision", decided ? decision_names[q->decision] : "expired");
	jw_kint(w, "decidedAt", (int64_t)q->decided_at);
	put_digest(w, q->digest);
	put_text(w, "device", q->device);
	jw_close(w, '}');
}

static void put_grant(struct jw *w, const struct st_approval *q)
{
	jw_open(w, '{');
	jw_kstr(w, "requestId", q->request);
	jw_kstr(w, "effect", q->effect);
	jw_kstr(w, "preview", q->preview);
	put_digest(w, q->digest);
	jw_kint(w, "decidedAt", (int64_t)q->decided_at);
	put_text(w, "device", q->device);
	jw_close(w, '}');
}

void questions_put(struct jw *w, const char *pending, const char *decisions, const char *grants,
		   const struct questions *all)
{
	size_t i = 0;
	if (all->n > 0)
		qsort(all->v, all->n, sizeof *all->v, in_order);
	jw_key(w, pending);
	jw_open(w, '[');
	for (; i < all->n && all->v[i].status == APPROVAL_PENDING; i++)
		question_put(w, &all->v[i], NULL);
	jw_close(w, ']');
	jw_key(w, decisions);
	jw_open(w, '[');
	for (size_t shown = 0; i < all->n && shown < DECISIONS_SHOWN; i++, shown++)
		put_decision(w, &all->v[i]);
	jw_close(w, ']');
	jw_key(w, grants);
	jw_open(w, '[');
	for (i = 0; i < all->n; i++)
		if (all->v[i].granted)
			put_grant(w, &all->v[i]);
	jw_close(w, ']');
}

void handle_approval_list(struct request *rq, struct reply *rp)
{
	struct questions all;
	if (!run_no_query(rq, rp))
		return;
	enum err e = questions_fetch(rq, &all);
	if (e != ERR_OK) {
		reply_store_error(rp, e, rq->ask);
		return;
	}
	own_buf struct buf b;
	struct jw w;
	buf_init(&b, LIST_BYTES);
	jw_init(&w, &b);
	jw_open(&w, '{');
	questions_put(&w, "pending", "decisions", "grants", &all);
	jw_close(&w, '}');
	reply_json(rp, 200, &b);
}

static uint8_t decision_find(const char *word)
{
	uint8_t d = DECISION_ALLOW_ONCE;
	while (d < DECISION__COUNT && strcmp(decision_names[d], word) != 0)
		d++;
	return d;
}

/* Which decision stays. */
static void put_decided(struct jw *w, const void *with)
{
	const struct st_approval_decided *was = with;
	jw_kstr(w, "decision", was->decision < DECISION__COUNT ? decision_names[was->decision] : "");
	jw_kint(w, "decidedAt", (int64_t)was->decided_at);
}

static void decide(struct request *rq, struct reply *rp, uint8_t decision, struct wire_bytes digest,
		   const char *confirm);

/* The first tap of allow_session. */
static void first_tap(struct request *rq, struct reply *rp, struct wire_bytes digest)
{
	struct st_approval_confirm m = {.tenant = rq->who->tenant,
					.run = rq->arg[0],
					.request = rq->arg[1],
					.digest = digest,
					.by = rq->who->id,
					.request_id = rq->in->id};
	struct st_approval_nonce nonce;
	own_buf struct buf b;
	struct jw w;
	buf_init(&b, 4096);
	if (!reply_ready(rp, &b))
		return;
	enum err e = st_call_approval_confirm(rq->ask, &m, NULL, &nonce, NULL);
	if (e == ERR_ALREADY_DECIDED) {
		/* Which decision stays is said by who is asked to decide; without a nonce it decides nothing. */
		decide(rq, rp, DECISION_ALLOW_SESSION, digest, "");
		return;
	}
	if (e != ERR_OK) {
		reply_store_error(rp, e, rq->ask);
		return;
	}
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "status", "confirm");
	jw_kstr(&w, "confirm", nonce.nonce);
	jw_kint(&w, "expiresAt", (int64_t)nonce.expires_at);
	jw_close(&w, '}');
	reply_json(rp, 202, &b);
}

static void decide(struct request *rq, struct reply *rp, uint8_t decision, struct wire_bytes digest,
		   const char *confirm)
{
	struct st_approval_decide m = {.tenant = rq->who->tenant,
				       .run = rq->arg[0],
				       .request = rq->arg[1],
				       .decision = decision,
				       .digest = digest,
				       .confirm = confirm,
				       .device = rq->who->label,
				       .by = rq->who->id,
				       .actor = rq->who->by,
				       .request_id = rq->in->id};
	struct st_approval_decided done;
	own_buf struct buf b;
	struct jw w;
	buf_init(&b, 4096);
	if (!reply_ready(rp, &b))
		return;
	enum err e = st_call_approval_decide(rq->ask, &m, NULL, &done, NULL);
	if (e != ERR_OK) {
		reply_store_error(rp, e, rq->ask);
		return;
	}
	if (!done.changed) {
		reply_error_with(rp, ERR_ALREADY_DECIDED, put_decided, &done);
		return;
	}
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "requestId", rq->arg[1]);
	jw_kstr(&w, "decision", decision_names[done.decision]);
	jw_kint(&w, "decidedAt", (int64_t)done.decided_at);
	jw_close(&w, '}');
	reply_json(rp, 200, &b);
}

void handle_approval_decide(struct request *rq, struct reply *rp)
{
	char field[SCHEMA_FIELD];
	uint8_t bytes[SHA256_SIZE];
	struct wire_bytes digest = {NULL, 0};
	if (!run_no_query(rq, rp) || !caller_known(rq, rp))
		return;
	enum err e = schema_check(&schema_approval_decide, rq->json, field);
	if (e != ERR_OK) {
		reply_error(rp, e, field, NULL);
		return;
	}
	if (!id_valid(rq->arg[1])) {
		reply_error(rp, ERR_APPROVAL_NOT_FOUND, NULL, NULL);
		return;
	}
	const struct json *shown = json_get(rq->json, "digest"), *confirm = json_get(rq->json, "confirm");
	uint8_t decision = decision_find(json_get(rq->json, "decision")->text);
	if (decision == DECISION__COUNT) {
		reply_error(rp, ERR_INVALID_APPROVAL_DECISION, "decision", NULL);
		return;
	}
	if (shown != NULL && !unhex(shown->text, shown->len, bytes, sizeof bytes)) {
		reply_error(rp, ERR_INVALID_REQUEST, "digest", NULL);
		return;
	}
	if (shown != NULL)
		digest = (struct wire_bytes){bytes, sizeof bytes};
	if (confirm != NULL && decision != DECISION_ALLOW_SESSION) {
		reply_error(rp, ERR_INVALID_REQUEST, "confirm", NULL);
		return;
	}
	if (decision == DECISION_ALLOW_SESSION && confirm == NULL)
		first_tap(rq, rp, digest);
	else
		decide(rq, rp, decision, digest, confirm != NULL ? confirm->text : "");
}

void handle_grant_revoke(struct request *rq, struct reply *rp)
{
	struct st_grant_revoke question = {.tenant = rq->who->tenant,
					   .run = rq->arg[0],
					   .request = rq->arg[1],
					   .device = rq->who->label,
					   .by = rq->who->id,
					   .actor = rq->who->by,
					   .request_id = rq->in->id};
	struct st_ok done;
	if (!run_no_query(rq, rp) || !caller_known(rq, rp))
		return;
	enum err e =
	    id_valid(rq->arg[1]) ? st_call_grant_revoke(rq->ask, &question, NULL, &done, NULL) : ERR_GRANT_NOT_FOUND;
	if (e != ERR_OK)
		reply_store_error(rp, e, rq->ask);
	else
		reply_head(rp, (struct reply_head){.status = 204, .length = -1});
}
