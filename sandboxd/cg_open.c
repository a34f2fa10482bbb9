/*
 * Finding the cgroup trees and making, sweeping and removing this instance's group in each. Trusts
 * /proc/self/mounts and /proc/self/cgroup. Never writes outside the instance's group, with two exceptions:
 * controllers are switched on in its parent, and a process in a group of its own that was delegated to it
 * (a systemd unit) first moves to a leaf below that.
 */
#include "lib/clock.h"
#include "lib/own_fd.h"
#include "sandboxd/box_cg.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SWEEP_MS = 5000, CLOSE_MS = 500, DEPTH = 8 };

static const struct {
	const char *name;
	int bit;
} controllers[] = {{"memory", CG_MEMORY}, {"pids", CG_PIDS}, {"cpu", CG_CPU}, {"io", CG_IO}}; /* v1 calls io blkio */
enum { CONTROLLERS = sizeof controllers / sizeof controllers[0] };

int cg_open_file(int base, const char *group, const char *file, int flags)
{
	char path[160];
	snprintf(path, sizeof path, "%s%s%s", group, *group != '\0' ? "/" : "", file);
	return openat(base, path, flags | O_CLOEXEC | O_NOFOLLOW);
}

bool cg_put(int base, const char *group, const char *file, const char *text)
{
	own_fd int fd = cg_open_file(base, group, file, O_WRONLY);
	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

int cg_get(int base, const char *group, const char *file, char *out, int size)
{
	own_fd int fd = cg_open_file(base, group, file, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, out, (size_t)size - 1);
	out[n < 0 ? 0 : n] = '\0';
	return (int)n;
}

uint64_t cg_number(int base, const char *group, const char *file, const char *key)
{
	char text[1024], *save = NULL;
	if (cg_get(base, group, file, text, sizeof text) < 0)
		return 0;
	size_t k = strlen(key);
	for (char *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save))
		if (k == 0 || (strncmp(line, key, k) == 0 && line[k] == ' '))
			return strtoull(line + k, NULL, 10);
	return 0;
}

static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);
	for (const char *p = list; (p = strstr(p, word)) != NULL; p += n)
		if ((p == list || strchr(" ,\n", p[-1]) != NULL) && strchr(" ,\n", p[n]) != NULL)
			return true; /* strchr finds the end of the text too */
	return false;
}

int cg_pass_down(int base, const char *group, int what)
{
	char text[512];
	for (size_t i = 0; i < CONTROLLERS; i++) {
		snprintf(text, sizeof text, "+%s", controllers[i].name);
		if ((what & controllers[i].bit) != 0)
			cg_put(base, group, "cgroup.subtree_control", text);
	}
	int on = 0;
	cg_get(base, group, "cgroup.subtree_control", text, sizeof text);
	for (size_t i = 0; i < CONTROLLERS; i++)
		on |= has_word(text, controllers[i].name) ? controllers[i].bit & what : 0;
	return on;
}

/* Our own group in the v2 tree, below its mount; "" for the root or when it is not ours alone. */
static void delegated_to(char *out, size_t size, const char *mount_point)
{
	char text[4096] = "", path[1024], pid[16], members[32];
	*out = '\0';
	own_fd int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	text[n < 0 ? 0 : n] = '\0';
	char *own = strncmp(text, "0::/", 4) == 0 ? text + 3 : strstr(text, "\n0::/");
	if (own == NULL)
		return;
	own += own[0] == '\n' ? 4 : 0;
	own[strcspn(own, "\n")] = '\0';
	if (strcmp(own, "/") == 0 || snprintf(path, sizeof path, "%s%s", mount_point, own) >= (int)sizeof path)
		return;
	own_fd int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(pid, sizeof pid, "%d\n", (int)getpid());
	if (dir < 0 || cg_get(dir, "", "cgroup.procs", members, sizeof members) < 0 || strcmp(members, pid) != 0)
		return;
	/* A group with members cannot hand controllers down: step aside. */
	if ((mkdirat(dir, "daemon", 0755) == 0 || errno == EEXIST) && cg_put(dir, "daemon", "cgroup.procs", "0"))
		snprintf(out, size, "%s", own);
}

/* A slot's group, as box_cg.c names it. */
static bool is_slot(const char *name)
{
	return name[0] == 's' && name[1] >= '0' && name[1] <= '9';
}

