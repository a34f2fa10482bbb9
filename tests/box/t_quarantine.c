/*
 * What does not go away: a process that cannot be killed and a group that cannot be removed. The slot is out of use,
 * and nothing else is. Run as root from the build folder; skipped otherwise.
 */
#include "lib/names.h"
#include "lib/own.h"
#include "tests/box/held.h"
#include "tests/box/rig.h"
#include "tests/patience.h"
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct rig rig;

static void runs_well(const char *run)
{
	free(rig_run(&rig, run, "true"));
	assert_true(rig_told(&rig, run)->clean);
}

static void unkillable_and_unremovable(void **state)
{
	(void)state;
	struct box_limits l = rig_limits();
	own_fd int one = rig_spawn(&rig, "process", BOX_WORK, &l, "bomb 1");
	own_fd int two = rig_spawn(&rig, "group", BOX_WORK, &l, "hold");
	struct rig_told *p = rig_told(&rig, "process"), *g = rig_told(&rig, "group");
	assert_true(rig_until_says(&rig, one, "ready", PATIENCE_MS) && rig_until_says(&rig, two, "ready", PATIENCE_MS));
	struct box *held = boxes_find(&rig.boxes, "process", BOX_WORK),
		   *kept = boxes_find(&rig.boxes, "group", BOX_WORK);
	uint32_t slots[] = {held->slot, kept->slot};
	char stuck[48], agent[64];
	snprintf(agent, sizeof agent, "/proc/self/fd/%d/s%u/a", rig.boxes.cg.tree[0].base, held->slot);
	pid_t tracer = held_first(agent);
	snprintf(stuck, sizeof stuck, "s%u/r/stuck", kept->slot);
	assert_int_equal(mkdirat(rig.boxes.cg.tree[0].base, stuck, 0755), 0);
	box_kill(&rig.boxes, 1, "process", BOX_WORK, 50);
	box_kill(&rig.boxes, 1, "group", BOX_WORK, 0);
	runs_well("meanwhile"); /* nobody waits for them */
	assert_false(p->gone);
	/* the group's processes are dead at once; that it is not gone is said when its time is up */
	assert_true(rig_until(&rig, &g->exited, PATIENCE_MS));
	assert_true(g->status == -SIGKILL || g->status == 0); /* its process 1 may see the others' end before its own */
	assert_true(rig_until(&rig, &g->gone, PATIENCE_MS) && rig_until(&rig, &p->gone, PATIENCE_MS));
	assert_true(p->exited && p->closed && !p->clean);
	assert_int_equal(p->status, -SIGKILL);
	assert_true(!g->clean);
	assert_int_equal(held->state, SANDBOX_QUARANTINED);
	assert_int_equal(kept->state, SANDBOX_QUARANTINED);
	assert_true(held->result >= 0); /* for LIST, and whoever reads what there is */
	/* their slots are not used again, the others are; even when the reason has gone */
	held_no_more(tracer);
	for (int i = 0; i < 2000 && held->pidfd >= 0; i++) {
		bool never = false;
		rig_until(&rig, &never, 10);
	}
	assert_int_equal(held->pidfd, -1);
	int results[8];
	unsigned n = 0;
	for (; n < rig.boxes.slots - 2; n++) {
		char run[32];
		snprintf(run, sizeof run, "other-%u", n);
		results[n] = rig_spawn(&rig, run, BOX_WORK, &l, "hold");
		assert_true(rig_until(&rig, &rig_told(&rig, run)->spawned, PATIENCE_MS));
	}
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(rig.boxes.v[slots[i]].state, SANDBOX_QUARANTINED);
	close(rig_spawn(&rig, "full", BOX_WORK, &l, "true"));
	assert_int_equal(rig_told(&rig, "full")->code, ERR_SANDBOX_CAPACITY);
	boxes_destroy_all(&rig.boxes);
	bool never = false;
	for (int i = 0; i < 2000 && boxes_busy(&rig.boxes) > 0; i++)
		rig_until(&rig, &never, 10);
	assert_int_equal(boxes_busy(&rig.boxes), 0);
	while (n-- > 0)
		close(results[n]);
	/* asked again, the answer is the same */
	g->gone = g->clean = false;
	box_kill(&rig.boxes, 2, "group", BOX_WORK, 0);
	assert_true(g->gone && !g->clean);
}

