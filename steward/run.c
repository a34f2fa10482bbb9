/*
 * The course of a run. Durable first (RUN_START was committed), box second, terminal state last; every
 * wait has an end, and every way out leads through settle.c.
 *
 *   SPAWN_UNPACK -> UNPACK -> UNPACK_GONE -> TREE
 *          .--- a run whose upload is an archive --'
 *   SPAWN_WORK -> WORK -> WORK_GONE -> JUDGE -> SPAWN_CHECK -> CHECK -> CHECK_GONE -> SETTLE
 *   ORPHAN -----------------------------------------^-- the next check --'------------^
 *
 * An archive is unpacked in a box of its own, which is gone before the run's own is made (source.h). Whatever happens
 * until then costs the run nothing: no token was minted, its wall time has not begun, nothing was asked of a model.
 *
 * Each check has a box of its own: a check may execute what the agent wrote, and that must not be able to
 * prepare the tree for the next one. A check that passed although there is reason for doubt (flags.h) runs once
 * more, on the upload as it came, to count its tests there; that can fail nothing but the clean-up.
 *
 * The order at the end of the work box is fixed: its processes are dead, then the capability is revoked
 * then the box goes, then its result is looked at.
 */
#include "steward/run.h"
#include "gen/text.h"
#include "lib/die.h"
#include "lib/lack.h"
#include "lib/num.h"
#include "lib/own.h"
#include "steward/control.h"
#include "steward/flags.h"
#include "steward/launch.h"
#include "steward/proof.h"
#include "steward/settle.h"
#include "steward/source.h"
#include "steward/tell.h"
#include "steward/verdict.h"
#include "steward/wait.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct step_row {
	const char *name;
	uint64_t wait;      /* ms; 0: computed on entry */
	enum box_kind kind; /* the box it is about */
	enum step gone;     /* where that box is waited for; 0: it is not to be ended from here */
	int cancel_grace;   /* of the KILL that a cancel sends; -1: none */
	enum err late;      /* what a missed deadline means */
	enum reason reason; /* REASON__COUNT: a box that is not gone */
};

static const struct step_row steps[STEP__COUNT] = {
    [STEP_SPAWN_UNPACK] = {"spawn-unpack", WAIT_ANSWER, BOX_CHECK, STEP_UNPACK_GONE, 0, ERR_SANDBOX_SPAWN_FAILED,
			   REASON_SANDBOX_SPAWN_FAILED},
    [STEP_UNPACK] = {"unpack", SOURCE_WORK + WAIT_BACKSTOP, BOX_CHECK, STEP_UNPACK_GONE, 0, ERR_SANDBOX_SETUP_FAILED,
		     REASON_SANDBOX_SETUP_FAILED},
    [STEP_UNPACK_GONE] = {"unpack-gone", WAIT_GONE, BOX_CHECK, 0, -1, ERR_SANDBOX_CLEANUP_FAILED, REASON__COUNT},
    [STEP_TREE] = {"tree", WAIT_JUDGE, 0, 0, -1, ERR_SANDBOX_RESULT_INVALID, REASON_JUDGE_FAILED},
    [STEP_SPAWN_WORK] = {"spawn-work", WAIT_ANSWER, BOX_WORK, STEP_WORK_GONE, CANCEL_GRACE, ERR_SANDBOX_SPAWN_FAILED,
			 REASON_SANDBOX_SPAWN_FAILED},
    [STEP_WORK] = {"work", 0, BOX_WORK, STEP_WORK_GONE, CANCEL_GRACE, ERR_WALL_TIME_EXCEEDED,
		   REASON_WALL_TIME_EXCEEDED},
    [STEP_WORK_GONE] = {"work-gone", WAIT_GONE, BOX_WORK, 0, -1, ERR_SANDBOX_CLEANUP_FAILED, REASON__COUNT},
    [STEP_JUDGE] = {"judge", WAIT_JUDGE, 0, 0, -1, ERR_SANDBOX_RESULT_INVALID, REASON_JUDGE_FAILED},
    [STEP_SPAWN_CHECK] = {"spawn-check", WAIT_ANSWER, BOX_CHECK, STEP_CHECK_GONE, 0, ERR_SANDBOX_SPAWN_FAILED,
			  REASON_SANDBOX_SPAWN_FAILED},
    [STEP_CHECK] = {"check", 0, BOX_CHECK, STEP_CHECK_GONE, 0, ERR_SANDBOX_RESULT_INVALID, REASON_CHECK_NOT_RUN},
    [STEP_CHECK_GONE] = {"check-gone", WAIT_GONE, BOX_CHECK, 0, -1, ERR_SANDBOX_CLEANUP_FAILED, REASON__COUNT},
    [STEP_ORPHAN] = {"orphan", WAIT_GONE, 0, 0, -1, ERR_SANDBOX_CLEANUP_FAILED, REASON__COUNT},
    [STEP_SETTLE] = {"settle", 0, 0, 0, -1, ERR_OK, REASON__COUNT},
};

