/*
 * Starting the daemons; see children.h. Each gets a clean environment, its own uid, exactly the descriptors
 * of lib/place.h, and dies with sandboxd. What it says on its channel is monitor.c's business.
 */
#include "sandboxd/children.h"
#include "gen/sandbox_msg.h"
#include "lib/clock.h"
#include "lib/die.h"
#include "lib/own_fd.h"
#include "lib/packet.h"
#include "lib/place.h"
#include "sandboxd/app.h"
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAUSE_FIRST = 100, PAUSE_MOST = 5000, LIVED_WELL = 10000, FD_SPARE = 64, BACKLOG = 512 };

const struct child_row child_rows[CHILD__COUNT] = {
    [CHILD_STORED] = {"stored", "pinfold-stored", true, SBX_ROLE_STORED, LISTENER_STORE, LISTENER_ADMIN,
		      CHILD_UP_STORED},
    [CHILD_GATEWAY] = {"gateway", "pinfold-gateway", true, SBX_ROLE_GATEWAY, LISTENER_NONE, LISTENER_NONE,
		       CHILD_UP_GATEWAY},
    [CHILD_FCGI] = {"fcgi", "pinfold-fcgi", true, SBX_ROLE_FCGI, LISTENER_FCGI, LISTENER_NONE, 0},
    [CHILD_STEWARD] = {"steward", "pinfold-steward", true, SBX_ROLE_STEWARD, LISTENER_NONE, LISTENER_NONE,
		       CHILD_UP_STEWARD},
    [CHILD_PUSH] = {"push", "pinfold-push", true, SBX_ROLE_PUSH, LISTENER_NONE, LISTENER_NONE, 0},
};

static const char *socket_path(char out[200], const char *name)
{
	snprintf(out, 200, "%s/%s", place_dir(PLACE_RUN), name);
	return out;
}

void children_listen(struct app *app)
{
	const struct {
		const char *name;
		int type;
		mode_t mode;
		gid_t gid;
	} rows[LISTENER__COUNT] = {
	    [LISTENER_STORE] = {PLACE_STORE_SOCK, SOCK_SEQPACKET, 0660, app->conf.shared_gid},
	    [LISTENER_ADMIN] = {PLACE_ADMIN_SOCK, SOCK_SEQPACKET, 0600, 0},
	    [LISTENER_FCGI] = {PLACE_FCGI_SOCK, SOCK_STREAM, 0660, app->conf.global.web_gid},
	};
	for (int i = 0; i < LISTENER__COUNT; i++) {
		char path[200];
		app->listener[i] =
		    chan_listen(socket_path(path, rows[i].name), rows[i].type, rows[i].mode, 0, rows[i].gid, BACKLOG);
		if (app->listener[i] < 0)
			unfit("cannot listen at %s: %m; if something else is there, move it away", path);
	}
}

void children_unlink(void)
{
	static const char *const names[] = {PLACE_STORE_SOCK, PLACE_ADMIN_SOCK, PLACE_FCGI_SOCK};
	static const char *const dirs[] = {"store", "admin", "public", "box", ""};
	char path[200];
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		unlink(socket_path(path, names[i]));
	for (size_t i = 0; i < sizeof dirs / sizeof dirs[0]; i++)
		rmdir(socket_path(path, dirs[i]));
}

static bool arrange(int fds[CHILD_FD__FIRST_FREE])
{
	for (int i = 0; i < CHILD_FD__FIRST_FREE; i++) /* out of the way of each other first */
		if (fds[i] >= 0 && (fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FD_SPARE)) < 0)
			return false;
	for (int i = 0; i < CHILD_FD__FIRST_FREE; i++)
		if (fds[i] >= 0 ? dup2(fds[i], i) < 0 : close_range((unsigned)i, (unsigned)i, 0) != 0)
			return false;
	return close_range(CHILD_FD__FIRST_FREE, ~0u, 0) == 0;
}

/* The child's side: gives up root and becomes the program. */
static void become(const struct app *app, const struct child_row *row, int fds[CHILD_FD__FIRST_FREE])
    __attribute__((noreturn));
