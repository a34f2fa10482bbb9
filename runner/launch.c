/*
 * Starts a process as the agent, and its bridge if it has one, watches it, and kills everything when it ends.
 * It trusts the kernel alone: not exit codes, not process groups, not pipes that a grandchild may hold.
 * It never waits for a process without a limit and never signals a number: kill(-1) from pid 1 reaches
 * every process of the box and nothing else.
 */
#include "runner/launch.h"
#include "lib/num.h"
#include "runner/between.h"
#include "runner/keys.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Set by a signal handler, which cannot be given anything else. */
static volatile sig_atomic_t stop_asked;

enum { LOOK_MS = 250 };

/* How far a child came; told through a close-on-exec pipe, so that silence means exec worked. */
enum step { STEP_GROUP, STEP_UID, STEP_LIMITS, STEP_CWD, STEP_IO, STEP_BRIDGE, STEP_EXEC, STEP__COUNT };
static const char *const step_names[STEP__COUNT] = {
    "joining its cgroup",         "dropping to its uid",    "lowering its limits", "entering its folder",
    "setting up its descriptors", "waiting for its bridge", "starting its program"};

struct report {
	int step, errnum;
};

enum { NOT_STARTED = 126, NOT_FOUND = 127 }; /* exit statuses, as of a shell */

static void on_signal(int sig)
{
	if (sig == SIGTERM)
		stop_asked = 1;
}

static void arm_death_signal(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_DUMPABLE, 0);
}

void launch_init(const struct warden *w)
{
	sigset_t set;
	struct sigaction sa = {.sa_handler = on_signal};
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_SETMASK, &set, NULL); /* delivered inside ppoll only */
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGCHLD, &sa, NULL);
	signal(SIGPIPE, SIG_IGN); /* its bridge may be gone when it is told of the agent's end */
	arm_death_signal();
	launch_check_control(w); /* it may have died before the signal was armed */
}

/* stands: what sandboxd says on the control pipe of the wall time's clock; NULL: it is not listened to. */
static void wait_a_little(const int out[2], int notice, int control, uint64_t ms, bool *stands)
{
	struct pollfd p[4] = {{.fd = control, .events = stands ? POLLIN : 0},
			      {.fd = out ? out[0] : -1, .events = POLLIN},
			      {.fd = out ? out[1] : -1, .events = POLLIN},
			      {.fd = notice, .events = POLLIN}};
	struct timespec t = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
	sigset_t none;
	sigemptyset(&none);
	if (ppoll(p, 4, &t, &none) <= 0)
		return;
	if (p[0].revents & (POLLHUP | POLLERR | POLLNVAL))
		_exit(1);
	uint8_t said[64];
	ssize_t n = stands != NULL && p[0].revents & POLLIN ? read(control, said, sizeof said) : 0;
	if (n > 0)
		*stands = said[n - 1] != 0;
}

void launch_check_control(const struct warden *w)
{
	wait_a_little(NULL, -1, w->control, 0, NULL);
}

bool launch_stopping(void)
{
	sigset_t pending;
	if (!stop_asked && !sigpending(&pending) && sigismember(&pending, SIGTERM))
		stop_asked = 1;
	return stop_asked;
}

/* --- in the child --------------------------------------------------------------------------------- */

bool launch_join(const struct warden *w)
{
	for (int i = 0; i < w->groups_n; i++) {
		if (write(w->groups[i], "0", 1) != 1)
			return false;
	}
	return true;
}

bool launch_become(uid_t uid)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};
	/* setgroups is denied where the user namespace forbids it; then there must be no group to give up. */
	if (setgroups(0, NULL) && getgroups(0, NULL) != 0)
		return false;
	if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		return false;
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capset, &head, none) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return false;
	return getuid() == uid && geteuid() == uid && setresuid(0, 0, 0) != 0;
}

static bool set_io(int out, int err)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	return null >= 0 && dup2(null, 0) == 0 && dup2(out, 1) == 1 && dup2(err, 2) == 2;
}

