/*
 * POST /v1/runs: the canonical value into two sealed memfds, one store operation, 202. Starts nothing:
 * the steward sees the queued run by itself.
 */
#include "gen/bundle_msg.h"
#include "gen/routes.h"
#include "gen/store_msg.h"
#include "handlers/canon_run.h"
#include "handlers/links.h"
#include "handlers/query.h"
#include "handlers/reply.h"
#include "handlers/request.h"
#include "lib/ask.h"
#include "lib/chan.h"
#include "lib/num.h"
#include "lib/own.h"
#include <stdio.h>

enum { RUN_ID = 129, SUMMARY_BYTES = 1000000, FRAME_BYTES = CANON_FILE_BYTES + 512 };

static int seal_summary(const struct canon_run *run)
{
	own_fd int fd = bundle_new("request");
	own_buf struct buf b;
	buf_init(&b, SUMMARY_BYTES);
	canon_run_summary(run, &b);
	if (fd < 0 || buf_failed(&b) || !write_all(fd, b.p, b.n) || !bundle_seal(fd))
		return -1;
	return steal_fd(&fd);
}

static int seal_upload(const struct canon_run *run)
{
	own_fd int fd = bundle_new("upload");
	own_free uint8_t *frame = malloc(FRAME_BYTES);
	if (fd < 0 || frame == NULL)
		return -1;
	for (uint32_t i = 0; i < run->nfiles; i++) {
		struct bn_source m = {.path = run->files[i].path,
				      .content = {(const uint8_t *)run->files[i].content, (uint32_t)run->files[i].n}};
		size_t n = bn_put_source(frame, FRAME_BYTES, 0, &m);
		if (n == 0 || !bundle_add(fd, frame, n))
			return -1;
	}
	struct bn_source_end end = {.files = run->nfiles};
	size_t n = bn_put_source_end(frame, FRAME_BYTES, 0, &end);
	if (n == 0 || !bundle_add(fd, frame, n) || !bundle_seal(fd))
		return -1;
	return steal_fd(&fd);
}

/* id becomes the run's: another one where the idempotency key names a run that was made before. */
static enum err store_run(struct request *rq, const struct canon_run *run, char id[RUN_ID])
{
	own_fd int summary = seal_summary(run);
	own_fd int upload = seal_upload(run);
	uint8_t print[32];
	if (summary < 0 || upload < 0 || !conf_fingerprint(rq->app->conf, run->profile, print))
		return ERR_INTERNAL_ERROR;
	struct st_run_create m = {
	    .tenant = rq->who->tenant,
	    .run = id,
	    .agent = run->agent->name,
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
	};
	struct st_run_state state;
	enum err e = st_call_run_create(rq->ask, &m, (const int[]){summary, upload}, &state, NULL);
	if (e == ERR_OK && id_valid(state.run))
		(void)snprintf(id, RUN_ID, "%s", state.run);
	return e;
}

void handle_run_create(struct request *rq, struct reply *rp)
{
	char field[CANON_FIELD], query[65], id[RUN_ID];
	struct canon_run *run = arena_get(rq->arena, sizeof *run);
	if (run == NULL) {
		reply_error(rp, ERR_INTERNAL_ERROR, NULL, NULL);
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
	e = canon_run(rq->app->conf, rq->tenant, rq->json, run, field);
	if (e != ERR_OK) {
		reply_error(rp, e, field, NULL);
		return;
	}
	uuid4(id);
	e = store_run(rq, run, id);
	if (e != ERR_OK) {
		reply_store_error(rp, e, rq->ask);
		return;
	}
	own_buf struct buf b;
	struct jw w;
	buf_init(&b, LINKS_BYTES);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "runId", id);
	jw_kstr(&w, "status", "queued");
	jw_key(&w, "links");
	links_write(&w, rq->in->mount, id);
	jw_close(&w, '}');
	reply_json_at(rp, 202, link_to(rq->arena, rq->in->mount, id, ""), NULL, &b);
}
