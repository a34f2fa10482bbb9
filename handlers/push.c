/*
 * /v1/push/subscriptions: has a device told of questions that wait. The address that its browser gives is checked here
 * against the administrator's list, and again by who sends; it is in no answer, no error and no log.
 */
#include "gen/routes.h"
#include "gen/schema.h"
#include "gen/store_msg.h"
#include "handlers/caller.h"
#include "handlers/runs.h"
#include "lib/ask.h"
#include "lib/digest.h"
#include "lib/endpoint.h"
#include "lib/lack.h"
#include "lib/p256.h"
#include <errno.h>
#include <string.h>

enum { AUTH_BYTES = 16 };

/* Is push there, and does this device have it? */
static enum err state(struct request *rq, struct st_push_state_is *is)
{
	struct st_push_state m = {.tenant = rq->who->tenant, .token_id = rq->who->id};
	enum err e = st_call_push_state(rq->ask, &m, NULL, is, NULL);
	if (e != ERR_OK)
		return e;
	return is->public_key.n == P256_POINT ? ERR_OK : ERR_PUSH_NOT_READY;
}

static void show(struct request *rq, struct reply *rp, unsigned status)
{
	struct st_push_state_is is;
	char key[2 * P256_POINT];
	own_buf struct buf b;
	struct jw w;
	buf_init(&b, 4096);
	enum err e = state(rq, &is);
	if (e != ERR_OK) {
		reply_store_error(rp, e, rq->ask);
		return;
	}
	(void)b64url_encode(is.public_key.p, is.public_key.n, key, sizeof key);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "publicKey", key);
	jw_kbool(&w, "subscribed", is.subscribed);
	jw_close(&w, '}');
	reply_json(rp, status, &b);
}

void handle_push_show(struct request *rq, struct reply *rp)
{
	if (run_no_query(rq, rp))
		show(rq, rp, 200);
}

/* What a browser's toJSON() gives, checked to the last byte. field: what is at fault. */
static enum err canonical(struct request *rq, struct st_push_put *m, uint8_t point[P256_POINT],
			  uint8_t auth[AUTH_BYTES], const char **field)
{
	const struct conf *conf = rq->conf;
	const struct json *keys = json_get(rq->json, "keys"), *until = json_get(rq->json, "expirationTime");
	const struct json *p256dh = json_get(keys, "p256dh"), *secret = json_get(keys, "auth");
	char host[ENDPOINT_HOST];
	m->endpoint = json_get(rq->json, "endpoint")->text;
	*field = "endpoint";
	if (!endpoint_host(m->endpoint, host))
		return ERR_INVALID_PUSH_ENDPOINT;
	if (!endpoint_allowed(host, conf->global.push_hosts, conf->global.push_hosts_n))
		return ERR_PUSH_HOST_NOT_ALLOWED;
	*field = "expirationTime";
	if (until != NULL && until->type != JSON_NULL && until->type != JSON_NUMBER)
		return ERR_INVALID_PUSH_SUBSCRIPTION;
	*field = "keys.p256dh";
	errno = 0;
	if (b64url_decode(p256dh->text, p256dh->len, point, P256_POINT) != P256_POINT || !p256_point(point, P256_POINT))
		return lack_or(ERR_INVALID_PUSH_SUBSCRIPTION);
	*field = "keys.auth";
	if (b64url_decode(secret->text, secret->len, auth, AUTH_BYTES) != AUTH_BYTES)
		return ERR_INVALID_PUSH_SUBSCRIPTION;
	m->p256dh = (struct wire_bytes){point, P256_POINT};
	m->auth = (struct wire_bytes){auth, AUTH_BYTES};
	return ERR_OK;
}

void handle_push_subscribe(struct request *rq, struct reply *rp)
{
	char place[SCHEMA_FIELD];
	const char *field = NULL;
	uint8_t point[P256_POINT], auth[AUTH_BYTES];
	struct st_push_put m = {
	    .tenant = rq->who->tenant, .token_id = rq->who->id, .by = rq->who->by, .request_id = rq->in->id};
	struct st_ok done;
	if (!run_no_query(rq, rp) || !caller_known(rq, rp))
		return;
	enum err e = schema_check(&schema_push_subscribe, rq->json, place);
	if (e != ERR_OK) {
		reply_error(rp, e, place, NULL);
		return;
	}
	e = canonical(rq, &m, point, auth, &field);
	if (e != ERR_OK) {
		reply_error(rp, e, field, NULL);
		return;
	}
	e = st_call_push_put(rq->ask, &m, NULL, &done, NULL);
	if (e != ERR_OK)
		reply_store_error(rp, e, rq->ask);
	else
		show(rq, rp, 201);
}

void handle_push_unsubscribe(struct request *rq, struct reply *rp)
{
	struct st_push_delete m = {
	    .tenant = rq->who->tenant, .token_id = rq->who->id, .by = rq->who->by, .request_id = rq->in->id};
	struct st_ok done;
	if (!run_no_query(rq, rp) || !caller_known(rq, rp))
		return;
	enum err e = st_call_push_delete(rq->ask, &m, NULL, &done, NULL);
	if (e != ERR_OK)
		reply_store_error(rp, e, rq->ask);
	else
		reply_head(rp, (struct reply_head){.status = 204, .length = -1});
}