/* --- life and death of the record ------------------------------------------------------------ */

struct run *app_run(const struct app *a, const char *run)
{
	for (size_t i = 0; i < a->nruns; i++)
		if (strcmp(a->runs[i]->run, run) == 0)
			return a->runs[i];
	return NULL;
}

struct run *run_new(struct app *app, const char *tenant, const char *run)
{
	if (app->nruns >= MAX_RUNS)
		return NULL;
	struct run *r = calloc(1, sizeof *r);
	if (r == NULL)
		return NULL;
	snprintf(r->tenant, sizeof r->tenant, "%s", tenant);
	snprintf(r->run, sizeof r->run, "%s", run);
	r->upload_fd = r->bundle_fd = r->work_fd = r->check_fd = r->judge.out = r->judge.pidfd = -1;
	buf_init(&r->field, 1024);
	buf_init(&r->patch, JUDGE_PATCH_BYTES + 1);
	buf_init(&r->summary, TEXT_CAP_SUMMARY + 1);
	buf_init(&r->claimed, 64);
	for (size_t i = 0; i < REQUEST_CHECKS; i++)
		buf_init(&r->checks[i].output, 1000001);
	app->runs[app->nruns++] = r;
	return r;
}

static void drop_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void run_free(struct app *app, struct run *r)
{
	for (size_t i = 0; i < app->nruns; i++)
		if (app->runs[i] == r)
			app->runs[i] = app->runs[--app->nruns];
	if (r->judge.pid != 0)
		(void)judge_end(&r->judge);
	drop_fd(&r->upload_fd);
	drop_fd(&r->bundle_fd);
	drop_fd(&r->work_fd);
	drop_fd(&r->check_fd);
	drop_fd(&r->judge.out);
	request_free(&r->rq);
	buf_free(&r->field);
	buf_free(&r->patch);
	buf_free(&r->summary);
	buf_free(&r->claimed);
	for (size_t i = 0; i < REQUEST_CHECKS; i++)
		buf_free(&r->checks[i].output);
	held_done(r->under);
	free(r);
}

void run_fail(struct run *r, enum err error, enum reason reason)
{
	if (r->error != ERR_OK)
		return;
	r->error = error;
	r->reason = reason;
	log_info("run %s of %s: %s (%s)", r->run, r->tenant, reason_name(reason), err_code(error));
}

/* For what may happen while tests of the upload are counted, and is no fault of the run then. */
static void fail(struct run *r, enum err error, enum reason reason)
{
	if (!r->comparing)
		run_fail(r, error, reason);
	else
		log_info("run %s: the tests of the upload were not counted: %s", r->run, err_code(error));
}

/* --- steps ------------------------------------------------------------------------------------ */

static void enter(struct run *r, enum step step, uint64_t wait)
{
	uint64_t now = timer_ms();
	r->step = step;
	r->again = 0;
	if (step > STEP_WORK) {
		r->renew_at = 0;
		wait_forget(r);
	}
	r->deadline = r->allowed = steps[step].wait + wait == 0 ? 0 : now + steps[step].wait + wait;
	/* A cancelled run ends within its own bound, whatever the step would allow. */
	if (r->cancelled && r->deadline > r->cancel_at + WAIT_CANCEL)
		r->deadline = r->cancel_at + WAIT_CANCEL > now ? r->cancel_at + WAIT_CANCEL : now;
}

/* Its box was asked for, and is not known to be there; or it may be alive. */
static bool spawning(const struct run *r)
{
	return r->step == STEP_SPAWN_UNPACK || r->step == STEP_SPAWN_WORK || r->step == STEP_SPAWN_CHECK;
}

static bool alive(const struct run *r)
{
	return steps[r->step].gone != 0;
}

