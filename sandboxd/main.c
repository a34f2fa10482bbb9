/*
 * pinfold-sandboxd: the only privileged process of an instance. Theory of operation:
 *
 *   1. Checks that it is root and that nothing it was started with can leak: descriptors, umask, dumps.
 *   2. Has the configuration parsed by a child that is nobody, and gets it back as messages in a sealed memfd.
 *   3. Makes the folders and sockets, refusing any path that somebody else could have prepared.
 *   4. Finds the cgroup trees, kills what an earlier life left there, and builds one box that runs nothing. If a
 *      wall is missing it says which and ends: there is no way to run with fewer.
 *   5. Starts stored, gateway, fcgi, steward and push, each as its own uid with exactly its descriptors, and starts a
 *      dead one again.
 *   6. Makes boxes when the steward asks (answer.c), passes each work box's listener to the gateway, tells the
 *      steward when a box has ended, and destroys it.
 *   7. On SIGHUP: has the configuration read once more and every child asked, and brings it into force, or not
 * (reload.c).
 *   8. On SIGTERM: steward, then boxes, then the others; removes what it made.
 *
 * One thread, one event loop, no waiting: everything slow happens in a child. It never parses anything that a
 * caller or an agent wrote: ids are labels, numbers are bounded, uploads and results pass as descriptors. When
 * it dies, everything dies with it (death signals, pid namespaces, ends of pipes).
 */
#include "gen/seccomp.h"
#include "lib/clock.h"
#include "lib/die.h"
#include "lib/filter.h"
#include "lib/landlock.h"
#include "lib/own_fd.h"
#include "lib/place.h"
#include "lib/wipe.h"
#include "sandboxd/app.h"
#include "sandboxd/folders.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void start_clean(int argc)
{
	log_open("pinfold-sandboxd");
	if (argc != 1)
		unfit("takes no arguments; see pinfold-sandboxd(8)");
	if (geteuid() != 0)
		unfit("must be started as root: run it by the service unit, or with sudo");
	for (int fd = 0; fd < 3; fd++) /* a closed 0, 1 or 2 would become something that is written to */
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			_exit(1);
	if (close_range(3, ~0u, 0) != 0)
		unfit("the kernel has no close_range; Linux 5.9 or later is needed");
	if (!place_init())
		unfit("PINFOLD_ROOT must be an absolute path of at most 68 characters");
	struct rlimit files;
	umask(077);
	if (chdir("/") != 0 || !undumpable() || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 ||
	    getrlimit(RLIMIT_NOFILE, &files) != 0)
		fatal("cannot prepare the process: %m");
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	for (int s = 1; s < NSIG; s++) /* nothing is left ignored for children to inherit */
		signal(s, s == SIGPIPE ? SIG_IGN : SIG_DFL);
}

/* Below the run directory and elsewhere; the order is that of the tree. */
static void make_folders(const struct settings *c)
{
	const struct cf_role *stored = settings_role(c, "stored");
	const struct {
		enum place in;
		const char *name;
		mode_t mode;
		uid_t uid;
		gid_t gid;
	} rows[] = {
	    {PLACE_RUN, "/public", 0750, 0, c->global.web_gid},
	    {PLACE_RUN, "/store", 0710, stored->uid, c->shared_gid},
	    {PLACE_RUN, "/admin", 0700, 0, 0},
	    {PLACE_RUN, "/box", 0700, 0, 0},
	    {PLACE_STATE, "", 0711, 0, 0},
	    {PLACE_STATE, "/store", 0700, stored->uid, stored->gid},
	    {PLACE_LOG, "", 0700, stored->uid, stored->gid},
	};
	/* The lock is never given back: it ends with the process. */
	if (!folder_lock(folder_make(place_dir(PLACE_RUN), 0711, 0, 0)))
		fatal("another pinfold-sandboxd runs this instance (it holds %s)", place_dir(PLACE_RUN));
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char path[700];
		snprintf(path, sizeof path, "%s%s", place_dir(rows[i].in), rows[i].name);
		close(folder_make(path, rows[i].mode, rows[i].uid, rows[i].gid));
	}
}

/* Of this process and, as its standard error, of all that it starts. Who empties it need not tell: it is appended to.
 */
static void open_log(const char *path)
{
	char dir[256] = "";
	const char *name = strrchr(path, '/');
	if (name == NULL || *path != '/')
		unfit("log_path must be the absolute path of a file");
	memcpy(dir, path, (size_t)(name - path)); /* of at most 200 bytes */
	own_fd int at = folder_check(dir);
	own_fd int fd = openat(at, name + 1, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (fd < 0 || fchmod(fd, 0640) != 0 || dup2(fd, 2) < 0)
		unfit("log_path: %s cannot be opened: %m", path);
	log_open("pinfold-sandboxd");
}

/* Reaps every dead child; also those that a daemon left behind, which are nobody's. */
static void reap(struct app *app)
{
	for (;;) {
		siginfo_t info = {0};
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
			return;
		if (!boxes_reap(&app->boxes, info.si_pid) && !children_reap(app, info.si_pid) &&
		    !reload_reap(app, info.si_pid))
			waitpid(info.si_pid, NULL, WNOHANG);
	}
}

static void on_signal(void *owner, uint32_t events)
{
	struct app *app = owner;
	struct signalfd_siginfo s;
	(void)events;
	if (read(app->signals.fd, &s, sizeof s) != (ssize_t)sizeof s)
		return;
	if (s.ssi_signo == SIGCHLD)
		reap(app);
	else if (s.ssi_signo == SIGHUP)
		reload_begin(app);
	else if (app->stop == STOP_NO)
		stop_begin(app);
}

static void catch_signals(struct app *app)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (!loop_open(&app->loop) || fd < 0 || !loop_add(&app->loop, &app->signals, fd, EPOLLIN, on_signal, app))
		fatal("cannot watch for signals: %m");
}

