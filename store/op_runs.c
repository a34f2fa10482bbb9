/* Runs as the public side sees them: create, look, list, cancel. */
#include "gen/reasons.h"
#include "lib/digest.h"
#include "lib/json.h"
#include "lib/names.h"
#include "lib/num.h"
#include "store/blobs.h"
#include "store/op.h"
#include "store/questions.h"
#include "store/run_end.h"
#include "store/run_gone.h"
#include "store/spent.h"
#include "store/t_capability.h"
#include "store/t_event.h"
#include "store/t_idempotency.h"
#include "store/t_receipt.h"
#include "store/t_run.h"
#include "store/t_source.h"
#include "store/t_tenant.h"
#include "store/t_token.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { SCAN_MAX = 20000 };

static bool same_bytes(struct wire_bytes a, struct wire_bytes b)
{
	return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

/* Is this the same creation again? */
static bool same_run(const struct rec_run *a, const struct rec_run *b)
{
	return strcmp(a->agent, b->agent) == 0 && strcmp(a->profile, b->profile) == 0 &&
	       strcmp(a->provider, b->provider) == 0 && strcmp(a->model, b->model) == 0 &&
	       same_bytes(a->fingerprint, b->fingerprint) && a->max_steps == b->max_steps &&
	       a->wall_seconds == b->wall_seconds && a->approval_wait_seconds == b->approval_wait_seconds &&
	       a->max_requests == b->max_requests && strcmp(a->created_by, b->created_by) == 0 &&
	       same_bytes(a->request_sha, b->request_sha) && same_bytes(a->upload_sha, b->upload_sha);
}

/* True: this creation was answered before, under its key; *e is what to answer now. */
static bool repeated(struct txn *t, const struct st_run_create *m, const struct rec_run *r, struct st_run_state *a,
		     enum err *e)
{
	struct rec_idempotency was;
	if (m->idempotency[0] == '\0' || !idempotency_get(t, m->tenant, m->idempotency, &was))
		return false;
	*e = same_bytes(was.request_sha, r->request_sha) ? ERR_OK : ERR_IDEMPOTENCY_CONFLICT;
	*a = (struct st_run_state){.state = RUN_QUEUED, .phase = PHASE_WAITING, .run = was.run};
	return true;
}

/* Its upload is a source of its tenant, which has been used by this. */
static enum err take_source(struct txn *t, const struct st_run_create *m, struct blob *upload)
{
	struct rec_source s;
	char sha[SHA256_HEX];
	hex(m->source.p, BLOB_SHA, sha);
	if (!source_get(t, m->tenant, sha, &s))
		return t->failed != ERR_OK ? t->failed : ERR_SOURCE_NOT_FOUND;
	upload->size = s.size;
	struct rec_source now = s;
	source_put(t, m->tenant, sha, &s, &now);
	return ERR_OK;
}

static enum err create(struct txn *t, const struct st_run_create *m, struct rec_run *r, const struct blob *request,
		       struct blob *upload, struct st_run_state *a)
{
	struct rec_run old;
	enum err e;
	if (repeated(t, m, r, a, &e))
		return e;
	e = run_load(t, m->tenant, m->run, &old);
	if (e == ERR_OK) {
		run_state_answer(a, &old, false);
		a->run = m->run;
		return same_run(&old, r) ? ERR_OK : ERR_RUN_SESSION_EXISTS;
	}
	if (e != ERR_RUN_NOT_FOUND)
		return e;
	if (!store_roomy(t->store))
		return ERR_STORAGE_FULL;
	if (m->max_queued != 0 && store_queued(t->store, m->tenant) >= m->max_queued)
		return ERR_RUN_QUEUE_FULL;
	if (r->archive)
		e = take_source(t, m, upload);
	if (r->archive && e != ERR_OK)
		return e;
	e = quota_run(t, m->tenant, request->size + upload->size);
	if (e != ERR_OK)
		return e;
	blob_name(t, request, m->tenant, m->run, run_use_request);
	blob_name(t, upload, m->tenant, m->run, run_use_upload);
	idempotency_prune(t, m->tenant);
	if (m->idempotency[0] != '\0') {
		struct rec_idempotency i = {.run = m->run, .request_sha = r->request_sha, .created_at = t->now};
		idempotency_put(t, m->tenant, m->idempotency, &i);
	}
	own_buf struct buf b;
	struct jw w;
	buf_init(&b, 4096);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "agent", r->agent);
	jw_kstr(&w, "modelProfile", r->profile);
	jw_kstr(&w, "model", r->model);
	jw_close(&w, '}');
	(void)event_addb(t, m->tenant, m->run, r, EVENT_CONTROL, "run.queued", &b);
	run_add(t, m->tenant, m->run, r);
	spent_add(t, m->tenant, SPENT_RUNS, 1);
	struct audit_line l = {.event = AUDIT_RUN_CREATE,
			       .tenant = m->tenant,
			       .run = m->run,
			       .actor = m->created_by,
			       .request_id = m->request_id,
			       .v = {{AUDIT_F_AGENT, .text = r->agent},
				     {AUDIT_F_MODEL_PROFILE, .text = r->profile},
				     {AUDIT_F_MODEL, .text = r->model},
				     {AUDIT_F_MAX_STEPS, .number = r->max_steps},
				     {AUDIT_F_WALL_SECONDS, .number = r->wall_seconds}}};
	txn_audit(t, &l);
	run_state_answer(a, r, true);
	a->run = m->run;
	return ERR_OK;
}