static unsigned bit(enum box_kind kind)
{
	return 1u << kind;
}

/* What was to be made could not be; errno says why. */
static void lacks(struct app *app, struct run *r, const char *what, enum reason reason)
{
	enum err e = lack_error();
	log_error("run %s: %s could not be made: %m", r->run, what);
	fail(r, e, e == ERR_INTERNAL_ERROR ? REASON_INTERNAL_ERROR : reason);
	run_settle(app, r);
}

/* True: the box of an agent with real keys has to wait, or there will be none, for its self-test. */
static bool unproven(struct app *app, struct run *r)
{
	enum proof_state proof = proof_of(app, r->agent->name);
	if (proof == PROOF_FAILED) {
		run_fail(r, ERR_AGENT_NOT_PROVEN, REASON_NOT_STARTED);
		run_settle(app, r);
	} else if (proof == PROOF_ON) {
		r->again = timer_ms() + RETRY_STORE;
		r->spawn_until = r->again + WAIT_CAPACITY;
		r->deadline = r->allowed = r->again + WAIT_ANSWER;
	}
	return proof == PROOF_FAILED || proof == PROOF_ON;
}

static void spawn(struct app *app, struct run *r)
{
	enum box_kind kind = steps[r->step].kind;
	if (kind == BOX_WORK && unproven(app, r))
		return;
	/* sandboxd keeps no account of waiting: it is told the most that there can be. */
	uint32_t wall = BACKSTOP_SECONDS + (r->step == STEP_SPAWN_UNPACK ? SOURCE_WORK / 1000
					    : kind == BOX_WORK ? r->wall_seconds + (uint32_t)(r->wait_left / 1000)
							       : launch_check_seconds(r));
	int *result = kind == BOX_WORK ? &r->work_fd : &r->check_fd;
	if (*result < 0)
		*result = launch_result();
	if (*result < 0) {
		lacks(app, r, "a file for its result",
		      r->step == STEP_SPAWN_CHECK ? REASON_CHECK_NOT_RUN : REASON_NOT_STARTED);
		return;
	}
	r->boxes |= bit(kind);
	r->cpu_us = r->peak_bytes = r->forks_refused = 0;
	r->again = 0;
	r->asked_at = timer_ms();
	r->deadline = r->allowed = r->asked_at + WAIT_ANSWER;
	control_spawn(app, r, kind, wall, r->bundle_fd, *result);
	/* Cancelled while it waited for a place: the box would be killed at once; this path is not taken,
	 * since a cancel without a box settles directly. */
}

void run_begin(struct app *app, struct run *r)
{
	enter(r, r->archive ? STEP_SPAWN_UNPACK : STEP_SPAWN_WORK, 0);
	r->spawn_until = timer_ms() + WAIT_CAPACITY;
	r->renew_at = r->agent->token_wire ? timer_ms() + RENEW : 0;
	tell_phase(app, r, PHASE_STAGING);
	spawn(app, r);
}

/* The archive is an upload now. The capability's life began when the run did, and is to be the run's own. */
static void begin_work(struct app *app, struct run *r)
{
	errno = 0;
	r->bundle_fd = launch_work_bundle(app, r);
	if (r->bundle_fd < 0) {
		lacks(app, r, "the upload", REASON_NOT_STARTED);
		return;
	}
	enter(r, STEP_SPAWN_WORK, 0);
	r->spawn_until = timer_ms() + WAIT_CAPACITY;
	bool told = tell_renew(app, r);
	r->renew_at = told && !r->agent->token_wire ? 0 : timer_ms() + (told ? RENEW : RENEW_RETRY);
	spawn(app, r);
}

static void begin_tree(struct app *app, struct run *r)
{
	if (!launch_seal(r->check_fd, UINT32_MAX)) {
		run_fail(r, ERR_SANDBOX_RESULT_INVALID, REASON_SANDBOX_RESULT_INVALID);
		run_settle(app, r);
	} else if (r->cancelled || r->cleanup_failed || r->error != ERR_OK) {
		run_settle(app, r);
	} else if (!source_judge(app, r)) {
		lacks(app, r, "the child that looks at its source", REASON_JUDGE_FAILED);
	} else {
		enter(r, STEP_TREE, source_slow(r->check_fd, -1));
	}
}