/* What an earlier life left is taken away, whatever is below it; what another instance has is not touched. */
static void swept_and_not_touched(void **state)
{
	(void)state;
	struct cg mine, other, again;
	const char *why = "";
	struct stat st;
	assert_true(cg_open(&mine, "/instance/one", &why) && cg_open(&other, "/instance/two", &why));
	const struct cg *both[] = {&mine, &other};
	pid_t pids[2];
	for (int i = 0; i < 2; i++) {
		close(cg_make(both[i], 3));
		assert_int_equal(mkdirat(both[i]->tree[0].base, "s3/a/deep", 0755), 0);
		assert_int_equal(mkdirat(both[i]->tree[0].base, "s3/a/deep/er", 0755), 0);
		pids[i] = fork();
		if (pids[i] == 0) {
			if (cg_put(both[i]->tree[0].base, "s3/a/deep/er", "cgroup.procs", "0"))
				for (;;)
					pause();
			_exit(1);
		}
		char text[64] = "";
		(void)WAIT_FOR((cg_get(both[i]->tree[0].base, "s3/a/deep/er", "cgroup.procs", text, sizeof text),
				atoi(text) != 0));
	}
	assert_true(cg_open(&again, "/instance/one", &why)); /* as the next life does */
	int status;
	assert_int_equal(waitpid(pids[0], &status, 0), pids[0]);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_true(cg_close(&again));
	assert_int_not_equal(fstatat(mine.tree[0].base, "s3", &st, 0), 0);
	assert_int_equal(waitpid(pids[1], &status, WNOHANG), 0);
	assert_int_equal(fstatat(other.tree[0].base, "s3/a/deep/er", &st, 0), 0);
	assert_true(cg_close(&other));
	waitpid(pids[1], &status, 0);
	for (int t = 0; t < mine.trees; t++)
		close(mine.tree[t].base);
}

/* Alone in a group, as a unit's main process is: 0 when it stepped into a leaf and its groups are beside that. */
static int alone_in(const char *unit)
{
	struct cg c;
	const char *why = "";
	char text[64] = "", pid[32];
	own_fd int dir = open(unit, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || !cg_put(dir, "", "cgroup.procs", "0"))
		return 1;
	if (!cg_open(&c, "/instance/unit", &why))
		return 2;
	bool beside = strcmp(c.parent[0], unit) == 0 && faccessat(dir, c.name, F_OK, 0) == 0;
	snprintf(pid, sizeof pid, "%d\n", (int)getpid());
	if (!beside || cg_get(dir, "daemon", "cgroup.procs", text, sizeof text) < 0 || strcmp(text, pid) != 0)
		return 3;
	if (cg_get(dir, "", "cgroup.procs", text, sizeof text) != 0)
		return 4;
	return cg_close(&c) && faccessat(dir, c.name, F_OK, 0) != 0 ? 0 : 5;
}

/* Delegation: a group with members cannot hand controllers down, so the daemon leaves it. Not so where others are in
 * it. */
static void in_a_group_of_its_own(void **state)
{
	(void)state;
	char unit[320], leaf[340];
	int status;
	snprintf(unit, sizeof unit, "%s/pinfold-test-unit-%d", rig.boxes.cg.parent[0], (int)getpid());
	snprintf(leaf, sizeof leaf, "%s/daemon", unit);
	assert_int_equal(mkdir(unit, 0755), 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(alone_in(unit));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(rmdir(leaf), 0);
	pid = fork();
	if (pid == 0) {
		/* two in it, and it is not ours alone */
		own_fd int dir = open(unit, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		struct cg c;
		const char *why = "";
		bool in = cg_put(dir, "", "cgroup.procs", "0");
		pid_t other = fork();
		if (other == 0)
			for (;;)
				pause();
		bool apart =
		    in && cg_open(&c, "/instance/unit", &why) && strcmp(c.parent[0], unit) != 0 && cg_close(&c);
		kill(other, SIGKILL);
		waitpid(other, NULL, 0);
		_exit(apart ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(rmdir(unit), 0);
}

int main(void)
{
	if (geteuid() != 0) {
		puts("skipped: needs root");
		return 77;
	}
	umask(077);
	rig_open(&rig, "tests/box/probe_runner", 4);
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(unkillable_and_unremovable),
	    cmocka_unit_test(swept_and_not_touched),
	    cmocka_unit_test(in_a_group_of_its_own),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	rig_close(&rig);
	return failed;
}