static enum err take(struct txn *t, struct wire_bytes bytes, int fd, uint64_t max, struct blob *out)
{
	return bytes.n > 0 ? blob_small(bytes, out) : blob_take(t, fd, max, out);
}

static enum err op_run_create(struct txn *t, const struct st_run_create *m, int *fds, struct st_run_state *a, int *out)
{
	(void)out;
	if (!token_vouched(t, m->token_id, m->token_hash, m->tenant))
		return ERR_UNAUTHORIZED;
	if (!tenant_exists(t, m->tenant))
		return ERR_TENANT_NOT_FOUND;
	if (m->fingerprint.n != 32 || (m->source.n != 0 && m->source.n != BLOB_SHA))
		return ERR_INVALID_REQUEST;
	if (m->idempotency[0] != '\0' && !id_valid(m->idempotency))
		return ERR_INVALID_IDEMPOTENCY_KEY;
	struct blob request = {.fresh = false}, upload = {.fresh = false};
	enum err e = take(t, m->request, fds[0], BLOB_MAX, &request);
	if (e == ERR_OK && m->source.n > 0)
		memcpy(upload.sha, m->source.p, BLOB_SHA);
	else if (e == ERR_OK)
		e = take(t, m->upload, fds[1], BLOB_UPLOAD_MAX, &upload);
	if (e == ERR_OK) {
		struct rec_run r = {.state = RUN_QUEUED,
				    .phase = PHASE_WAITING,
				    .agent = m->agent,
				    .env_mode = m->env_mode,
				    .profile = m->profile,
				    .provider = m->provider,
				    .model = m->model,
				    .fingerprint = m->fingerprint,
				    .created_at = t->now,
				    .phase_at = t->now,
				    .max_steps = m->max_steps,
				    .wall_seconds = m->wall_seconds,
				    .approval_wait_seconds = m->approval_wait_seconds,
				    .max_requests = m->max_requests,
				    .request_sha = {request.sha, BLOB_SHA},
				    .upload_sha = {upload.sha, BLOB_SHA},
				    .created_by = m->created_by,
				    .title = m->title,
				    .archive = m->source.n > 0};
		/* Ended here, not by ST_OP, so that files of a creation that failed go at once. */
		e = txn_end(t, create(t, m, &r, &request, &upload, a));
	}
	if (e != ERR_OK || !a->changed) {
		blob_undo(t, &request);
		blob_undo(t, &upload);
	}
	return e;
}
ST_OP(run_create, run_state, 2, 0)

