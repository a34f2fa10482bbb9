/* Is the process there (healthz), and would a run be taken (readyz)? Tells no more than that. */
#include "gen/routes.h"
#include "gen/store_msg.h"
#include "handlers/query.h"
#include "handlers/reply.h"
#include "handlers/request.h"
#include "lib/ask.h"
#include "lib/place.h"

enum { HEALTH_BYTES = 4096 };

static bool no_query(struct request *rq, struct reply *rp)
{
	char field[65];
	enum err e = query_none(rq, field);
	if (e != ERR_OK)
		reply_error(rp, e, field, NULL);
	return e == ERR_OK;
}

static void say_ok(struct reply *rp)
{
	own_buf struct buf b;
	struct jw w;
	buf_init(&b, HEALTH_BYTES);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kbool(&w, "ok", true);
	jw_kstr(&w, "service", "pinfold");
	jw_close(&w, '}');
	reply_json(rp, 200, &b);
}

void handle_healthz(struct request *rq, struct reply *rp)
{
	if (no_query(rq, rp))
		say_ok(rp);
}

void handle_readyz(struct request *rq, struct reply *rp)
{
	if (!no_query(rq, rp))
		return;
	const struct conf *c = rq->conf;
	const unsigned up = atomic_load(&rq->app->up);
	struct st_ping ping = {0};
	struct st_ok pong;
	const enum err store =
	    (up & CHILD_UP_STORED) != 0 ? st_call_ping(rq->ask, &ping, NULL, &pong, NULL) : ERR_STORE_UNAVAILABLE;
	const struct {
		bool bad;
		const char *reason;
	} reasons[] = {
	    {store != ERR_OK && store != ERR_STORAGE_FULL, "the store does not answer"},
	    {store == ERR_STORAGE_FULL, "the server's disk is full"},
	    {(up & CHILD_UP_GATEWAY) == 0, "the gateway does not serve"},
	    {(up & CHILD_UP_STEWARD) == 0, "the steward does not serve"},
	    {c->ntenants == 0, "no tenant is configured"},
	    {c->nproviders == 0, "no model provider is configured"},
	    {c->nprofiles == 0, "no model profile is configured"},
	    {c->nagents == 0, "no runner profile is configured"},
	};
	size_t bad = 0;
	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
		bad += reasons[i].bad;
	if (bad == 0) {
		say_ok(rp);
		return;
	}
	const struct err_row *row = err_row(ERR_NOT_READY);
	own_buf struct buf b;
	struct jw w;
	buf_init(&b, HEALTH_BYTES);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "error", row->code);
	jw_kstr(&w, "message", row->sentence);
	jw_key(&w, "reasons");
	jw_open(&w, '[');
	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
		if (reasons[i].bad)
			jw_str(&w, reasons[i].reason);
	jw_close(&w, ']');
	jw_kstr(&w, "requestId", rp->request_id);
	jw_close(&w, '}');
	rp->error = ERR_NOT_READY;
	reply_json_retry(rp, row->status, &b);
}
