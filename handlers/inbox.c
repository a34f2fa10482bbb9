/* GET /v1/inbox and GET /v1/receipts: what waits for a person, of all runs, and what was done from devices. */
#include "gen/limits.h"
#include "gen/routes.h"
#include "handlers/approvals.h"
#include "handlers/cursor.h"
#include "handlers/runs.h"
#include "lib/ask.h"
#include "lib/names.h"
#include <stdio.h>

enum { INBOX_BYTES = 8000000, RECEIPTS_BYTES = 1000000 };

/* Where the list goes on behind what was shown. */
static void place(struct cursor *c, uint64_t at, const char *a, const char *b)
{
	c->at = at;
	(void)snprintf(c->id[0], CURSOR_ID, "%s", a);
	(void)snprintf(c->id[1], CURSOR_ID, "%s", b);
}

/* What is in one answer of the store. False: it cannot be read. */
static bool put_cards(struct jw *w, struct wire_bytes items, unsigned *n, struct cursor *last)
{
	struct wire_bytes part;
	struct st_approval q;
	bool bad = false;
	while (wire_list_next(&items, &part, &bad)) {
		if (!st_get_approval(part.p, part.n, &q))
			return false;
		question_put(w, &q, q.run);
		place(last, q.requested_at, q.run, q.request);
		(*n)++;
	}
	return !bad;
}

void handle_inbox(struct request *rq, struct reply *rp)
{
	const char *after;
	uint16_t limit;
	unsigned shown = 0;
	struct cursor at;
	struct st_inbox_is page = {.more = true};
	if (!list_asked(rq, rp, NULL, &after, &limit) || !cursor_read(rp, after, 2, &at))
		return;
	own_buf struct buf b;
	struct jw w;
	buf_init(&b, INBOX_BYTES);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_key(&w, "pending");
	jw_open(&w, '[');
	/* Few large cards fit into one answer of the store. */
	while (page.more && shown < limit) {
		struct st_inbox_get question = {.tenant = rq->who->tenant,
						.after_asked = at.at,
						.after_run = at.id[0],
						.after_request = at.id[1],
						.limit = (uint16_t)(limit - shown)};
		unsigned before = shown;
		enum err e = st_call_inbox_get(rq->ask, &question, NULL, &page, NULL);
		if (e != ERR_OK) {
			reply_store_error(rp, e, rq->ask);
			return;
		}
		if (!put_cards(&w, page.items, &shown, &at) || (page.more && shown == before)) {
			reply_error(rp, ERR_INTERNAL_ERROR, NULL, NULL);
			return;
		}
	}
	jw_close(&w, ']');
	jw_kint(&w, "count", page.waiting);
	jw_kint(&w, "pollSeconds", page.waiting > 0 || page.busy ? LIMIT_INBOX_POLL_SECONDS : LIMIT_INBOX_IDLE_SECONDS);
	cursor_put(&w, page.more, &at, 2);
	jw_close(&w, '}');
	reply_json_tagged(rp, rq->in->if_none_match, &b);
}

static const char *outcome(const struct st_receipt *r)
{
	static const char *const others[RECEIPT__COUNT] = {
	    [RECEIPT_CANCEL] = "requested", [RECEIPT_GRANT_REVOKE] = "revoked"};
	return r->kind == RECEIPT_ANSWER ? decision_names[r->decision] : others[r->kind];
}

static void put_receipt(struct jw *w, const struct st_receipt *r)
{
	jw_open(w, '{');
	put_time(w, "time", r->at);
	jw_kstr(w, "device", r->device);
	jw_kstr(w, "runId", r->run);
	put_text(w, "requestId", r->request);
	jw_kstr(w, "kind", receipt_names[r->kind]);
	jw_kstr(w, "outcome", outcome(r));
	if (r->digest.n > 0)
		put_digest(w, r->digest);
	jw_close(w, '}');
}

void handle_receipts(struct request *rq, struct reply *rp)
{
	const char *after;
	struct cursor from;
	struct st_receipt_list question = {.tenant = rq->who->tenant};
	struct st_receipts_are page;
	if (!list_asked(rq, rp, NULL, &after, &question.limit) || !cursor_read(rp, after, 1, &from))
		return;
	question.before_at = from.at;
	question.before_receipt = from.id[0];
	enum err e = st_call_receipt_list(rq->ask, &question, NULL, &page, NULL);
	if (e != ERR_OK) {
		reply_store_error(rp, e, rq->ask);
		return;
	}
	own_buf struct buf b;
	struct jw w;
	struct wire_bytes part;
	struct st_receipt r;
	bool bad = false;
	buf_init(&b, RECEIPTS_BYTES);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_key(&w, "receipts");
	jw_open(&w, '[');
	while (!bad && wire_list_next(&page.items, &part, &bad)) {
		bad = !st_get_receipt(part.p, part.n, &r) || r.kind >= RECEIPT__COUNT || r.decision >= DECISION__COUNT;
		if (bad)
			break;
		put_receipt(&w, &r);
		place(&from, r.at, r.receipt, "");
	}
	jw_close(&w, ']');
	cursor_put(&w, page.more, &from, 1);
	jw_close(&w, '}');
	if (bad)
		reply_error(rp, ERR_INTERNAL_ERROR, NULL, NULL);
	else
		reply_json(rp, 200, &b);
}
