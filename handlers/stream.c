/* GET /v1/runs/{runId}/events as a stream: from where, whether at all, and its beginning. */
#include "handlers/stream.h"
#include "handlers/runs.h"
#include "handlers/sse.h"
#include "lib/num.h"
#include <string.h>
#include <strings.h>

/* A quality of nothing but zeros: not wanted. */
static bool refused(const char *p, size_t n)
{
	for (size_t i = 0; i + 3 < n; i++) {
		if (p[i] != ';')
			continue;
		size_t k = i + 1 + strspn(p + i + 1, " \t");
		if (k + 2 < n && strncasecmp(p + k, "q=0", 3) == 0) {
			k += 3;
			while (k < n && (p[k] == '.' || p[k] == '0'))
				k++;
			return k == n || p[k] == ' ' || p[k] == ';';
		}
	}
	return false;
}

bool stream_wanted(const struct arrival *in, const char *stream)
{
	static const char type[] = "text/event-stream";
	if (stream != NULL)
		return strcmp(stream, "1") == 0 || strcmp(stream, "true") == 0;
	for (const char *p = in->accept; p != NULL && *p != '\0';) {
		p += strspn(p, " \t,");
		size_t n = strcspn(p, ","), name = strcspn(p, ",; \t");
		if (name == sizeof type - 1 && strncasecmp(p, type, name) == 0 && !refused(p, n))
			return true;
		p += n;
	}
	return false;
}

uint64_t stream_cursor(const char *last_id, const char *after)
{
	uint64_t cursor = 0;
	const char *s = last_id != NULL ? last_id : after;
	if (s == NULL || !num_u64(s, strlen(s), 0, INT64_MAX, &cursor))
		return 0;
	return cursor;
}

void stream_answer(struct request *rq, struct reply *rp, const char *after)
{
	struct st_run_is run;
	uint64_t cursor = stream_cursor(rq->in->last_event_id, after);
	if (!run_fetch(rq, rp, &run, NULL))
		return;
	/* A browser that is told so does not come back. */
	if (run_terminal(run.state) && cursor >= run.last_sequence) {
		reply_head(rp, (struct reply_head){.status = 204, .length = -1});
		return;
	}
	const struct stream_order order = {.tenant = rq->who->tenant,
					   .run = rq->arg[0],
					   .most = rq->tenant->t.max_streams,
					   .token_id = rq->who->id,
					   .token_hash = rq->who->hash,
					   /* Who has seen what has not been yet has seen another run. */
					   .after = cursor <= run.last_sequence ? cursor : 0};
	enum err e =
	    rq->in->streams.open == NULL ? ERR_RESOURCES_EXHAUSTED : rq->in->streams.open(rq->in->streams.ctx, &order);
	if (e != ERR_OK) {
		reply_error(rp, e, NULL, NULL);
		return;
	}
	reply_head(rp,
		   (struct reply_head){.status = 200, .type = "text/event-stream", .length = -1, .unbuffered = true});
	reply_body(rp, SSE_START, sizeof SSE_START - 1);
	reply_flush(rp);
}
