/* See rig.h. */
#include "tests/box/rig.h"
#include "gen/seccomp.h"
#include "lib/die.h"
#include "lib/names.h"
#include "lib/num.h"
#include "lib/own.h"
#include "tests/box/uids.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

uint64_t rig_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct rig_told *rig_told(struct rig *r, const char *run)
{
	for (unsigned back = 1; back <= RIG_TOLD && back <= r->n; back++)
		if (strcmp(r->told[(r->n - back) % RIG_TOLD].run, run) == 0)
			return &r->told[(r->n - back) % RIG_TOLD];
	return NULL;
}

static void on_news(void *rig, enum box_news what, const struct box *b)
{
	struct rig_told *t = rig_told(rig, b->run);
	if (what == NEWS_SPAWNED) {
		t->spawned = true;
		t->spawned_ns = rig_ns();
	} else if (what == NEWS_REFUSED) {
		t->refused = true;
		t->code = b->code;
		snprintf(t->detail, sizeof t->detail, "%s", b->detail);
	} else if (what == NEWS_OPENED) {
		t->listener = fcntl(b->listener, F_DUPFD_CLOEXEC, 3);
	} else if (what == NEWS_CLOSED) {
		t->closed = true;
		close(t->listener);
		t->listener = -1;
	} else if (what == NEWS_EXITED) {
		t->exited = true;
		t->status = b->status;
		t->oom = b->use.oom;
		t->timed_out = b->timed_out;
		t->cpu_us = b->use.cpu_us;
		t->peak_bytes = b->use.peak_bytes;
		t->exited_ns = rig_ns();
	} else {
		t->gone = true;
		t->clean = b->clean;
		t->gone_ns = rig_ns();
	}
}

static void on_signal(void *rig, uint32_t events)
{
	struct rig *r = rig;
	struct signalfd_siginfo s;
	(void)events;
	if (read(r->signals.fd, &s, sizeof s) != (ssize_t)sizeof s)
		return;
	for (;;) {
		siginfo_t info = {0};
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
			return;
		if (!boxes_reap(&r->boxes, info.si_pid))
			waitpid(info.si_pid, NULL, WNOHANG);
	}
}

static void install(const char *from, const char *to)
{
	own_fd int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	struct stat st;
	if (in < 0 || out < 0 || fstat(in, &st) != 0 || fchmod(out, 0755) != 0)
		fatal("cannot install %s: %m", from);
	for (off_t left = st.st_size; left > 0;) {
		ssize_t n = copy_file_range(in, NULL, out, NULL, (size_t)left, 0);
		if (n <= 0)
			fatal("cannot copy %s: %m", from);
		left -= n;
	}
}

void rig_open(struct rig *r, const char *program, unsigned slots)
{
	static char stage[128], runner[128];
	char path[200];
	const char *why = "out of memory";
	memset(r, 0, sizeof *r);
	snprintf(r->dir, sizeof r->dir, "/tmp/pinfold-box.XXXXXX");
	if (mkdtemp(r->dir) == NULL)
		fatal("mkdtemp: %m");
	snprintf(stage, sizeof stage, "%s/stage", r->dir);
	snprintf(runner, sizeof runner, "%s/programs", r->dir);
	snprintf(path, sizeof path, "%s/pinfold-runner", runner);
	if (mkdir(stage, 0700) != 0 || mkdir(runner, 0755) != 0 || chmod(runner, 0755) != 0)
		fatal("mkdir: %m");
	install(program, path);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	r->boxes.place = (struct box_place){.stage = stage, .runner = runner, .port = RIG_PORT};
	r->boxes.tell = on_news;
	r->boxes.tell_arg = r;
	if (!loop_open(&r->loop) || !loop_add(&r->loop, &r->signals, fd, EPOLLIN, on_signal, r) ||
	    !boxes_init(&r->boxes, &r->loop, slots, test_uids(r->dir)) ||
	    !filter_make(&filter_box, &r->boxes.place.filter) || !cg_open(&r->boxes.cg, r->dir, &why))
		fatal("%s: %m", why);
}

