/*
 * The list of boxes and their states; see box.h for the picture. Kills only through cgroup.kill and pidfds,
 * never by number. Trusts its callers to have checked limits and names.
 */
#include "sandboxd/box.h"
#include "lib/clock.h"
#include "lib/die.h"
#include "lib/own_fd.h"
#include "lib/packet.h"
#include "lib/place.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CLEAN_RETRY_MS = 4 };

static struct box empty(struct boxes *all, uint32_t slot)
{
	struct box b = {.all = all, .slot = slot, .pidfd = -1, .result = -1, .listener = -1, .control = -1};
	b.build.fd = b.oom.fd = -1;
	return b;
}

static void forget(struct box *b)
{
	chan_close_fds((int[]){b->result, b->listener, b->control, b->pidfd}, 4);
	loop_drop(b->all->loop, &b->build);
	loop_drop(b->all->loop, &b->oom);
	*b = empty(b->all, b->slot);
}

/* Of what an earlier life left, nobody is told. */
static void tell(struct box *b, enum box_news what)
{
	if (b->kind != 0)
		b->all->tell(b->all->tell_arg, what, b);
}

static void gone(struct box *b, bool clean)
{
	b->clean = clean;
	b->op = b->kill_op;
	tell(b, NEWS_GONE);
}

bool boxes_init(struct boxes *all, struct loop *loop, uint32_t slots, uid_t uid_base)
{
	all->v = calloc(slots, sizeof *all->v);
	all->slots = all->v != NULL ? slots : 0;
	all->uid_base = uid_base;
	all->loop = loop;
	all->place.template_ns = -1;
	all->place.parent = (int)syscall(SYS_pidfd_open, getpid(), 0);
	for (uint32_t i = 0; i < all->slots; i++)
		all->v[i] = empty(all, i);
	return all->v != NULL && all->place.parent >= 0;
}

struct box *boxes_find(struct boxes *all, const char *run, uint8_t kind)
{
	for (uint32_t i = 0; i < all->slots; i++)
		if (all->v[i].state != SANDBOX_FREE && all->v[i].kind == kind && strcmp(all->v[i].run, run) == 0)
			return &all->v[i];
	return NULL;
}

/* The listener must not take connections for a box that is ending. */
static void shut(struct box *b)
{
	if (b->listener < 0)
		return;
	if (b->alive_once)
		tell(b, NEWS_CLOSED);
	close(steal_fd(&b->listener));
}

static void refuse(struct box *b)
{
	const struct wall *w = &walls[b->failed];
	b->code = w->machine ? ERR_SANDBOX_UNAVAILABLE : ERR_SANDBOX_SPAWN_FAILED;
	if (b->failed == STEP_NONE)
		snprintf(b->detail, sizeof b->detail, "killed while it was being built");
	else
		snprintf(b->detail, sizeof b->detail, "%s: %s", w->name, strerror(b->failed_errno));
	tell(b, NEWS_REFUSED);
}

void box_refuse(struct boxes *all, uint64_t op, const char *run, uint8_t kind, enum err code, const char *detail)
{
	struct box b = {.all = all, .op = op, .kind = kind, .code = code};
	snprintf(b.run, sizeof b.run, "%s", run);
	snprintf(b.detail, sizeof b.detail, "%s", detail);
	tell(&b, NEWS_REFUSED);
}

static void to_process_1(struct box *b, int sig)
{
	if (b->pidfd >= 0 && syscall(SYS_pidfd_send_signal, b->pidfd, sig, NULL, 0) != 0 && errno != ESRCH)
		log_warn("box %s: signal %d: %m", b->run, sig);
}

static void kill_everything(struct box *b)
{
	shut(b);
	/* The group first: SIGKILL to pid 1 alone would have it compete with its own fork bomb. */
	if (!cg_kill(&b->all->cg, b->slot, false))
		log_warn("box %s: cgroup.kill: %m", b->run);
	to_process_1(b, SIGKILL);
}

static void quarantine(struct box *b, bool said)
{
	log_error("box %s: its processes or groups did not go away within %d ms; slot %u is out of use", b->run,
		  BOX_DESTROY_MS, b->slot);
	b->status = said ? b->status : -SIGKILL;
	if (!b->alive_once)
		refuse(b);
	else if (!said)
		tell(b, NEWS_EXITED);
	if (b->kill_asked)
		gone(b, false);
}