void run_adopt(struct app *app, struct run *r)
{
	r->restart = true;
	run_fail(r, ERR_CONTROLLER_RESTARTED, REASON_CONTROLLER_RESTARTED);
	enter(r, STEP_ORPHAN, 0);
	(void)tell_revoke(app, r); /* first; settle tries again if the store is away */
	if (!control_strays_of(app, r->run))
		run_settle(app, r);
}

void run_settle(struct app *app, struct run *r)
{
	/* Boxes that did not go in time keep their slot until they do. */
	for (enum box_kind kind = BOX_WORK; kind <= BOX_CHECK; kind++)
		if ((r->boxes & bit(kind)) != 0) {
			control_kill(app, r->run, kind, 0);
			control_stray(app, r->run, kind);
		}
	r->boxes = 0;
	enter(r, STEP_SETTLE, 0);
	tell_phase(app, r, PHASE_CLEANING);
	r->again = timer_ms();
	run_tick(app, r, r->again);
}

static void begin_judge(struct app *app, struct run *r)
{
	struct judge_rules rules = {.allow = r->rq.allow,
				    .nallow = r->rq.nallow,
				    .extensions = r->conf_tenant->t.extensions,
				    .nextensions = r->conf_tenant->t.extensions_n};
	verdict_agent(app, r);
	if (!launch_seal(r->work_fd, 3 * r->source_bytes)) {
		run_fail(r, ERR_SANDBOX_RESULT_INVALID, REASON_SANDBOX_RESULT_INVALID);
		run_settle(app, r);
		return;
	}
	if (!judge_start(&r->judge, judge_decide, r->upload_fd, r->work_fd, &rules, launch_forget, app)) {
		lacks(app, r, "the judge", REASON_JUDGE_FAILED);
		return;
	}
	enter(r, STEP_JUDGE, source_slow(r->upload_fd, r->work_fd));
}

static void begin_check(struct app *app, struct run *r)
{
	drop_fd(&r->bundle_fd);
	errno = 0;
	r->bundle_fd = launch_check_bundle(r);
	if (r->bundle_fd < 0) {
		lacks(app, r, "the upload for a check", REASON_CHECK_NOT_RUN);
		return;
	}
	if (r->check_at == 0 && !r->comparing)
		tell_phase(app, r, PHASE_VERIFYING);
	enter(r, STEP_SPAWN_CHECK, 0);
	r->spawn_until = timer_ms() + WAIT_CAPACITY;
	spawn(app, r);
}

/* --- what happens ------------------------------------------------------------------------------ */

void run_spawned(struct app *app, struct run *r, enum box_kind kind)
{
	tell_box(app, AUDIT_SANDBOX_SPAWN, r->tenant, r->run, kind);
	if (kind != steps[r->step].kind || !spawning(r))
		return;
	hist_add(&app->spawned[kind], 1000 * (timer_ms() - r->asked_at));
	app->figures_due = true;
	drop_fd(&r->bundle_fd);
	if (r->step == STEP_SPAWN_UNPACK) {
		enter(r, STEP_UNPACK, 0);
	} else if (kind == BOX_WORK) {
		enter(r, STEP_WORK, 1000 * (uint64_t)r->wall_seconds + WAIT_BACKSTOP);
		tell_phase(app, r, PHASE_EXECUTING);
	} else {
		enter(r, STEP_CHECK, 1000 * (uint64_t)launch_check_seconds(r) + WAIT_BACKSTOP);
		if (!r->comparing)
			verdict_check_started(app, r);
		else
			log_info("run %s: tests of %s are counted on the upload", r->run,
				 r->rq.checks[r->check_at].name);
	}
}

void run_refused(struct app *app, struct run *r, enum box_kind kind, uint16_t code, const char *detail)
{
	if (kind != steps[r->step].kind || !spawning(r))
		return;
	r->boxes &= ~bit(kind);
	app->not_spawned[kind]++;
	app->figures_due = true;
	log_warn("run %s: sandboxd refuses a box: %s (%s)", r->run, err_code((enum err)code), detail);
	if (code == ERR_SANDBOX_CAPACITY && !r->cancelled && timer_ms() < r->spawn_until) {
		r->again = timer_ms() + RETRY_STORE;
		return;
	}
	fail(r, code == ERR_OK ? ERR_SANDBOX_SPAWN_FAILED : err_find(err_code((enum err)code)),
	     code == ERR_SANDBOX_CAPACITY ? REASON_SANDBOX_CAPACITY : REASON_SANDBOX_REFUSED);
	run_settle(app, r);
}

