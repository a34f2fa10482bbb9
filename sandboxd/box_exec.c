/*
 * The child that becomes a box: born by clone3 as real root in new namespaces and in the runner's group, it
 * builds the walls in order, gives up being root, and becomes the runner. Trusts sandboxd, whose memory it
 * shares a copy of; runs nothing else. Every step is required: one that fails ends the child with a note.
 */
#include "lib/clock.h"
#include "lib/filter.h"
#include "lib/own_fd.h"
#include "lib/packet.h"
#include "lib/place.h"
#include "lib/wire.h"
#include "sandboxd/box_cg.h"
#include "sandboxd/box_plan.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

enum { FD_BUILD = BOX_FD__FIRST_FREE, FD_SPARE = 64, PIDTYPE_TGID = 1 };

static void fail(const struct box_plan *p, enum step step) __attribute__((noreturn));
static void fail(const struct box_plan *p, enum step step)
{
	struct box_note note = {.what = NOTE_FAILED, .step = (int32_t)step, .error = errno};
	chan_send(p->build, &note, sizeof note, NULL, 0);
	_exit(125);
}

/* Used where the kernel has it, told where not. */
static void extra(const struct box_plan *p, enum step step, bool done)
{
	struct box_note note = {.what = NOTE_LACKS, .step = (int32_t)step, .error = errno};
	if (!done)
		chan_send(p->build, &note, sizeof note, NULL, 0);
}

static void need(const struct box_plan *p, enum step step, bool done)
{
	if (!done)
		fail(p, step);
}

/*
 * Ignored and blocked signals would be inherited; main sees to it that there is no other. TERM stays blocked until
 * the runner is ready for it: sent to a process 1 that has no handler yet, it would be lost.
 */
static bool signals_as_new(void)
{
	sigset_t only;
	sigemptyset(&only);
	sigaddset(&only, SIGTERM);
	return signal(SIGPIPE, SIG_DFL) != SIG_ERR && sigprocmask(SIG_SETMASK, &only, NULL) == 0;
}

/* Armed, and sandboxd was not dead before. Its parent has no number in the new pid namespace: hence the pidfd. */
static bool dies_with_sandboxd(const struct box_plan *p)
{
	struct pollfd dead = {.fd = p->place->parent, .events = POLLIN};
	return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && poll(&dead, 1, 0) == 0;
}

static bool killed_first(void)
{
	own_fd int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write_all(fd, "500", 3);
}

/* RLIMIT_AS is left alone: programs that reserve address space without using it would not start.
 * RLIMIT_CORE: where core_pattern is a pipe, 0 does not keep the kernel from starting the host's handler, as the
 * host's root, on memory that an agent made. 1 does (see core(5)); the filter keeps it at that. */
static bool set_rlimits(const struct box_limits *l)
{
	rlim_t file = l->workspace_bytes > (64u << 20) ? l->workspace_bytes : 64u << 20;
	const struct {
		__rlimit_resource_t what;
		rlim_t most;
	} rows[] = {{RLIMIT_CORE, 1},         {RLIMIT_NOFILE, 1024}, {RLIMIT_FSIZE, file}, {RLIMIT_MEMLOCK, 65536},
		    {RLIMIT_MSGQUEUE, 65536}, {RLIMIT_RTPRIO, 0},    {RLIMIT_NICE, 0},     {RLIMIT_SIGPENDING, 1024}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct rlimit r = {rows[i].most, rows[i].most};
		if (setrlimit(rows[i].what, &r) != 0)
			return false;
	}
	return true;
}

/* 0-2 the box's own /dev/null, then as lib/place.h says, then the build socket; nothing else. */
static bool arrange(struct box_plan *p, const int *agent, int n)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int from[FD_BUILD + 1] = {null, null, null, p->upload, p->result, p->control};
	for (int i = 0; i < n; i++)
		from[BOX_FD_CPU + i] = agent[i];
	for (int i = BOX_FD_CPU + n; i < FD_BUILD; i++)
		from[i] = -1;
	from[BOX_FD_KEYS] = p->keys;
	from[FD_BUILD] = p->build;
	for (int i = 0; i <= FD_BUILD; i++) /* out of the way of each other first */
		if (from[i] >= 0 && (from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, FD_SPARE)) < 0)
			return false;
	for (int i = 0; i <= FD_BUILD; i++)
		if (from[i] >= 0 ? dup3(from[i], i, i == FD_BUILD ? O_CLOEXEC : 0) < 0
				 : close_range((unsigned)i, (unsigned)i, 0) != 0)
			return false;
	p->build = FD_BUILD;
	return null >= 0 && close_range(FD_BUILD + 1, ~0u, 0) == 0;
}

