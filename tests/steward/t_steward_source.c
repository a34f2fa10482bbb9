/*
 * The real steward against a real store, with sandboxd played by the test: a run whose upload is an archive, up to
 * where it is like any other; and each way in which it can end before that.
 */
#include "lib/chan.h"
#include "lib/own.h"
#include "lib/token.h"
#include "tests/steward/course.h"
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARCHIVE "these bytes are an archive to whoever unpacks them"

static const struct given tree[3] = {{"a.py", "one\ntwo\n"}, {"b.py", "bee\n", .exec = true}, {"sub/c.py", "sea\n"}};
static const struct given repaired[3] = {
    {"a.py", "one\nTWO\n"}, {"b.py", "bee\n", .exec = true}, {"sub/c.py", "sea\n"}};

static void ran(int fd, int status, const char *said)
{
	uint8_t frame[1000];
	struct bn_ran m = {
	    .started = true, .status = status, .output = {(const uint8_t *)said, (uint32_t)strlen(said)}};
	bundles_add(fd, frame, bn_put_ran(frame, sizeof frame, 0, &m));
}

static const char *begin(void)
{
	return stage_archive_run(&course_stage, "acme", ARCHIVE);
}

/* The frames of an upload, by number; of sources their paths. */
static void frames(int fd, const char *want)
{
	struct bundle b;
	const uint8_t *frame;
	size_t n;
	uint16_t number;
	uint64_t op;
	char seen[400] = "";
	struct bn_source s;
	struct bn_program p;
	assert_true(bundle_open(&b, fd, BN_MAXFRAME));
	while (bundle_next(&b, &frame, &n) > 0) {
		size_t at = strlen(seen);
		assert_true(wire_peek(frame, n, &number, &op));
		const char *path = bn_get_source(frame, n, &s) ? s.path : bn_get_program(frame, n, &p) ? p.path : "";
		snprintf(seen + at, sizeof seen - at, "%u%s%s ", number, *path != '\0' ? ":" : "", path);
	}
	bundle_close(&b);
	assert_string_equal(seen, want);
}

static struct order to_unpacking(const char *run)
{
	struct order o = stage_expect(&course_stage, SBX_SPAWN, run, BOX_CHECK);
	stage_spawned(&course_stage, run, BOX_CHECK);
	return o;
}

/* The box's end, up to its being gone; what it left is written. */
static void end_unpacking(const char *run, struct order *o, bool oom)
{
	order_end(o);
	stage_exited(&course_stage, run, BOX_CHECK, oom, false);
	struct order k = stage_expect(&course_stage, SBX_KILL, run, BOX_CHECK);
	assert_int_equal(k.grace_ms, 0);
	stage_gone(&course_stage, run, BOX_CHECK, true);
}

static void leave_tree(int fd, const struct given *v, size_t n)
{
	ran(fd, 0, "");
	bundles_entries(fd, v, n);
	bundles_collected(fd, (uint32_t)n, true);
}

/* Up to the work box, which is alive. */
static struct order to_work(const char *run)
{
	struct order o = to_unpacking(run);
	leave_tree(o.result, tree, 3);
	end_unpacking(run, &o, false);
	return course_to_work(run);
}

static void expect_nothing_done(const char *run)
{
	own_free char *events = stage_events(&course_stage, "acme", run);
	assert_null(strstr(events, "run.agent_exited\n"));
	assert_null(strstr(events, "run.changes_judged\n"));
	assert_null(strstr(events, "check.started\n"));
	assert_false(stage_capable(&course_stage, "acme", run));
	assert_true(stage_silent(&course_stage));
}