static enum err op_run_get(struct txn *t, const struct st_run_get *m, int *fds, struct st_run_is *a, int *out)
{
	(void)fds;
	struct rec_run r;
	if (!token_vouched(t, m->token_id, m->token_hash, m->tenant))
		return ERR_UNAUTHORIZED;
	enum err e = run_load(t, m->tenant, m->run, &r);
	if (e != ERR_OK)
		return e;
	struct wire_bytes request;
	out[0] = blob_tell(t, r.request_sha, &request);
	*a = (struct st_run_is){.run = m->run,
				.request = request,
				.state = r.state,
				.phase = r.phase,
				.cancel_requested = r.cancel_requested,
				.agent = r.agent,
				.profile = r.profile,
				.provider = r.provider,
				.model = r.model,
				.created_at = r.created_at,
				.updated_at = r.updated_at,
				.started_at = r.started_at,
				.finished_at = r.finished_at,
				.max_steps = r.max_steps,
				.wall_seconds = r.wall_seconds,
				.approval_wait_seconds = r.approval_wait_seconds,
				.max_requests = r.max_requests,
				.used_requests = r.used_requests,
				.prompt_tokens = r.prompt_tokens,
				.completion_tokens = r.completion_tokens,
				.reserved_tokens = r.reserved_tokens + r.kept_tokens,
				.max_tokens = quota_run_tokens(t, m->tenant, r.agent),
				.finished = run_is_final(&r),
				.success = r.success,
				.exited = r.exited,
				.exit_code = r.exit_code,
				.terminal_reason = r.terminal_reason,
				.error = r.error,
				.summary = r.summary,
				.changed_files = r.changed_files,
				.verification = r.verification,
				.artifacts = r.artifacts,
				.last_sequence = r.last_sequence,
				.approvals = r.approvals,
				.env_mode = r.env_mode};
	return ERR_OK;
}
ST_OP(run_get, run_is, 0, 1)

struct listing {
	struct txn *t;
	uint32_t states;
	unsigned limit, found, scanned;
	bool more;
	char next_run[STORE_ID];
	uint64_t next_created;
	struct wire_list list;
};

static bool add_item(struct listing *l, const char *tenant, const char *run)
{
	struct rec_run r;
	if (run_load(l->t, tenant, run, &r) != ERR_OK)
		return true; /* unreadable: said in the log; the others are still listed */
	struct st_run_item item = {.tenant = tenant,
				   .run = run,
				   .state = r.state,
				   .phase = r.phase,
				   .cancel_requested = r.cancel_requested,
				   .agent = r.agent,
				   .profile = r.profile,
				   .created_at = r.created_at,
				   .updated_at = r.updated_at,
				   .finished_at = r.finished_at,
				   .terminal_reason = r.terminal_reason,
				   .error = r.error,
				   .title = r.title};
	if (!LIST_PUT(&l->list, run_item, ST_MAX_RUN_ITEM, &item))
		return false;
	l->found++;
	return true;
}

static bool list_run(void *with, const char *tenant, const char *run, uint8_t state, uint64_t created_at)
{
	struct listing *l = with;
	bool wanted = l->states == 0 || (state < 32 && (l->states >> state & 1) != 0);
	if (l->found >= l->limit || l->scanned >= SCAN_MAX || (wanted && !add_item(l, tenant, run))) {
		l->more = true;
		return false;
	}
	l->scanned++;
	(void)snprintf(l->next_run, sizeof l->next_run, "%s", run);
	l->next_created = created_at;
	return true;
}

static void page_answer(struct st_run_page *a, struct listing *l)
{
	a->more = l->more;
	a->items = wire_list_done(&l->list);
	if (l->more) {
		a->next_created = l->next_created;
		a->next_run = arena_dup(&l->t->arena, l->next_run, strlen(l->next_run));
		if (a->next_run == NULL) /* a page that does not say where the next begins looks like the first */
			txn_fail(l->t, store_error(errno));
	}
}

