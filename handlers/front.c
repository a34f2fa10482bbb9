/*
 * GET /v1/front: what the web server in front made of this very request, in two parts with a pause between, so that
 * a caller (pinfold doctor) can measure whether the first one leaves at once. Tells a caller only what it asked.
 */
#include "gen/routes.h"
#include "handlers/reply.h"
#include "handlers/request.h"
#include "handlers/runs.h"
#include "handlers/stream.h"
#include "lib/lack.h"
#include <stdatomic.h>
#include <time.h>

/* A pause holds a thread: more than a few at a time get none, and are told so. */
enum { PAUSE_MS = 700, PAUSES_MOST = 4, FRONT_BYTES = 16384 };

/* One of the two parts: a piece of a JSON object, or, in a stream, an event that is one. */
static void say(struct reply *rp, bool stream, const void *p, size_t n)
{
	if (stream)
		reply_body(rp, "data: {", 7);
	reply_body(rp, p, n);
	if (stream)
		reply_body(rp, "}\n\n", 3);
}

void handle_front(struct request *rq, struct reply *rp)
{
	static const char last[] = "\"last\":true";
	if (!run_no_query(rq, rp))
		return;
	own_buf struct buf b;
	struct jw w;
	bool stream = stream_wanted(rq->in, NULL), pause = atomic_fetch_add(rq->app->pauses, 1) < PAUSES_MOST;
	buf_init(&b, FRONT_BYTES);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "requestTarget", rq->in->target);
	jw_kbool(&w, "backendKept", rq->in->kept);
	jw_kint(&w, "pauseMs", pause ? PAUSE_MS : 0);
	if (buf_failed(&b)) {
		reply_error(rp, lack_error(), NULL, NULL);
	} else {
		reply_head(rp, (struct reply_head){.status = 200,
						   .type = stream ? "text/event-stream" : "application/json",
						   .length = -1,
						   .unbuffered = stream});
		if (!stream)
			reply_body(rp, "{", 1);
		say(rp, stream, b.p + 1, b.n - 1); /* without the brace */
		if (!stream)
			reply_body(rp, ",", 1);
		reply_flush(rp);
		if (pause)
			nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
		say(rp, stream, last, sizeof last - 1);
		if (!stream)
			reply_body(rp, "}", 1);
	}
	atomic_fetch_sub(rq->app->pauses, 1);
}
