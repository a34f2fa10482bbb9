/*
 * See settle.h. Only an absent store and want of memory or descriptors make it wait: any other refusal is logged and
 * the next part follows, because a run that never ends is worse than one that lacks an artifact.
 */
#include "steward/settle.h"
#include "gen/run_fsm.h"
#include "gen/store_msg.h"
#include "lib/die.h"
#include "lib/lack.h"
#include "lib/num.h"
#include "lib/own.h"
#include "steward/report.h"
#include "steward/run.h"
#include "steward/tell.h"
#include <string.h>

enum { PARTS_BYTES = 4000000 };

struct part {
	enum artifact name;
	void (*write)(struct buf *out, const struct run *r);
};

/* `events` is composed from the store's own buffer. */
static const struct part parts[] = {{ART_REQUEST, report_request}, {ART_CHECKPOINT, report_checkpoint},
				    {ART_PATCH, report_patch},     {ART_TEST_LOG, report_test_log},
				    {ART_RESULT, report_result},   {ART_TRANSCRIPT, report_transcript}};

/* Of an artifact: try again. A disk that is full for it stays so for too long. */
static bool passes(enum err e)
{
	return e == ERR_STORE_UNAVAILABLE || e == ERR_RESOURCES_EXHAUSTED;
}

static enum err put_artifacts(struct app *app, struct run *r)
{
	enum err first = ERR_OK;
	if (r->rq.root == NULL)
		return ERR_OK; /* not started by this process: there is nothing to tell */
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		if ((r->artifacts & (1u << parts[i].name)) != 0)
			continue;
		own_buf struct buf b;
		buf_init(&b, PARTS_BYTES);
		parts[i].write(&b, r);
		if (parts[i].name == ART_TRANSCRIPT && b.n == 0 && !buf_failed(&b))
			continue; /* not every agent has one */
		enum err e = buf_failed(&b) ? lack_or(ERR_SANDBOX_ARTIFACTS_INVALID)
					    : tell_artifact(app, r, parts[i].name, b.p, b.n);
		if (passes(e))
			return e;
		if (first == ERR_OK)
			first = e;
	}
	return first;
}

/* What overrides: a box that is still there, then a cancel, then the first failure. */
static void decide(struct run *r)
{
	enum reason before = r->reason;
	if (r->cleanup_failed) {
		r->error = ERR_SANDBOX_CLEANUP_FAILED;
		r->reason = REASON_SANDBOX_CLEANUP_FAILED;
	} else if (r->cancelled) {
		r->error = ERR_CANCELLED_BY_REQUEST;
		r->reason = REASON_CANCELLED_BY_REQUEST;
	} else if (r->error == ERR_OK) {
		r->reason = REASON_COMPLETED;
	}
	if (r->reason != before)
		r->artifacts &= ~(1u << ART_RESULT); /* it may say another end, from a try before */
}

static enum err finish(struct app *app, struct run *r)
{
	own_buf struct buf summary, changes, verification;
	struct st_run_state answer;
	buf_init(&summary, 16000);
	buf_init(&changes, 16000);
	buf_init(&verification, 65000);
	report_summary(&summary, r);
	report_changes(&changes, r);
	report_verification(&verification, r);
	enum run_event event = r->cleanup_failed    ? RUN_EV_UNCLEAN
			       : r->restart         ? RUN_EV_RESTART
			       : r->error == ERR_OK ? RUN_EV_COMPLETE
						    : RUN_EV_FAIL;
	struct st_run_finish m = {.tenant = r->tenant,
				  .run = r->run,
				  .event = (uint8_t)event,
				  .success = r->agent_ok,
				  .exited = r->exited,
				  .exit_code = r->exit_code,
				  .terminal_reason = reason_name(r->reason),
				  .error = r->error == ERR_OK ? "" : err_code(r->error)};
	const struct {
		const struct buf *from;
		struct wire_bytes *to;
	} texts[] = {{&summary, &m.summary}, {&changes, &m.changed_files}, {&verification, &m.verification}};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		/* What is too long is left out; what there was no memory for must not be. */
		if (!buf_failed(texts[i].from))
			*texts[i].to = (struct wire_bytes){texts[i].from->p, (uint32_t)texts[i].from->n};
		else if (lack())
			return lack_error();
	}
	enum err e = tell_heard(app, st_call_run_finish(app->store, &m, NULL, &answer, NULL));
	if (e == ERR_OK)
		log_info("run %s of %s ended: %s (%s)", r->run, r->tenant,
			 answer.state < RUN_STATE__COUNT ? run_public((enum run_state)answer.state) : "?",
			 reason_name(r->reason));
	return e;
}

/* Was it cancelled and the wake-up is still on its way? What the artifacts say is to be what is committed. */
static enum err look(struct app *app, struct run *r)
{
	struct st_run_phase m = {.tenant = r->tenant, .run = r->run, .phase = PHASE_CLEANING};
	struct st_run_state answer;
	enum err e = tell_heard(app, st_call_run_phase(app->store, &m, NULL, &answer, NULL));
	if (e == ERR_OK && answer.state == RUN_CANCELLING && !r->cancelled) {
		r->cancelled = true;
		r->cancel_at = timer_ms();
	}
	return e;
}

bool settle_try(struct app *app, struct run *r)
{
	if (tell_quiet(app))
		return false;
	(void)tell_revoke(app, r);
	/* Whoever sees the end sees all that was told before it. */
	if (!tell_all(app) || look(app, r) == ERR_STORE_UNAVAILABLE)
		return false;
	/* The artifacts tell the end as it will be committed, so the end is decided before they are written. */
	decide(r);
	enum err e = put_artifacts(app, r);
	if (passes(e))
		return false;
	if (e != ERR_OK && r->error == ERR_OK) {
		run_fail(r, e, REASON_ARTIFACTS_NOT_STORED);
		r->artifacts &= ~(1u << ART_RESULT); /* it says that all went well */
		if (passes(put_artifacts(app, r)))
			return false;
	}
	if (!r->revoked)
		(void)tell_revoke(app, r);
	e = r->revoked ? finish(app, r) : ERR_STORE_UNAVAILABLE;
	/* What passes is no reason to give an end up: not even a disk that is full beyond the ballast. */
	if (e != ERR_OK && err_row(e)->retry)
		return false;
	if (e != ERR_OK)
		log_warn("run %s: its end was not taken: %s", r->run, err_code(e));
	return true;
}