/* How long a box may stay in its state; 0: for ever. */
static uint64_t patience(const struct box *b)
{
	const uint64_t ms[SANDBOX_STATE__COUNT] = {
	    [SANDBOX_BUILDING] = BOX_BUILD_MS, [SANDBOX_ALIVE] = (uint64_t)b->limits.wall_seconds * 1000,
	    [SANDBOX_STOPPING] = b->grace_ms,  [SANDBOX_KILLED] = BOX_DESTROY_MS,
	    [SANDBOX_EXITED] = BOX_DESTROY_MS,
	};
	return ms[b->state];
}

/* The only way from one state to another, by the table, and what the new state begins with. True: it is a new one. */
static bool go(struct box *b, enum sandbox_event what)
{
	enum sandbox_state from = b->state;
	if (sandbox_step(from, what, &b->state) != ERR_OK)
		log_error("box %s: %s while it is %s: a bug", b->run, sandbox_event_name(what),
			  sandbox_state_name(from));
	if (b->state == from)
		return false;
	uint64_t ms = patience(b);
	b->late_at = ms != 0 ? timer_ms() + ms : 0;
	b->retry_at = 0;
	if (from == SANDBOX_ALIVE)
		cg_freeze(&b->all->cg, b->slot, false); /* what is frozen takes no TERM */
	if (b->state == SANDBOX_STOPPING)
		to_process_1(b, SIGTERM);
	else if (b->state == SANDBOX_KILLED)
		kill_everything(b);
	else if (b->state == SANDBOX_QUARANTINED)
		quarantine(b, from == SANDBOX_EXITED);
	return true;
}

void box_destroy(struct box *b)
{
	go(b, SANDBOX_EV_KILL);
}

/* After the processes are dead: takes the groups away, says what is to be said. */
static void settle(struct box *b)
{
	if (b->groups_left && !cg_remove(&b->all->cg, b->slot)) {
		b->retry_at = timer_ms() + CLEAN_RETRY_MS;
		return;
	}
	b->groups_left = false;
	b->retry_at = b->late_at = 0;
	if (!b->alive_once)
		refuse(b);
	if (b->kill_asked)
		gone(b, true);
	if ((b->kill_asked || !b->alive_once) && go(b, SANDBOX_EV_GONE))
		forget(b);
}

/* Out of memory under v1: the kernel took one process. As v2 does by itself, the rest of the agent follows. */
static void on_oom(void *box, uint32_t events)
{
	struct box *b = box;
	uint64_t count;
	(void)events;
	if (read(b->oom.fd, &count, sizeof count) < 0)
		return;
	b->oom_seen = true;
	cg_kill(&b->all->cg, b->slot, true);
}

void box_is_alive(struct box *b)
{
	if (!go(b, SANDBOX_EV_ALIVE)) /* killed meanwhile */
		return;
	b->alive_once = true;
	if (b->listener >= 0)
		tell(b, NEWS_OPENED);
	tell(b, NEWS_SPAWNED);
	int oom = cg_watch_oom(&b->all->cg, b->slot);
	if (oom >= 0 && !loop_add(b->all->loop, &b->oom, oom, EPOLLIN, on_oom, b))
		close(oom);
}

static void start(struct box *b, int upload, int keys)
{
	go(b, SANDBOX_EV_SPAWN);
	if (box_build(b, upload, keys))
		return;
	go(b, SANDBOX_EV_DEAD); /* there is no child; groups perhaps */
	settle(b);
}

static struct box *free_slot(struct boxes *all)
{
	for (uint32_t i = 0; i < all->slots; i++)
		if (all->v[i].state == SANDBOX_FREE)
			return &all->v[i];
	return NULL;
}

void box_spawn(struct boxes *all, uint64_t op, const char *run, const char *tenant, uint8_t kind,
	       const struct box_limits *limits, int upload, int result, int keys)
{
	struct box *b = free_slot(all);
	bool twice = boxes_find(all, run, kind) != NULL;
	if (twice || b == NULL) {
		box_refuse(all, op, run, kind, twice ? ERR_SANDBOX_SPAWN_FAILED : ERR_SANDBOX_CAPACITY,
			   twice ? "this box exists already" : "all slots are in use");
		chan_close_fds((int[]){upload, result, keys}, 3);
		return;
	}
	snprintf(b->run, sizeof b->run, "%s", run);
	snprintf(b->tenant, sizeof b->tenant, "%s", tenant);
	b->kind = kind;
	b->op = op;
	b->limits = *limits;
	b->result = result;
	start(b, upload, keys);
}

