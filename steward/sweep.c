/*
 * The reconciler. Wake-ups are hints: whatever they miss, the next full reading of the open runs finds.
 * A queued run goes into the queue. A running one that this process does not drive was driven by an earlier
 * steward: nobody knows how far it came, so it is failed, never repeated (CONTRACT section 4).
 */
#include "steward/sweep.h"
#include "gen/run_fsm.h"
#include "gen/store_msg.h"
#include "lib/die.h"
#include "lib/lack.h"
#include "lib/num.h"
#include "steward/proof.h"
#include "steward/run.h"
#include "steward/tell.h"
#include "steward/wait.h"
#include <stdio.h>
#include <string.h>

enum { WOKEN_AT_ONCE = 1000 };

/* since: when it began to wait, by the timer: the wall clock may be set while it does. */
static void seen(struct app *app, const char *tenant, const char *run, uint8_t state, uint8_t phase, int64_t since)
{
	struct run *r = app_run(app, run);
	if (r != NULL && strcmp(r->tenant, tenant) != 0)
		return;
	switch (state) {
	case RUN_QUEUED:
		if (r == NULL)
			queue_add(&app->queue, tenant, run, since);
		break;
	case RUN_CANCELLING:
		queue_remove(&app->queue, tenant, run);
		if (r != NULL)
			run_cancel(app, r);
		else
			app->resync_at = timer_ms(); /* nobody drives it, or it has just ended */
		break;
	case RUN_RUNNING:
		if (r != NULL)
			wait_heard(r, phase);
		break;
	default:
		queue_remove(&app->queue, tenant, run);
	}
}

static void orphan(struct app *app, const char *tenant, const char *run, uint8_t state)
{
	if (state != RUN_RUNNING && state != RUN_CANCELLING)
		return;
	/* Asked for by this process, which is still to hear the answer (launch.c). */
	uint64_t asked = queue_asked(&app->queue, tenant, run);
	if (asked != 0 && timer_ms() < asked + START_AGAIN)
		return;
	queue_remove(&app->queue, tenant, run);
	struct run *r = run_new(app, tenant, run);
	if (r == NULL) {
		app->resync = true; /* next time: these come and go quickly */
		return;
	}
	log_warn("run %s of %s was going on without this steward", run, tenant);
	r->cancelled = state == RUN_CANCELLING;
	r->cancel_at = timer_ms();
	run_adopt(app, r);
}

/* How long it has been there. What was not there when all runs were read is younger than that, whatever the wall clock
 * says: it may have been set. */
static int64_t age_of(const struct app *app, const struct st_run_item *item)
{
	int64_t age = (int64_t)(clock_ms() - item->created_at), most = (int64_t)(timer_ms() - app->read_at);
	if (app->read_at != 0 && age > most)
		age = most;
	return age > 0 ? age : 0;
}

/* One page of open runs; its last key goes into after. False: that was the last page, or it failed. */
static bool page(struct app *app, char tenant[129], char run[129], enum err *e)
{
	struct st_runs_open m = {.after_tenant = tenant, .after_run = run};
	struct st_run_page answer;
	struct st_run_item item;
	struct wire_bytes part;
	bool bad = false;
	*e = tell_heard(app, st_call_runs_open(app->store, &m, NULL, &answer, NULL));
	if (*e != ERR_OK)
		return false;
	/* What follows asks the store again, into the buffer that holds this answer: a copy is read. */
	own_buf struct buf items;
	buf_init(&items, ASK_BUFFER);
	buf_add(&items, answer.items.p, answer.items.n);
	if (buf_failed(&items)) {
		*e = lack_error();
		return false;
	}
	struct wire_bytes rest = {items.p, (uint32_t)items.n};
	bool forward = false;
	while (wire_list_next(&rest, &part, &bad) && st_get_run_item(part.p, part.n, &item)) {
		int order = strcmp(item.tenant, tenant);
		forward = forward || order > 0 || (order == 0 && strcmp(item.run, run) > 0);
		snprintf(tenant, 129, "%s", item.tenant);
		snprintf(run, 129, "%s", item.run);
		bool driven = app_run(app, item.run) != NULL; /* it may end while it is looked at */
		seen(app, item.tenant, item.run, item.state, item.phase, (int64_t)timer_ms() - age_of(app, &item));
		if (!driven)
			orphan(app, item.tenant, item.run, item.state);
	}
	return answer.more && forward && !bad;
}

static void read_open(struct app *app)
{
	char tenant[129] = "", run[129] = "";
	enum err e;
	uint64_t from = timer_ms();
	app->resync = false;
	while (page(app, tenant, run, &e))
		;
	if (e == ERR_OK)
		app->read_at = app->queue.n < QUEUE_MAX ? from : 0;
	app->resync = app->resync || e != ERR_OK;
	app->resync_at = timer_ms() + (app->resync ? 2 * RETRY_STORE : RESYNC);
}

static void subscribe(struct app *app)
{
	struct st_subscribe m = {.tenant = "", .run = ""};
	struct st_ok answer;
	enum err e = tell_heard(app, st_call_subscribe(app->subscription, &m, NULL, &answer, NULL));
	app->subscribed = e == ERR_OK;
	app->figures_due = true; /* it may be another store */
	proof_tell_again(app);
	if (e == ERR_OK) {
		app->resync_at = timer_ms(); /* what happened in between is in the store */
	} else {
		log_warn("the store does not tell of changes: %s", err_code(e));
		app->subscribe_at = timer_ms() + RETRY_STORE;
	}
}

void sweep(struct app *app, uint64_t now)
{
	if (tell_quiet(app))
		return;
	if (!app->subscribed && now >= app->subscribe_at)
		subscribe(app);
	if (now >= app->resync_at)
		read_open(app);
}

void sweep_heard(struct app *app)
{
	struct ask_answer packet;
	struct st_woken m;
	int got = 0;
	for (int i = 0; i < WOKEN_AT_ONCE && (got = ask_wait(app->subscription, 0, &packet)) > 0; i++) {
		if (st_get_woken(packet.frame, packet.len, &m))
			seen(app, m.tenant, m.run, m.state, m.phase, (int64_t)timer_ms());
		ask_close_fds(&packet);
	}
	if (got < 0) {
		app->subscribed = false;
		app->subscribe_at = timer_ms();
	}
}

uint64_t sweep_due(const struct app *app)
{
	uint64_t due = app->resync_at;
	if (!app->subscribed && app->subscribe_at < due)
		due = app->subscribe_at;
	return tell_quiet(app) && app->store_quiet_until > due ? app->store_quiet_until : due;
}
