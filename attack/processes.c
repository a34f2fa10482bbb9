/* Attacks on processes: process 1, those of the machine, and on what a process may become. */
#include "attack/know.h"
#include "attack/tried.h"
#include "gen/attacks_inside.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define OPENS(name, path, flags)                     \
	struct tried attack_##name(void)             \
	{                                            \
		return cannot_open((path), (flags)); \
	}
#define REFUSED(name, call)              \
	struct tried attack_##name(void) \
	{                                \
		return refused(call);    \
	}
#define ABSENT(name, call)               \
	struct tried attack_##name(void) \
	{                                \
		return absent(call);     \
	}

OPENS(proc_init_environ, "/proc/1/environ", O_RDONLY)
OPENS(proc_init_mem, "/proc/1/mem", O_RDONLY)
OPENS(proc_init_root, "/proc/1/root/etc/passwd", O_RDONLY)
OPENS(proc_init_cwd, "/proc/1/cwd/etc/passwd", O_RDONLY)
OPENS(proc_settings, "/proc/sys/kernel/core_pattern", O_RDONLY)
OPENS(proc_sysrq, "/proc/sysrq-trigger", O_WRONLY)

struct tried attack_proc_init_fd(void)
{
	return cannot_list("/proc/1/fd");
}

struct tried attack_proc_init_seen(void)
{
	return access("/proc/1", F_OK) != 0 ? held("%s", strerrorname_np(errno)) : open_("/proc/1 is there");
}

struct tried attack_proc_machine(void)
{
	static const char *const paths[] = {"/proc/meminfo", "/proc/cmdline", "/proc/kcore", "/proc/kallsyms"};
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		if (access(paths[i], F_OK) == 0)
			return open_("%s is there", paths[i]);
	return held("none is there");
}

/* A process of root's that exists would be refused, not missing. */
struct tried attack_proc_host_pid(void)
{
	long pid = know_number("host-pid");
	if (pid <= 1)
		return skipped("no number to try");
	if (kill((pid_t)pid, 0) == 0 || errno != ESRCH)
		return open_("process %ld is there", pid);
	return held("no such process");
}

/* Process 1 ignores these two from within its own namespace, so that they do no harm where they are allowed. */
REFUSED(proc_init_kill, kill(1, SIGKILL))
REFUSED(proc_init_stop, kill(1, SIGSTOP))
REFUSED(proc_init_nice, setpriority(PRIO_PROCESS, 1, 19))

/* It would end the run, and with it the other attacks: who may is asked first. */
struct tried attack_proc_init_term(void)
{
	return kill(1, 0) == 0 ? open_("it may be signalled") : refused(kill(1, SIGTERM));
}

struct tried attack_proc_init_queue(void)
{
	siginfo_t info = {.si_signo = SIGURG, .si_code = SI_QUEUE};
	return refused(syscall(SYS_rt_sigqueueinfo, 1, SIGURG, &info));
}

struct tried attack_proc_init_pidfd(void)
{
	int fd = (int)syscall(SYS_pidfd_open, 1, 0);
	if (fd < 0)
		return refused(fd);
	return refused(syscall(SYS_pidfd_send_signal, fd, SIGURG, NULL, 0));
}

struct tried attack_proc_init_affinity(void)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	return refused(sched_setaffinity(1, sizeof one, &one));
}

struct tried attack_proc_init_limit(void)
{
	struct rlimit r = {10, 10};
	return refused(syscall(SYS_prlimit64, 1, RLIMIT_SIGPENDING, &r, NULL));
}

struct tried attack_proc_init_ptrace(void)
{
	/* Not ESRCH or EPERM of ptrace itself, which depends on more than the filter: see proc-traceme. */
	return refused(ptrace(PTRACE_SEIZE, 1, 0, 0));
}

REFUSED(proc_traceme, ptrace(PTRACE_TRACEME, 0, 0, 0))

struct tried attack_proc_vm_read(void)
{
	char from = 'x', to = 0;
	struct iovec a = {&to, 1}, b = {&from, 1};
	return refused(process_vm_readv(getpid(), &a, 1, &b, 1, 0));
}

struct tried attack_proc_vm_write(void)
{
	char from = 'x', to = 0;
	struct iovec a = {&from, 1}, b = {&to, 1};
	return refused(process_vm_writev(getpid(), &a, 1, &b, 1, 0));
}

