/*
 * Control groups. Every box has a group in the v2 tree (cgroup.kill works there without any controller) with
 * two groups in it, the runner's "r" and the agent's "a"; limits are set where the controllers are: in the
 * same tree, or in v1 trees beside it. Everything is below one group named after the instance; nothing else is
 * ever touched. Names are made of numbers only. Functions return false with errno.
 */
#ifndef SANDBOXD_BOX_CG_H
#define SANDBOXD_BOX_CG_H
#include "sandboxd/box_plan.h"
#include <stdbool.h>
#include <stdint.h>

enum { CG_MEMORY = 1, CG_PIDS = 2, CG_CPU = 4, CG_IO = 8, CG_TREES = 4, CG_FDS = CG_TREES + 1 };

struct cg_tree {
	int base; /* the instance's group */
	int what; /* CG_ bits of the controllers it holds */
	bool v2;
};

/* tree[0] is the v2 tree. */
struct cg {
	struct cg_tree tree[CG_TREES];
	int trees;
	char name[40];
	char parent[CG_TREES][256];
};

struct cg_use {
	uint64_t cpu_us, peak_bytes, forks_refused;
	bool oom;
};

/* Finds the trees, makes the instance's group in each, kills what an earlier life left there and removes its groups.
 * Those of boxes may stay (cg_found): a daemon must have no twin, a slot may be out of use. False: *why says what is
 * missing; errno EBUSY: nothing is, but processes of an earlier life do not die. */
bool cg_open(struct cg *c, const char *instance, const char **why);
/* Kills what is there and removes the instance's groups, within half a second. False: something is left in them. */
bool cg_close(struct cg *c);
/* Makes the box's groups in the v2 tree; a descriptor of the runner's for CLONE_INTO_CGROUP, or -1. */
int cg_make(const struct cg *c, uint32_t slot);
/* In the child: limits, v1 groups, joins the runner's; agent[]: cpu.stat of the agent's, then its cgroup.procs, *n in
 * all. */
bool cg_enter(const struct cg *c, uint32_t slot, const struct box_limits *l, int agent[CG_FDS], int *n);
/* In the child, after that: will what is out of memory die whole? */
bool cg_oom_group(const struct cg *c, uint32_t slot);
/* Kills everything in the box, or only in the agent's group. */
bool cg_kill(const struct cg *c, uint32_t slot, bool agent_only);
/* Stops the processes in the agent's group, or lets them go on. Those that are killed die all the same. */
bool cg_freeze(const struct cg *c, uint32_t slot, bool frozen);
struct cg_use cg_used(const struct cg *c, uint32_t slot);
/* An eventfd that fires when a v1 tree's agent group is out of memory; -1 where v2 does it all. */
int cg_watch_oom(const struct cg *c, uint32_t slot);
/* Is there a group of that slot? */
bool cg_found(const struct cg *c, uint32_t slot);
/* True when no group of the box is left. */
bool cg_remove(const struct cg *c, uint32_t slot);
/* A group for a daemon, so that what it leaves behind dies with it: descriptor or -1. */
int cg_daemon(const struct cg *c, const char *name);
bool cg_daemon_kill(const struct cg *c, const char *name);

/* cg_open.c, for box_cg.c: small reads and writes below the instance's group, and handing controllers down. */
enum { CG_NAME = 32 };

/* base/group/file; group may be "". Descriptor or -1. */
int cg_open_file(int base, const char *group, const char *file, int flags);
bool cg_put(int base, const char *group, const char *file, const char *text);
/* The whole small file, NUL added; its length or -1. */
int cg_get(int base, const char *group, const char *file, char *out, int size);
/* The number behind key ("" for a file that is one number); 0 when there is none. */
uint64_t cg_number(int base, const char *group, const char *file, const char *key);
/* Enables those of the CG_ bits in the group's subtree that it can; returns them. */
int cg_pass_down(int base, const char *group, int what);
#endif
