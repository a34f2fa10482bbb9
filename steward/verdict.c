/* See verdict.h: the agent's end and the judge's answer. */
#include "steward/verdict.h"
#include "gen/bundle_msg.h"
#include "lib/chan.h"
#include "lib/die.h"
#include "lib/digest.h"
#include "lib/lack.h"
#include "lib/path.h"
#include "lib/text.h"
#include "steward/limits.h"
#include "steward/run.h"
#include "steward/tell.h"
#include <stdio.h>
#include <string.h>

int32_t verdict_exit_code(bool started, int32_t status)
{
	if (!started)
		return 127;
	return status < 0 ? 128 - status : status;
}

static void agent_event(struct app *app, const struct run *r, const struct bn_ran *ran)
{
	own_buf struct buf b;
	struct jw w;
	char seconds[32];
	buf_init(&b, 2000);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kbool(&w, "started", ran->started);
	jw_kint(&w, "exitCode", r->exit_code);
	int n = snprintf(seconds, sizeof seconds, "%u.%03u", ran->duration_ms / 1000, ran->duration_ms % 1000);
	jw_key(&w, "durationSeconds");
	jw_raw(&w, seconds, (size_t)n);
	jw_kbool(&w, "timedOut", ran->timed_out || r->work_timed_out);
	jw_kbool(&w, "memoryExceeded", r->work_oom && !r->agent_ok);
	jw_close(&w, '}');
	tell_event(app, r, "run.agent_exited", &b);
}

static void ran(struct app *app, struct run *r, const struct bn_ran *m)
{
	r->exited = m->started;
	r->exit_code = verdict_exit_code(m->started, m->status);
	r->agent_ok = m->started && m->status == 0 && !m->timed_out && !m->stopped && !limits_cpu(m->reached);
	agent_event(app, r, m);
	const struct limits_seen s = {.box = "work",
				      .wall = m->timed_out || r->work_timed_out,
				      .oom = r->work_oom && !r->agent_ok,
				      .truncated = m->truncated,
				      .reached = m->reached,
				      .status = m->status,
				      .wall_seconds = r->wall_seconds,
				      .output_bytes = r->agent->output_bytes};
	limits_tell(app, r, &s);
	if (m->timed_out || r->work_timed_out)
		run_fail(r, ERR_WALL_TIME_EXCEEDED, REASON_WALL_TIME_EXCEEDED);
	else if (!m->started)
		run_fail(r, ERR_SANDBOX_SETUP_FAILED, REASON_AGENT_NOT_STARTED);
	else if (r->work_oom && !r->agent_ok)
		run_fail(r, ERR_MEMORY_EXCEEDED, REASON_MEMORY_EXCEEDED);
	else if (limits_cpu(m->reached))
		run_fail(r, ERR_CPU_TIME_EXCEEDED, REASON_CPU_TIME_EXCEEDED);
	else if (!r->agent_ok)
		run_fail(r, ERR_SANDBOX_AGENT_FAILED, limits_reason(r, &s));
}

static void broken(struct run *r, const struct bn_broken *m)
{
	own_buf struct buf detail;
	buf_init(&detail, 600);
	text_log(&detail, m->detail, strlen(m->detail), 512);
	const char *text = buf_cstr(&detail);
	log_warn("run %s: the box could not work: %s", r->run, text != NULL ? text : "");
	enum err e = err_find(err_code((enum err)m->code));
	run_fail(r, e == ERR_OK ? ERR_SANDBOX_SETUP_FAILED : e,
		 e == ERR_CREDENTIAL_UNAVAILABLE ? REASON_NOT_STARTED : REASON_SANDBOX_SETUP_FAILED);
}

/* Finds the one frame of the given number; false if there is none, or more than one, or it is malformed. */
static bool only_frame(int fd, uint16_t wanted, struct bundle *b, const uint8_t **frame, size_t *n)
{
	uint16_t number;
	uint64_t op;
	uint64_t found_at = 0;
	unsigned found = 0;
	const uint8_t *p;
	size_t len;
	if (!bundle_open(b, fd, BN_MAXFRAME))
		return false;
	uint64_t at = b->at;
	while (bundle_next(b, &p, &len) > 0) {
		if (wire_peek(p, len, &number, &op) && number == wanted) {
			found++;
			found_at = at;
		}
		at = b->at;
	}
	if (found != 1)
		return false;
	b->at = found_at;
	return bundle_next(b, frame, n) > 0;
}

bool verdict_ran(const struct run *r, struct bundle *b, struct bn_ran *m)
{
	const uint8_t *frame;
	size_t n;
	return only_frame(r->work_fd, BN_RAN, b, &frame, &n) && bn_get_ran(frame, n, m);
}

void verdict_agent(struct app *app, struct run *r)
{
	struct bundle b;
	const uint8_t *frame;
	size_t n;
	struct bn_ran m;
	struct bn_broken bad;
	if (r->work_timed_out)
		run_fail(r, ERR_WALL_TIME_EXCEEDED, REASON_WALL_TIME_EXCEEDED);
	errno = 0;
	if (verdict_ran(r, &b, &m)) {
		ran(app, r, &m);
		bundle_close(&b);
		return;
	}
	bundle_close(&b);
	if (only_frame(r->work_fd, BN_BROKEN, &b, &frame, &n) && bn_get_broken(frame, n, &bad))
		broken(r, &bad);
	else if (lack())
		run_fail(r, lack_error(), REASON_JUDGE_FAILED);
	else if (r->work_oom)
		run_fail(r, ERR_MEMORY_EXCEEDED, REASON_MEMORY_EXCEEDED);
	else
		run_fail(r, ERR_SANDBOX_RESULT_INVALID, REASON_SANDBOX_RESULT_INVALID);
	bundle_close(&b);
}