/* Only lower than what the box has: the runner itself needs more. Soft and hard, so that it stays. */
bool launch_lower(__rlimit_resource_t what, uint64_t most)
{
	struct rlimit now, new = {most, most};
	return most == 0 || (!getrlimit(what, &now) && (now.rlim_max <= most || !setrlimit(what, &new)));
}

void launch_default_signals(void)
{
	sigset_t none;
	/* The kernel's form of SIG_DFL: the C library keeps 32 and 33 for itself, but an ignored one is inherited. */
	static const char by_default[64];
	for (int i = 1; i < _NSIG; i++)
		syscall(SYS_rt_sigaction, i, by_default, NULL, _NSIG / 8);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static enum step child_steps(const struct warden *w, const struct launch *l, const struct between *b, int out)
{
	setsid();
	umask(022);
	if (!launch_join(w))
		return STEP_GROUP;
	if (!set_io(l->bridge ? b->said : out, out))
		return STEP_IO;
	if (!launch_become(LAUNCH_UID))
		return STEP_UID;
	if (!launch_lower(RLIMIT_FSIZE, l->file_bytes) || !launch_lower(RLIMIT_NOFILE, l->open_files))
		return STEP_LIMITS;
	if (chdir(l->cwd))
		return STEP_CWD;
	launch_default_signals();
	if (l->bridge && !between_ready(b))
		return STEP_BRIDGE;
	if (!l->argv)
		_exit(l->inside(l->arg));
	environ = (char **)(uintptr_t)l->env; /* execvp looks the program up in this PATH */
	execvp(l->argv[0], (char *const *)(uintptr_t)l->argv);
	return STEP_EXEC;
}

/* What did not come to its program. The bridge is told of the agent's by its status, and people by what it prints. */
static void child_failed(const struct launch *l, int told, enum step step, int error)
{
	struct report r = {.step = (int)step, .errnum = error};
	int status = step == STEP_EXEC && error == ENOENT ? NOT_FOUND : NOT_STARTED;
	if (l->bridge && step > STEP_IO && step < STEP__COUNT)
		dprintf(2, "pinfold: %s: %s\n", step_names[step], strerror(error));
	_exit(l->bridge || write_all(told, &r, sizeof r) ? status : NOT_FOUND);
}

/* --- in the runner -------------------------------------------------------------------------------- */

bool launch_as(uid_t uid)
{
	bool done = setresuid((uid_t)-1, uid, (uid_t)-1) == 0;
	if (!done && uid == 0)
		_exit(1);
	arm_death_signal(); /* changing ids cleared it */
	return done;
}

/* The output's pipe belongs to the agent's uid, so that it can open /dev/stdout and /dev/stderr again. */
static bool agent_pipe(int p[2])
{
	if (!launch_as(LAUNCH_UID))
		return false;
	int bad = pipe2(p, O_CLOEXEC);
	launch_as(0);
	return !bad && !fcntl(p[0], F_SETFL, O_NONBLOCK);
}

/*
 * Keeps n bytes where they belong: the first half of the buffer is filled once, the second again and again, so
 * that the beginning and the end of what was printed stay (a test runner says at the end what it ran).
 */
static void keep(const struct launch *l, struct outcome *o, const uint8_t *p, size_t n)
{
	size_t head = l->output_cap / 2, ring = l->output_cap - head;
	while (n > 0 && l->output_cap > 0) {
		size_t at =
		    o->printed < l->output_cap ? (size_t)o->printed : head + (size_t)((o->printed - head) % ring);
		size_t room = l->output_cap - at, take = n < room ? n : room;
		memcpy(l->output + at, p, take);
		o->printed += take;
		p += take;
		n -= take;
	}
	o->printed += n; /* where nothing is kept */
}

static void reverse(uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		uint8_t c = p[i];
		p[i] = p[n - 1 - i];
		p[n - 1 - i] = c;
	}
}

/* Nothing more comes: the ring is turned so that its oldest byte is first, and the gap is marked. The mark ends
 * in no newline: the rest of a line is no line. */
