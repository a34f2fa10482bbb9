/*
 * Composes answers. Trusts handlers to give JSON they wrote themselves; never lets an error carry more
 * than its table row, a field name and a sentence of ours.
 */
#include "handlers/reply.h"
#include "lib/ask.h"
#include "lib/json.h"
#include "lib/lack.h"
#include <stdlib.h>
#include <string.h>

enum { RETRY_SECONDS = 5, ERROR_BYTES = 8192 };

void reply_init(struct reply *rp, struct reply_out out, const char *request_id)
{
	*rp = (struct reply){.out = out, .request_id = request_id};
}

void reply_head(struct reply *rp, struct reply_head head)
{
	if (rp->status != 0)
		return;
	if (rp->prove != NULL) {
		bool (*prove)(void *ctx, struct reply *rp) = rp->prove;
		rp->prove = NULL;
		rp->replaced = !prove(rp->prove_ctx, rp);
		if (rp->replaced)
			return;
	}
	rp->status = head.status;
	head.request_id = rp->request_id;
	if (!rp->out.head(rp->out.ctx, &head))
		rp->failed = true;
}

void reply_body(struct reply *rp, const void *p, size_t n)
{
	if (!rp->failed && !rp->replaced && n > 0 && !rp->out.body(rp->out.ctx, p, n))
		rp->failed = true;
}

void reply_flush(struct reply *rp)
{
	if (!rp->failed && rp->out.flush != NULL && !rp->out.flush(rp->out.ctx))
		rp->failed = true;
}

static void send_json(struct reply *rp, struct reply_head head, struct buf *json)
{
	if (buf_failed(json)) {
		rp->error = lack_error();
		/* As an error, once; dispatch() makes the last try. */
		if (!rp->lacked) {
			rp->lacked = true;
			reply_error(rp, rp->error, NULL, NULL);
		}
		return;
	}
	head.type = "application/json";
	head.length = (int64_t)json->n;
	reply_head(rp, head);
	reply_body(rp, json->p, json->n);
}

void reply_json(struct reply *rp, unsigned status, struct buf *json)
{
	send_json(rp, (struct reply_head){.status = status}, json);
}

void reply_json_retry(struct reply *rp, unsigned status, struct buf *json)
{
	send_json(rp, (struct reply_head){.status = status, .retry_after = RETRY_SECONDS}, json);
}

void reply_json_at(struct reply *rp, unsigned status, const char *location, const char *etag, struct buf *json)
{
	send_json(rp, (struct reply_head){.status = status, .location = location, .etag = etag}, json);
}

void reply_json_cookie(struct reply *rp, unsigned status, const char *cookie, struct buf *json)
{
	send_json(rp, (struct reply_head){.status = status, .cookie = cookie}, json);
}

static void send_error(struct reply *rp, enum err e, const char *field, const char *say, const char *allow,
		       unsigned seconds)
{
	const struct err_row *row = err_row(e);
	if (rp->status != 0)
		return;
	own_buf struct buf b;
	struct jw w;
	rp->error = e;
	buf_init(&b, ERROR_BYTES);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "error", row->code);
	jw_kstr(&w, "message", say != NULL ? say : row->sentence);
	if (field != NULL && *field != '\0')
		jw_kstr(&w, "field", field);
	jw_kstr(&w, "requestId", rp->request_id);
	jw_close(&w, '}');
	bool later = row->retry && (row->status == 429 || row->status == 503);
	send_json(rp, (struct reply_head){.status = row->status, .allow = allow, .retry_after = later ? seconds : 0},
		  &b);
}

void reply_error(struct reply *rp, enum err e, const char *field, const char *say)
{
	send_error(rp, e, field, say, NULL, RETRY_SECONDS);
}

void reply_error_after(struct reply *rp, enum err e, unsigned seconds)
{
	send_error(rp, e, NULL, NULL, NULL, seconds);
}

void reply_not_allowed(struct reply *rp, const char *allow)
{
	send_error(rp, ERR_METHOD_NOT_ALLOWED, NULL, NULL, allow, RETRY_SECONDS);
}

void reply_store_error(struct reply *rp, enum err e, struct ask *a)
{
	const char *field = e == ERR_STORE_UNAVAILABLE ? NULL : ask_field(a);
	reply_error(rp, e, field, NULL);
}