bool box_probe(struct boxes *all)
{
	struct box *b = free_slot(all);
	if (b == NULL)
		return false;
	snprintf(b->run, sizeof b->run, "probe");
	b->kind = BOX_WORK;
	b->probe = b->kill_asked = true;
	b->limits = (struct box_limits){.wall_seconds = 10,
					.memory_bytes = 64u << 20,
					.pids = 16,
					.workspace_bytes = 1u << 20,
					.workspace_inodes = 64};
	start(b, -1, -1);
	return true;
}

void boxes_sweep(struct boxes *all)
{
	for (uint32_t i = 0; i < all->slots; i++) {
		struct box *b = &all->v[i];
		if (!cg_found(&all->cg, i) || !go(b, SANDBOX_EV_FOUND))
			continue;
		snprintf(b->run, sizeof b->run, "(of an earlier life)");
		b->groups_left = true;
		settle(b);
	}
}

void box_kill(struct boxes *all, uint64_t op, const char *run, uint8_t kind, uint32_t grace_ms)
{
	struct box *b = boxes_find(all, run, kind);
	if (b == NULL || b->state == SANDBOX_QUARANTINED) {
		struct box none = {.all = all, .kind = kind, .kill_op = op};
		snprintf(none.run, sizeof none.run, "%s", run);
		gone(&none, b == NULL);
		return;
	}
	b->kill_asked = true;
	b->kill_op = op;
	if (b->state == SANDBOX_EXITED) {
		settle(b);
		return;
	}
	b->grace_ms = grace_ms;
	uint64_t by = timer_ms() + grace_ms;
	if (!go(b, grace_ms > 0 ? SANDBOX_EV_TERM : SANDBOX_EV_KILL) && b->state == SANDBOX_STOPPING && by < b->late_at)
		b->late_at = by; /* asked again, with less patience */
}

void box_pause(struct boxes *all, const char *run, bool stands, bool frozen)
{
	struct box *b = boxes_find(all, run, BOX_WORK);
	if (b == NULL || b->state != SANDBOX_ALIVE)
		return;
	bool told = write(b->control, &stands, 1) == 1;
	if (!cg_freeze(&all->cg, b->slot, frozen) || !told)
		log_warn("box %s: it cannot be paused, or go on: %m", run);
}

void boxes_destroy_all(struct boxes *all)
{
	for (uint32_t i = 0; i < all->slots; i++) {
		struct box *b = &all->v[i];
		b->kill_asked = b->state != SANDBOX_FREE;
		box_destroy(b);
		if (b->state == SANDBOX_EXITED)
			settle(b);
	}
}

bool boxes_reap(struct boxes *all, pid_t pid)
{
	struct box *b = NULL;
	for (uint32_t i = 0; i < all->slots && b == NULL; i++)
		if (all->v[i].pidfd >= 0 && all->v[i].pid == pid)
			b = &all->v[i];
	if (b == NULL)
		return false;
	while (b->build.fd >= 0) /* what it said before it died */
		box_build_read(b, 0);
	siginfo_t info = {0};
	waitid(P_PIDFD, (id_t)b->pidfd, &info, WEXITED | WNOHANG);
	close(steal_fd(&b->pidfd));
	b->status = info.si_code == CLD_EXITED ? info.si_status : -info.si_status;
	b->use = cg_used(&all->cg, b->slot);
	b->use.oom = b->use.oom || b->oom_seen;
	shut(b);
	if (!go(b, SANDBOX_EV_DEAD)) /* too late: quarantined */
		return true;
	if (b->alive_once)
		tell(b, NEWS_EXITED);
	settle(b);
	return true;
}

static void late(struct box *b)
{
	b->timed_out = b->timed_out || b->state == SANDBOX_ALIVE;
	if (b->state == SANDBOX_BUILDING) {
		b->failed = STEP_EXEC;
		b->failed_errno = ETIMEDOUT;
	}
	go(b, SANDBOX_EV_LATE);
}

uint64_t boxes_tick(struct boxes *all, uint64_t now)
{
	uint64_t next = 0;
	for (uint32_t i = 0; i < all->slots; i++) {
		struct box *b = &all->v[i];
		if (b->retry_at != 0 && now >= b->retry_at)
			settle(b);
		if (b->late_at != 0 && now >= b->late_at)
			late(b);
		const uint64_t times[] = {b->retry_at, b->late_at};
		for (int t = 0; t < 2; t++)
			if (times[t] != 0 && (next == 0 || times[t] < next))
				next = times[t];
	}
	return next;
}

uint32_t boxes_busy(const struct boxes *all)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < all->slots; i++)
		n += all->v[i].state != SANDBOX_FREE && all->v[i].state != SANDBOX_QUARANTINED;
	return n;
}
