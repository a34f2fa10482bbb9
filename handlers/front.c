/*
 * GET /v1/front: what the web server in front made of this very request, in two parts with a pause between, so that
 * a caller (pinfold doctor) can measure whether the first one leaves at once. Tells a caller only what it asked.
 */
#include "gen/routes.h"
#include "handlers/reply.h"
#include "handlers/request.h"
#include "handlers/runs.h"
#include "lib/lack.h"
#include <stdatomic.h>
#include <time.h>

/* A pause holds a thread: more than a few at a time get none, and are told so. */
enum { PAUSE_MS = 700, PAUSES_MOST = 4, FRONT_BYTES = 16384 };

void handle_front(struct request *rq, struct reply *rp)
{
	static const char last[] = "\"last\":true}";
	if (!run_no_query(rq, rp))
		return;
	own_buf struct buf b;
	struct jw w;
	bool pause = atomic_fetch_add(rq->app->pauses, 1) < PAUSES_MOST;
	buf_init(&b, FRONT_BYTES);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "requestTarget", rq->in->target);
	jw_kbool(&w, "backendKept", rq->in->kept);
	jw_kint(&w, "pauseMs", pause ? PAUSE_MS : 0);
	buf_addc(&b, ',');
	if (buf_failed(&b)) {
		reply_error(rp, lack_error(), NULL, NULL);
	} else {
		reply_head(rp, (struct reply_head){.status = 200, .type = "application/json", .length = -1});
		reply_body(rp, b.p, b.n);
		reply_flush(rp);
		if (pause)
			nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
		reply_body(rp, last, sizeof last - 1);
	}
	atomic_fetch_sub(rq->app->pauses, 1);
}
