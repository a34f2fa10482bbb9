/*
 * See tell.h. Every call is bounded by the connection's patience (STORE_PATIENCE). Tales have a connection of their
 * own: one whose answer was lost is told again under its operation id, so that no event is there twice.
 */
#include "steward/tell.h"
#include "gen/metrics.h"
#include "gen/store_msg.h"
#include "lib/chan.h"
#include "lib/die.h"
#include "lib/lack.h"
#include "lib/num.h"
#include "lib/own.h"
#include "lib/token.h"
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More than all runs tell in hours without a store: what is beyond is lost, and said so. */
enum { QUIET = 1000, TALES = 4096, TALES_BYTES = 16000000 };

enum tale_what { TALE_PHASE, TALE_EVENT, TALE_BOX };
struct tale {
	struct tale *next;
	enum tale_what what;
	enum run_phase phase;
	enum audit_event audit;
	enum box_kind kind;
	char tenant[129], run[129], type[65];
	uint32_t n;
	uint8_t data[];
};

enum err tell_heard(struct app *app, enum err e)
{
	app->store_quiet_until = e == ERR_STORE_UNAVAILABLE ? timer_ms() + QUIET : 0;
	return e;
}

bool tell_quiet(const struct app *app)
{
	return app->store_quiet_until != 0 && timer_ms() < app->store_quiet_until;
}

static enum err tell_one(struct app *app, const struct tale *t)
{
	struct st_run_state state;
	struct st_ok ok;
	switch (t->what) {
	case TALE_PHASE:;
		struct st_run_phase phase = {.tenant = t->tenant, .run = t->run, .phase = (uint8_t)t->phase};
		return st_call_run_phase(app->teller, &phase, NULL, &state, NULL);
	case TALE_EVENT:;
		struct st_run_event event = {
		    .tenant = t->tenant, .run = t->run, .type = t->type, .data = {t->data, t->n}};
		return st_call_run_event(app->teller, &event, NULL, &ok, NULL);
	case TALE_BOX:
	default:;
		struct st_audit_note note = {.event = (uint8_t)t->audit,
					     .tenant = t->tenant,
					     .run = t->run,
					     .actor = "steward",
					     .request_id = "",
					     .subject = t->kind == BOX_WORK ? "work" : "check"};
		return st_call_audit_note(app->teller, &note, NULL, &ok, NULL);
	}
}

bool tell_all(struct app *app)
{
	while (app->tales != NULL) {
		struct tale *t = app->tales;
		if (tell_quiet(app))
			return false;
		if (app->tale_asked)
			ask_repeat(app->teller);
		enum err e = tell_heard(app, tell_one(app, t));
		app->tale_asked = e == ERR_STORE_UNAVAILABLE;
		if (e == ERR_STORE_UNAVAILABLE)
			return false;
		if (e != ERR_OK)
			log_warn("run %s: %s was not recorded: %s", t->run,
				 t->what == TALE_PHASE   ? phase_names[t->phase]
				 : t->what == TALE_EVENT ? t->type
							 : audit_row(t->audit)->name,
				 err_code(e));
		app->tales = t->next;
		app->ntales--;
		app->tales_bytes -= sizeof *t + t->n;
		free(t);
	}
	return true;
}

uint64_t tell_due(const struct app *app)
{
	if (app->tales == NULL)
		return 0;
	return app->store_quiet_until != 0 ? app->store_quiet_until : timer_ms();
}

static void tale(struct app *app, const struct tale *like, const char *tenant, const char *run, const struct buf *data)
{
	size_t n = data != NULL ? data->n : 0;
	bool fits = app->ntales < TALES && app->tales_bytes + sizeof *like + n <= TALES_BYTES;
	struct tale *t = fits && (data == NULL || !buf_failed(data)) ? malloc(sizeof *t + n) : NULL;
	if (t == NULL) {
		log_error("run %s: something could not be kept to be told", run);
		return;
	}
	*t = *like;
	t->next = NULL;
	t->n = (uint32_t)n;
	snprintf(t->tenant, sizeof t->tenant, "%s", tenant);
	snprintf(t->run, sizeof t->run, "%s", run);
	if (n > 0)
		memcpy(t->data, data->p, n);
	struct tale **end = &app->tales;
	while (*end != NULL)
		end = &(*end)->next;
	*end = t;
	app->ntales++;
	app->tales_bytes += sizeof *t + n;
	if (!tell_all(app))
		log_warn("run %s: %zu things are to be told when the store is back", run, app->ntales);
}

