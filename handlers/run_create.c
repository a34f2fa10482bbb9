/*
 * POST /v1/runs: the canonical value as summary and upload, one store operation, 202. Starts nothing: the steward
 * sees the queued run by itself.
 */
#include "gen/bundle_msg.h"
#include "gen/routes.h"
#include "gen/store_msg.h"
#include "handlers/canon_run.h"
#include "handlers/links.h"
#include "handlers/query.h"
#include "handlers/reply.h"
#include "handlers/request.h"
#include "handlers/runs.h"
#include "lib/ask.h"
#include "lib/chan.h"
#include "lib/lack.h"
#include "lib/num.h"
#include "lib/own.h"
#include <stdio.h>

enum { RUN_ID = 129, SUMMARY_BYTES = 1000000, UPLOAD_BYTES = 8000000, FRAME_BYTES = CANON_FILE_BYTES + 512 };

/* The upload as frames of bundle.msg. False: no memory. */
static bool pack_upload(const struct canon_run *run, struct buf *b)
{
	own_free uint8_t *frame = malloc(FRAME_BYTES);
	if (frame == NULL)
		return false;
	for (uint32_t i = 0; i < run->nfiles; i++) {
		struct bn_source m = {.path = run->files[i].path,
				      .content = {(const uint8_t *)run->files[i].content, (uint32_t)run->files[i].n}};
		bundle_put(b, frame, bn_put_source(frame, FRAME_BYTES, 0, &m));
	}
	struct bn_source_end end = {.files = run->nfiles};
	bundle_put(b, frame, bn_put_source_end(frame, FRAME_BYTES, 0, &end));
	return !buf_failed(b);
}

/*
 * How the store gets it: what is small in the message, and empty as the descriptor; what is not in a sealed
 * file. The descriptor, or -1; *made is one that the caller must close.
 */
static int give(const struct request *rq, const struct buf *b, const char *name, struct wire_bytes *in, int *made)
{
	if (b->n <= CHAN_SMALL) {
		*in = (struct wire_bytes){b->p, (uint32_t)b->n};
		return rq->app->empty;
	}
	*made = bundle_of(name, b->p, b->n);
	return *made;
}

/* id becomes the run's: another one where the idempotency key names a run that was made before. */
static enum err store_run(struct request *rq, struct reply *rp, const struct canon_run *run, char id[RUN_ID])
{
	own_fd int summary_made = -1, upload_made = -1;
	own_buf struct buf summary, upload, title;
	uint8_t route[32], print[32];
	buf_init(&summary, SUMMARY_BYTES);
	buf_init(&upload, UPLOAD_BYTES);
	buf_init(&title, SUMMARY_BYTES);
	errno = 0;
	canon_run_summary(run, &summary);
	canon_run_title(run, &title);
	if (buf_failed(&summary) || buf_cstr(&title) == NULL || (run->source == NULL && !pack_upload(run, &upload)) ||
	    !conf_fingerprint(rq->conf, run->profile, route) || !conf_capability(run->agent, route, print))
		return lack_error();
	struct st_run_create m = {
	    .tenant = rq->who->tenant,
	    .run = id,
	    .agent = run->agent->name,
	    .env_mode = run->agent->env_mode,
	    .profile = run->profile->name,
	    .provider = run->profile->provider,
	    .model = run->profile->model,
	    .fingerprint = {print, sizeof print},
	    .max_steps = run->max_steps,
	    .wall_seconds = run->wall_seconds,
	    .approval_wait_seconds = run->approval_wait_seconds,
	    .max_requests = run->max_requests,
	    .max_queued = rq->tenant->t.max_queued_runs,
	    .created_by = rq->who->by,
	    .idempotency = rq->in->idempotency_key,
	    .request_id = rq->in->id,
	    .title = buf_cstr(&title),
	};
	if (run->source != NULL)
		m.source = (struct wire_bytes){run->source_sha, sizeof run->source_sha};
	const int fds[] = {give(rq, &summary, "request", &m.request, &summary_made),
			   give(rq, &upload, "upload", &m.upload, &upload_made)};
	if (fds[0] < 0 || fds[1] < 0)
		return lack_error();
	struct st_run_state state;
	run_prove(rq, &m.token_id, &m.token_hash);
	enum err e = st_call_run_create(rq->ask, &m, fds, &state, NULL);
	run_proven(rp, e);
	if (e == ERR_OK && id_valid(state.run))
		(void)snprintf(id, RUN_ID, "%s", state.run);
	return e;
}

void handle_run_create(struct request *rq, struct reply *rp)
{
	char field[CANON_FIELD], query[65], id[RUN_ID];
	struct canon_run *run = arena_get(rq->arena, sizeof *run);
	if (run == NULL) {
		reply_error(rp, lack_error(), NULL, NULL);
		return;
	}
	enum err e = query_none(rq, query);
	if (e != ERR_OK) {
		reply_error(rp, e, query, NULL);
		return;
	}
	if (rq->in->idempotency_key != NULL && !id_valid(rq->in->idempotency_key)) {
		reply_error(rp, ERR_INVALID_IDEMPOTENCY_KEY, "Idempotency-Key", NULL);
		return;
	}
	e = canon_run(rq->conf, rq->tenant, rq->json, run, field);
	if (e != ERR_OK) {
		reply_error(rp, e, field, NULL);
		return;
	}
	uuid4(id);
	own_buf struct buf b;
	struct jw w;
	buf_init(&b, LINKS_BYTES);
	if (!reply_ready(rp, &b))
		return;
	e = store_run(rq, rp, run, id);
	if (e == ERR_SOURCE_NOT_FOUND) {
		reply_error(rp, e, "source", NULL);
		return;
	}
	if (e != ERR_OK) {
		reply_store_error(rp, e, rq->ask);
		return;
	}
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "runId", id);
	jw_kstr(&w, "status", "queued");
	jw_key(&w, "links");
	links_write(&w, rq->in->mount, id);
	jw_close(&w, '}');
	char location[LINK_BYTES];
	reply_json_at(rp, 202, link_to(location, rq->in->mount, id, ""), NULL, &b);
}