static void keep_end(const struct launch *l, struct outcome *o)
{
	static const char gap[] = "\n[... more was printed than is kept ...] ";
	size_t head = l->output_cap / 2, ring = l->output_cap - head;
	o->truncated = o->printed > l->output_cap;
	o->output_n = o->truncated ? l->output_cap : (size_t)o->printed;
	if (!o->truncated || ring == 0)
		return;
	size_t oldest = (size_t)((o->printed - head) % ring);
	reverse(l->output + head, oldest);
	reverse(l->output + head + oldest, ring - oldest);
	reverse(l->output + head, ring);
	if (ring > sizeof gap)
		memcpy(l->output + head, gap, sizeof gap - 1);
}

/*
 * Takes what is there, keeps what fits. Bounded, so that a busy writer cannot hold the loop. At the end
 * (nobody holds the other side any more) *fd becomes -1, which poll leaves out.
 */
static void drain(int *fd, const struct launch *l, struct outcome *o)
{
	uint8_t waste[65536];
	for (int i = 0; i < 32 && *fd >= 0; i++) {
		ssize_t n = read(*fd, waste, sizeof waste);
		if (n == 0)
			*fd = -1;
		if (n <= 0)
			return;
		keep(l, o, waste, (size_t)n);
	}
}

/* Who is waited for. */
struct watched {
	pid_t agent, last; /* last: whose end is the end of all */
	bool agent_ended, ended;
	int32_t agent_status;
};

/* Reaps what is dead. Returns false when no child is left at all. */
static bool reap(struct watched *p, struct outcome *o)
{
	for (;;) {
		int st;
		pid_t pid = waitpid(-1, &st, WNOHANG | __WALL);
		if (pid == 0)
			return true;
		if (pid < 0 && errno != EINTR)
			return false;
		if (!WIFEXITED(st) && !WIFSIGNALED(st))
			continue;
		int32_t status = WIFEXITED(st) ? WEXITSTATUS(st) : -WTERMSIG(st);
		if (pid == p->agent) {
			p->agent_ended = true;
			p->agent_status = status;
		}
		if (pid == p->last) {
			p->ended = true;
			o->status = status;
		}
	}
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* What the agent's processes have used so far, in microseconds: the first line of cpu.stat. 0: not known. */
static uint64_t cpu_used(const struct warden *w)
{
	static const char key[] = "usage_usec ";
	char text[512];
	ssize_t n = w->cpu < 0 ? -1 : pread(w->cpu, text, sizeof text - 1, 0);
	text[n < 0 ? 0 : n] = 0;
	char *at = strstr(text, key);
	return at ? strtoull(at + sizeof key - 1, NULL, 10) : 0;
}

/* A full file system is the agent's own trouble, but whoever reads the run should know of it. */
static uint8_t full(void)
{
	static const char *const places[] = {"/workspace", "/tmp"};
	uint8_t reached = 0;
	struct statvfs v;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		if (statvfs(places[i], &v) || !v.f_blocks || !v.f_files)
			continue;
		reached |= v.f_bavail == 0 ? LAUNCH_BYTES : 0;
		reached |= v.f_favail == 0 ? LAUNCH_FILES : 0;
	}
	return reached;
}

/* All that is the agent's goes, and nothing else: as that user nobody else can be reached. */
static void kill_agent(void)
{
	if (!launch_as(LAUNCH_UID))
		return;
	kill(-1, SIGKILL);
	launch_as(0);
}

