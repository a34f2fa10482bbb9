/*
 * The steps of making a box, in order, all of them required: a step that fails ends the box, and there is no box
 * with fewer walls. name in refusals, the first Linux that has it ("" any; the baseline is Debian 12's own 6.1),
 * whether its failure says something about the machine rather than about this one box, and the reason for it.
 */
#ifndef SANDBOXD_WALLS_H
#define SANDBOXD_WALLS_H
#include <stdbool.h>

/* clang-format off */
#define WALLS(X) \
	X(DESCRIPTORS, "descriptors", "5.9", false, "the box starts with exactly the listed ones (close_range)") \
	X(CGROUP, "cgroup", "5.14", true, "cgroup.kill ends a fork bomb at once; memory, processes, CPU weight") \
	X(NAMESPACES, "namespaces", "5.7", true, "mount, pid, net, ipc, uts, cgroup; born inside its group") \
	X(CGROUP_ENTER, "cgroup limits", "5.14", true, "two groups: a full workspace must not kill the runner") \
	X(SESSION, "session", "", false, "no controlling terminal, nothing to type into") \
	X(NETWORK, "network", "", true, "an empty network namespace; only its own loopback") \
	X(LISTENER, "listener", "", true, "made inside, held outside: a connection is its run") \
	X(ROOT, "root", "5.12", true, "a tmpfs of a few pages; nothing of the host is below it unless bound") \
	X(BINDS, "binds", "5.12", true, "host programs read-only, nosuid, nodev, with everything mounted below") \
	X(ETC, "etc", "", true, "made here: no host names, users, keys or resolvers") \
	X(DEV, "dev", "", true, "five devices that hold no state; no terminal, no disk") \
	X(PROC, "proc", "5.8", true, "only the box's processes, of others nothing (hidepid), no settings (subset)") \
	X(WORKSPACE, "workspace", "", true, "fixed bytes and inodes") \
	X(PIVOT, "pivot_root", "", true, "the host's tree is unmounted, not only hidden") \
	X(USERNS, "user namespace", "3.8", true, "root of the box is nobody outside; made last, owns nothing") \
	X(IDS, "ids", "", true, "two uids shared with no other box") \
	X(RLIMITS, "rlimits", "", false, "no core, few descriptors, bounded files; never address space") \
	X(LANDLOCK, "landlock", "5.19", true, "a second, independent wall around files (ABI 2 or later)") \
	X(CAPS, "capabilities", "4.3", true, "four for the runner, none for what it starts, none to be regained") \
	X(DEATHSIG, "death signal", "", false, "the box dies with sandboxd") \
	X(SECCOMP, "seccomp", "4.14", true, "a list of calls; whatever is not on it does not exist") \
	X(EXEC, "exec", "", false, "the runner")

enum step {
	STEP_NONE,
#define X(id, name, kernel, machine, why) STEP_##id,
	WALLS(X)
#undef X
	STEP__COUNT
};
/* clang-format on */

struct wall {
	const char *name, *kernel;
	bool machine;
	const char *why;
};

extern const struct wall walls[STEP__COUNT]; /* box_build.c */
#endif