/* Inside the new network namespace; the host's is never touched. */
static bool loopback_up(void)
{
	own_fd int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s < 0)
		return false;
	struct ifreq r = {.ifr_flags = IFF_UP | IFF_RUNNING};
	memcpy(r.ifr_name, "lo", 3);
	return ioctl(s, SIOCSIFFLAGS, &r) == 0;
}

static int make_listener(uint16_t port)
{
	own_fd int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_in a = {
	    .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (s < 0 || bind(s, (struct sockaddr *)&a, sizeof a) != 0 || listen(s, 64) != 0)
		return -1;
	return steal_fd(&s);
}

static bool maps_written(const struct box_plan *p, int listener)
{
	struct box_note note = {.what = NOTE_MAPS};
	char go;
	int nfds = 0, none[WIRE_MAX_FDS];
	/* Were sandboxd to die now, other children being built might keep its end of this socket open. */
	struct timeval patience = {.tv_sec = 10};
	return setsockopt(p->build, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
	       chan_send(p->build, &note, sizeof note, &listener, listener >= 0 ? 1 : 0) == 0 &&
	       chan_recv(p->build, &go, 1, none, &nfds) == 1;
}

_Static_assert(STEP_LANDLOCK_SCOPES - STEP_LANDLOCK_TRUNCATE == 2, "Landlock's extra walls stand together");

void box_child(const struct box_plan *given)
{
	struct box_plan copy = *given, *p = &copy;
	int agent[CG_FDS], n, listener = -1;
	enum step step = STEP_NONE;
	need(p, STEP_DEATHSIG, dies_with_sandboxd(p));
	need(p, STEP_SESSION, signals_as_new() && setsid() >= 0 && killed_first());
	umask(0);
	/* The cgroup namespace comes after: descriptors opened in it could not move a process to the agent's group. */
	need(p, STEP_CGROUP_ENTER, cg_enter(p->cg, p->slot, &p->limits, agent, &n));
	extra(p, STEP_OOM_GROUP, cg_oom_group(p->cg, p->slot));
	need(p, STEP_NAMESPACES, unshare(CLONE_NEWCGROUP) == 0);
	need(p, STEP_NETWORK, sethostname("box", 3) == 0 && loopback_up());
	if (p->listener)
		need(p, STEP_LISTENER, (listener = make_listener(p->place->port)) >= 0);
	if (!box_root(p, &step))
		fail(p, step);
	need(p, STEP_USERNS, setgroups(0, NULL) == 0 && unshare(CLONE_NEWUSER) == 0 && maps_written(p, listener));
	need(p, STEP_IDS, setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0);
	need(p, STEP_DEATHSIG, dies_with_sandboxd(p)); /* again: the change of ids has cleared it */
	need(p, STEP_DESCRIPTORS, arrange(p, agent, n));
	need(p, STEP_RLIMITS, set_rlimits(&p->limits));
	need(p, STEP_CAPABILITIES, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && box_caps());
	need(p, STEP_LANDLOCK, box_landlock());
	for (enum step s = STEP_LANDLOCK_TRUNCATE; s <= STEP_LANDLOCK_SCOPES; s++)
		extra(p, s, box_landlock_has(s));
	extra(p, STEP_CORE_SCHEDULING, prctl(PR_SCHED_CORE, PR_SCHED_CORE_CREATE, 0, PIDTYPE_TGID, 0) == 0);
	umask(022);
	struct box_note note = {.what = NOTE_EXEC};
	need(p, STEP_SECCOMP, filter_load(&p->place->filter) && chan_send(p->build, &note, sizeof note, NULL, 0) == 0);
	if (p->probe)
		_exit(0);
	char *argv[] = {(char[]){"pinfold-runner"}, NULL};
	char *env[] = {(char[]){"PATH=/usr/local/bin:/usr/bin:/bin"}, (char[]){"LANG=C.UTF-8"}, (char[]){"TZ=UTC"},
		       NULL};
	execve("/opt/pinfold/pinfold-runner", argv, env);
	fail(p, STEP_EXEC);
}