void rig_close(struct rig *r)
{
	char path[200];
	bool never = false;
	boxes_destroy_all(&r->boxes);
	if (!WAIT_FOR((rig_until(r, &never, 10), boxes_busy(&r->boxes) == 0)) || !cg_close(&r->boxes.cg))
		fatal("something is left of the boxes");
	snprintf(path, sizeof path, "%s/programs/pinfold-runner", r->dir);
	unlink(path);
	static const char *const dirs[] = {"/programs", "/stage", ""};
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s%s", r->dir, dirs[i]);
		if (rmdir(path) != 0)
			fatal("%s: %m", path);
	}
	free(r->boxes.v);
	free(r->boxes.place.filter.filter);
	close(r->signals.fd);
	close(r->loop.epoll);
}

struct box_limits rig_limits(void)
{
	return (struct box_limits){.wall_seconds = 120,
				   .memory_bytes = 256u << 20,
				   .pids = 256,
				   .workspace_bytes = 64u << 20,
				   .workspace_inodes = 4096};
}

int rig_spawn(struct rig *r, const char *run, uint8_t kind, const struct box_limits *l, const char *what)
{
	int upload = memfd_create("upload", MFD_CLOEXEC | MFD_ALLOW_SEALING),
	    result = memfd_create("result", MFD_CLOEXEC);
	if (upload < 0 || result < 0 || !write_all(upload, what, strlen(what)))
		fatal("memfd: %m");
	struct rig_told *t = &r->told[r->n++ % RIG_TOLD];
	*t = (struct rig_told){.listener = -1};
	snprintf(t->run, sizeof t->run, "%s", run);
	int ours = fcntl(result, F_DUPFD_CLOEXEC, 3);
	box_spawn(&r->boxes, 1, run, "tenant", kind, l, upload, result, -1);
	return ours;
}

bool rig_until(struct rig *r, const bool *flag, int ms)
{
	uint64_t end = timer_ms() + (uint64_t)ms;
	while (!*flag) {
		uint64_t now = timer_ms();
		if (now >= end)
			return false;
		uint64_t next = boxes_tick(&r->boxes, now);
		if (!*flag)
			loop_once(&r->loop, next != 0 && next < end ? next : end);
	}
	return true;
}

char *rig_text(int result)
{
	struct stat st = {0};
	fstat(result, &st);
	char *text = calloc(1, (size_t)st.st_size + 1);
	if (text == NULL || pread(result, text, (size_t)st.st_size, 0) != st.st_size)
		fatal("cannot read the result: %m");
	return text;
}

/* Its own words may be there before the last word of who built it is heard. */
static bool being_built(const struct rig *r)
{
	for (uint32_t i = 0; i < r->boxes.slots; i++)
		if (r->boxes.v[i].state == SANDBOX_BUILDING)
			return true;
	return false;
}

bool rig_until_says(struct rig *r, int result, const char *text, int ms)
{
	bool never = false;
	for (; ms > 0; ms -= 10) {
		char *now = rig_text(result);
		bool there = strstr(now, text) != NULL;
		free(now);
		if (there && !being_built(r))
			return true;
		rig_until(r, &never, 10);
	}
	return false;
}

char *rig_run(struct rig *r, const char *run, const char *what)
{
	struct box_limits l = rig_limits();
	own_fd int result = rig_spawn(r, run, BOX_WORK, &l, what);
	struct rig_told *t = rig_told(r, run);
	if (!rig_until(r, &t->exited, PATIENCE_MS))
		fatal("box %s: %s %s", run, t->refused ? "refused" : "does not end", t->detail);
	box_kill(&r->boxes, 2, run, BOX_WORK, 0);
	if (!rig_until(r, &t->gone, PATIENCE_MS) || !t->clean)
		fatal("box %s is not gone", run);
	return rig_text(result);
}