/* Refuses to start, and takes back what was made until then. passes: it may be otherwise at the next try. */
__attribute__((format(printf, 3, 4), noreturn)) static void no_boxes(struct app *app, bool passes, const char *fmt, ...)
{
	char why[400];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(why, sizeof why, fmt, ap);
	va_end(ap);
	cg_close(&app->boxes.cg);
	children_unlink();
	(passes ? fatal : unfit)("no sandbox can be built on this machine: %s", why);
}

static void judge_probe(void *arg, enum box_news what, const struct box *b)
{
	struct app *app = arg;
	app->probed = app->probed || what == NEWS_GONE;
	if (what == NEWS_REFUSED && b->failed == STEP_NONE)
		no_boxes(arg, true, "%s; see pinfold-sandboxd(8)", b->detail);
	if (what == NEWS_REFUSED) {
		const struct wall *w = &walls[b->failed];
		no_boxes(arg, !w->machine, "%s. %s Linux %s or later has it; see pinfold-sandboxd(8)", b->detail,
			 w->why, *w->kernel == '\0' ? "2.6" : w->kernel);
	}
	for (int i = STEP_NONE + 1; what == NEWS_EXITED && i < STEP__COUNT; i++)
		if ((b->lacks >> i & 1) != 0)
			log_info("this machine has no wall \"%s\": %s", walls[i].name, walls[i].without);
	if (what == NEWS_EXITED && b->status != 0)
		no_boxes(arg, true, "the trial box ended with %d", b->status);
	if ((what == NEWS_GONE && !b->clean) || b->state == SANDBOX_QUARANTINED)
		no_boxes(arg, true, "the trial box could not be removed");
}

/* Every wall is built once, for real, before any work is taken; while it waits for a slot, old boxes die. */
static void check_walls(struct app *app)
{
	app->boxes.tell = judge_probe;
	app->boxes.tell_arg = app;
	for (bool begun = false; !app->probed && app->stop == STOP_NO;) {
		uint64_t next = boxes_tick(&app->boxes, timer_ms());
		if (!begun) {
			begun = box_probe(&app->boxes);
			if (begun)
				continue; /* its times count now */
			if (next == 0)
				no_boxes(app, true, "every slot holds processes of an earlier life that do not die");
		}
		if (!app->probed)
			loop_once(&app->loop, next);
	}
}

static void prepare_boxes(struct app *app)
{
	static char stage[200], runner[512];
	struct boxes *b = &app->boxes;
	const char *why;
	snprintf(stage, sizeof stage, "%s/box", place_dir(PLACE_RUN));
	snprintf(runner, sizeof runner, "%s/box", place_dir(PLACE_LIBEXEC));
	b->place = (struct box_place){.stage = stage, .runner = runner, .port = app->conf.global.gateway_port};
	if (!cg_open(&b->cg, place_dir(PLACE_RUN), &why))
		no_boxes(app, errno == EBUSY, "%s", why);
	if (landlock_abi() < LL_ABI_LEAST)
		no_boxes(app, false, "Landlock is missing or older than ABI 2; boot with lsm=landlock,...");
	if (!filter_make(&filter_box, &b->place.filter))
		no_boxes(app, false, "the seccomp filter cannot be made: %m");
	if (!boxes_init(b, &app->loop, app->conf.global.max_boxes, app->conf.global.box_uid_base))
		no_boxes(app, true, "out of memory");
	own_fd int dir = folder_check(runner);
	if (dir < 0 || faccessat(dir, "pinfold-runner", X_OK, 0) != 0)
		no_boxes(app, false, "%s/pinfold-runner is missing; install pinfold again", runner);
	boxes_sweep(b);
	check_walls(app);
	b->tell = answer_tell;
	b->tell_arg = app;
}

int main(int argc, char **argv)
{
	static struct app app; /* large, and as long-lived as the process */
	(void)argv;
	start_clean(argc);
	app.pid = getpid();
	if (!given_open(&app.given))
		fatal("cannot make descriptors: %m");
	settings_load(&app.conf, &app.given);
	make_folders(&app.conf);
	if (app.conf.global.log_to == LOG_TO_FILE)
		open_log(app.conf.global.log_path);
	children_listen(&app); /* first, so that callers wait instead of being refused */
	catch_signals(&app);
	prepare_boxes(&app);
	log_info("ready: %u boxes, uids %u to %u", app.boxes.slots, app.boxes.uid_base,
		 app.boxes.uid_base + BOX_UIDS * app.boxes.slots - 1);
	manager_tell("READY=1");
	while (app.stop != STOP_DONE) {
		uint64_t now = timer_ms();
		const uint64_t next[] = {boxes_tick(&app.boxes, now), children_tick(&app, now), stop_tick(&app, now),
					 reload_tick(&app, now)};
		uint64_t until = 0;
		for (size_t i = 0; i < 4; i++)
			if (next[i] != 0 && (until == 0 || next[i] < until))
				until = next[i];
		if (app.stop != STOP_DONE)
			loop_once(&app.loop, until);
	}
	children_unlink();
	if (!cg_close(&app.boxes.cg))
		log_warn("a cgroup could not be removed; the next start sweeps it");
	free(app.conf.storage);
	log_info("stopped");
	return 0;
}
