/*
 * One function for each message that a child may send (gen/sandbox_msg_on.h), called only
 * after the permitted-state check and a complete decode. Each says why obeying it is safe, the sender being
 * taken over by an attacker. Then the messages in the other direction.
 */
#include "gen/sandbox_msg_on.h"
#include "lib/die.h"
#include "lib/packet.h"
#include "lib/place.h"
#include "sandboxd/app.h"
#include <fcntl.h>
#include <unistd.h>

enum { GRACE_MOST_MS = 5000, WALL_MOST_S = 7 * 86400, PIDS_MOST = 4096 };
static const uint64_t mib = 1u << 20;

static void open_at_gateway(struct app *app, const struct box *b)
{
	uint8_t frame[SBX_MAX_OPEN];
	const struct sbx_open m = {.run = b->run, .tenant = b->tenant};
	monitor_send(&app->child[CHILD_GATEWAY].from, frame, sbx_put_open(frame, sizeof frame, 0, &m), &b->listener, 1);
}

/*
 * Safe: reads one number. Once on a connection, by the table. The gateway gets duplicates of the listeners that
 * it had anyway.
 */
void sbx_on_hello(struct sbx_from *from, uint64_t op, const struct sbx_hello *m, int *fds)
{
	(void)fds;
	struct app *app = from->app;
	if (m->version != SBX_VERSION) {
		log_error("%s speaks version %u of the protocol and this sandboxd %d: restart the service",
			  from->child->row->program, m->version, SBX_VERSION);
		monitor_fail(from, "another version");
		return;
	}
	uint8_t frame[SBX_MAX_WELCOME];
	const struct sbx_welcome answer = {.version = SBX_VERSION, .slots = app->boxes.slots};
	monitor_send(from, frame, sbx_put_welcome(frame, sizeof frame, op, &answer), NULL, 0);
	app->told = from->conn.role == SBX_ROLE_FCGI ? 0 : app->told; /* who serves, it is told next */
	reload_greeted(app, from->child);
	for (uint32_t i = 0; i < app->boxes.slots && from->conn.role == SBX_ROLE_GATEWAY; i++)
		if (app->boxes.v[i].listener >= 0 && app->boxes.v[i].alive_once)
			open_at_gateway(app, &app->boxes.v[i]);
}

/*
 * Safe: run and tenant are ids (checked by the decoder) and are used as labels, never in a path or a command;
 * all numbers are bounded here; the two descriptors must be memfds, are handed to the box unread, and the upload
 * cannot change any more. What runs is always the installed runner, as uids of the slot, behind every wall. At
 * worst an attacker fills the slots that exist for runs, and gets at the keys of roles "agent/", which are for boxes.
 */
void sbx_on_spawn(struct sbx_from *from, uint64_t op, const struct sbx_spawn *m, int *fds)
{
	const struct box_limits l = {m->wall_seconds, m->memory_bytes, m->pids, m->workspace_bytes,
				     m->workspace_inodes};
	int seals = fcntl(fds[0], F_GET_SEALS);
	bool sealed = seals >= 0 && (seals & F_SEAL_WRITE) != 0 && fcntl(fds[1], F_GET_SEALS) >= 0;
	bool bounded = (m->kind == BOX_WORK || m->kind == BOX_CHECK) && l.wall_seconds >= 1 &&
		       l.wall_seconds <= WALL_MOST_S && l.memory_bytes >= 16 * mib && l.memory_bytes <= (mib << 20) &&
		       l.pids >= 4 && l.pids <= PIDS_MOST && l.workspace_bytes >= mib &&
		       l.workspace_bytes <= (mib << 20) && l.workspace_inodes >= 64 && l.workspace_inodes <= 16 * mib;
	struct app *app = from->app;
	int keys = m->agent[0] != '\0' && m->kind == BOX_WORK ? settings_keys(&app->given, m->agent) : -1;
	bool given = m->agent[0] == '\0' || keys >= 0;
	if (sealed && bounded && given && app->stop == STOP_NO) {
		box_spawn(&app->boxes, op, m->run, m->tenant, m->kind, &l, fds[0], fds[1], keys);
		return;
	}
	close(keys);
	chan_close_fds(fds, 2);
	box_refuse(&app->boxes, op, m->run, m->kind, given ? ERR_SANDBOX_SPAWN_FAILED : ERR_CREDENTIAL_UNAVAILABLE,
		   !sealed    ? "upload and result must be memfds, the upload sealed"
		   : !given   ? "a key of its agent cannot be had"
		   : !bounded ? "a limit is out of range"
			      : "the service is stopping");
}

