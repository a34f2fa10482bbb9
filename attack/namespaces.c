/* Attacks on namespaces: whose they are, and new ones, in which a process would be root again. */
#include "attack/know.h"
#include "attack/tried.h"
#include "gen/attacks_inside.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* whose: "ns-" for the machine's, "near-" for another run's. */
static struct tried shared(const char *whose, const char *name)
{
	char path[64], key[64], mine[64] = "";
	snprintf(path, sizeof path, "/proc/self/ns/%s", name);
	snprintf(key, sizeof key, "%s%s", whose, name);
	ssize_t n = readlink(path, mine, sizeof mine - 1);
	mine[n > 0 ? n : 0] = '\0';
	return differs(name, mine, know(key));
}

#define SHARES(name)                           \
	struct tried attack_ns_##name(void)    \
	{                                      \
		return shared("ns-", #name);   \
	}                                      \
	struct tried attack_near_##name(void)  \
	{                                      \
		return shared("near-", #name); \
	}
SHARES(mnt)
SHARES(pid)
SHARES(net)
SHARES(ipc)
SHARES(uts)
SHARES(cgroup)
SHARES(user)

/* The ids of the machine behind the box's two. */
struct tried attack_near_uid(void)
{
	char text[1000], mine[64];
	unsigned a = 0, b = 0;
	if (read_text("/proc/self/uid_map", text, sizeof text) < 0 || sscanf(text, "%*u %u %*u %*u %u", &a, &b) != 2)
		return skipped("it cannot be read");
	snprintf(mine, sizeof mine, "%u,%u", a, b);
	return differs("uids", mine, know("near-uid"));
}

/* Each is asked for as a process without rights would: together with a user namespace, in which it has them. */
#define MAKES(name, flag)                                        \
	struct tried attack_##name(void)                         \
	{                                                        \
		return refused(unshare(CLONE_NEWUSER | (flag))); \
	}
MAKES(new_user, 0)
MAKES(new_mount, CLONE_NEWNS)
MAKES(new_pid, CLONE_NEWPID)
MAKES(new_net, CLONE_NEWNET)
MAKES(new_ipc, CLONE_NEWIPC)
MAKES(new_uts, CLONE_NEWUTS)
MAKES(new_cgroup, CLONE_NEWCGROUP)
MAKES(time_namespace, CLONE_NEWTIME)

struct tried attack_new_clone(void)
{
	long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0)
		_exit(0);
	struct tried t = refused(pid);
	if (pid > 0)
		waitpid((pid_t)pid, NULL, 0);
	return t;
}

struct tried attack_new_clone3(void)
{
	struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
	long pid = syscall(SYS_clone3, &args, sizeof args);
	if (pid == 0)
		_exit(0);
	struct tried t = absent(pid);
	if (pid > 0)
		waitpid((pid_t)pid, NULL, 0);
	return t;
}

/* Without a descriptor the kernel would say EBADF. */
struct tried attack_new_setns(void)
{
	return filtered(setns(-1, 0), EPERM);
}