static void become(const struct app *app, const struct child_row *row, int fds[CHILD_FD__FIRST_FREE])
{
	const struct cf_role *role = settings_role(&app->conf, row->name);
	const struct rlimit no_core = {1, 1}; /* see box_exec.c */
	char program[512], kept[3][512],
	    *env[8] = {(char[]){"PATH=/usr/local/bin:/usr/bin:/bin"}, (char[]){"LANG=C.UTF-8"}, (char[]){"TZ=UTC"}};
	char *argv[] = {(char *)(uintptr_t)row->program, NULL};
	snprintf(program, sizeof program, "%s/%s", place_dir(PLACE_LIBEXEC), row->program);
	static const char *const pass[3] = {"JOURNAL_STREAM", /* what standard error is */
#ifdef PF_SANITIZE
					    "ASAN_OPTIONS", "UBSAN_OPTIONS"
#endif
	};
	for (size_t i = 0, n = 3; i < 3 && pass[i] != NULL; i++)
		if (getenv(pass[i]) != NULL && snprintf(kept[i], sizeof kept[i], "%s=%s", pass[i], getenv(pass[i])) > 0)
			env[n++] = kept[i];
	sigset_t none;
	sigemptyset(&none);
	signal(SIGPIPE, SIG_DFL);
	fds[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
	fds[1] = fds[2] = 2;
	gid_t shared = app->conf.shared_gid;
	if (sigprocmask(SIG_SETMASK, &none, NULL) != 0 || setsid() < 0 || fds[0] < 0 || !arrange(fds) ||
	    setrlimit(RLIMIT_CORE, &no_core) != 0 || setgroups(row->shared ? 1 : 0, &shared) != 0 ||
	    setresgid(role->gid, role->gid, role->gid) != 0 || setresuid(role->uid, role->uid, role->uid) != 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 ||
	    getppid() != app->pid) /* last: ids clear it */
		fatal("cannot become %s: %m", row->name);
	execve(program, argv, env);
	fatal("cannot run %s: %m", program);
}

static bool start(struct app *app, struct child *c)
{
	int ends[2] = {-1, -1};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return false;
	own_fd int theirs = ends[1];
	own_fd int group = cg_daemon(&app->boxes.cg, c->row->name);
	if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0 || !monitor_open(&c->from, app, c, c->row->role, ends[0])) {
		close(ends[0]);
		return false;
	}
	if (group < 0)
		return false;
	int fds[CHILD_FD__FIRST_FREE] = {-1, -1, -1, theirs, app->given.conf, app->given.secrets[c->row - child_rows],
					 -1, -1},
	    pidfd = -1;
	if (c->row->listen != LISTENER_NONE)
		fds[CHILD_FD_LISTEN] = app->listener[c->row->listen];
	if (c->row->admin != LISTENER_NONE)
		fds[CHILD_FD_ADMIN] = app->listener[c->row->admin];
	struct clone_args args = {.flags = CLONE_INTO_CGROUP | CLONE_PIDFD,
				  .pidfd = (uintptr_t)&pidfd,
				  .exit_signal = SIGCHLD,
				  .cgroup = (unsigned)group};
	long pid = syscall(SYS_clone3, &args, sizeof args);
	if (pid == 0)
		become(app, c->row, fds);
	if (pid < 0)
		return false;
	c->pid = (pid_t)pid;
	c->pidfd = pidfd;
	c->started_at = timer_ms();
	return true;
}

static void forget(struct app *app, struct child *c)
{
	monitor_close(&c->from);
	chan_close_fds(&c->pidfd, 1);
	c->pid = 0;
	cg_daemon_kill(&app->boxes.cg, c->row->name); /* what it started */
}

static void later(struct child *c, uint64_t now)
{
	c->restart_at = now + c->pause_ms;
	c->pause_ms = c->pause_ms * 2 > PAUSE_MOST ? PAUSE_MOST : c->pause_ms * 2;
}

/* The public side says who is missing when it is asked whether the service is ready. */
static void tell_who_serves(struct app *app)
{
	uint8_t frame[SBX_MAX_UP];
	struct sbx_up m = {0};
	for (int i = 0; i < CHILD__COUNT; i++)
		if (app->child[i].pid != 0 && app->child[i].from.conn.state == SBX_STATE_READY)
			m.who |= app->child[i].row->up;
	if (m.who == app->told)
		return;
	app->told = m.who;
	monitor_send(&app->child[CHILD_FCGI].from, frame, sbx_put_up(frame, sizeof frame, 0, &m), NULL, 0);
}

uint64_t children_tick(struct app *app, uint64_t now)
{
	uint64_t next = 0;
	for (int i = 0; i < CHILD__COUNT && app->stop == STOP_NO; i++) {
		struct child *c = &app->child[i];
		if (c->row == NULL) /* the first time */
			*c = (struct child){
			    .row = &child_rows[i], .pidfd = -1, .from.source.fd = -1, .pause_ms = PAUSE_FIRST};
		if (c->pid == 0 && now >= c->restart_at && !start(app, c)) {
			log_error("cannot start %s: %m", c->row->program);
			forget(app, c);
			later(c, now);
		}
		if (c->pid == 0 && (next == 0 || c->restart_at < next))
			next = c->restart_at;
	}
	if (app->stop == STOP_NO)
		tell_who_serves(app);
	return next;
}

bool children_reap(struct app *app, pid_t pid)
{
	for (int i = 0; i < CHILD__COUNT; i++) {
		struct child *c = &app->child[i];
		if (c->pid != pid || pid == 0)
			continue;
		siginfo_t info = {0};
		waitid(P_PIDFD, (id_t)c->pidfd, &info, WEXITED | WNOHANG);
		forget(app, c);
		if (app->stop != STOP_NO)
			return true;
		uint64_t now = timer_ms();
		if (now - c->started_at > LIVED_WELL)
			c->pause_ms = PAUSE_FIRST;
		log_warn("%s ended (%s %d); it is started again in %u ms", c->row->program,
			 info.si_code == CLD_EXITED ? "status" : "signal", info.si_status, c->pause_ms);
		later(c, now);
		return true;
	}
	return false;
}

void child_signal(struct child *c, int sig)
{
	if (c->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, c->pidfd, sig, NULL, 0);
}

void child_kill(struct app *app, struct child *c)
{
	if (c->pid == 0)
		return;
	cg_daemon_kill(&app->boxes.cg, c->row->name);
	child_signal(c, SIGKILL);
}