/* --- the judge's answer ------------------------------------------------------------------------- */

static bool covered(const struct run *r, const char *path)
{
	for (size_t i = 0; i < r->rq.nallow; i++)
		if (path_allow_covers(r->rq.allow[i], path))
			return true;
	return false;
}

static bool take_change(struct run *r, const uint8_t *frame, size_t n)
{
	struct bn_change c;
	if (r->nchanges >= JUDGE_CHANGES || !bn_get_change(frame, n, &c) || c.how < CHANGE_ADDED ||
	    c.how > CHANGE_REMOVED)
		return false;
	/* The judge has looked; this is the second pair of eyes. Path order also means: none twice. */
	if (!path_valid(c.path, strlen(c.path)) || !covered(r, c.path) ||
	    (r->nchanges > 0 && strcmp(r->changes[r->nchanges - 1].path, c.path) >= 0))
		return false;
	struct run_change *to = &r->changes[r->nchanges++];
	*to = (struct run_change){.path = arena_dup(&r->rq.arena, c.path, strlen(c.path)),
				  .how = c.how,
				  .executable = c.executable,
				  .size = c.content.n};
	return to->path != NULL && sha256(c.content.p, c.content.n, to->sha256);
}

static bool take_judged(struct run *r, const uint8_t *frame, size_t n)
{
	struct bn_judged m;
	if (!bn_get_judged(frame, n, &m))
		return false;
	r->accepted = m.accepted;
	r->seen = m.changed;
	r->judged_error = err_find(err_code((enum err)m.code));
	text_log(&r->field, (const char *)m.field.p, m.field.n, 512);
	return m.accepted == (m.code == ERR_OK) && (m.accepted || r->judged_error != ERR_OK);
}

static bool take_patch(struct run *r, const uint8_t *frame, size_t n)
{
	struct bn_patch m;
	if (!bn_get_patch(frame, n, &m) || m.text.n > JUDGE_PATCH_BYTES)
		return false;
	buf_add(&r->patch, m.text.p, m.text.n);
	r->patch_too_large = m.truncated;
	return !buf_failed(&r->patch) && !(m.truncated && r->accepted);
}

static bool take_summary(struct run *r, const uint8_t *frame, size_t n)
{
	struct bn_summary m;
	if (!bn_get_summary(frame, n, &m) || m.text.n > TEXT_CAP_SUMMARY)
		return false;
	buf_add(&r->summary, m.text.p, m.text.n);
	buf_adds(&r->claimed, m.claimed_status);
	return !buf_failed(&r->summary) && !buf_failed(&r->claimed);
}

/* JUDGED CHANGE... PATCH SUMMARY, in this order, nothing else. */
static bool take_frames(struct run *r)
{
	enum { START, CHANGES, PATCHED, DONE } at = START;
	struct bundle b;
	const uint8_t *frame;
	size_t n;
	uint16_t number;
	uint64_t op;
	int got = -1;
	bool ok = bundle_open(&b, r->judge.out, BN_MAXFRAME);
	while (ok && (got = bundle_next(&b, &frame, &n)) > 0) {
		ok = wire_peek(frame, n, &number, &op);
		if (ok && at == START && number == BN_JUDGED) {
			ok = take_judged(r, frame, n);
			at = CHANGES;
		} else if (ok && at == CHANGES && number == BN_CHANGE) {
			ok = take_change(r, frame, n);
		} else if (ok && at == CHANGES && number == BN_PATCH) {
			ok = take_patch(r, frame, n);
			at = PATCHED;
		} else if (ok && at == PATCHED && number == BN_SUMMARY) {
			ok = take_summary(r, frame, n);
			at = DONE;
		} else {
			ok = false;
		}
	}
	bundle_close(&b);
	return ok && got == 0 && at == DONE && (!r->accepted || r->nchanges == r->seen);
}

enum reason verdict_reason(enum err e, enum reason otherwise)
{
	enum reason r = reason_find(err_code(e));
	return strcmp(reason_status(r), "failed") == 0 ? r : otherwise;
}

bool verdict_judge(struct app *app, struct run *r)
{
	if (!take_frames(r))
		return false;
	r->judged = true;
	if (!r->accepted)
		run_fail(r, r->judged_error,
			 verdict_reason(r->judged_error, r->judged_error == ERR_SANDBOX_CHANGED_FILES_MISMATCH
							     ? REASON_CHANGED_FILES_OUTSIDE_ALLOWED_PATHS
							     : REASON_SANDBOX_RESULT_INVALID));
	own_buf struct buf b;
	struct jw w;
	buf_init(&b, 30000);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kbool(&w, "accepted", r->accepted);
	jw_key(&w, "changedFiles");
	jw_open(&w, '[');
	for (uint32_t i = 0; i < r->nchanges; i++)
		jw_str(&w, r->changes[i].path);
	jw_close(&w, ']');
	if (!r->accepted) {
		jw_kstr(&w, "error", err_code(r->judged_error));
		jw_key(&w, "path");
		jw_buf(&w, &r->field);
	}
	jw_close(&w, '}');
	tell_event(app, r, "run.changes_judged", &b);
	return true;
}