/* The box's processes are dead, or are to be: from here on it can spend nothing and its slot is wanted back. */
static void end_box(struct app *app, struct run *r, enum box_kind kind)
{
	if (kind == BOX_WORK)
		(void)tell_revoke(app, r);
	enter(r, steps[r->step].gone, 0);
	control_kill(app, r->run, kind, 0);
	if (kind == BOX_WORK)
		tell_phase(app, r, PHASE_COLLECTING);
}

void run_exited(struct app *app, struct run *r, const struct sbx_exited *m)
{
	enum box_kind kind = (enum box_kind)m->kind;
	if (kind != steps[r->step].kind || !alive(r))
		return;
	if (kind == BOX_WORK) {
		r->work_oom = m->oom;
		r->work_timed_out = m->timed_out;
	} else {
		r->check_oom = m->oom;
	}
	r->cpu_us = m->cpu_us;
	r->peak_bytes = m->peak_bytes;
	r->forks_refused = m->forks_refused;
	end_box(app, r, kind);
}

/* The next check from `from` on whose tests are to be counted on the upload; the end if there is none. */
static void compare_or_settle(struct app *app, struct run *r, size_t from)
{
	bool may = r->error == ERR_OK && !r->cancelled && !r->cleanup_failed;
	while (may && from < r->rq.nchecks && !flags_compare(r, from))
		from++;
	if (!may || from >= r->rq.nchecks) {
		run_settle(app, r);
		return;
	}
	r->comparing = true;
	r->check_at = from;
	drop_fd(&r->check_fd);
	begin_check(app, r);
}

static void after_gone(struct app *app, struct run *r)
{
	if (r->step == STEP_WORK_GONE) {
		begin_judge(app, r);
		return;
	}
	if (r->step == STEP_UNPACK_GONE) {
		if (r->check_oom)
			run_fail(r, ERR_MEMORY_EXCEEDED, REASON_SANDBOX_SETUP_FAILED);
		r->check_oom = false;
		begin_tree(app, r);
		return;
	}
	bool whole = launch_seal(r->check_fd, 0);
	if (r->comparing) {
		if (whole && !r->cancelled)
			verdict_compared(app, r);
		compare_or_settle(app, r, r->check_at + 1);
		return;
	}
	if (!whole)
		run_fail(r, ERR_SANDBOX_RESULT_INVALID, REASON_SANDBOX_RESULT_INVALID);
	if (r->cancelled || !whole || !verdict_check(app, r)) {
		run_settle(app, r);
	} else if (r->check_at + 1 < r->rq.nchecks && r->error == ERR_OK && !r->cleanup_failed) {
		r->check_at++;
		drop_fd(&r->check_fd);
		begin_check(app, r);
	} else {
		verdict_checks_end(r);
		compare_or_settle(app, r, 0);
	}
}

void run_gone(struct app *app, struct run *r, enum box_kind kind, bool clean)
{
	if (r->step == STEP_ORPHAN) {
		r->cleanup_failed = r->cleanup_failed || !clean;
		if (!clean || !control_strays_of(app, r->run))
			run_settle(app, r);
		return;
	}
	if (kind != steps[r->step].kind || (r->boxes & bit(kind)) == 0)
		return;
	if (alive(r)) { /* killed, and gone before its end was told */
		if (kind == BOX_WORK) {
			(void)tell_revoke(app, r);
			tell_phase(app, r, PHASE_COLLECTING);
		}
		r->step = steps[r->step].gone;
	}
	r->boxes &= ~bit(kind);
	tell_box(app, clean ? AUDIT_SANDBOX_DESTROY : AUDIT_SANDBOX_CLEANUP_FAILED, r->tenant, r->run, kind);
	if (!clean) {
		r->cleanup_failed = true;
		control_stray(app, r->run, kind);
	}
	after_gone(app, r);
}