static void watch(const struct warden *w, const struct launch *l, struct watched p, const struct between *b, int out[2],
		  struct outcome *o)
{
	uint64_t begin = timer_ms(), kill_at = UINT64_MAX, deadline = begin + l->limit_ms, look_at = begin + LOOK_MS;
	uint64_t finish_at = UINT64_MAX;
	uint64_t cpu_most = l->cpu_seconds ? cpu_used(w) + l->cpu_seconds * 1000000ULL : UINT64_MAX;
	uint64_t before = begin;
	bool stands = false;
	while (reap(&p, o) && !p.ended) {
		uint64_t now = timer_ms();
		/* While a person is waited for, the end moves away as time passes. */
		deadline += stands ? now - before : 0;
		before = now;
		if (launch_stopping() && kill_at == UINT64_MAX) {
			o->stopped = true;
			kill_at = now + LAUNCH_GRACE_MS;
			kill(-1, SIGTERM);
		}
		/* What it said is still to be told; what it left running is not part of it. */
		if (p.agent_ended) {
			if (finish_at == UINT64_MAX) {
				finish_at = now + LAUNCH_FINISH_MS;
				(void)!write(b->ended, &p.agent_status, sizeof p.agent_status);
			}
			kill_agent();
		}
		if (now >= deadline || now >= kill_at || now >= finish_at) {
			o->timed_out = now >= deadline;
			break;
		}
		if (now >= look_at) {
			look_at = now + LOOK_MS;
			o->reached |= full() | (cpu_used(w) > cpu_most ? LAUNCH_CPU : 0);
			if (o->reached & LAUNCH_CPU)
				break;
		}
		wait_a_little(out, l->keys ? l->keys->watch : -1, w->control,
			      least(least(look_at, finish_at), least(deadline, kill_at)) - now, &stands);
		if (l->keys)
			keys_noticed(l->keys, timer_ms());
		drain(&out[1], l, o);
		drain(&out[0], l, o);
	}
	o->reached |= full();
	/* Forking processes lose the race: a fork with a kill pending fails. Twenty seconds are for a busy disk. */
	uint64_t give_up = timer_ms() + 20000;
	while (timer_ms() < give_up) {
		kill(-1, SIGKILL);
		if (!reap(&p, o)) {
			o->clean = true;
			break;
		}
		drain(&out[1], l, o);
		drain(&out[0], l, o);
		wait_a_little(NULL, -1, w->control, 2, NULL);
	}
	drain(&out[1], l, o);
	drain(&out[0], l, o);
	keep_end(l, o);
	o->duration_ms = (uint32_t)least(timer_ms() - begin, UINT32_MAX);
}

static void close_pair(int p[2])
{
	close(p[0]);
	close(p[1]);
}

static void not_started(struct outcome *o, const char *step, int errnum)
{
	o->started = false;
	o->step = step;
	o->errnum = errnum;
}

void launch_run(const struct warden *w, const struct launch *l, struct outcome *o)
{
	int out[2] = {-1, -1}, told[2] = {-1, -1};
	struct between b = BETWEEN_NONE;
	*o = (struct outcome){.clean = true, .stopped = launch_stopping()};
	if (o->stopped) {
		not_started(o, "stopping", ECANCELED);
		return;
	}
	if (!agent_pipe(out) || pipe2(told, O_CLOEXEC | O_NONBLOCK) || (l->bridge && !between_start(&b, w, l))) {
		not_started(o, l->bridge ? "starting its bridge" : "making a pipe", errno);
		close_pair(out);
		close_pair(told);
		return;
	}
	pid_t child = fork();
	if (child == 0) {
		enum step step = child_steps(w, l, &b, out[1]);
		child_failed(l, told[1], step, errno);
	}
	int fork_error = errno;
	close(out[1]);
	close(told[1]);
	between_agent_has(&b);
	bool any = child > 0 || b.pid > 0;
	o->started = any;
	o->clean = !any;
	struct watched p = {
	    .agent = child, .last = b.pid > 0 ? b.pid : child, .agent_ended = child < 0, .agent_status = NOT_STARTED};
	if (any)
		watch(w, l, p, &b, (int[2]){out[0], b.out}, o);
	else
		not_started(o, "forking", fork_error);
	struct report r;
	if (child > 0 && read(told[0], &r, sizeof r) == sizeof r && r.step >= 0 && r.step < STEP__COUNT)
		not_started(o, step_names[r.step], r.errnum);
	close(told[0]);
	close(out[0]);
	between_close(&b);
}
