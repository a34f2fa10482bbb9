/* GET /v1/devices and DELETE /v1/devices/{label}. Never tells a credential: there is only its hash. */
#include "gen/routes.h"
#include "gen/store_msg.h"
#include "handlers/caller.h"
#include "handlers/runs.h"
#include "lib/ask.h"
#include "lib/label.h"
#include "lib/lack.h"
#include <stdlib.h>
#include <string.h>

enum { LIST_BYTES = 2000000 };

static int by_label(const void *a, const void *b)
{
	return strcmp(((const struct st_device *)a)->label, ((const struct st_device *)b)->label);
}

/* In the arena, sorted; the texts are the answer's. NULL: it cannot be read, or errno says why. */
static struct st_device *read_list(struct request *rq, struct wire_bytes items, size_t *n)
{
	struct wire_bytes rest = items, part;
	bool bad = false;
	*n = 0;
	errno = 0;
	while (wire_list_next(&rest, &part, &bad))
		(*n)++;
	struct st_device *v = bad ? NULL : arena_get(rq->arena, (*n + 1) * sizeof *v);
	rest = items;
	for (size_t i = 0; v != NULL && wire_list_next(&rest, &part, &bad); i++)
		if (!st_get_device(part.p, part.n, &v[i]))
			return NULL;
	if (v != NULL)
		qsort(v, *n, sizeof *v, by_label);
	return v;
}

void handle_device_list(struct request *rq, struct reply *rp)
{
	struct st_device_list question = {.tenant = rq->who->tenant};
	struct st_devices_are are;
	size_t n;
	if (!run_no_query(rq, rp))
		return;
	enum err e = st_call_device_list(rq->ask, &question, NULL, &are, NULL);
	if (e != ERR_OK) {
		reply_store_error(rp, e, rq->ask);
		return;
	}
	const struct st_device *v = read_list(rq, are.items, &n);
	if (v == NULL) {
		reply_error(rp, lack_error(), NULL, NULL);
		return;
	}
	own_buf struct buf b;
	struct jw w;
	buf_init(&b, LIST_BYTES);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_key(&w, "devices");
	jw_open(&w, '[');
	for (size_t i = 0; i < n; i++) {
		jw_open(&w, '{');
		jw_kstr(&w, "label", v[i].label);
		put_time(&w, "createdAt", v[i].created_at);
		put_time(&w, "expiresAt", v[i].expires_at);
		put_time(&w, "lastSeenAt", v[i].last_seen_at);
		jw_kbool(&w, "current", strcmp(v[i].token_id, rq->who->id) == 0);
		jw_close(&w, '}');
	}
	jw_close(&w, ']');
	jw_close(&w, '}');
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
