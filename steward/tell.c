/* See tell.h. Every call is bounded by the connection's patience (STORE_PATIENCE). */
#include "steward/tell.h"
#include "gen/store_msg.h"
#include "lib/chan.h"
#include "lib/die.h"
#include "lib/num.h"
#include "lib/own.h"

enum { QUIET = 1000 };

enum err tell_heard(struct app *app, enum err e)
{
	app->store_quiet_until = e == ERR_STORE_UNAVAILABLE ? timer_ms() + QUIET : 0;
	return e;
}

static bool quiet(const struct app *app)
{
	return app->store_quiet_until != 0 && timer_ms() < app->store_quiet_until;
}

void tell_phase(struct app *app, const struct run *r, enum run_phase phase)
{
	struct st_run_state answer;
	if (quiet(app))
		return;
	struct st_run_phase m = {.tenant = r->tenant, .run = r->run, .phase = (uint8_t)phase};
	enum err e = tell_heard(app, st_call_run_phase(app->store, &m, NULL, &answer, NULL));
	if (e != ERR_OK)
		log_warn("run %s: phase %s was not recorded: %s", r->run, phase_names[phase], err_code(e));
}

void tell_event(struct app *app, const struct run *r, const char *type, struct buf *data)
{
	struct st_ok answer;
	if (buf_failed(data) || quiet(app)) {
		log_warn("run %s: event %s was not recorded", r->run, type);
		return;
	}
	struct st_run_event m = {
	    .tenant = r->tenant, .run = r->run, .type = type, .data = {data->p, (uint32_t)data->n}};
	enum err e = tell_heard(app, st_call_run_event(app->store, &m, NULL, &answer, NULL));
	if (e != ERR_OK)
		log_warn("run %s: event %s was not recorded: %s", r->run, type, err_code(e));
}

void tell_box(struct app *app, enum audit_event event, const char *tenant, const char *run, enum box_kind kind)
{
	struct st_ok answer;
	if (quiet(app)) {
		log_warn("run %s: %s was not told to the audit log", run, audit_row(event)->name);
		return;
	}
	struct st_audit_note m = {.event = (uint8_t)event,
				  .tenant = tenant,
				  .run = run,
				  .actor = "steward",
				  .request_id = "",
				  .subject = kind == BOX_WORK ? "work" : "check"};
	enum err e = tell_heard(app, st_call_audit_note(app->store, &m, NULL, &answer, NULL));
	if (e != ERR_OK)
		log_warn("run %s: %s was not told to the audit log: %s", run, audit_row(event)->name, err_code(e));
}

enum err tell_revoke(struct app *app, struct run *r)
{
	struct st_ok answer;
	if (r->revoked)
		return ERR_OK;
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
	own_fd int fd = bundle_new("artifact");
	if (fd < 0 || !write_all(fd, p, n) || !bundle_seal(fd))
		return ERR_INTERNAL_ERROR;
	struct st_artifact_put m = {.tenant = r->tenant, .run = r->run, .name = (uint8_t)name};
	enum err e = tell_heard(app, st_call_artifact_put(app->store, &m, &fd, &answer, NULL));
	if (e == ERR_OK)
		r->artifacts |= 1u << name;
	else
		log_warn("run %s: artifact %s was not stored: %s", r->run, artifact_names[name], err_code(e));
	return e;
}
