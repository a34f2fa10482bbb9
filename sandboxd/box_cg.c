/* Groups of boxes; see box_cg.h. Reads only the kernel's own files. */
#include "sandboxd/box_cg.h"
#include "lib/own_fd.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is written where: one row a limit. The runner's own memory is what unpacking and collecting need. */
enum value { V_MEMORY, V_RUNNER_MEMORY, V_PIDS, V_FIXED };
static const struct {
	bool v2;
	int what;
	const char *group, *file;
	enum value value;
	const char *fixed;
	bool required;
} limits[] = {
    {true, CG_MEMORY, "a", "memory.max", V_MEMORY, NULL, true},
    {true, CG_MEMORY, "a", "memory.swap.max", V_FIXED, "0", false},
    {true, CG_MEMORY, "a", "memory.oom.group", V_FIXED, "1", false},
    {true, CG_MEMORY, "r", "memory.max", V_RUNNER_MEMORY, NULL, true},
    {true, CG_PIDS, "a", "pids.max", V_PIDS, NULL, true},
    {true, CG_PIDS, "r", "pids.max", V_FIXED, "32", true},
    {true, CG_CPU, "", "cpu.weight", V_FIXED, "10", false},
    {true, CG_IO, "", "io.weight", V_FIXED, "10", false},
    {false, CG_MEMORY, "a", "memory.limit_in_bytes", V_MEMORY, NULL, true},
    {false, CG_MEMORY, "a", "memory.memsw.limit_in_bytes", V_MEMORY, NULL, false},
    /* Under v1 what sockets hold is counted apart, and not at all without a limit: one box could take all the
     * TCP memory of the machine. */
    {false, CG_MEMORY, "a", "memory.kmem.tcp.limit_in_bytes", V_FIXED, "33554432", true},
    {false, CG_MEMORY, "r", "memory.limit_in_bytes", V_RUNNER_MEMORY, NULL, true},
    {false, CG_PIDS, "a", "pids.max", V_PIDS, NULL, true},
    {false, CG_PIDS, "r", "pids.max", V_FIXED, "32", true},
    {false, CG_CPU, "", "cpu.shares", V_FIXED, "64", false},
};

static void name_of(char out[CG_NAME], uint32_t slot, const char *group)
{
	snprintf(out, CG_NAME, "s%u%s%s", slot, *group != '\0' ? "/" : "", group);
}

static bool set_limits(const struct cg_tree *t, uint32_t slot, const struct box_limits *l)
{
	for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
		if (limits[i].v2 != t->v2 || (limits[i].what & t->what) == 0)
			continue;
		char group[CG_NAME], text[32];
		name_of(group, slot, limits[i].group);
		unsigned long long v = limits[i].value == V_MEMORY ? l->memory_bytes
				       : limits[i].value == V_PIDS ? l->pids
								   : l->workspace_bytes + (64u << 20);
		snprintf(text, sizeof text, "%llu", v);
		if (!cg_put(t->base, group, limits[i].file, limits[i].value == V_FIXED ? limits[i].fixed : text) &&
		    limits[i].required)
			return false;
	}
	return true;
}

/* A v1 tree that holds only CPU weights needs no group for each of the two. */
static bool divided(const struct cg_tree *t)
{
	return t->v2 || (t->what & (CG_MEMORY | CG_PIDS)) != 0;
}

static bool make_groups(const struct cg_tree *t, uint32_t slot)
{
	static const char *const groups[] = {"", "r", "a"};
	for (size_t i = 0; i < (divided(t) ? 3 : 1); i++) {
		char name[CG_NAME];
		name_of(name, slot, groups[i]);
		if (mkdirat(t->base, name, 0755) != 0)
			return false;
		if (i == 0 && t->v2)
			cg_pass_down(t->base, name, t->what);
	}
	return true;
}

