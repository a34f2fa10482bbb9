/* See pushes.h. */
#include "store/pushes.h"
#include "lib/names.h"
#include "store/push_budget.h"
#include "store/push_clock.h"
#include "store/t_token.h"
#include <stdio.h>
#include <string.h>

static const uint64_t ttl_ms = LIMIT_PUSH_TTL_SECONDS * UINT64_C(1000);

struct look {
	uint64_t now, due; /* due: of the earliest */
	unsigned n;
	uint64_t spare; /* and of the first retraction that is not to be sent yet */
	char run[STORE_ID], request[STORE_ID];
};

static bool look_at(void *with, const char *run, const char *request, const struct rec_push *r)
{
	struct look *l = with;
	l->n++;
	if (l->due == 0 || r->due < l->due)
		l->due = r->due;
	if (r->kind == PUSH_CLEAR && r->due > l->now && (l->spare == 0 || r->due < l->spare)) {
		l->spare = r->due;
		(void)snprintf(l->run, sizeof l->run, "%s", run);
		(void)snprintf(l->request, sizeof l->request, "%s", request);
	}
	return true;
}

uint64_t push_when(struct txn *t, const char *tenant, const char *token_id, const struct rec_push_subscription *s)
{
	struct look l = {0};
	if (s->lent != 0)
		return s->lent_until;
	push_each(t, tenant, token_id, look_at, &l);
	return l.due != 0 && l.due < s->not_before ? s->not_before : l.due;
}

/* Is there room for one more? The retraction of what has waited longest for its question's end makes it. */
static bool make_room(struct txn *t, const char *tenant, const char *token_id)
{
	struct look l = {.now = push_tick(t)};
	push_each(t, tenant, token_id, look_at, &l);
	if (l.n < PUSH_ROWS)
		return true;
	if (l.spare == 0)
		return false;
	push_del(t, tenant, token_id, l.run, l.request);
	return true;
}

static void queue(struct txn *t, const char *tenant, const char *token_id, const char *run, const char *request,
		  const struct rec_push *row)
{
	struct rec_push_subscription s;
	struct rec_push is = *row, was;
	if (!make_room(t, tenant, token_id) || !subscription_get(t, tenant, token_id, &s))
		return;
	/* A summary that has not got through yet is part of the next. */
	if (row->kind == PUSH_SUMMARY && push_get(t, tenant, token_id, run, request, &was))
		is.count = was.count < UINT32_MAX - is.count ? was.count + is.count : UINT32_MAX;
	push_put(t, tenant, token_id, run, request, &is);
	subscription_put(t, tenant, token_id, &s, push_when(t, tenant, token_id, &s), false);
	t->wake.push = true;
}

bool push_gone(struct txn *t, const char *tenant, const char *token_id)
{
	return subscription_del(t, tenant, token_id);
}

/* A device that is none any more is told nothing; whoever ended it without a word here is noticed now. */
static void drop_dead(struct txn *t, const char *tenant, struct push_devices *d)
{
	unsigned n = 0;
	for (unsigned i = 0; i < d->n; i++) {
		struct rec_token token;
		if (token_get(t, d->id[i], &token) && strcmp(token.tenant, tenant) == 0 &&
		    token_is_device(&token, t->now))
			memmove(d->id[n++], d->id[i], STORE_ID);
		else
			(void)push_gone(t, tenant, d->id[i]);
	}
	d->n = n;
}

void push_asked(struct txn *t, const char *tenant, const char *run, const char *request, const struct rec_approval *q)
{
	struct push_devices d;
	uint64_t now = push_tick(t), wait = q->expires_at > t->now ? q->expires_at - t->now : 0;
	struct rec_push row = {.kind = PUSH_CARD, .due = now, .until = now + (wait < ttl_ms ? wait : ttl_ms)};
	push_devices_of(t, tenant, &d);
	drop_dead(t, tenant, &d);
	/* Nobody is pushed to, so nothing is spent. */
	if (d.n == 0 || wait == 0)
		return;
	enum push_verdict verdict = push_budget_take(t, tenant, run, &row.count);
	if (verdict == PUSH_HELD)
		return;
	bool summed = verdict == PUSH_SUMMED;
	if (summed) {
		row.kind = PUSH_SUMMARY;
		row.until = now + ttl_ms;
	}
	for (unsigned i = 0; i < d.n; i++)
		queue(t, tenant, d.id[i], summed ? "" : run, summed ? "" : request, &row);
}

void push_over(struct txn *t, const char *tenant, const char *run, const char *request)
{
	struct push_devices d;
	uint64_t now = push_tick(t);
	push_devices_of(t, tenant, &d);
	for (unsigned i = 0; i < d.n; i++) {
		struct rec_push row;
		struct rec_push_subscription s;
		if (!push_get(t, tenant, d.id[i], run, request, &row) || !subscription_get(t, tenant, d.id[i], &s))
			continue;
		/* What was begun may have arrived, whatever was heard of it. */
		bool unsent = row.kind == PUSH_CARD && row.attempts == 0;
		if (unsent) {
			push_del(t, tenant, d.id[i], run, request);
		} else if (row.kind == PUSH_CARD || row.due > now) {
			row = (struct rec_push){.kind = PUSH_CLEAR, .due = now, .until = now + ttl_ms, .count = 1};
			push_put(t, tenant, d.id[i], run, request, &row);
			t->wake.push = true;
		}
		subscription_put(t, tenant, d.id[i], &s, push_when(t, tenant, d.id[i], &s), false);
	}
}
