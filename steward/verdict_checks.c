/*
 * See verdict.h: the checks. Each ran in a box of its own that neither the agent nor another check was ever
 * in, so its exit code is ours; only "no test ran" has to be read out of what was printed (Python's unittest
 * calls that a success).
 */
#include "gen/bundle_msg.h"
#include "lib/chan.h"
#include "lib/die.h"
#include "steward/run.h"
#include "steward/tell.h"
#include "steward/verdict.h"
#include <stdio.h>
#include <string.h>

const char *const outcome_names[OUTCOME__COUNT] = {
    [OUTCOME_NONE] = "none",         [OUTCOME_PASSED] = "passed",   [OUTCOME_FAILED] = "failed",
    [OUTCOME_NO_TESTS] = "no_tests", [OUTCOME_TIMEOUT] = "timeout", [OUTCOME_KILLED] = "killed"};

enum { PYTEST_NOTHING = 5 };

static bool python_module(const char *const *argv, uint32_t argc, const char *module)
{
	return argc >= 3 && strncmp(argv[0], "python3", 7) == 0 && strcmp(argv[1], "-m") == 0 &&
	       strcmp(argv[2], module) == 0;
}

/* The number in the last line that reads "Ran N test(s) in ..."; -1: there is none. */
static long tests_run(const char *output, size_t n)
{
	long count = -1;
	for (size_t at = 0; at < n;) {
		const char *line = output + at;
		const char *end = memchr(line, '\n', n - at);
		size_t len = end != NULL ? (size_t)(end - line) : n - at;
		size_t i = 4, digits = 0;
		long v = 0;
		if (len > 4 && memcmp(line, "Ran ", 4) == 0) {
			for (; i < len && line[i] >= '0' && line[i] <= '9' && digits < 9; i++, digits++)
				v = 10 * v + (line[i] - '0');
			if (digits > 0 && len - i >= 5 && memcmp(line + i, " test", 5) == 0)
				count = v;
		}
		at += len + 1;
	}
	return count;
}

enum outcome verdict_outcome(const char *const *argv, uint32_t argc, bool started, int32_t status, bool timed_out,
			     bool truncated, const char *output, size_t n)
{
	if (timed_out)
		return OUTCOME_TIMEOUT;
	if (!started)
		return OUTCOME_FAILED;
	if (status < 0)
		return OUTCOME_KILLED;
	if (python_module(argv, argc, "pytest") && status == PYTEST_NOTHING)
		return OUTCOME_NO_TESTS;
	if (python_module(argv, argc, "unittest")) {
		long count = tests_run(output, n);
		/* Newer Pythons say so by status 5 as well. A success that counts no test is none, unless the
		 * line was cut off behind more output than empty tests could print. */
		if (count == 0 || (status == 0 && count < 0 && !truncated))
			return OUTCOME_NO_TESTS;
	}
	return status == 0 ? OUTCOME_PASSED : OUTCOME_FAILED;
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
	buf_init(&b, 2000);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "name", r->rq.checks[i].name);
	jw_kbool(&w, "ok", c->outcome == OUTCOME_PASSED);
	jw_kstr(&w, "outcome", outcome_names[c->outcome]);
	jw_kint(&w, "exitCode", c->exit_code);
	int n = snprintf(seconds, sizeof seconds, "%u.%03u", c->duration_ms / 1000, c->duration_ms % 1000);
	jw_key(&w, "durationSeconds");
	jw_raw(&w, seconds, (size_t)n);
	jw_close(&w, '}');
	tell_event(app, r, "check.finished", &b);
}

static bool take_checked(struct run *r, const uint8_t *frame, size_t n)
{
	struct bn_checked m;
	const struct request_check *asked = &r->rq.checks[r->check_at];
	struct check_result *c = &r->checks[r->check_at];
	if (c->outcome != OUTCOME_NONE || !bn_get_checked(frame, n, &m) || strcmp(m.name, asked->name) != 0)
		return false;
	buf_add(&c->output, m.output.p, m.output.n);
	c->exit_code = verdict_exit_code(m.started, m.status);
	c->duration_ms = m.duration_ms;
	c->truncated = m.truncated;
	c->outcome = verdict_outcome(asked->argv, asked->argc, m.started, m.status, m.timed_out, m.truncated,
				     (const char *)m.output.p, m.output.n);
	return !buf_failed(&c->output);
}

static enum err take_result(struct run *r)
{
	struct bundle b;
	const uint8_t *frame;
	size_t n;
	uint16_t number;
	uint64_t op;
	int got = -1;
	struct bn_broken broken;
	enum err e = bundle_open(&b, r->check_fd, BN_MAXFRAME) ? ERR_OK : ERR_SANDBOX_RESULT_INVALID;
	while (e == ERR_OK && (got = bundle_next(&b, &frame, &n)) > 0) {
		if (!wire_peek(frame, n, &number, &op)) {
			e = ERR_SANDBOX_RESULT_INVALID;
		} else if (number == BN_CHECKED) {
			e = take_checked(r, frame, n) ? ERR_OK : ERR_SANDBOX_VERIFICATION_MISMATCH;
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
		e = ERR_SANDBOX_RESULT_INVALID;
	if (e == ERR_OK && r->checks[r->check_at].outcome == OUTCOME_NONE)
		e = r->check_oom ? ERR_MEMORY_EXCEEDED : ERR_SANDBOX_VERIFICATION_MISMATCH;
	return e;
}

bool verdict_check(struct app *app, struct run *r)
{
	enum err e = take_result(r);
	if (r->checks[r->check_at].outcome != OUTCOME_NONE)
		finished(app, r, r->check_at);
	if (e != ERR_OK)
		run_fail(r, e, verdict_reason(e, REASON_CHECK_NOT_RUN));
	return e == ERR_OK;
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
