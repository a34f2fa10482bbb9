/*
 * See verdict.h: the checks. Each ran in a box of its own that neither the agent nor another check was ever
 * in, so its exit code is ours; what it ran is read out of what it printed (checks.h).
 */
#include "gen/bundle_msg.h"
#include "lib/chan.h"
#include "lib/die.h"
#include "lib/lack.h"
#include "lib/path.h"
#include "steward/flags.h"
#include "steward/limits.h"
#include "steward/report.h"
#include "steward/run.h"
#include "steward/tell.h"
#include "steward/tree.h"
#include "steward/verdict.h"
#include <stdio.h>
#include <string.h>

static bool python(const char *path)
{
	char ext[8];
	path_extension(path, ext, sizeof ext);
	return strcmp(ext, ".py") == 0;
}

/* How many Python files the checks find: the upload with the allowed changes. */
static uint32_t sources(const struct run *r)
{
	struct bundle b;
	const uint8_t *frame;
	size_t n;
	struct bn_source s;
	bool executable;
	uint32_t count = 0;
	if (!bundle_open(&b, r->upload_fd, BN_MAXFRAME))
		return 0;
	while (bundle_next(&b, &frame, &n) > 0)
		count += tree_source(frame, n, &s, &executable) && python(s.path);
	bundle_close(&b);
	for (uint32_t i = 0; i < r->nchanges; i++)
		if (python(r->changes[i].path) && r->changes[i].how != CHANGE_MODIFIED)
			count = r->changes[i].how == CHANGE_ADDED ? count + 1 : count - 1;
	return count;
}

void verdict_check_started(struct app *app, const struct run *r)
{
	const struct request_check *c = &r->rq.checks[r->check_at];
	own_buf struct buf b;
	struct jw w;
	buf_init(&b, 10000);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "name", c->name);
	jw_kstrs(&w, "argv", c->argv, c->argc);
	jw_close(&w, '}');
	tell_event(app, r, "check.started", &b);
}

static void finished(struct app *app, const struct run *r, size_t i)
{
	const struct check_result *c = &r->checks[i];
	own_buf struct buf b;
	struct jw w;
	char seconds[32];
	buf_init(&b, 20000);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "name", r->rq.checks[i].name);
	jw_kbool(&w, "ok", c->outcome == OUTCOME_PASSED);
	jw_kstr(&w, "outcome", outcome_names[c->outcome]);
	jw_kint(&w, "exitCode", c->exit_code);
	int n = snprintf(seconds, sizeof seconds, "%u.%03u", c->duration_ms / 1000, c->duration_ms % 1000);
	jw_key(&w, "durationSeconds");
	jw_raw(&w, seconds, (size_t)n);
	report_counts(&w, "tests", &c->counts);
	jw_key(&w, "flags");
	flags_write(&w, r, i);
	jw_close(&w, '}');
	tell_event(app, r, "check.finished", &b);
}

/* Fills c, which has no outcome yet, from the frame of the check that ran. */
static bool take_checked(struct app *app, const struct run *r, struct check_result *c, const uint8_t *frame, size_t n)
{
	struct bn_checked m;
	const struct request_check *asked = &r->rq.checks[r->check_at];
	if (c->outcome != OUTCOME_NONE || !bn_get_checked(frame, n, &m) || strcmp(m.name, asked->name) != 0)
		return false;
	buf_add(&c->output, m.output.p, m.output.n);
	c->exit_code = verdict_exit_code(m.started, m.status);
	c->duration_ms = m.duration_ms;
	c->truncated = m.truncated;
	struct check_end end = {.started = m.started,
				.timed_out = m.timed_out || limits_cpu(m.reached),
				.status = m.status,
				.output = (const char *)m.output.p,
				.n = m.output.n,
				.sources = sources(r)};
	c->outcome = checks_judge(asked->argv, asked->argc, &end, &c->counts);
	const struct limits_seen s = {.box = asked->name,
				      .wall = m.timed_out,
				      .oom = r->check_oom,
				      .truncated = m.truncated,
				      .reached = m.reached,
				      .status = m.status,
				      .wall_seconds = r->conf_tenant->t.check_seconds,
				      .output_bytes = TOOL_OUTPUT_BYTES};
	limits_tell(app, r, &s);
	return !buf_failed(&c->output);
}

