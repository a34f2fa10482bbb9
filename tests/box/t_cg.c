/*
 * Which files of a cgroup tree get which values: a folder plays the tree, so that controllers can be tried that this
 * kernel does not have where they are wanted (cgroups v2 with all of them, v2 with none, v1 beside v2). What the
 * kernel does with the values is tested with real boxes (t_box).
 */
#include "lib/own.h"
#include "sandboxd/box_cg.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char top[] = "/tmp/pinfold-cg-XXXXXX";
static const struct box_limits limits = {
    .wall_seconds = 9, .memory_bytes = 123000000, .pids = 77, .workspace_bytes = 5000000, .workspace_inodes = 100};

static void put(const char *tree, const char *name, const char *text)
{
	char path[300];
	snprintf(path, sizeof path, "%s/%s/%s", top, tree, name);
	own_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* What the file holds; "-" where there is none. */
static const char *got(const char *tree, const char *name)
{
	static char text[8][200];
	static int next;
	char path[300], *out = text[next++ % 8];
	snprintf(path, sizeof path, "%s/%s/%s", top, tree, name);
	own_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, 199);
	out[n < 0 ? 0 : n] = '\0';
	return fd < 0 ? "-" : out;
}

static void folder(const char *tree, const char *name)
{
	char path[300];
	snprintf(path, sizeof path, "%s/%s/%s", top, tree, name);
	assert_int_equal(mkdir(path, 0755), 0);
}

