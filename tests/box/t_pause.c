/*
 * Boxes that are paused: the agent's group is frozen, the runner's is not, and whatever ends a box ends a frozen one.
 * Run as root from the build folder; skipped otherwise.
 */
#include "lib/own.h"
#include "lib/place.h"
#include "tests/box/rig.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct rig rig;
static const char ticks[] = "shell echo ready; while :; do echo tick; sleep 0.02; done";

static bool frozen(const char *run, const char *group)
{
	char name[CG_NAME];
	const struct box *b = boxes_find(&rig.boxes, run, BOX_WORK);
	assert_non_null(b);
	snprintf(name, sizeof name, "s%u/%s", b->slot, group);
	return cg_number(rig.boxes.cg.tree[0].base, name, "cgroup.events", "frozen") == 1;
}

static bool turned(const char *run, bool want)
{
	bool never = false;
	rig_until(&rig, &never, 2);
	return frozen(run, "a") == want;
}

static size_t said(int result)
{
	own_free char *text = rig_text(result);
	return strlen(text);
}

static void is_frozen_and_goes_on(void **state)
{
	(void)state;
	struct box_limits l = rig_limits();
	own_fd int result = rig_spawn(&rig, "pause", BOX_WORK, &l, ticks);
	struct rig_told *t = rig_told(&rig, "pause");
	assert_true(rig_until(&rig, &t->spawned, PATIENCE_MS));
	assert_true(rig_until_says(&rig, result, "tick", PATIENCE_MS));
	box_pause(&rig.boxes, "nobody", true, true);
	box_pause(&rig.boxes, "pause", true, false);
	assert_true(turned("pause", false));
	box_pause(&rig.boxes, "pause", true, true);
	assert_true(WAIT_FOR(turned("pause", true)));
	assert_false(frozen("pause", "r"));
	size_t before = said(result);
	/* Another box lives and dies meanwhile. */
	own_free char *other =
	    rig_run(&rig, "other", "shell for i in 1 2 3 4 5 6 7 8 9; do sleep 0.05; done; echo done");
	assert_non_null(strstr(other, "done"));
	assert_int_equal(said(result), before);
	box_pause(&rig.boxes, "pause", false, false);
	assert_true(WAIT_FOR(turned("pause", false) && said(result) > before));
	box_kill(&rig.boxes, 1, "pause", BOX_WORK, 0);
	assert_true(rig_until(&rig, &t->gone, PATIENCE_MS) && t->clean);
}

/* Killed at once; asked first, for which it must not be frozen; out of its time. */
static void ends_all_the_same(void **state)
{
	(void)state;
	static const char *const runs[] = {"at-once", "asked", "late"};
	for (int how = 0; how < 3; how++) {
		struct box_limits l = rig_limits();
		l.wall_seconds = how == 2 ? 3 : l.wall_seconds;
		own_fd int result = rig_spawn(&rig, runs[how], BOX_WORK, &l, ticks);
		struct rig_told *t = rig_told(&rig, runs[how]);
		assert_true(rig_until(&rig, &t->spawned, PATIENCE_MS));
		assert_true(rig_until_says(&rig, result, "tick", PATIENCE_MS));
		box_pause(&rig.boxes, runs[how], true, true);
		assert_true(how == 2 || WAIT_FOR(turned(runs[how], true)));
		if (how == 2)
			assert_true(rig_until(&rig, &t->exited, PATIENCE_MS) && t->timed_out);
		box_kill(&rig.boxes, 1, runs[how], BOX_WORK, how == 1 ? 500 : 0);
		if (how == 1) {
			assert_true(WAIT_FOR(t->gone || turned(runs[how], false)));
			box_pause(&rig.boxes, runs[how], true, true); /* too late: it is ending */
			assert_true(t->gone || !frozen(runs[how], "a"));
		}
		assert_true(rig_until(&rig, &t->gone, PATIENCE_MS) && t->clean);
	}
}

int main(void)
{
	if (geteuid() != 0) {
		printf("skipped: needs root\n");
		return 77;
	}
	umask(077);
	rig_open(&rig, "tests/box/probe_runner", 4);
	const struct CMUnitTest tests[] = {cmocka_unit_test(is_frozen_and_goes_on),
					   cmocka_unit_test(ends_all_the_same)};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	rig_close(&rig);
	return failed;
}
