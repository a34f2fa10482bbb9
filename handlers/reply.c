/*
 * Composes answers. Trusts handlers to give JSON they wrote themselves; never lets an error carry more
 * than its table row, a field name and a sentence of ours.
 */
#include "handlers/reply.h"
#include "lib/ask.h"
#include "lib/digest.h"
#include "lib/lack.h"
#include <stdio.h>
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

/* RFC 9110 section 13.1.2, strong or weak: "*" or a list of quoted tags. */
static bool etag_matches(const char *list, const char *etag)
{
	char quoted[80];
	if (list == NULL)
		return false;
	if (strcmp(list, "*") == 0)
		return true;
	(void)snprintf(quoted, sizeof quoted, "\"%s\"", etag);
	return strstr(list, quoted) != NULL;
}

void reply_json_tagged(struct reply *rp, const char *if_none_match, struct buf *json)
{
	uint8_t sum[SHA256_SIZE];
	char etag[SHA256_HEX];
	if (!buf_failed(json) && !sha256(json->p, json->n, sum))
		buf_fail(json, errno);
	if (buf_failed(json)) {
		reply_json(rp, 200, json);
		return;
	}
	hex(sum, 16, etag);
	if (etag_matches(if_none_match, etag))
		reply_head(rp, (struct reply_head){.status = 304, .etag = etag, .length = -1});
	else
		reply_json_at(rp, 200, NULL, etag, json);
}

bool reply_ready(struct reply *rp, struct buf *json)
{
	if (buf_room(json, json->cap - json->n))
		return true;
	reply_error(rp, lack_error(), NULL, NULL);
	return false;
}

struct error_more {
	const char *field, *say, *allow;
	unsigned seconds;
	void (*more)(struct jw *w, const void *with);
	const void *with;
};

static void send_error(struct reply *rp, enum err e, const struct error_more *x)
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
	jw_kstr(&w, "message", x->say != NULL ? x->say : row->sentence);
	if (x->field != NULL && *x->field != '\0')
		jw_kstr(&w, "field", x->field);
	jw_kstr(&w, "requestId", rp->request_id);
	if (x->more != NULL)
		x->more(&w, x->with);
	jw_close(&w, '}');
	bool later = row->retry && (row->status == 429 || row->status == 503);
	send_json(rp,
		  (struct reply_head){.status = row->status, .allow = x->allow, .retry_after = later ? x->seconds : 0},
		  &b);
}

void reply_error(struct reply *rp, enum err e, const char *field, const char *say)
{
	send_error(rp, e, &(struct error_more){.field = field, .say = say, .seconds = RETRY_SECONDS});
}

void reply_error_with(struct reply *rp, enum err e, void (*more)(struct jw *w, const void *with), const void *with)
{
	send_error(rp, e, &(struct error_more){.seconds = RETRY_SECONDS, .more = more, .with = with});
}

void reply_error_after(struct reply *rp, enum err e, unsigned seconds)
{
	send_error(rp, e, &(struct error_more){.seconds = seconds});
}

void reply_not_allowed(struct reply *rp, const char *allow)
{
	send_error(rp, ERR_METHOD_NOT_ALLOWED, &(struct error_more){.allow = allow, .seconds = RETRY_SECONDS});
}

void reply_store_error(struct reply *rp, enum err e, struct ask *a)
{
	bool told = e != ERR_STORE_UNAVAILABLE;
	unsigned seconds = told && ask_retry_after(a) > 0 ? ask_retry_after(a) : RETRY_SECONDS;
	send_error(rp, e, &(struct error_more){.field = told ? ask_field(a) : NULL, .seconds = seconds});
}