/*
 * Safe: names a box by the label it was started with; only processes of that box can be hit, by cgroup and pidfd.
 */
void sbx_on_kill(struct sbx_from *from, uint64_t op, const struct sbx_kill *m, int *fds)
{
	(void)fds;
	box_kill(&from->app->boxes, op, m->run, m->kind, m->grace_ms < GRACE_MOST_MS ? m->grace_ms : GRACE_MOST_MS);
}

/*
 * Safe: names a work box as KILL does, and reaches its agent's group and its runner's pipe alone. At worst an attacker
 * lets an agent go on until SPAWN's wall time, or never lets it go on.
 */
void sbx_on_pause(struct sbx_from *from, uint64_t op, const struct sbx_pause *m, int *fds)
{
	(void)op;
	(void)fds;
	box_pause(&from->app->boxes, m->run, m->stands, m->frozen);
}

/* Safe: tells the steward what it has started itself, and gives back result files that it has given. */
void sbx_on_list(struct sbx_from *from, uint64_t op, const struct sbx_list *m, int *fds)
{
	(void)m;
	(void)fds;
	struct boxes *all = &from->app->boxes;
	uint8_t frame[SBX_MAX_BOX];
	struct sbx_listed listed = {0};
	for (uint32_t i = 0; i < all->slots; i++) {
		const struct box *b = &all->v[i];
		if (b->state == SANDBOX_FREE || b->result < 0)
			continue;
		const struct sbx_box box = {.run = b->run,
					    .tenant = b->tenant,
					    .kind = b->kind,
					    .phase = b->state == SANDBOX_QUARANTINED ? 3
						     : b->state == SANDBOX_EXITED    ? 2
										     : 1};
		monitor_send(from, frame, sbx_put_box(frame, sizeof frame, op, &box), &b->result, 1);
		listed.count++;
	}
	monitor_send(from, frame, sbx_put_listed(frame, sizeof frame, op, &listed), NULL, 0);
}

/* Safe: counts a child's word about what all of them were given. At worst an attacker keeps the configuration as it is.
 */
void sbx_on_loaded(struct sbx_from *from, uint64_t op, const struct sbx_loaded *m, int *fds)
{
	(void)op;
	(void)fds;
	reload_heard(from->app, from->child, m);
}

/* The other direction: what became of a box, to the steward; its listener, to the gateway. */
void answer_tell(void *arg, enum box_news what, const struct box *b)
{
	struct app *app = arg;
	uint8_t frame[SBX_MAX_REFUSED];
	size_t n = 0;
	switch (what) {
	case NEWS_OPENED:
		open_at_gateway(app, b);
		return;
	case NEWS_CLOSED:
		n = sbx_put_close(frame, sizeof frame, 0, &(struct sbx_close){.run = b->run});
		monitor_send(&app->child[CHILD_GATEWAY].from, frame, n, NULL, 0);
		return;
	case NEWS_SPAWNED:
		n = sbx_put_spawned(frame, sizeof frame, b->op, &(struct sbx_spawned){.run = b->run, .kind = b->kind});
		break;
	case NEWS_REFUSED:
		log_warn("box %s: refused (%s): %s", b->run, err_code(b->code), b->detail);
		const struct sbx_refused refused = {
		    .run = b->run, .kind = b->kind, .code = (uint16_t)b->code, .detail = b->detail};
		n = sbx_put_refused(frame, sizeof frame, b->op, &refused);
		break;
	case NEWS_EXITED:;
		const struct sbx_exited exited = {.run = b->run,
						  .kind = b->kind,
						  .status = b->status,
						  .oom = b->use.oom,
						  .timed_out = b->timed_out,
						  .cpu_us = b->use.cpu_us,
						  .peak_bytes = b->use.peak_bytes,
						  .forks_refused = b->use.forks_refused};
		n = sbx_put_exited(frame, sizeof frame, 0, &exited);
		break;
	case NEWS_GONE:
	default:
		n = sbx_put_gone(frame, sizeof frame, b->op,
				 &(struct sbx_gone){.run = b->run, .kind = b->kind, .clean = b->clean});
	}
	monitor_send(&app->child[CHILD_STEWARD].from, frame, n, NULL, 0);
}