static enum err op_run_list(struct txn *t, const struct st_run_list *m, int *fds, struct st_run_page *a, int *out)
{
	(void)fds;
	(void)out;
	struct listing l = {
	    .t = t, .states = m->states, .limit = list_limit(m->limit), .list = {.p = t->page, .cap = STORE_PAGE}};
	run_by_age_each(t, m->tenant, m->before_created, m->before_run, list_run, &l);
	page_answer(a, &l);
	return ERR_OK;
}
ST_OP(run_list, run_page, 0, 0)

static enum err op_runs_open(struct txn *t, const struct st_runs_open *m, int *fds, struct st_run_page *a, int *out)
{
	(void)fds;
	(void)out;
	struct listing l = {.t = t, .limit = UINT16_MAX, .list = {.p = t->page, .cap = STORE_PAGE}};
	run_open_each(t, NULL, m->after_tenant, m->after_run, list_run, &l);
	page_answer(a, &l);
	return ERR_OK;
}
ST_OP(runs_open, run_page, 0, 0)

static enum err op_run_cancel(struct txn *t, const struct st_run_cancel *m, int *fds, struct st_run_state *a, int *out)
{
	(void)fds;
	(void)out;
	struct rec_run r;
	bool changed = false;
	enum err e = run_load(t, m->tenant, m->run, &r);
	if (e != ERR_OK)
		return e;
	e = run_move(t, m->tenant, m->run, &r, RUN_EV_CANCEL, &changed);
	run_state_answer(a, &r, changed);
	if (e == ERR_OK && !changed && run_is_final(&r) && r.state != RUN_CANCELLED)
		run_overruled(t, m->tenant, m->run, &r, m->by, m->request_id, reason_name(REASON_CANCELLED_BY_REQUEST),
			      err_code(ERR_CANCELLED_BY_REQUEST));
	if (e != ERR_OK || !changed)
		return e;
	r.cancel_requested = true;
	questions_end(t, m->tenant, m->run, &r, "the run is cancelled");
	/* From this commit on the run can't ask a model any more, whatever its box still does. */
	capability_del(t, m->tenant, m->run);
	own_buf struct buf b;
	struct jw w;
	buf_init(&b, 4096);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "by", m->by);
	jw_close(&w, '}');
	(void)event_addb(t, m->tenant, m->run, &r, EVENT_CONTROL, "run.cancel_requested", &b);
	struct audit_line l = {.event = AUDIT_RUN_CANCEL,
			       .tenant = m->tenant,
			       .run = m->run,
			       .actor = m->by,
			       .request_id = m->request_id,
			       .v = {{AUDIT_F_STATE, .text = run_public((enum run_state)r.state)}}};
	txn_audit(t, &l);
	receipt_add(t, m->tenant, m->by, &(struct rec_receipt){.run = m->run, .request = "", .kind = RECEIPT_CANCEL});
	if (run_is_final(&r))
		run_end(t, m->tenant, m->run, &r, m->by, m->request_id);
	run_save(t, m->tenant, m->run, &r);
	return ERR_OK;
}
ST_OP_ONCE(run_cancel, run_state)

/* One transaction whatever the run holds: 10,000 events at most. */
static enum err op_run_delete(struct txn *t, const struct st_run_delete *m, int *fds, struct st_ok *a, int *out)
{
	(void)fds;
	(void)a;
	(void)out;
	struct rec_run r;
	enum err e = run_load(t, m->tenant, m->run, &r);
	if (e != ERR_OK)
		return e;
	if (!run_is_final(&r))
		return ERR_RUN_NOT_TERMINAL;
	run_remove(t, m->tenant, m->run, &r, m->by, m->request_id);
	return ERR_OK;
}
ST_OP_ONCE(run_delete, ok)