void run_judge_ended(struct app *app, struct run *r)
{
	if (r->step == STEP_TREE) {
		source_judged(app, r);
		if (r->error == ERR_OK && !r->cancelled)
			begin_work(app, r);
		else
			run_settle(app, r);
		return;
	}
	enum err e = judge_end(&r->judge);
	errno = 0;
	if (e == ERR_OK && !verdict_judge(app, r))
		e = lack_or(ERR_SANDBOX_RESULT_INVALID);
	if (e != ERR_OK) {
		r->nchanges = 0;
		r->judged = false;
		run_fail(r, e, err_row(e)->retry ? REASON_JUDGE_FAILED : REASON_SANDBOX_RESULT_INVALID);
	}
	if (r->error == ERR_OK && !r->cancelled && !r->cleanup_failed)
		begin_check(app, r);
	else
		run_settle(app, r);
}

void run_cancel(struct app *app, struct run *r)
{
	if (r->cancelled)
		return;
	r->cancelled = true;
	r->cancel_at = timer_ms();
	log_info("run %s of %s: cancel in step %s", r->run, r->tenant, steps[r->step].name);
	r->revoked = true; /* by the operation that recorded the request */
	wait_end(app, r);
	if (r->deadline > r->cancel_at + WAIT_CANCEL)
		r->deadline = r->cancel_at + WAIT_CANCEL;
	if (r->step == STEP_TREE) {
		run_judge_ended(app, r); /* kills it: there is nothing yet that could be kept */
		return;
	}
	if (r->step == STEP_JUDGE)
		r->deadline = r->deadline < r->cancel_at + 1000 ? r->deadline : r->cancel_at + 1000;
	if (steps[r->step].cancel_grace < 0)
		return;
	if ((r->boxes & bit(steps[r->step].kind)) != 0)
		control_kill(app, r->run, steps[r->step].kind, (uint32_t)steps[r->step].cancel_grace);
	else
		run_settle(app, r);
}

/* --- time ----------------------------------------------------------------------------------------- */

static void late(struct app *app, struct run *r)
{
	const struct step_row *row = &steps[r->step];
	/* A cancelled run ends at its bound with what is known; boxes that are still there are strays. */
	bool given_up = r->cancelled && timer_ms() < r->allowed;
	if ((r->step == STEP_JUDGE || r->step == STEP_TREE) && judge_ended(&r->judge)) {
		run_judge_ended(app, r);
		return;
	}
	log_warn("run %s: step %s took too long", r->run, row->name);
	if (row->reason != REASON__COUNT && !given_up)
		fail(r, row->late, row->reason);
	if (alive(r)) {
		end_box(app, r, row->kind);
		return;
	}
	switch (r->step) {
	case STEP_UNPACK_GONE:
	case STEP_WORK_GONE:
	case STEP_CHECK_GONE:
		if (!given_up) {
			r->cleanup_failed = true;
			tell_box(app, AUDIT_SANDBOX_CLEANUP_FAILED, r->tenant, r->run, row->kind);
		}
		r->boxes &= ~bit(row->kind);
		control_stray(app, r->run, row->kind);
		after_gone(app, r);
		return;
	case STEP_TREE:
	case STEP_JUDGE:
		run_judge_ended(app, r); /* kills it */
		return;
	case STEP_ORPHAN:
		r->cleanup_failed = !given_up;
		run_settle(app, r);
		return;
	case STEP_SETTLE:
	case STEP__COUNT:
	default:
		r->deadline = 0;
	}
}

void run_tick(struct app *app, struct run *r, uint64_t now)
{
	if (wait_due(r) != 0 && now >= wait_due(r)) {
		wait_tick(app, r, now);
	} else if (r->renew_at != 0 && now >= r->renew_at) {
		bool told = tell_renew(app, r), more = r->agent->token_wire || r->waits_since != 0 || !told;
		r->renew_at = more ? timer_ms() + (told ? RENEW : RENEW_RETRY) : 0;
	} else if (r->again != 0 && now >= r->again) {
		r->again = 0;
		if (spawning(r)) {
			spawn(app, r);
		} else if (r->step == STEP_SETTLE) {
			if (settle_try(app, r))
				run_free(app, r);
			else
				r->again = timer_ms() + RETRY_STORE;
		}
	} else if (r->deadline != 0 && r->waits_since == 0 && now >= r->deadline) {
		late(app, r);
	}
}

uint64_t run_due(const struct run *r)
{
	uint64_t due = 0, times[] = {r->again, r->waits_since == 0 ? r->deadline : 0, r->renew_at, wait_due(r)};
	for (size_t i = 0; i < sizeof times / sizeof *times; i++)
		due = times[i] != 0 && (due == 0 || times[i] < due) ? times[i] : due;
	return due;
}
