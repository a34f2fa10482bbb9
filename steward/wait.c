/*
 * See wait.h. A wake-up says that the store is to be asked (WAIT_LOOK); so does the time at which it said that a
 * question is over, since an agent that is frozen does not look by itself. The clock stops at once; the agent is frozen
 * when what it was told has had a moment to arrive, and not while a model call of its run is under way: one that begins
 * all the same wakes us, and the agent goes on until it has ended. A missed wake-up is made good by the next reading of
 * the open runs.
 *
 * All waiting of a run together has an end (LIMIT_APPROVAL_WAITS): beyond it, its wall time goes on while it waits.
 */
#include "steward/wait.h"
#include "gen/store_msg.h"
#include "lib/die.h"
#include "lib/num.h"
#include "steward/control.h"
#include "steward/tell.h"

enum { SETTLE = 1000 /* from a question, or a call's end, to freezing */, DAY = 86400000 };

uint64_t wait_most(uint32_t approval_wait_seconds)
{
	uint64_t most = (uint64_t)approval_wait_seconds * LIMIT_APPROVAL_WAITS * 1000;
	return most < DAY ? most : DAY;
}

void wait_heard(struct run *r, uint8_t phase)
{
	if (phase == PHASE_AWAITING_APPROVAL || r->waits_since != 0)
		r->look_at = timer_ms();
}

void wait_forget(struct run *r)
{
	r->look_at = r->freeze_at = r->waits_since = 0;
	r->frozen = false;
}

static void begin(struct app *app, struct run *r, uint64_t now)
{
	log_info("run %s of %s waits for a person", r->run, r->tenant);
	r->waits_since = now;
	r->renew_at = now; /* a token's life is shorter than what may come */
	control_pause(app, r->run, true, false);
}

static void freeze(struct app *app, struct run *r, bool frozen)
{
	r->frozen = frozen;
	control_pause(app, r->run, true, frozen);
}

void wait_end(struct app *app, struct run *r)
{
	uint64_t now = timer_ms(), waited = now - r->waits_since;
	if (r->waits_since == 0)
		return;
	log_info("run %s of %s goes on after %llu ms", r->run, r->tenant, (unsigned long long)waited);
	r->wait_left -= waited < r->wait_left ? waited : r->wait_left;
	r->deadline += r->deadline != 0 ? waited : 0;
	r->allowed += r->allowed != 0 ? waited : 0;
	r->renew_at = now; /* for what is left of its wall time */
	r->freeze_at = r->waits_since = 0;
	r->frozen = false;
	control_pause(app, r->run, false, false);
}

/* What the store says, made true. */
static void set(struct app *app, struct run *r, bool waits, bool calling)
{
	uint64_t now = timer_ms();
	if (!waits || r->cancelled || r->wait_left == 0) {
		wait_end(app, r);
		return;
	}
	if (r->waits_since == 0)
		begin(app, r, now);
	if (calling) {
		r->freeze_at = 0;
		if (r->frozen)
			freeze(app, r, false);
	} else if (!r->frozen && r->freeze_at == 0) {
		r->freeze_at = now + SETTLE;
	}
}

static void look(struct app *app, struct run *r)
{
	struct st_wait_look m = {.tenant = r->tenant, .run = r->run};
	struct st_wait_is is = {.waits = false};
	if (tell_quiet(app)) {
		r->look_at = app->store_quiet_until;
		return;
	}
	enum err e = tell_heard(app, st_call_wait_look(app->store, &m, NULL, &is, NULL));
	if (e == ERR_STORE_UNAVAILABLE) {
		r->look_at = timer_ms() + RETRY_STORE;
		return;
	}
	if (e != ERR_OK)
		log_warn("run %s: whether it waits was not told: %s", r->run, err_code(e));
	r->look_at = e == ERR_OK && is.waits ? timer_ms() + is.left_ms + 1 : 0;
	set(app, r, e == ERR_OK && is.waits, is.calling);
}

void wait_tick(struct app *app, struct run *r, uint64_t now)
{
	if (r->look_at != 0 && now >= r->look_at)
		look(app, r);
	if (r->waits_since != 0 && now >= r->waits_since + r->wait_left) {
		log_warn("run %s of %s has waited as long as it may: its wall time goes on", r->run, r->tenant);
		wait_end(app, r);
	}
	if (r->freeze_at != 0 && now >= r->freeze_at) {
		r->freeze_at = 0;
		freeze(app, r, true);
	}
}

uint64_t wait_due(const struct run *r)
{
	uint64_t due = 0, times[] = {r->look_at, r->freeze_at, r->waits_since != 0 ? r->waits_since + r->wait_left : 0};
	for (size_t i = 0; r->step == STEP_WORK && i < sizeof times / sizeof *times; i++)
		due = times[i] != 0 && (due == 0 || times[i] < due) ? times[i] : due;
	return due;
}
