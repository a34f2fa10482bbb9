/*
 * See launch.h. A run is committed as running (with its capability) before anything is made for it; if
 * that answer is lost, the next sweep finds a running run that nobody drives and fails it.
 */
#include "steward/launch.h"
#include "gen/run_fsm.h"
#include "gen/store_msg.h"
#include "lib/chan.h"
#include "lib/die.h"
#include "lib/lack.h"
#include "lib/num.h"
#include "lib/own.h"
#include "lib/token.h"
#include "steward/pack.h"
#include "steward/proof.h"
#include "steward/run.h"
#include "steward/source.h"
#include "steward/tell.h"
#include "steward/wait.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { LAUNCH_PAUSE = 1000, EXPIRE_PAUSE = 1000 };

int launch_result(void)
{
	return bundle_new("result");
}

bool launch_seal(int fd, uint64_t more)
{
	struct stat st;
	return fd >= 0 && bundle_seal(fd) && fstat(fd, &st) == 0 && (uint64_t)st.st_size <= RESULT_BYTES + more;
}

void launch_forget(void *arg)
{
	struct app *app = arg;
	secrets_wipe(&app->reload.place.now->secrets);
	if (app->reload.next != NULL)
		secrets_wipe(&app->reload.next->secrets);
}

uint32_t launch_check_seconds(const struct run *r)
{
	return r->conf_tenant->t.check_seconds > 0 ? r->conf_tenant->t.check_seconds : CHECK_SECONDS;
}

int launch_check_bundle(const struct run *r)
{
	own_fd int fd = bundle_new("upload");
	bool ok = fd >= 0;
	pack_sources(fd, r->upload_fd, &ok);
	if (!r->comparing)
		pack_changes(fd, r, &ok);
	pack_check(fd, &r->rq.checks[r->check_at], r->agent, launch_check_seconds(r), &ok);
	pack_go(fd, r, BOX_CHECK, &ok);
	return ok && bundle_seal(fd) ? steal_fd(&fd) : -1;
}

int launch_work_bundle(const struct app *app, const struct run *r)
{
	own_fd int fd = bundle_new("upload");
	bool ok = fd >= 0;
	pack_sources(fd, r->upload_fd, &ok);
	pack_request(fd, r, app->conf->global.gateway_port, &ok);
	pack_tokens(fd, r, app->run_key, &ok);
	pack_files(fd, r, app->conf->global.gateway_port, &ok);
	pack_keys(fd, r->agent, NULL, !proof_odd(app, r->agent->name), &ok);
	pack_bridge(fd, r, app->run_key, &ok);
	pack_agent(fd, r, app->conf->global.gateway_port, &ok);
	pack_go(fd, r, BOX_WORK, &ok);
	return ok && bundle_seal(fd) ? steal_fd(&fd) : -1;
}

/* Everything between the commit and the first box. */
static enum err prepare(struct app *app, struct run *r, int request_fd, const char *agent)
{
	r->under = held_use(app->reload.place.now);
	r->agent = conf_agent(app->conf, agent);
	r->conf_tenant = conf_tenant(app->conf, r->tenant);
	if (r->agent == NULL)
		return ERR_AGENT_NOT_ALLOWED;
	if (r->conf_tenant == NULL)
		return ERR_TENANT_NOT_FOUND;
	if (!conf_env_allowed(app->conf, r->conf_tenant, r->agent)) /* it was taken back while the run waited */
		return ERR_ENV_CREDENTIALS_NOT_ALLOWED;
	if (conf_profile(app->conf, r->profile) == NULL)
		return ERR_CREDENTIAL_UNAVAILABLE;
	enum err e = request_read(&r->rq, request_fd);
	if (e != ERR_OK)
		return e;
	errno = 0;
	r->bundle_fd = r->archive ? source_bundle(r) : launch_work_bundle(app, r);
	return r->bundle_fd < 0 ? lack_error() : ERR_OK;
}

