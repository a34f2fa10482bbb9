/* GET /v1/runs/{runId}, GET /v1/runs and cancel. Shows what stored knows; decides nothing. */
#include "handlers/runs.h"
#include "gen/routes.h"
#include "handlers/approvals.h"
#include "handlers/query.h"
#include "lib/ask.h"
#include "lib/digest.h"
#include "lib/lack.h"
#include "lib/names.h"
#include "lib/num.h"
#include "lib/own.h"
#include <stdio.h>
#include <string.h>

enum { SNAPSHOT_BYTES = 10000000, SUMMARY_MAX = 1000000, SUMMARY_NODES = 20000 };

bool run_terminal(uint8_t state)
{
	return state < RUN_STATE__COUNT && run_final((enum run_state)state);
}

bool run_no_query(struct request *rq, struct reply *rp)
{
	char field[65];
	enum err e = query_none(rq, field);
	if (e != ERR_OK)
		reply_error(rp, e, field, NULL);
	return e == ERR_OK;
}

void run_prove(const struct request *rq, const char **id, struct wire_bytes *hash)
{
	if (rq->proof == NULL)
		return;
	*id = rq->proof->id;
	*hash = (struct wire_bytes){rq->proof->hash, sizeof rq->proof->hash};
}

void run_proven(struct reply *rp, enum err e)
{
	if (e != ERR_UNAUTHORIZED)
		rp->prove = NULL;
}

bool run_fetch(struct request *rq, struct reply *rp, struct st_run_is *run, int *fd)
{
	struct st_run_get question = {.tenant = rq->who->tenant, .run = rq->arg[0]};
	run_prove(rq, &question.token_id, &question.token_hash);
	enum err e = st_call_run_get(rq->ask, &question, NULL, run, fd);
	run_proven(rp, e);
	if (e == ERR_OK && run->state >= RUN_STATE__COUNT)
		e = ERR_INTERNAL_ERROR;
	if (e != ERR_OK)
		reply_store_error(rp, e, rq->ask);
	return e == ERR_OK;
}

uint32_t run_artifacts(uint8_t state, uint32_t stored)
{
	uint32_t known = (1u << ART__COUNT) - 1;
	return run_terminal(state) ? (stored & known) | (1u << ART_EVENTS) : 0;
}

void put_time(struct jw *w, const char *key, uint64_t ms)
{
	if (ms != 0)
		jw_kint(w, key, (int64_t)ms);
}

void put_text(struct jw *w, const char *key, const char *s)
{
	if (s != NULL && *s != '\0')
		jw_kstr(w, key, s);
}

static void put_raw(struct jw *w, const char *key, struct wire_bytes json)
{
	if (json.n == 0)
		return;
	jw_key(w, key);
	jw_raw(w, json.p, json.n);
}

/* A summary that was too large for the answer. False: it cannot be read. */
static bool read_summary(int fd, char *text, size_t *n)
{
	ssize_t got = 1;
	for (*n = 0; *n < SUMMARY_MAX && got > 0; *n += got > 0 ? (size_t)got : 0)
		got = pread(fd, text + *n, SUMMARY_MAX - *n, (off_t)*n);
	return got >= 0;
}

/* The members of the request summary that a snapshot shows. */
static bool put_request(struct request *rq, struct jw *w, struct wire_bytes given, int fd)
{
	static const char *const shown[] = {"instruction",  "modelProfile", "provider",  "model",
					    "allowedPaths", "checks",       "fileCount", "source"};
	own_free char *read = NULL;
	const void *text = given.p;
	size_t n = given.n;
	if (n == 0) {
		text = read = malloc(SUMMARY_MAX);
		if (read == NULL || !read_summary(fd, read, &n))
			return false;
	}
	const struct json *o = json_parse(rq->arena, text, n, JSON_DEPTH, SUMMARY_NODES, NULL);
	if (o == NULL || o->type != JSON_OBJECT)
		return false;
	jw_key(w, "request");
	jw_open(w, '{');
	for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
		const struct json *v = json_get(o, shown[i]);
		if (v == NULL)
			continue;
		own_buf struct buf b;
		buf_init(&b, SUMMARY_MAX);
		json_write(&b, v);
		if (buf_failed(&b))
			return false;
		jw_key(w, shown[i]);
		jw_raw(w, b.p, b.n);
	}
	jw_close(w, '}');
	return true;
}

static void put_limits(struct jw *w, const struct st_run_is *run)
{
	jw_key(w, "limits");
	jw_open(w, '{');
	jw_kint(w, "maxSteps", run->max_steps);
	jw_kint(w, "wallTimeSeconds", run->wall_seconds);
	jw_kint(w, "approvalWaitSeconds", run->approval_wait_seconds);
	jw_kint(w, "maxModelRequests", run->max_requests);
	jw_close(w, '}');
}

