/* GET /v1/devices and DELETE /v1/devices/{label}. Never tells a credential: there is only its hash. */
#include "gen/routes.h"
#include "gen/store_msg.h"
#include "handlers/caller.h"
#include "handlers/cursor.h"
#include "handlers/runs.h"
#include "lib/ask.h"
#include "lib/label.h"
#include <string.h>

enum { LIST_BYTES = 2000000 };

void handle_device_list(struct request *rq, struct reply *rp)
{
	const char *after;
	char behind[LIST_TEXT];
	struct st_device_list question = {.tenant = rq->who->tenant, .after = behind};
	struct st_devices_are are;
	if (!list_asked(rq, rp, NULL, &after, &question.limit) || !cursor_text(rp, after, behind))
		return;
	if (after != NULL && !label_valid(behind)) {
		list_bad(rp, "after");
		return;
	}
	enum err e = st_call_device_list(rq->ask, &question, NULL, &are, NULL);
	if (e != ERR_OK) {
		reply_store_error(rp, e, rq->ask);
		return;
	}
	own_buf struct buf b;
	struct jw w;
	struct wire_bytes part;
	struct st_device d = {.label = ""};
	bool bad = false;
	buf_init(&b, LIST_BYTES);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_key(&w, "devices");
	jw_open(&w, '[');
	while (wire_list_next(&are.items, &part, &bad)) {
		bad = !st_get_device(part.p, part.n, &d);
		if (bad)
			break;
		jw_open(&w, '{');
		jw_kstr(&w, "label", d.label);
		put_time(&w, "createdAt", d.created_at);
		put_time(&w, "expiresAt", d.expires_at);
		put_time(&w, "lastSeenAt", d.last_seen_at);
		jw_kbool(&w, "current", strcmp(d.token_id, rq->who->id) == 0);
		jw_close(&w, '}');
	}
	jw_close(&w, ']');
	if (!bad)
		cursor_put_text(&w, are.more, d.label);
	jw_close(&w, '}');
	if (bad)
		reply_error(rp, ERR_INTERNAL_ERROR, NULL, NULL);
	else
		reply_json(rp, 200, &b);
}

void handle_device_revoke(struct request *rq, struct reply *rp)
{
	struct st_device_revoke question = {
	    .tenant = rq->who->tenant, .label = rq->arg[0], .by = rq->who->by, .request_id = rq->in->id};
	struct st_ok done;
	if (!run_no_query(rq, rp) || !caller_known(rq, rp))
		return;
	enum err e = label_valid(rq->arg[0]) ? st_call_device_revoke(rq->ask, &question, NULL, &done, NULL)
					     : ERR_DEVICE_NOT_FOUND;
	if (e != ERR_OK)
		reply_store_error(rp, e, rq->ask);
	else
		reply_head(rp, (struct reply_head){.status = 204, .length = -1});
}