void tell_phase(struct app *app, const struct run *r, enum run_phase phase)
{
	const struct tale t = {.what = TALE_PHASE, .phase = phase};
	tale(app, &t, r->tenant, r->run, NULL);
}

void tell_event(struct app *app, const struct run *r, const char *type, struct buf *data)
{
	struct tale t = {.what = TALE_EVENT};
	snprintf(t.type, sizeof t.type, "%s", type);
	tale(app, &t, r->tenant, r->run, data);
}

void tell_box(struct app *app, enum audit_event event, const char *tenant, const char *run, enum box_kind kind)
{
	const struct tale t = {.what = TALE_BOX, .audit = event, .kind = kind};
	tale(app, &t, tenant, run, NULL);
}

static void put_figure(struct wire_list *l, enum metric m, enum box_kind kind, const uint64_t *v, size_t n)
{
	uint64_t be[HIST_BOUNDS + 2];
	for (size_t i = 0; i < n; i++)
		be[i] = htobe64(v[i]);
	const struct st_figure f = {.metric = (uint8_t)m,
				    .labels = kind == BOX_WORK ? "agent" : "check",
				    .values = {(const uint8_t *)be, (uint32_t)(n * sizeof *be)}};
	uint8_t *p = wire_list_room(l, ST_MAX_FIGURE);
	size_t used = p != NULL ? st_put_figure(p, ST_MAX_FIGURE, &f) : 0;
	if (used > 0)
		wire_list_add(l, used);
}

void tell_figures(struct app *app)
{
	uint8_t items[2048];
	struct wire_list l = {.p = items, .cap = sizeof items};
	struct st_ok answer;
	if (!app->figures_due || tell_quiet(app))
		return;
	for (enum box_kind kind = BOX_WORK; kind <= BOX_CHECK; kind++) {
		uint64_t v[HIST_BOUNDS + 2];
		memcpy(v, app->spawned[kind].n, sizeof app->spawned[kind].n);
		v[HIST_BOUNDS + 1] = app->spawned[kind].sum_us;
		put_figure(&l, METRIC_SPAWN_SECONDS, kind, v, HIST_BOUNDS + 2);
		put_figure(&l, METRIC_SPAWNS_REFUSED_TOTAL, kind, &app->not_spawned[kind], 1);
	}
	const struct st_figures m = {.items = wire_list_done(&l)};
	enum err e = tell_heard(app, st_call_figures(app->store, &m, NULL, &answer, NULL));
	app->figures_due = e == ERR_STORE_UNAVAILABLE;
}

bool tell_renew(struct app *app, const struct run *r)
{
	struct st_ok answer;
	if (tell_quiet(app))
		return false;
	struct st_cap_renew m = {
	    .tenant = r->tenant, .run = r->run, .expires_at = clock_ms() + 1000 * (uint64_t)TOKEN_LIFE_SECONDS};
	enum err e = tell_heard(app, st_call_cap_renew(app->store, &m, NULL, &answer, NULL));
	if (e != ERR_OK)
		log_warn("run %s: its capability was not renewed: %s", r->run, err_code(e));
	return e != ERR_STORE_UNAVAILABLE;
}

enum err tell_revoke(struct app *app, struct run *r)
{
	struct st_ok answer;
	if (r->revoked)
		return ERR_OK;
	if (tell_quiet(app))
		return ERR_STORE_UNAVAILABLE;
	struct st_cap_revoke m = {.tenant = r->tenant, .run = r->run};
	enum err e = tell_heard(app, st_call_cap_revoke(app->store, &m, NULL, &answer, NULL));
	/* Whatever else it answers, asking again would not change it; the terminal state revokes as well. */
	r->revoked = e != ERR_STORE_UNAVAILABLE;
	if (e != ERR_OK)
		log_warn("run %s: its capability was not revoked: %s", r->run, err_code(e));
	return e;
}

enum err tell_artifact(struct app *app, struct run *r, enum artifact name, const void *p, size_t n)
{
	struct st_ok answer;
	if ((r->artifacts & (1u << name)) != 0)
		return ERR_OK;
	own_fd int fd = bundle_of("artifact", p, n);
	if (fd < 0)
		return lack_error();
	struct st_artifact_put m = {.tenant = r->tenant, .run = r->run, .name = (uint8_t)name};
	enum err e = tell_heard(app, st_call_artifact_put(app->store, &m, &fd, &answer, NULL));
	if (e == ERR_OK)
		r->artifacts |= 1u << name;
	else
		log_warn("run %s: artifact %s was not stored: %s", r->run, artifact_names[name], err_code(e));
	return e;
}
