/* See course.h. */
#include "tests/steward/course.h"
#include "lib/own.h"
#include <stdio.h>
#include <unistd.h>

struct stage course_stage;

/* --- what boxes leave ---------------------------------------------------------------------------- */

const struct given course_repaired[3] = {{"a.py", "one\nTWO\n"}, {"b.py", "bee\n"}, {"__pycache__/a.pyc", "x"}};

void course_leave_work(int fd, int status)
{
	bundles_ran(fd, true, status, false, false);
	bundles_entries(fd, course_repaired, 3);
	bundles_claim(fd, "{\"status\":\"completed\",\"summary\":\"I repaired it.\"}");
	bundles_collected(fd, 3, true);
}

void course_leave_checks(const char *run, struct order *o, int first, int second, const char *output)
{
	bundles_checked(o->result, "check-1", true, first, false, "");
	course_next_check(run, o);
	bundles_checked(o->result, "check-2", true, second, false, output);
}

/* --- parts of a course ----------------------------------------------------------------------------- */

const char *course_begin(void)
{
	return stage_run(&course_stage, "acme");
}

struct order course_to_work(const char *run)
{
	struct order o = stage_expect(&course_stage, SBX_SPAWN, run, BOX_WORK);
	stage_spawned(&course_stage, run, BOX_WORK);
	stage_phase(&course_stage, "acme", run, PHASE_EXECUTING);
	return o;
}

void course_end_work(const char *run, struct order *o)
{
	order_end(o);
	stage_exited(&course_stage, run, BOX_WORK, false, false);
	struct order k = stage_expect(&course_stage, SBX_KILL, run, BOX_WORK);
	assert_int_equal(k.grace_ms, 0);
	/* Dead, then revoked, then destroyed. */
	assert_false(stage_capable(&course_stage, "acme", run));
	stage_gone(&course_stage, run, BOX_WORK, true);
}

struct order course_to_check(const char *run)
{
	struct order o = course_to_work(run);
	course_leave_work(o.result, 0);
	course_end_work(run, &o);
	o = stage_expect(&course_stage, SBX_SPAWN, run, BOX_CHECK);
	stage_spawned(&course_stage, run, BOX_CHECK);
	return o;
}

void course_next_check(const char *run, struct order *o)
{
	order_end(o);
	stage_exited(&course_stage, run, BOX_CHECK, false, false);
	(void)stage_expect(&course_stage, SBX_KILL, run, BOX_CHECK);
	stage_gone(&course_stage, run, BOX_CHECK, true);
	*o = stage_expect(&course_stage, SBX_SPAWN, run, BOX_CHECK);
	stage_spawned(&course_stage, run, BOX_CHECK);
}

const struct st_run_is *course_end_check(const char *run, struct order *o)
{
	order_end(o);
	stage_exited(&course_stage, run, BOX_CHECK, false, false);
	(void)stage_expect(&course_stage, SBX_KILL, run, BOX_CHECK);
	/* Nothing is final before the box is gone. */
	assert_int_equal(stage_get(&course_stage, "acme", run)->state, RUN_RUNNING);
	stage_gone(&course_stage, run, BOX_CHECK, true);
	return stage_final(&course_stage, "acme", run);
}

void course_expect_end(const struct st_run_is *is, enum run_state state, const char *reason, const char *error)
{
	assert_string_equal(is->terminal_reason, reason);
	assert_string_equal(is->error, error);
	assert_int_equal(is->state, state);
}

bool course_holds(struct wire_bytes b, const char *text)
{
	return b.n > 0 && memmem(b.p, b.n, text, strlen(text)) != NULL;
}

void course_expect_one_end(const char *run, const char *type)
{
	own_free char *events = stage_events(&course_stage, "acme", run);
	char last[64];
	unsigned ends = 0;
	for (char *p = events; *p != '\0'; p = strchr(p, '\n') + 1)
		ends += strncmp(p, "run.completed\n", 14) == 0 || strncmp(p, "run.failed\n", 11) == 0 ||
			strncmp(p, "run.cancelled\n", 14) == 0;
	assert_int_equal(ends, 1);
	snprintf(last, sizeof last, "\n%s\n", type);
	size_t n = strlen(events), k = strlen(last);
	assert_true(n >= k && strcmp(events + n - k, last) == 0);
}

void course_expect_artifact(const char *run, enum artifact name, const char *text)
{
	own_free char *got = stage_artifact(&course_stage, "acme", run, name);
	if (got == NULL)
		fail_msg("artifact %s is missing", artifact_names[name]);
	if (strstr(got, text) == NULL)
		fail_msg("artifact %s is: %s", artifact_names[name], got);
}

int course_setup(void **state)
{
	(void)state;
	stage_open(&course_stage);
	stage_fork(&course_stage, stage_secret);
	stage_greet(&course_stage, 10);
	return 0;
}

int course_teardown(void **state)
{
	(void)state;
	stage_close(&course_stage);
	return 0;
}