static int tree_of(const char *tree)
{
	char path[300];
	snprintf(path, sizeof path, "%s/%s", top, tree);
	assert_int_equal(mkdir(path, 0755), 0);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* The kernel makes these with the group; here they are there before. */
static void files(const char *tree, const char *const *names)
{
	for (; *names != NULL; names++)
		put(tree, *names, "");
}

static void close_all(struct cg *c, const int *fds, int n)
{
	for (int i = 0; i < c->trees; i++)
		close(c->tree[i].base);
	for (int i = 0; i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static void v2_with_all(void **state)
{
	(void)state;
	static const char *const names[] = {"s3/a/memory.max", "s3/a/memory.swap.max", "s3/a/memory.oom.group",
					    "s3/a/pids.max",   "s3/a/cpu.stat",        "s3/a/cgroup.procs",
					    "s3/r/memory.max", "s3/r/pids.max",        "s3/cpu.weight",
					    "s3/io.weight",    "s3/cgroup.kill",       NULL};
	struct cg c = {.trees = 1};
	int fds[CG_FDS], n = 0;
	c.tree[0] = (struct cg_tree){.base = tree_of("all"), .what = CG_MEMORY | CG_PIDS | CG_CPU | CG_IO, .v2 = true};
	folder("all", "s3");
	folder("all", "s3/a");
	folder("all", "s3/r");
	files("all", names);
	assert_true(cg_enter(&c, 3, &limits, fds, &n));
	assert_string_equal(got("all", "s3/a/memory.max"), "123000000");
	assert_string_equal(got("all", "s3/a/memory.swap.max"), "0");
	assert_string_equal(got("all", "s3/a/memory.oom.group"), "1");
	assert_string_equal(got("all", "s3/a/pids.max"), "77");
	assert_string_equal(got("all", "s3/r/memory.max"), "72108864"); /* workspace + 64 MiB */
	assert_string_equal(got("all", "s3/r/pids.max"), "32");
	assert_string_equal(got("all", "s3/cpu.weight"), "10");
	assert_string_equal(got("all", "s3/io.weight"), "10");
	assert_int_equal(n, 2); /* cpu.stat, cgroup.procs */
	assert_int_equal(write(fds[1], "0", 1), 1);
	assert_string_equal(got("all", "s3/a/cgroup.procs"), "0");
	/* Afterwards: what it used, and what it was refused. */
	put("all", "s3/cpu.stat", "usage_usec 4321\nuser_usec 1\n");
	put("all", "s3/a/pids.events", "max 6\n");
	put("all", "s3/a/memory.events", "low 0\nhigh 0\nmax 9\noom 2\noom_kill 1\n");
	put("all", "s3/a/memory.peak", "1000\n");
	put("all", "s3/r/memory.peak", "10\n");
	struct cg_use u = cg_used(&c, 3);
	assert_true(u.cpu_us == 4321 && u.forks_refused == 6 && u.oom && u.peak_bytes == 1010);
	assert_int_equal(cg_watch_oom(&c, 3), -1);
	assert_true(cg_kill(&c, 3, false));
	assert_string_equal(got("all", "s3/cgroup.kill"), "1");
	close_all(&c, fds, n);
}

/* A limit that must hold and cannot be set: there is no box. One that may be missing is left out. */
static void v2_that_lacks(void **state)
{
	(void)state;
	static const char *const names[] = {"s0/a/memory.max", "s0/a/pids.max", "s0/a/cgroup.procs",
					    "s0/r/memory.max", "s0/r/pids.max", NULL};
	struct cg c = {.trees = 1};
	int fds[CG_FDS], n = 0;
	c.tree[0] =
	    (struct cg_tree){.base = tree_of("lacks"), .what = CG_MEMORY | CG_PIDS | CG_CPU | CG_IO, .v2 = true};
	folder("lacks", "s0");
	folder("lacks", "s0/a");
	folder("lacks", "s0/r");
	files("lacks", names);
	assert_true(cg_enter(&c, 0, &limits, fds, &n));
	assert_int_equal(fds[0], -1); /* no cpu.stat */
	close_all(&(struct cg){0}, fds, n);
	char path[300];
	snprintf(path, sizeof path, "%s/lacks/s0/a/pids.max", top);
	assert_int_equal(unlink(path), 0);
	assert_false(cg_enter(&c, 0, &limits, fds, &n));
	close_all(&c, NULL, 0);
}

/* v1 beside v2: limits where the controllers are, the agent's groups in each, processor time alone undivided. */
static void v1_beside_v2(void **state)
{
	(void)state;
	struct cg c = {.trees = 4};
	int fds[CG_FDS], n = 0;
	c.tree[0] = (struct cg_tree){.base = tree_of("unified"), .v2 = true};
	c.tree[1] = (struct cg_tree){.base = tree_of("memory"), .what = CG_MEMORY};
	c.tree[2] = (struct cg_tree){.base = tree_of("pids"), .what = CG_PIDS};
	c.tree[3] = (struct cg_tree){.base = tree_of("cpu"), .what = CG_CPU};
	folder("unified", "s1");
	folder("unified", "s1/a");
	folder("unified", "s1/r");
	put("unified", "s1/a/cgroup.procs", "");
	put("unified", "s1/a/cpu.stat", "");
	/* Its groups are made here, so their files cannot be there before: the first limit says no, and nothing starts.
	 */
	assert_false(cg_enter(&c, 1, &limits, fds, &n));
	assert_string_equal(got("memory", "s1/a/memory.limit_in_bytes"), "-");
	struct stat st;
	char path[300];
	snprintf(path, sizeof path, "%s/memory/s1/a", top);
	assert_int_equal(stat(path, &st), 0);
	put("memory", "s1/a/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
	put("memory", "s1/a/memory.max_usage_in_bytes", "55\n");
	folder("pids", "s1");
	folder("pids", "s1/a");
	put("pids", "s1/a/pids.events", "max 2\n");
	struct cg_use u = cg_used(&c, 1);
	assert_true(u.oom && u.peak_bytes == 55 && u.forks_refused == 2);
	close_all(&c, NULL, 0);
}

/* Handing down: only what is offered is switched on, and only what is on is used. */
static void handing_down(void **state)
{
	(void)state;
	int base = tree_of("down");
	/* The kernel would add to the list; a file keeps what is asked for at its beginning, and what is on behind it.
	 */
	put("down", "cgroup.subtree_control", "........ cpuset io memory");
	assert_int_equal(cg_pass_down(base, "", CG_IO | CG_PIDS | CG_CPU), CG_IO);
	assert_memory_equal(got("down", "cgroup.subtree_control"), "+io", 3);
	put("down", "cgroup.subtree_control", "........ cpu pids");
	assert_int_equal(cg_pass_down(base, "", CG_MEMORY | CG_PIDS), CG_PIDS);
	put("down", "cgroup.subtree_control", "........ memory");
	assert_int_equal(cg_pass_down(base, "", 0), 0);
	assert_memory_equal(got("down", "cgroup.subtree_control"), "........", 8);
	close(base);
}

int main(void)
{
	if (mkdtemp(top) == NULL)
		return 1;
	const struct CMUnitTest tests[] = {cmocka_unit_test(v2_with_all), cmocka_unit_test(v2_that_lacks),
					   cmocka_unit_test(v1_beside_v2), cmocka_unit_test(handing_down)};
	int failed = cmocka_run_group_tests_name("cg", tests, NULL, NULL);
	char command[200];
	snprintf(command, sizeof command, "rm -rf --one-file-system %s", top);
	return system(command) != 0 || failed;
}