static void t_whole_course(void **state)
{
	(void)state;
	const char *run = begin();
	struct order o = stage_expect(&course_stage, SBX_SPAWN, run, BOX_CHECK);
	stage_phase(&course_stage, "acme", run, PHASE_STAGING);
	/* Nothing but the archive, in a box with room for what it may come to. */
	frames(o.upload, "12 13 9 ");
	struct bundle b;
	const uint8_t *frame;
	size_t n;
	struct bn_archive part;
	assert_true(bundle_open(&b, o.upload, BN_MAXFRAME) && bundle_next(&b, &frame, &n) > 0);
	assert_true(bn_get_archive(frame, n, &part) && part.part.n == strlen(ARCHIVE));
	assert_memory_equal(part.part.p, ARCHIVE, strlen(ARCHIVE));
	bundle_close(&b);
	assert_true(o.workspace_bytes > 128000000 && o.memory_bytes > o.workspace_bytes && o.workspace_inodes > 40000);
	stage_spawned(&course_stage, run, BOX_CHECK);
	leave_tree(o.result, tree, 3);
	uint64_t since = stage_capable_until(&course_stage, "acme", run);
	end_unpacking(run, &o, false);

	/* From here on as with files: the profile's limits, and the wall time of the run alone. */
	o = stage_expect(&course_stage, SBX_SPAWN, run, BOX_WORK);
	frames(o.upload, "1:a.py 14:b.py 1:sub/c.py 2 5 6 6 6 7 9 ");
	assert_int_equal(o.workspace_bytes, 1 << 26);
	assert_int_equal(o.wall_seconds, 90 + LIMIT_APPROVAL_WAITS * 600);
	/* Its capability has a whole life before it, from now on. */
	assert_true(stage_capable(&course_stage, "acme", run));
	assert_true(stage_capable_until(&course_stage, "acme", run) > since);
	stage_spawned(&course_stage, run, BOX_WORK);
	stage_phase(&course_stage, "acme", run, PHASE_EXECUTING);
	ran(o.result, 0, "");
	bundles_entries(o.result, repaired, 3);
	bundles_collected(o.result, 3, true);
	course_end_work(run, &o);
	o = stage_expect(&course_stage, SBX_SPAWN, run, BOX_CHECK);
	frames(o.upload, "1:a.py 14:b.py 1:sub/c.py 2 3 8 9 ");
	stage_spawned(&course_stage, run, BOX_CHECK);
	course_leave_checks(run, &o, 0, 0, GOOD_TESTS);
	const struct st_run_is *is = course_end_check(run, &o);
	course_expect_end(is, RUN_COMPLETED, "completed", "");
	assert_true(course_holds(is->changed_files, "[\"a.py\"]"));
	course_expect_artifact(run, ART_REQUEST, "repair it");
	course_expect_artifact(run, ART_PATCH, "-two\n+TWO\n");
	course_expect_artifact(run, ART_CHECKPOINT,
			       "\"source\":{\"files\":3,\"bytes\":16},\"base\":[{\"path\":\"a.py\",");
	course_expect_artifact(run, ART_RESULT, "\"source\":{\"files\":3,\"bytes\":16}");
	own_free char *events = stage_events(&course_stage, "acme", run);
	assert_non_null(strstr(events, "run.source_unpacked\n"));
	course_expect_one_end(run, "run.completed");
}

/* An executable that the agent left as it was is no change; one whose bit went is. */
static void t_executable(void **state)
{
	(void)state;
	const char *run = begin();
	struct order o = to_work(run);
	ran(o.result, 0, "");
	bundles_entries(o.result,
			(const struct given[]){{"a.py", "one\ntwo\n"}, {"b.py", "bee\n"}, {"sub/c.py", "sea\n"}}, 3);
	bundles_collected(o.result, 3, true);
	course_end_work(run, &o);
	const struct st_run_is *is = stage_final(&course_stage, "acme", run);
	course_expect_end(is, RUN_FAILED, "changed_files_outside_allowed_paths", "sandbox_changed_files_mismatch");
}

/* Whatever is wrong with it, it is the source's, and nothing was spent. */
static void t_refused(void **state)
{
	(void)state;
	static const struct {
		int status;
		const char *said;
		struct given left[3];
		const char *error, *reason;
	} v[] = {
	    {1, "invalid_archive\n", {{NULL}}, "invalid_archive", "source_refused"},
	    {1, "source_entry_refused l\n", {{NULL}}, "source_entry_refused", "source_refused"},
	    {1, "completed\n", {{NULL}}, "sandbox_setup_failed", "sandbox_setup_failed"},
	    {0, "", {{"a.py", "x"}, {"../b.py", "x"}}, "invalid_source_path", "source_refused"},
	    {0, "", {{"a.py", "x"}, {"b.so", "x"}}, "unsupported_source_type", "source_refused"},
	    {0, "", {{"a.py", "x"}, {"l.py", "", .type = 3}}, "source_entry_refused", "source_refused"},
	    {0, "", {{"b.py", "x"}}, "unbound_allowed_path", "source_refused"},
	};
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		const char *run = begin();
		struct order o = to_unpacking(run);
		size_t n = 0;
		while (v[i].left[n].path != NULL)
			n++;
		ran(o.result, v[i].status, v[i].said);
		bundles_entries(o.result, v[i].left, n);
		bundles_collected(o.result, (uint32_t)n, true);
		end_unpacking(run, &o, false);
		course_expect_end(stage_final(&course_stage, "acme", run), RUN_FAILED, v[i].reason, v[i].error);
		course_expect_one_end(run, "run.failed");
		course_expect_artifact(run, ART_REQUEST, "repair it");
		course_expect_artifact(run, ART_CHECKPOINT, "\"base\":[]");
		expect_nothing_done(run);
	}
}

