/* Processes of boxes as root sees them; see doctor_seen.h. Signals go through pidfds, never to a number. */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/doctor_seen.h"
#include "lib/num.h"
#include "lib/own.h"
#include "lib/place.h"

ssize_t seen_text(pid_t pid, const char *name, char *out, size_t room)
{
	char path[128];
	size_t n = 0;
	ssize_t got;

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	own_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	while (fd >= 0 && n < room - 1 && (got = read(fd, out + n, room - 1 - n)) > 0)
		n += (size_t)got;
	out[n] = '\0';
	return fd < 0 ? -1 : (ssize_t)n;
}

bool seen_uid(pid_t pid, uid_t *uid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof path, "/proc/%d", (int)pid);
	bool there = stat(path, &st) == 0;
	*uid = there ? st.st_uid : 0;
	return there;
}

bool seen_is_box(const struct conf *conf, uid_t uid)
{
	const struct cf_global *g = &conf->global;

	return uid >= g->box_uid_base && uid < g->box_uid_base + BOX_UIDS * g->max_boxes;
}

static bool in_box(const struct conf *conf, pid_t sandboxd, pid_t pid)
{
	uid_t uid;

	return seen_uid(pid, &uid) &&
	       (seen_is_box(conf, uid) || (sandboxd != 0 && seen_parent(seen_parent(pid)) == sandboxd));
}

pid_t seen_program(const struct conf *conf, pid_t sandboxd, const char *program)
{
	const char *base = strrchr(program, '/') + 1;
	DIR *dir = opendir("/proc");
	pid_t hit = 0;

	for (struct dirent *e; hit == 0 && dir != NULL && (e = readdir(dir)) != NULL;) {
		uint64_t pid;
		char name[64];
		if (num_u64(e->d_name, strlen(e->d_name), 1, INT32_MAX, &pid) && in_box(conf, sandboxd, (pid_t)pid) &&
		    seen_text((pid_t)pid, "comm", name, sizeof name) > 0 &&
		    strncmp(name, base, strcspn(name, "\n")) == 0 && strnlen(base, 15) == strcspn(name, "\n"))
			hit = (pid_t)pid;
	}
	if (dir != NULL)
		closedir(dir);
	return hit;
}

pid_t seen_parent(pid_t pid)
{
	char text[1024];
	int parent;
	const char *end = seen_text(pid, "stat", text, sizeof text) > 0 ? strrchr(text, ')') : NULL;

	return end != NULL && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

bool seen_core(pid_t pid, unsigned long long *cookie)
{
	enum { SCHED_CORE = 62, GET = 0, THREAD = 0 };

	*cookie = 0;
	return prctl(SCHED_CORE, GET, pid, THREAD, cookie) == 0;
}

/* Gone, ending, or with a KILL that it has not taken yet. */
static bool dying(pid_t pid)
{
	enum { EXITING = 0x4, SIGNALED = 0x400 }; /* PF_ of the kernel */
	char text[4096], state;
	unsigned flags;
	const char *end = seen_text(pid, "stat", text, sizeof text) > 0 ? strrchr(text, ')') : NULL;

	if (end == NULL || sscanf(end + 1, " %c %*d %*d %*d %*d %*d %u", &state, &flags) != 2 || state == 'Z' ||
	    state == 'X' || (flags & (EXITING | SIGNALED)) != 0)
		return true;
	static const char *const sets[] = {"\nSigPnd:", "\nShdPnd:"};
	seen_text(pid, "status", text, sizeof text);
	for (size_t i = 0; i < 2; i++) {
		const char *set = strstr(text, sets[i]);
		if (set != NULL && (strtoull(set + 8, NULL, 16) >> (SIGKILL - 1) & 1) != 0)
			return true;
	}
	return false;
}

/* The kernel sends the signal before anybody can see that sandboxd is gone, so it is looked for at once: the next
 * sandboxd, which sweeps, is not there yet. */
bool seen_outlive(pid_t runner, const char **detail)
{
	enum { LOOKS = 20 };
	pid_t sandboxd = seen_parent(runner);
	bool dies = false;
	own_fd int it = sandboxd > 1 ? (int)syscall(SYS_pidfd_open, sandboxd, 0) : -1;
	own_fd int box = (int)syscall(SYS_pidfd_open, runner, 0);
	struct pollfd gone = {.fd = it, .events = POLLIN};

	*detail = "there is no box, or no pinfold-sandboxd above it";
	if (it < 0 || box < 0 || seen_parent(runner) != sandboxd)
		return false;
	/* On a loaded machine, too, it must be us who look first. */
	setpriority(PRIO_PROCESS, 0, -20);
	syscall(SYS_pidfd_send_signal, box, SIGSTOP, NULL, 0);
	syscall(SYS_pidfd_send_signal, it, SIGKILL, NULL, 0);
	poll(&gone, 1, 10000);
	for (int i = 0; i < LOOKS && !dies; i++)
		dies = dying(runner);
	setpriority(PRIO_PROCESS, 0, 0);
	syscall(SYS_pidfd_send_signal, box, SIGKILL, NULL, 0);
	*detail = dies ? "the box dies with pinfold-sandboxd" : "the box goes on without pinfold-sandboxd";
	return dies;
}