static enum err take_result(struct app *app, const struct run *r, struct check_result *c)
{
	struct bundle b;
	const uint8_t *frame;
	size_t n;
	uint16_t number;
	uint64_t op;
	int got = -1;
	struct bn_broken broken;
	enum err e = bundle_open(&b, r->check_fd, BN_MAXFRAME) ? ERR_OK : ERR_SANDBOX_RESULT_INVALID;
	errno = 0;
	while (e == ERR_OK && (got = bundle_next(&b, &frame, &n)) > 0) {
		if (!wire_peek(frame, n, &number, &op)) {
			e = ERR_SANDBOX_RESULT_INVALID;
		} else if (number == BN_CHECKED) {
			errno = 0;
			e = take_checked(app, r, c, frame, n) ? ERR_OK : lack_or(ERR_SANDBOX_VERIFICATION_MISMATCH);
		} else if (number == BN_BROKEN && bn_get_broken(frame, n, &broken)) {
			log_warn("run %s: the check box could not work: %s", r->run, broken.detail);
			e = err_find(err_code((enum err)broken.code));
			e = e == ERR_OK ? ERR_SANDBOX_SETUP_FAILED : e;
		} else {
			e = ERR_SANDBOX_RESULT_INVALID;
		}
	}
	bundle_close(&b);
	if (e == ERR_OK && got < 0)
		e = lack_or(ERR_SANDBOX_RESULT_INVALID);
	if (e == ERR_OK && c->outcome == OUTCOME_NONE)
		e = r->check_oom ? ERR_MEMORY_EXCEEDED : ERR_SANDBOX_VERIFICATION_MISMATCH;
	return e;
}

bool verdict_check(struct app *app, struct run *r)
{
	enum err e = take_result(app, r, &r->checks[r->check_at]);
	if (r->checks[r->check_at].outcome != OUTCOME_NONE)
		finished(app, r, r->check_at);
	if (e != ERR_OK)
		run_fail(r, e, verdict_reason(e, REASON_CHECK_NOT_RUN));
	return e == ERR_OK;
}

void verdict_compared(struct app *app, struct run *r)
{
	struct check_result base = {0};
	struct check_result *c = &r->checks[r->check_at];
	buf_init(&base.output, 1000001);
	enum err e = take_result(app, r, &base);
	/* What ended by itself has counted to the end; a cut-off count would make any number look like enough. */
	if (e == ERR_OK && base.counts.known && (base.outcome == OUTCOME_PASSED || base.outcome == OUTCOME_FAILED)) {
		own_buf struct buf b;
		struct jw w;
		c->upload = base.counts;
		buf_init(&b, 20000);
		jw_init(&w, &b);
		jw_open(&w, '{');
		jw_kstr(&w, "name", r->rq.checks[r->check_at].name);
		report_counts(&w, "tests", &c->counts);
		report_counts(&w, "uploadTests", &c->upload);
		jw_key(&w, "flags");
		flags_write(&w, r, r->check_at);
		jw_close(&w, '}');
		tell_event(app, r, "check.compared", &b);
	}
	buf_free(&base.output);
}

void verdict_checks_end(struct run *r)
{
	bool passed = true, nothing = false;
	for (size_t i = 0; i < r->rq.nchecks; i++) {
		passed = passed && r->checks[i].outcome == OUTCOME_PASSED;
		nothing = nothing || r->checks[i].outcome == OUTCOME_NO_TESTS;
	}
	if (!passed)
		run_fail(r, ERR_VERIFICATION_FAILED, nothing ? REASON_NO_TESTS : REASON_CHECK_FAILED);
}