static void start(struct app *app, struct waiting *w)
{
	/* A start whose answer was lost is asked for once more as it was: then it is the same one. */
	bool again = w->expires_at != 0 && timer_ms() < w->asked_at + START_AGAIN;
	if (!again) {
		w->expires_at = clock_ms() + 1000 * (uint64_t)TOKEN_LIFE_SECONDS;
		w->asked_at = timer_ms();
	}
	struct st_run_start m = {.tenant = w->tenant, .run = w->run, .expires_at = w->expires_at};
	struct st_run_work work;
	int fds[2];
	enum err e = tell_heard(app, st_call_run_start(app->store, &m, NULL, &work, fds));
	if (e == ERR_ILLEGAL_RUN_TRANSITION || e == ERR_RUN_NOT_FOUND || e == ERR_ALREADY_ACTIVE) {
		app->resync_at = timer_ms(); /* cancelled or removed in the meantime, or started and forgotten */
		return;
	}
	if (e != ERR_OK) {
		log_warn("run %s of %s is not started: %s", w->run, w->tenant, err_code(e));
		if (e != ERR_STORE_UNAVAILABLE)
			w->expires_at = 0; /* it was not done */
		queue_put_back(&app->queue, w);
		if (e == ERR_STORE_UNAVAILABLE)
			app->resync_at = timer_ms() + LAUNCH_PAUSE;
		app->launch_at = timer_ms() + LAUNCH_PAUSE;
		return;
	}
	own_fd int request_fd = fds[0];
	struct run *r = run_new(app, w->tenant, w->run);
	if (r == NULL) {
		close(fds[1]);
		app->resync_at = timer_ms() + LAUNCH_PAUSE; /* it will be found running and alone */
		return;
	}
	r->upload_fd = fds[1];
	snprintf(r->model, sizeof r->model, "%s", work.model);
	snprintf(r->profile, sizeof r->profile, "%s", work.profile);
	r->archive = work.archive;
	r->max_steps = work.max_steps;
	r->wall_seconds = work.wall_seconds;
	r->wait_left = wait_most(work.approval_wait_seconds);
	char agent[129];
	snprintf(agent, sizeof agent, "%s", work.agent);
	log_info("run %s of %s starts", r->run, r->tenant);
	e = prepare(app, r, request_fd, agent);
	if (e == ERR_OK) {
		run_begin(app, r);
	} else {
		run_fail(r, e, REASON_NOT_STARTED);
		run_settle(app, r);
	}
}

static bool may_start(void *arg, const char *tenant)
{
	const struct app *app = arg;
	const struct conf_tenant *t = conf_tenant(app->conf, tenant);
	size_t active = 0;
	for (size_t i = 0; i < app->nruns; i++)
		active += strcmp(app->runs[i]->tenant, tenant) == 0;
	return t == NULL || t->t.max_concurrent_runs == 0 || active < t->t.max_concurrent_runs;
}

/* Looked for once a second: a queue may be long. */
static void expire(struct app *app)
{
	struct waiting w;
	uint32_t set = app->conf->global.queue_seconds;
	int64_t limit = 1000 * (int64_t)(set != 0 ? set : QUEUE_SECONDS), now = (int64_t)timer_ms();
	struct st_run_state answer;
	if (timer_ms() < app->expire_at)
		return;
	app->expire_at = timer_ms() + EXPIRE_PAUSE;
	while (queue_take_older(&app->queue, now - limit, &w)) {
		struct st_run_finish m = {.tenant = w.tenant,
					  .run = w.run,
					  .event = RUN_EV_FAIL,
					  .terminal_reason = reason_name(REASON_QUEUE_TIME_EXCEEDED),
					  .error = err_code(ERR_QUEUE_TIME_EXCEEDED)};
		enum err e = tell_heard(app, st_call_run_finish(app->store, &m, NULL, &answer, NULL));
		/* It keeps its age: found anew by a reading of the store, it would pass for a young one (sweep.c). */
		if (e != ERR_OK && err_row(e)->retry) {
			queue_put_back(&app->queue, &w);
			app->launch_at = timer_ms() + LAUNCH_PAUSE;
			return;
		}
	}
}

void launch_queued(struct app *app)
{
	struct waiting w;
	uint32_t most = app->conf->global.max_concurrent_runs;
	if (tell_quiet(app) || (app->launch_at != 0 && timer_ms() < app->launch_at))
		return;
	app->launch_at = 0;
	expire(app);
	/* A stray box holds a slot until sandboxd says that it is gone. */
	while (app->launch_at == 0 && app->nruns < MAX_RUNS && (most == 0 || app->nruns < most) &&
	       app->nruns + app->nstrays + proof_boxes(app) < app->slots && queue_take(&app->queue, may_start, app, &w))
		start(app, &w);
}