/* The box's own faults are nobody's source. */
static void t_box_fails(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		const char *run = begin();
		struct order o = stage_expect(&course_stage, SBX_SPAWN, run, BOX_CHECK);
		const char *error = "sandbox_result_invalid", *reason = "sandbox_result_invalid";
		enum run_state end = RUN_FAILED;
		if (i == 0) {
			order_end(&o);
			stage_refused(&course_stage, run, BOX_CHECK, ERR_SANDBOX_UNAVAILABLE);
			error = "sandbox_unavailable";
			reason = "sandbox_refused";
		} else {
			stage_spawned(&course_stage, run, BOX_CHECK);
		}
		if (i == 1) /* it left nothing */
			end_unpacking(run, &o, false);
		if (i == 2) { /* too large for its memory, though it says that all is well */
			leave_tree(o.result, tree, 3);
			end_unpacking(run, &o, true);
			error = "memory_exceeded";
			reason = "sandbox_setup_failed";
		}
		if (i == 3) { /* somebody could still write there */
			leave_tree(o.result, tree, 3);
			int kept = dup(o.result);
			end_unpacking(run, &o, false);
			close(kept);
			error = NULL; /* a descriptor alone does not hinder: no mapping is there */
			o = course_to_work(run);
			ran(o.result, 1, "");
			bundles_collected(o.result, 0, true);
			course_end_work(run, &o);
		}
		if (i == 4) { /* not gone: its slot is lost, and no other box is made */
			leave_tree(o.result, tree, 3);
			order_end(&o);
			stage_exited(&course_stage, run, BOX_CHECK, false, false);
			(void)stage_expect(&course_stage, SBX_KILL, run, BOX_CHECK);
			stage_gone(&course_stage, run, BOX_CHECK, false);
			error = reason = "sandbox_cleanup_failed";
		}
		const struct st_run_is *is = stage_final(&course_stage, "acme", run);
		if (error != NULL)
			course_expect_end(is, end, reason, error);
		assert_true(stage_silent(&course_stage));
	}
}

/* A steward that dies while it is unpacked: the run has failed, and its box goes. */
static void t_dies(void **state)
{
	(void)state;
	const char *run = begin();
	struct order o = to_unpacking(run);
	order_end(&o);
	(void)stage_stop(&course_stage, SIGKILL);
	const struct stage_box box = {run, BOX_CHECK};
	stage_fork(&course_stage, stage_secret);
	stage_greet_with(&course_stage, 8, &box, 1);
	(void)stage_expect(&course_stage, SBX_KILL, run, BOX_CHECK);
	stage_gone(&course_stage, run, BOX_CHECK, true);
	course_expect_end(stage_final(&course_stage, "acme", run), RUN_FAILED, "controller_restarted",
			  "controller_restarted");
	assert_false(stage_capable(&course_stage, "acme", run));
}

/* A full machine is asked again, as for any box. */
static void t_capacity(void **state)
{
	(void)state;
	const char *run = begin();
	struct order o = stage_expect(&course_stage, SBX_SPAWN, run, BOX_CHECK);
	order_end(&o);
	stage_refused(&course_stage, run, BOX_CHECK, ERR_SANDBOX_CAPACITY);
	o = to_work(run);
	ran(o.result, 1, "");
	bundles_collected(o.result, 0, true);
	course_end_work(run, &o);
	course_expect_end(stage_final(&course_stage, "acme", run), RUN_FAILED, "agent_failed", "sandbox_agent_failed");
}

/* A cancel while its box is asked for, is alive, has ended, and while the child looks. */
static void t_cancels(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		const char *run = begin();
		struct order o = stage_expect(&course_stage, SBX_SPAWN, run, BOX_CHECK);
		if (i > 0)
			stage_spawned(&course_stage, run, BOX_CHECK);
		if (i > 1) {
			leave_tree(o.result, tree, 3);
			order_end(&o);
			stage_exited(&course_stage, run, BOX_CHECK, false, false);
			(void)stage_expect(&course_stage, SBX_KILL, run, BOX_CHECK);
		}
		pid_t held = 0;
		if (i == 3) {
			stage_gone(&course_stage, run, BOX_CHECK, true);
			held = stage_hold_judge(&course_stage);
		}
		stage_cancel(&course_stage, "acme", run);
		if (i < 2) {
			struct order k = stage_expect(&course_stage, SBX_KILL, run, BOX_CHECK);
			assert_int_equal(k.grace_ms, 0);
			order_end(&o);
		}
		if (i < 3)
			stage_gone(&course_stage, run, BOX_CHECK, true);
		/* The child may have been too quick, and the store's word may come behind sandboxd's: then a work box
		 * was asked for, which goes as well. */
		while (stage_get(&course_stage, "acme", run)->state != RUN_CANCELLED)
			if (!stage_silent(&course_stage)) {
				o = stage_order(&course_stage);
				if (o.number == SBX_KILL)
					stage_gone(&course_stage, run, (enum box_kind)o.kind, true);
				order_end(&o);
			}
		if (held != 0)
			kill(held, SIGCONT);
		course_expect_end(stage_get(&course_stage, "acme", run), RUN_CANCELLED, "cancelled_by_request",
				  "cancelled_by_request");
		course_expect_one_end(run, "run.cancelled");
		expect_nothing_done(run);
	}
}

int main(void)
{
	if (geteuid() != 0) {
		puts("needs root");
		return 77;
	}
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_whole_course), cmocka_unit_test(t_executable), cmocka_unit_test(t_refused),
	    cmocka_unit_test(t_box_fails),    cmocka_unit_test(t_capacity),   cmocka_unit_test(t_dies),
	    cmocka_unit_test(t_cancels),
	};
	return cmocka_run_group_tests(tests, course_setup, course_teardown);
}