/* Removes every group below this one in which nobody is; false: one is left (slots: also one of a box). */
static bool remove_below(int group, bool slots, int depth)
{
	bool gone = true;
	DIR *d = depth > 0 ? fdopendir(openat(group, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) : NULL;
	if (d == NULL)
		return false;
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		own_fd int inner = openat(group, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		remove_below(inner, slots, depth - 1);
		if (unlinkat(group, e->d_name, AT_REMOVEDIR) != 0 && (slots || !is_slot(e->d_name)))
			gone = false;
	}
	closedir(d);
	return gone;
}

/* Kills everything of the instance and removes its groups; false: one is left after the time (slots: also of a box). */
static bool sweep(const struct cg *c, bool slots, uint32_t ms)
{
	for (uint64_t until = timer_ms() + ms;; usleep(2000)) {
		bool gone = true;
		cg_put(c->tree[0].base, "", "cgroup.kill", "1");
		for (int i = 0; i < c->trees; i++)
			gone = remove_below(c->tree[i].base, slots, DEPTH) && gone;
		if (gone || timer_ms() > until)
			return gone;
	}
}

static bool open_tree_at(struct cg *c, const char *dir, const char *below, bool v2, int what)
{
	struct cg_tree *t = &c->tree[c->trees];
	char *parent = c->parent[c->trees];
	if (snprintf(parent, sizeof c->parent[0], "%s%s", dir, below) >= (int)sizeof c->parent[0])
		return false;
	own_fd int up = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (up < 0 || (mkdirat(up, c->name, 0755) != 0 && errno != EEXIST))
		return false;
	if (v2)
		cg_pass_down(up, "", what);
	*t = (struct cg_tree){.base = openat(up, c->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC), .v2 = v2, .what = what};
	if (t->base < 0)
		return false;
	if (v2)
		t->what = cg_pass_down(t->base, "", what);
	c->trees++;
	return true;
}

bool cg_open(struct cg *c, const char *instance, const char **why)
{
	memset(c, 0, sizeof *c);
	uint64_t hash = 14695981039346656037u; /* FNV-1a: a name, not a secret */
	for (const char *p = instance; *p != '\0'; p++)
		hash = (hash ^ (unsigned char)*p) * 1099511628211u;
	snprintf(c->name, sizeof c->name, "pinfold-%016llx", (unsigned long long)hash);
	FILE *f = setmntent("/proc/self/mounts", "re");
	char v2[256] = "", v1[CONTROLLERS][256] = {0};
	for (struct mntent *m; f != NULL && (m = getmntent(f)) != NULL;) {
		if (strcmp(m->mnt_type, "cgroup2") == 0)
			snprintf(v2, sizeof v2, "%s", m->mnt_dir);
		for (size_t i = 0; i < CONTROLLERS; i++)
			if (strcmp(m->mnt_type, "cgroup") == 0 && has_word(m->mnt_opts, controllers[i].name))
				snprintf(v1[i], sizeof v1[i], "%s", m->mnt_dir);
	}
	if (f != NULL)
		endmntent(f);
	*why = "no cgroup2 tree is mounted; mount one (mount -t cgroup2 none /sys/fs/cgroup)";
	char below[256] = "";
	if (*v2 == '\0')
		return false;
	delegated_to(below, sizeof below, v2);
	*why = "cannot make a group in the cgroup2 tree; is it read-only?";
	if (!open_tree_at(c, v2, below, true, CG_MEMORY | CG_PIDS | CG_CPU | CG_IO))
		return false;
	*why = "cannot make a group in a cgroup v1 tree";
	int held = c->tree[0].what;
	for (size_t i = 0; i < CONTROLLERS; i++) {
		if ((held & controllers[i].bit) != 0 || v1[i][0] == '\0')
			continue;
		/* Controllers that are mounted together share one tree. */
		int what = 0;
		for (size_t j = 0; j < CONTROLLERS; j++)
			what |= strcmp(v1[i], v1[j]) == 0 ? controllers[j].bit : 0;
		if (!open_tree_at(c, v1[i], "", false, what))
			return false;
		held |= what;
	}
	*why =
	    "the memory and pids controllers of cgroups are needed; enable them (kernel option cgroup_enable=memory)";
	errno = ENODEV;
	if ((held & (CG_MEMORY | CG_PIDS)) != (CG_MEMORY | CG_PIDS))
		return false;
	*why = "processes of an earlier life of this instance cannot be killed; see its group in the cgroup tree";
	if (faccessat(c->tree[0].base, "cgroup.kill", W_OK, 0) != 0)
		*why = "the kernel has no cgroup.kill; Linux 5.14 or later is needed";
	else if (sweep(c, false, SWEEP_MS))
		return true;
	else
		errno = EBUSY;
	return false;
}

bool cg_close(struct cg *c)
{
	bool gone = sweep(c, true, CLOSE_MS);
	for (int i = 0; i < c->trees; i++) {
		own_fd int up = open(c->parent[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(c->tree[i].base);
		gone = up >= 0 && unlinkat(up, c->name, AT_REMOVEDIR) == 0 && gone;
	}
	c->trees = 0;
	return gone;
}