static void put_results(struct jw *w, const struct st_run_is *run)
{
	if (run->finished) {
		jw_key(w, "execution");
		jw_open(w, '{');
		jw_kbool(w, "success", run->success);
		if (run->exited)
			jw_kint(w, "exitCode", run->exit_code);
		jw_close(w, '}');
	}
	jw_key(w, "usage");
	jw_open(w, '{');
	jw_kint(w, "modelRequests", run->used_requests);
	jw_kint(w, "maxModelRequests", run->max_requests);
	jw_kint(w, "promptTokens", (int64_t)run->prompt_tokens);
	jw_kint(w, "completionTokens", (int64_t)run->completion_tokens);
	jw_kint(w, "reservedTokens", (int64_t)run->reserved_tokens);
	jw_kint(w, "maxTokens", (int64_t)run->max_tokens);
	jw_close(w, '}');
	put_raw(w, "changedFiles", run->changed_files);
	put_raw(w, "verification", run->verification);
	put_raw(w, "summary", run->summary);
	put_text(w, "terminalReason", run->terminal_reason);
	put_text(w, "error", run->error);
}

static bool put_snapshot(struct request *rq, struct jw *w, const struct st_run_is *run, int fd, enum err *e)
{
	jw_open(w, '{');
	jw_kstr(w, "runId", run->run);
	jw_kstr(w, "status", run_public((enum run_state)run->state));
	if (!run_terminal(run->state) && run->phase < PHASE__COUNT)
		jw_kstr(w, "phase", phase_names[run->phase]);
	jw_kstr(w, "agent", run->agent);
	jw_kstr(w, "credentialMode", run->env_mode ? "env" : "broker");
	jw_kstr(w, "modelProfile", run->profile);
	jw_kstr(w, "provider", run->provider);
	jw_kstr(w, "model", run->model);
	put_time(w, "createdAt", run->created_at);
	put_time(w, "updatedAt", run->updated_at);
	put_time(w, "startedAt", run->started_at);
	put_time(w, "finishedAt", run->finished_at);
	if (!put_request(rq, w, run->request, fd))
		return false;
	put_limits(w, run);
	jw_kbool(w, "cancelRequested", run->cancel_requested);
	put_results(w, run);
	jw_key(w, "artifactKeys");
	jw_open(w, '[');
	uint32_t have = run_artifacts(run->state, run->artifacts);
	for (unsigned i = 0; i < ART__COUNT; i++)
		if (have & (1u << i))
			jw_str(w, artifact_names[i]);
	jw_close(w, ']');
	/* The last of what the answer about the run holds: from here on its buffer is used again. */
	struct questions asked = {NULL, 0};
	if (run->approvals > 0 && (*e = questions_fetch(rq, &asked)) != ERR_OK)
		return false;
	questions_put(w, "pendingApprovals", "approvalDecisions", "approvalGrants", &asked);
	jw_close(w, '}');
	return true;
}

void handle_run_show(struct request *rq, struct reply *rp)
{
	struct st_run_is run;
	own_fd int fd = -1;
	if (!run_no_query(rq, rp) || !run_fetch(rq, rp, &run, &fd))
		return;
	own_buf struct buf b;
	struct jw w;
	buf_init(&b, SNAPSHOT_BYTES);
	jw_init(&w, &b);
	enum err e = ERR_OK;
	errno = 0;
	if (!put_snapshot(rq, &w, &run, fd, &e))
		reply_error(rp, e != ERR_OK ? e : lack_error(), NULL, NULL);
	else
		reply_json_tagged(rp, rq->in->if_none_match, &b);
}

void handle_run_delete(struct request *rq, struct reply *rp)
{
	struct st_run_delete question = {
	    .tenant = rq->who->tenant, .run = rq->arg[0], .by = rq->who->by, .request_id = rq->in->id};
	struct st_ok done;
	if (!run_no_query(rq, rp))
		return;
	enum err e = st_call_run_delete(rq->ask, &question, NULL, &done, NULL);
	if (e != ERR_OK)
		reply_store_error(rp, e, rq->ask);
	else
		reply_head(rp, (struct reply_head){.status = 204, .length = -1});
}

void handle_run_cancel(struct request *rq, struct reply *rp)
{
	struct st_run_cancel question = {
	    .tenant = rq->who->tenant, .run = rq->arg[0], .by = rq->who->by, .request_id = rq->in->id};
	struct st_run_state state;
	own_buf struct buf b;
	struct jw w;
	buf_init(&b, 4096);
	if (!run_no_query(rq, rp) || !reply_ready(rp, &b))
		return;
	enum err e = st_call_run_cancel(rq->ask, &question, NULL, &state, NULL);
	if (e == ERR_OK && state.state >= RUN_STATE__COUNT)
		e = ERR_INTERNAL_ERROR;
	if (e != ERR_OK) {
		reply_store_error(rp, e, rq->ask);
		return;
	}
	/* A queued run is cancelled at once; this request made it so, and that is 202 as well. */
	bool ended = run_terminal(state.state) && !state.changed;
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "runId", rq->arg[0]);
	jw_kstr(&w, "status", run_public((enum run_state)state.state));
	if (!ended)
		jw_kbool(&w, "cancelRequested", true);
	jw_close(&w, '}');
	reply_json(rp, ended ? 200 : 202, &b);
}
