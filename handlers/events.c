/* GET /v1/runs/{runId}/events: the stored buffer as NDJSON, one object a line, or a stream (stream.c). */
#include "gen/routes.h"
#include "handlers/query.h"
#include "handlers/runs.h"
#include "handlers/stream.h"
#include "lib/ask.h"
#include "lib/lack.h"
#include "lib/num.h"
#include <string.h>

enum { LINE_BYTES = 80000 };

bool event_line(struct buf *b, const char *run, const struct st_event *ev)
{
	struct jw w;
	buf_reset(b);
	jw_init(&w, b);
	jw_open(&w, '{');
	jw_kstr(&w, "event_type", ev->type);
	jw_kstr(&w, "run_id", run);
	jw_kstr(&w, "task_id", run);
	jw_kint(&w, "sequence", (int64_t)ev->sequence);
	jw_kint(&w, "created_at", (int64_t)ev->created_at);
	jw_kstr(&w, "event_id", ev->event_id);
	jw_key(&w, "data");
	if (ev->data.n > 0)
		jw_raw(&w, ev->data.p, ev->data.n);
	else
		jw_raw(&w, "{}", 2);
	jw_close(&w, '}');
	buf_addc(b, '\n');
	return !buf_failed(b);
}

enum err events_each(struct request *rq, uint64_t after, void (*take)(void *ctx, const void *line, size_t n), void *ctx)
{
	own_buf struct buf line;
	buf_init(&line, LINE_BYTES);
	for (;;) {
		struct st_events_read question = {.tenant = rq->who->tenant, .run = rq->arg[0], .after = after};
		struct st_events_are page;
		struct wire_bytes part;
		bool bad = false;
		enum err e = st_call_events_read(rq->ask, &question, NULL, &page, NULL);
		if (e != ERR_OK)
			return e;
		struct wire_bytes rest = page.events;
		/* Nothing asks the store between here and the next page, so the parts stay valid. */
		take(ctx, "", 0);
		while (wire_list_next(&rest, &part, &bad)) {
			struct st_event ev;
			if (!st_get_event(part.p, part.n, &ev))
				return ERR_INTERNAL_ERROR;
			if (!event_line(&line, rq->arg[0], &ev))
				return lack_error();
			take(ctx, line.p, line.n);
		}
		if (bad)
			return ERR_INTERNAL_ERROR;
		if (!page.more || page.last <= after)
			return ERR_OK;
		after = page.last;
	}
}

static void send_line(void *ctx, const void *line, size_t n)
{
	struct reply *rp = ctx;
	reply_head(rp, (struct reply_head){.status = 200, .type = "application/x-ndjson", .length = -1});
	reply_body(rp, line, n);
}

static bool stream_known(const char *value)
{
	static const char *const all[] = {"0", "1", "false", "true"};
	for (size_t i = 0; value != NULL && i < sizeof all / sizeof *all; i++)
		if (strcmp(value, all[i]) == 0)
			return true;
	return value == NULL;
}

void handle_run_events(struct request *rq, struct reply *rp)
{
	struct query_pair p[] = {{"after", NULL}, {"stream", NULL}, {NULL, NULL}};
	char field[65];
	uint64_t after = 0;
	enum err e = query_read(rq, p, field);
	if (e != ERR_OK) {
		reply_error(rp, e, field, NULL);
		return;
	}
	const char *from = p[0].value, *stream = p[1].value;
	if (!stream_known(stream)) {
		reply_error(rp, ERR_INVALID_QUERY, "stream", NULL);
		return;
	}
	if (stream_wanted(rq->in, stream)) {
		stream_answer(rq, rp, from);
		return;
	}
	if (from != NULL && !num_u64(from, strlen(from), 0, INT64_MAX, &after)) {
		reply_error(rp, ERR_INVALID_QUERY, "after", NULL);
		return;
	}
	e = events_each(rq, after, send_line, rp);
	if (e != ERR_OK && rp->status == 0)
		reply_store_error(rp, e, rq->ask);
	else if (e != ERR_OK)
		rp->failed = true; /* the answer must not look whole */
}