int cg_make(const struct cg *c, uint32_t slot)
{
	char name[CG_NAME];
	name_of(name, slot, "r");
	if (!make_groups(&c->tree[0], slot))
		return -1;
	return openat(c->tree[0].base, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

bool cg_enter(const struct cg *c, uint32_t slot, const struct box_limits *l, int agent[CG_FDS], int *n)
{
	char name[CG_NAME];
	name_of(name, slot, "a");
	agent[0] = cg_open_file(c->tree[0].base, name, "cpu.stat", O_RDONLY);
	*n = 1;
	for (int i = 0; i < c->trees; i++) {
		const struct cg_tree *t = &c->tree[i];
		if ((!t->v2 && !make_groups(t, slot)) || !set_limits(t, slot, l))
			return false;
		name_of(name, slot, divided(t) ? "r" : "");
		/* In the v2 tree it was born there. Moving one's own single thread, unlike a process, needs no lock
		 * of the whole machine, which can cost 10 ms. */
		if (!t->v2 && !cg_put(t->base, name, "tasks", "0"))
			return false;
		if (!divided(t))
			continue;
		name_of(name, slot, "a");
		agent[*n] = cg_open_file(t->base, name, t->v2 ? "cgroup.procs" : "tasks", O_WRONLY);
		if (agent[(*n)++] < 0)
			return false;
	}
	return true;
}

bool cg_oom_group(const struct cg *c, uint32_t slot)
{
	char name[CG_NAME];
	name_of(name, slot, "a");
	return cg_number(c->tree[0].base, name, "memory.oom.group", "") == 1;
}

static bool order(const struct cg *c, uint32_t slot, const char *group, const char *file, bool on)
{
	char name[CG_NAME];
	name_of(name, slot, group);
	return cg_put(c->tree[0].base, name, file, on ? "1" : "0");
}

bool cg_kill(const struct cg *c, uint32_t slot, bool agent_only)
{
	return order(c, slot, agent_only ? "a" : "", "cgroup.kill", true);
}

bool cg_freeze(const struct cg *c, uint32_t slot, bool frozen)
{
	return order(c, slot, "a", "cgroup.freeze", frozen);
}

struct cg_use cg_used(const struct cg *c, uint32_t slot)
{
	struct cg_use u = {0};
	char box[CG_NAME], agent[CG_NAME], runner[CG_NAME];
	name_of(box, slot, "");
	name_of(agent, slot, "a");
	name_of(runner, slot, "r");
	u.cpu_us = cg_number(c->tree[0].base, box, "cpu.stat", "usage_usec");
	for (int i = 0; i < c->trees; i++) {
		const struct cg_tree *t = &c->tree[i];
		if ((t->what & CG_PIDS) != 0)
			u.forks_refused = cg_number(t->base, agent, "pids.events", "max");
		if ((t->what & CG_MEMORY) == 0)
			continue;
		const char *events = t->v2 ? "memory.events" : "memory.oom_control";
		const char *peak = t->v2 ? "memory.peak" : "memory.max_usage_in_bytes";
		u.oom =
		    cg_number(t->base, agent, events, "oom_kill") + cg_number(t->base, runner, events, "oom_kill") > 0;
		u.peak_bytes = cg_number(t->base, agent, peak, "") + cg_number(t->base, runner, peak, "");
	}
	return u;
}

int cg_watch_oom(const struct cg *c, uint32_t slot)
{
	for (int i = 1; i < c->trees; i++) {
		if ((c->tree[i].what & CG_MEMORY) == 0)
			continue;
		char name[CG_NAME], text[32];
		name_of(name, slot, "a");
		own_fd int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		own_fd int control = cg_open_file(c->tree[i].base, name, "memory.oom_control", O_RDONLY);
		snprintf(text, sizeof text, "%d %d", event, control);
		if (event >= 0 && control >= 0 && cg_put(c->tree[i].base, name, "cgroup.event_control", text))
			return steal_fd(&event);
	}
	return -1;
}

bool cg_found(const struct cg *c, uint32_t slot)
{
	char name[CG_NAME];
	bool found = false;
	name_of(name, slot, "");
	for (int i = 0; i < c->trees; i++)
		found = found || faccessat(c->tree[i].base, name, F_OK, 0) == 0;
	return found;
}

bool cg_remove(const struct cg *c, uint32_t slot)
{
	static const char *const groups[] = {"a", "r", ""};
	bool gone = true;
	for (int i = 0; i < c->trees; i++)
		for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++) {
			char name[CG_NAME];
			name_of(name, slot, groups[g]);
			if (unlinkat(c->tree[i].base, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
				gone = false;
		}
	return gone;
}

int cg_daemon(const struct cg *c, const char *name)
{
	/* A new group each time: some kernels kill what is born into a group that was killed once. */
	if ((unlinkat(c->tree[0].base, name, AT_REMOVEDIR) != 0 && errno != ENOENT) ||
	    mkdirat(c->tree[0].base, name, 0755) != 0)
		return -1;
	return openat(c->tree[0].base, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

bool cg_daemon_kill(const struct cg *c, const char *name)
{
	return cg_put(c->tree[0].base, name, "cgroup.kill", "1");
}