ABSENT(proc_kcmp, syscall(SYS_kcmp, getpid(), getpid(), 0, 0, 0))
ABSENT(proc_pidfd_getfd, syscall(SYS_pidfd_getfd, -1, 0, 0))
ABSENT(proc_madvise, syscall(SYS_process_madvise, -1, NULL, 0, 0, 0))

struct tried attack_proc_realtime(void)
{
	struct sched_param p = {.sched_priority = 1};
	return refused(sched_setscheduler(0, SCHED_FIFO, &p));
}

REFUSED(proc_nice, setpriority(PRIO_PROCESS, 0, -5))
REFUSED(proc_root, setresuid(0, 0, 0))
REFUSED(proc_gid, setresgid(0, 0, 0))

/* What a process began with bounds how low it may go: 0 is the machine's ordinary value. */
struct tried attack_proc_oom(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return refused(fd);
	long n = write(fd, "0", 1);
	return refused(n);
}

/* The hexadecimal or decimal number behind "NAME:" in /proc/self/status; false: there is none. */
static bool status_of(const char *name, int base, unsigned long long *value)
{
	char text[8000], *at;
	if (read_text("/proc/self/status", text, sizeof text) < 0 || (at = strstr(text, name)) == NULL)
		return false;
	*value = strtoull(at + strlen(name), NULL, base);
	return true;
}

static struct tried zero(const char *const *names)
{
	for (; *names != NULL; names++) {
		unsigned long long v;
		if (!status_of(*names, 16, &v))
			return skipped("%s cannot be read", *names);
		if (v != 0)
			return open_("%s%llx", *names + 1, v);
	}
	return held("none");
}

struct tried attack_proc_caps(void)
{
	static const char *const names[] = {"\nCapInh:", "\nCapPrm:", "\nCapEff:", "\nCapAmb:", NULL};
	return zero(names);
}

struct tried attack_proc_bounding(void)
{
	static const char *const names[] = {"\nCapBnd:", NULL};
	return zero(names);
}

struct tried attack_proc_nnp(void)
{
	unsigned long long v;
	if (!status_of("\nNoNewPrivs:", 10, &v))
		return skipped("it cannot be read");
	return v == 1 ? held("set") : open_("it is off");
}

struct tried attack_proc_filters(void)
{
	unsigned long long mode, n = 1;
	if (!status_of("\nSeccomp:", 10, &mode))
		return skipped("it cannot be read");
	status_of("\nSeccomp_filters:", 10, &n);
	return mode == 2 && n >= 1 ? held("%llu", n) : open_("mode %llu, %llu filters", mode, n);
}

struct tried attack_proc_maps(void)
{
	char text[1000];
	unsigned long long inside, outside, count, ids = 0;
	int used;
	if (read_text("/proc/self/uid_map", text, sizeof text) < 0)
		return skipped("it cannot be read");
	for (char *p = text; sscanf(p, "%llu %llu %llu%n", &inside, &outside, &count, &used) == 3; p += used)
		ids += count;
	return ids <= 3 ? held("%llu", ids) : open_("%llu ids", ids);
}

struct tried attack_proc_session(void)
{
	pid_t s = getsid(1);
	return s == 1 ? held("its own") : open_("session %d", (int)s);
}

/* "ID:CONTROLLERS:PATH", relative to the box's own: anything but / and steps upwards is a name of the machine's. */
struct tried attack_proc_cgroup(void)
{
	char text[8000];
	if (read_text("/proc/self/cgroup", text, sizeof text) < 0)
		return held("%s", strerror(errno));
	for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
		char *path = strchr(line, ':');
		path = path != NULL ? strchr(path + 1, ':') : NULL;
		if (path != NULL && strcmp(path, ":/") != 0 && strncmp(path, ":/..", 4) != 0)
			return open_("%.100s", path + 1);
	}
	return held("nothing");
}

/* Of the v2 tree: process 1 is in its own group, which it sees as the root, and everything else beside it. */
struct tried attack_proc_group(void)
{
	char text[8000];
	if (read_text("/proc/self/cgroup", text, sizeof text) < 0)
		return held("%s", strerror(errno));
	for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
		if (strncmp(line, "0::", 3) == 0)
			return strcmp(line + 3, "/../a") == 0 ? held("%s", line + 3) : open_("%.100s", line + 3);
	return skipped("no v2 tree is seen");
}
