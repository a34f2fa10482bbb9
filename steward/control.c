/*
 * Talks with sandboxd, which made this pipe before it forked us and is trusted. Still every packet goes
 * through the bounded codec: a message that makes no sense means that the two are of different builds,
 * and then it is better to be started again.
 */
#include "steward/control.h"
#include "gen/sandbox_msg.h"
#include "lib/chan.h"
#include "lib/die.h"
#include "lib/place.h"
#include "steward/proof.h"
#include "steward/run.h"
#include "steward/source.h"
#include "steward/tell.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

enum { SEND_SECONDS = 5, STRAYS = 1024, DRAIN = 10000 };

static void send_packet(struct app *app, const uint8_t *p, size_t n, const int *fds, int nfds)
{
	if (n == 0)
		panic("a message to sandboxd does not fit its own bounds");
	if (chan_send(app->control, p, n, fds, nfds) == 0)
		return;
	if (errno == EPIPE || errno == ECONNRESET)
		exit(0); /* sandboxd is gone, and every box with it */
	fatal("sandboxd does not take messages: %m");
}

void control_start(struct app *app)
{
	struct timeval patience = {.tv_sec = SEND_SECONDS};
	uint8_t frame[SBX_MAX_LIST];
	app->control = CHILD_FD_CONTROL;
	if (setsockopt(app->control, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0)
		fatal("descriptor %d is not sandboxd's pipe: %m", app->control);
	reload_start(&app->reload, app->control);
	struct sbx_list list = {0};
	send_packet(app, frame, sbx_put_list(frame, sizeof frame, 0, &list), NULL, 0);
	while (!app->listed)
		control_read(app);
}

static void spawn(struct app *app, const struct run *r, enum box_kind kind, uint32_t wall_seconds, const char *keys_of,
		  int upload, int result)
{
	uint8_t frame[SBX_MAX_SPAWN];
	struct sbx_spawn m = {.run = r->run,
			      .tenant = r->tenant,
			      .kind = (uint8_t)kind,
			      .wall_seconds = wall_seconds,
			      .memory_bytes = r->agent->memory_bytes,
			      .pids = r->agent->pids,
			      .workspace_bytes = r->agent->workspace_bytes,
			      .workspace_inodes = r->agent->workspace_inodes,
			      .agent = keys_of};
	if (r->step == STEP_SPAWN_UNPACK && r->archive)
		source_box(r, &m);
	int fds[] = {upload, result};
	send_packet(app, frame, sbx_put_spawn(frame, sizeof frame, 0, &m), fds, 2);
}

void control_spawn(struct app *app, const struct run *r, enum box_kind kind, uint32_t wall_seconds, int upload,
		   int result)
{
	spawn(app, r, kind, wall_seconds, kind == BOX_WORK && r->agent->env_mode ? r->agent->name : "", upload, result);
}

void control_spawn_test(struct app *app, const struct run *r, uint32_t wall_seconds, int upload, int result)
{
	spawn(app, r, BOX_WORK, wall_seconds, "", upload, result);
}

void control_kill(struct app *app, const char *run, enum box_kind kind, uint32_t grace_ms)
{
	uint8_t frame[SBX_MAX_KILL];
	struct sbx_kill m = {.run = run, .kind = (uint8_t)kind, .grace_ms = grace_ms};
	send_packet(app, frame, sbx_put_kill(frame, sizeof frame, 0, &m), NULL, 0);
}

void control_pause(struct app *app, const char *run, bool stands, bool frozen)
{
	uint8_t frame[SBX_MAX_PAUSE];
	struct sbx_pause m = {.run = run, .stands = stands, .frozen = frozen};
	send_packet(app, frame, sbx_put_pause(frame, sizeof frame, 0, &m), NULL, 0);
}

static size_t stray_at(const struct app *app, const char *run, uint8_t kind)
{
	size_t i = 0;
	while (i < app->nstrays && (app->strays[i].kind != kind || strcmp(app->strays[i].run, run) != 0))
		i++;
	return i;
}

void control_stray(struct app *app, const char *run, enum box_kind kind)
{
	if (stray_at(app, run, (uint8_t)kind) < app->nstrays || app->nstrays >= STRAYS)
		return;
	struct stray *v = realloc(app->strays, (app->nstrays + 1) * sizeof *v);
	if (v == NULL)
		fatal("no memory");
	app->strays = v;
	struct stray *s = &v[app->nstrays++];
	snprintf(s->run, sizeof s->run, "%s", run);
	s->kind = (uint8_t)kind;
}

bool control_strays_of(const struct app *app, const char *run)
{
	return stray_at(app, run, BOX_WORK) < app->nstrays || stray_at(app, run, BOX_CHECK) < app->nstrays;
}

static void gone(struct app *app, const struct sbx_gone *m)
{
	size_t i = stray_at(app, m->run, m->kind);
	/* A quarantined box keeps its slot for as long as sandboxd lives. */
	bool stray = i < app->nstrays;
	if (stray && m->clean)
		app->strays[i] = app->strays[--app->nstrays];
	struct run *r = app_run(app, m->run);
	if (stray)
		tell_box(app, m->clean ? AUDIT_SANDBOX_DESTROY : AUDIT_SANDBOX_CLEANUP_FAILED,
			 r != NULL ? r->tenant : "", m->run, (enum box_kind)m->kind);
	if (r != NULL)
		run_gone(app, r, (enum box_kind)m->kind, m->clean);
}

/* At start, every box that exists is one of an earlier steward: nobody knows how far its run had come. */
static void found(struct app *app, const struct sbx_box *m)
{
	if (app->listed)
		return;
	control_stray(app, m->run, (enum box_kind)m->kind);
	control_kill(app, m->run, (enum box_kind)m->kind, 0);
}

union any {
	struct sbx_welcome welcome;
	struct sbx_spawned spawned;
	struct sbx_refused refused;
	struct sbx_exited exited;
	struct sbx_gone gone;
	struct sbx_box box;
	struct sbx_listed listed;
};

/* A box of a self-test is of no run. */
static bool proven_by(struct app *app, uint16_t number, const union any *m)
{
	return number == SBX_SPAWNED   ? proof_spawned(app, m->spawned.run)
	       : number == SBX_REFUSED ? proof_refused(app, &m->refused)
	       : number == SBX_EXITED  ? proof_exited(app, m->exited.run)
	       : number == SBX_GONE    ? proof_gone(app, m->gone.run)
				       : false;
}

static bool kind_ok(uint8_t kind)
{
	return kind == BOX_WORK || kind == BOX_CHECK;
}

static bool take(struct app *app, uint16_t number, const uint8_t *frame, size_t n)
{
	union any m;
	struct run *r;
	switch (number) {
	case SBX_WELCOME:
		if (!sbx_get_welcome(frame, n, &m.welcome) || m.welcome.version != SBX_VERSION)
			return false;
		app->slots = m.welcome.slots < MAX_RUNS ? m.welcome.slots : MAX_RUNS;
		return true;
	case SBX_SPAWNED:
		if (!sbx_get_spawned(frame, n, &m.spawned) || !kind_ok(m.spawned.kind))
			return false;
		if (!proven_by(app, number, &m) && (r = app_run(app, m.spawned.run)) != NULL)
			run_spawned(app, r, (enum box_kind)m.spawned.kind);
		return true;
	case SBX_REFUSED:
		if (!sbx_get_refused(frame, n, &m.refused) || !kind_ok(m.refused.kind))
			return false;
		if (!proven_by(app, number, &m) && (r = app_run(app, m.refused.run)) != NULL)
			run_refused(app, r, (enum box_kind)m.refused.kind, m.refused.code, m.refused.detail);
		return true;
	case SBX_EXITED:
		if (!sbx_get_exited(frame, n, &m.exited) || !kind_ok(m.exited.kind))
			return false;
		if (!proven_by(app, number, &m) && (r = app_run(app, m.exited.run)) != NULL)
			run_exited(app, r, &m.exited);
		return true;
	case SBX_GONE:
		if (!sbx_get_gone(frame, n, &m.gone) || !kind_ok(m.gone.kind))
			return false;
		if (!proven_by(app, number, &m))
			gone(app, &m.gone);
		return true;
	case SBX_BOX:
		if (!sbx_get_box(frame, n, &m.box) || !kind_ok(m.box.kind))
			return false;
		found(app, &m.box);
		return true;
	case SBX_LISTED:
		if (!sbx_get_listed(frame, n, &m.listed))
			return false;
		app->listed = true;
		return true;
	default:
		return false;
	}
}

void control_read(struct app *app)
{
	static uint8_t frame[SBX_MAXFRAME];
	int fds[4];
	int nfds = 0;
	uint16_t number;
	uint64_t op;
	ssize_t n = chan_recv(app->control, frame, sizeof frame, fds, &nfds);
	if (n == 0 || (n < 0 && errno == ECONNRESET))
		exit(0);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0 && wire_peek(frame, (size_t)n, &number, &op) && number != SBX_WELCOME &&
	    reload_packet(&app->reload, frame, (size_t)n, fds, nfds))
		return;
	/* The result that comes with BOX is of a run nobody judges any more. */
	if (n > 0)
		chan_close_fds(fds, nfds);
	if (n < 0 || !wire_peek(frame, (size_t)n, &number, &op) || !take(app, number, frame, (size_t)n))
		fatal("a message from sandboxd makes no sense: restart the service");
}

void control_drain(struct app *app)
{
	struct pollfd p = {.fd = app->control, .events = POLLIN};
	for (int i = 0; i < DRAIN && poll(&p, 1, 0) > 0; i++)
		control_read(app);
}
