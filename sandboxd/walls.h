/*
 * The steps of making a box, in order, and what each wall needs from the kernel. A step that fails ends the
 * box: there is no box with fewer walls. See walls.c for the table.
 */
#ifndef SANDBOXD_WALLS_H
#define SANDBOXD_WALLS_H
#include <stdbool.h>

enum step {
	STEP_NONE,
	STEP_DESCRIPTORS,
	STEP_CGROUP,
	STEP_NAMESPACES,
	STEP_CGROUP_ENTER,
	STEP_SESSION,
	STEP_NETWORK,
	STEP_LISTENER,
	STEP_ROOT,
	STEP_BINDS,
	STEP_ETC,
	STEP_DEV,
	STEP_PROC,
	STEP_WORKSPACE,
	STEP_PIVOT,
	STEP_USERNS,
	STEP_IDS,
	STEP_RLIMITS,
	STEP_LANDLOCK,
	STEP_CAPS,
	STEP_DEATHSIG,
	STEP_SECCOMP,
	STEP_EXEC,
	STEP__COUNT
};

struct wall {
	const char *name;
	const char *kernel; /* first version of Linux that has it; "" any */
	bool machine;       /* its failure says something about the machine, not about this one box */
	const char *why;
};

extern const struct wall walls[STEP__COUNT];
#endif
