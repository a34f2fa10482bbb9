/*
 * What is lent to the process that sends, and what its outcome does. At most one push of a device is out, so one that
 * hangs holds up its own device alone, and at most a few of a tenant's; what is not reported back is lent again.
 */
#include "gen/audit.h"
#include "lib/digest.h"
#include "lib/names.h"
#include "lib/secret.h"
#include "store/env.h"
#include "store/push_clock.h"
#include "store/pushes.h"
#include "store/t_approval.h"
#include "store/t_token.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 64 /* of one question */, TOPIC_BYTES = 24, GONE_AT_ONCE = 32, TENANTS_OUT = 64, CAPPED_WAIT_MS = 1000 };
static const uint64_t second = 1000, ttl_ms = LIMIT_PUSH_TTL_SECONDS * UINT64_C(1000);

static void evict(struct txn *t, const char *tenant, const char *token_id, const char *label, const char *why)
{
	if (!push_gone(t, tenant, token_id))
		return;
	t->adds.pushes_evicted++;
	struct audit_line l = {
	    .event = AUDIT_PUSH_EVICTED,
	    .tenant = tenant,
	    .actor = "system",
	    .v = {{AUDIT_F_TOKEN_ID, .text = token_id}, {AUDIT_F_LABEL, .text = label}, {AUDIT_F_REASON, .text = why}}};
	if (t->naudit < TXN_AUDIT)
		txn_audit(t, &l);
}

/* --- what is next -------------------------------------------------------------------------------- */

/* How many of each tenant's are out. */
struct out {
	uint64_t until; /* no further than that */
	unsigned n;
	struct {
		unsigned n;
		char tenant[STORE_ID];
	} of[TENANTS_OUT];
};

static bool count_out(void *with, uint64_t due, const char *tenant, const char *token_id, bool is_out)
{
	struct out *o = with;
	unsigned i = 0;
	(void)token_id;
	if (due > o->until)
		return false;
	if (!is_out)
		return true;
	while (i < o->n && strcmp(o->of[i].tenant, tenant) != 0)
		i++;
	if (i == TENANTS_OUT)
		return false;
	if (i == o->n) {
		o->n++;
		(void)snprintf(o->of[i].tenant, STORE_ID, "%s", tenant);
	}
	o->of[i].n++;
	return true;
}

struct turn {
	uint64_t now, due;                   /* due: of the first that is not to be served yet */
	bool capped;                         /* some are due, and enough of their tenants are out */
	char tenant[STORE_ID], id[STORE_ID]; /* whose turn it is; "": nobody's */
	struct out out;
};

static bool whose(void *with, uint64_t due, const char *tenant, const char *token_id, bool is_out)
{
	struct turn *w = with;
	(void)is_out;
	w->due = due;
	if (due > w->now)
		return false;
	for (unsigned i = 0; i < w->out.n; i++)
		if (w->out.of[i].n >= PUSH_OUT_TENANT && strcmp(w->out.of[i].tenant, tenant) == 0) {
			w->capped = true;
			return true;
		}
	(void)snprintf(w->tenant, sizeof w->tenant, "%s", tenant);
	(void)snprintf(w->id, sizeof w->id, "%s", token_id);
	return false;
}

struct pick {
	uint64_t now;
	bool found;
	char run[STORE_ID], request[STORE_ID];
	struct rec_push row;
	unsigned ngone;
	char gone[GONE_AT_ONCE][2][STORE_ID]; /* too late for them */
};

static bool pick_row(void *with, const char *run, const char *request, const struct rec_push *r)
{
	struct pick *p = with;
	if (r->until <= p->now) {
		if (p->ngone < GONE_AT_ONCE) {
			(void)snprintf(p->gone[p->ngone][0], STORE_ID, "%s", run);
			(void)snprintf(p->gone[p->ngone++][1], STORE_ID, "%s", request);
		}
		return true;
	}
	if (r->due > p->now || (p->found && p->row.due <= r->due))
		return true;
	p->found = true;
	p->row = *r;
	(void)snprintf(p->run, sizeof p->run, "%s", run);
	(void)snprintf(p->request, sizeof p->request, "%s", request);
	return true;
}

/* Later pushes of one topic take the place of earlier ones, at the service and on the screen. False: no memory. */
static bool topic_of(struct txn *t, const struct pick *p, struct st_push_is *a)
{
	char text[2 * STORE_ID];
	uint8_t hash[SHA256_SIZE];
	char *topic = arena_get(&t->arena, SHA256_HEX);
	int n = snprintf(text, sizeof text, "%s/%s", p->run, p->request);
	if (topic == NULL || !sha256(text, (size_t)n, hash) ||
	    b64url_encode(hash, TOPIC_BYTES, topic, SHA256_HEX) == 0) {
		txn_fail(t, store_error(errno));
		return false;
	}
	a->topic = topic;
	return true;
}

/* How long it is worth keeping, in milliseconds; 0: it is not sent, and *again is when to look at it again (0: never).
 */
static uint64_t worth(struct txn *t, const struct turn *w, const struct pick *p, uint64_t *again)
{
	struct rec_approval q;
	uint64_t left = p->row.until - w->now;
	*again = 0;
	if (p->row.kind == PUSH_SUMMARY)
		return left;
	bool waits =
	    approval_get(t, w->tenant, p->run, p->request, &q) && q.status == APPROVAL_PENDING && q.expires_at > t->now;
	if (p->row.kind == PUSH_CARD)
		return !waits ? 0 : q.expires_at - t->now < left ? q.expires_at - t->now : left;
	/* The clock was set back, and the question waits for longer than was thought. */
	if (waits)
		*again = w->now + (q.expires_at - t->now);
	return waits ? 0 : left;
}

static bool lend(struct txn *t, const struct turn *w, struct pick *p, struct rec_push_subscription *s,
		 const struct rec_token *token, uint64_t left, struct st_push_is *a)
{
	uint64_t id = 0;
	while (id == 0)
		random_bytes(&id, sizeof id);
	const char *run = arena_dup(&t->arena, p->run, strlen(p->run));
	const char *request = arena_dup(&t->arena, p->request, strlen(p->request));
	const char *tenant = arena_dup(&t->arena, w->tenant, strlen(w->tenant));
	if (run == NULL || request == NULL || tenant == NULL) {
		txn_fail(t, store_error(errno));
		return false;
	}
	if (!topic_of(t, p, a))
		return false;
	p->row.lent = s->lent = id;
	p->row.attempts++;
	s->lent_until = w->now + PUSH_LENT_MS;
	push_put(t, tenant, w->id, run, request, &p->row);
	subscription_put(t, tenant, w->id, s, s->lent_until, false);
	a->id = id;
	a->tenant = tenant;
	a->label = token->label;
	a->endpoint = s->endpoint;
	a->p256dh = s->p256dh;
	a->auth = s->auth;
	a->kind = p->row.kind;
	a->run = run;
	a->request = request;
	a->count = p->row.count;
	a->ttl = (uint32_t)((left + second - 1) / second);
	a->expires_at = t->now + left;
	return true;
}

/* One device whose turn it is. True: something is lent; false: something was put right, look again. */
static bool serve(struct txn *t, const struct turn *w, struct wire_bytes key, struct st_push_is *a)
{
	struct rec_push_subscription s;
	struct rec_token token;
	struct pick *p = arena_get(&t->arena, sizeof *p);
	uint64_t again;
	if (p == NULL) {
		txn_fail(t, store_error(errno));
		return false;
	}
	*p = (struct pick){.now = w->now};
	if (!subscription_get(t, w->tenant, w->id, &s) || s.due == 0 || s.due > w->now) {
		struct key stray = push_due_key(w->due, w->tenant, w->id);
		(void)table_del(t, T_PUSH_DUE, &stray);
		return false;
	}
	if (!token_get(t, w->id, &token) || strcmp(token.tenant, w->tenant) != 0 || !token_is_device(&token, t->now)) {
		(void)push_gone(t, w->tenant, w->id);
		return false;
	}
	/* Lent until now: whoever had it said nothing. */
	s.lent = 0;
	if (!secret_equal(s.server_key.p, s.server_key.n, key.p, key.n)) {
		struct key rows = key_prefix(w->tenant, w->id);
		(void)table_clear(t, T_PUSH, &rows);
		subscription_put(t, w->tenant, w->id, &s, 0, false);
		return false;
	}
	push_each(t, w->tenant, w->id, pick_row, p);
	for (unsigned i = 0; i < p->ngone; i++)
		push_del(t, w->tenant, w->id, p->gone[i][0], p->gone[i][1]);
	uint64_t left = p->found ? worth(t, w, p, &again) : 0;
	if (left > 0)
		return lend(t, w, p, &s, &token, left, a);
	if (p->found && again > 0) {
		p->row.due = again;
		p->row.until = again + ttl_ms;
		p->row.lent = 0;
		push_put(t, w->tenant, w->id, p->run, p->request, &p->row);
	} else if (p->found) {
		push_del(t, w->tenant, w->id, p->run, p->request);
	}
	subscription_put(t, w->tenant, w->id, &s, push_when(t, w->tenant, w->id, &s), false);
	return false;
}

void push_next(struct txn *t, struct wire_bytes key, struct st_push_is *a)
{
	*a = (struct st_push_is){.tenant = "", .label = "", .endpoint = "", .run = "", .request = "", .topic = ""};
	for (unsigned i = 0; i < STEPS && t->failed == ERR_OK; i++) {
		struct turn w = {.now = push_tick(t)};
		w.out.until = w.now + PUSH_LENT_MS;
		push_due_each(t, w.now + 1, count_out, &w.out);
		push_due_each(t, 0, whose, &w);
		if (w.id[0] == '\0') {
			uint64_t wait = w.due > w.now ? w.due - w.now : 0;
			if (w.capped && (wait == 0 || wait > CAPPED_WAIT_MS))
				wait = CAPPED_WAIT_MS;
			a->wait_ms = wait > INT32_MAX ? INT32_MAX : (uint32_t)wait;
			return;
		}
		if (serve(t, &w, key, a))
			return;
	}
	a->wait_ms = 1; /* there was much to put right: it goes on with the next question */
}

/* --- what became of it ---------------------------------------------------------------------------- */

enum after { ROW_DONE, ROW_AGAIN };

/* One row an outcome, and nothing else decides. */
static const struct {
	bool evicts;  /* at once */
	bool failure; /* counts towards PUSH_FAILURES in a row; what does not, and is no success, leaves the count */
	bool success; /* begins the count anew */
	enum after after; /* the push itself */
	bool told_when;   /* the service said when to come again */
} outcomes[PUSH_OUTCOME__COUNT] = {
    [PUSH_SENT] = {.success = true, .after = ROW_DONE},        [PUSH_GONE] = {.evicts = true},
    [PUSH_REFUSED] = {.failure = true, .after = ROW_DONE},     [PUSH_FAILED] = {.failure = true, .after = ROW_AGAIN},
    [PUSH_TOO_MANY] = {.after = ROW_AGAIN, .told_when = true},
};

/* Until the next attempt at this device, after so many failures in a row. */
static uint64_t pause_of(uint32_t failures)
{
	static const uint32_t seconds[PUSH_FAILURES] = {10, 30, 90, 270, 810};
	return seconds[failures < PUSH_FAILURES ? failures : PUSH_FAILURES - 1] * second;
}

struct lent {
	uint64_t id;
	bool found;
	char run[STORE_ID], request[STORE_ID];
	struct rec_push row;
};

static bool lent_row(void *with, const char *run, const char *request, const struct rec_push *r)
{
	struct lent *l = with;
	if (r->lent != l->id)
		return true;
	l->found = true;
	l->row = *r;
	(void)snprintf(l->run, sizeof l->run, "%s", run);
	(void)snprintf(l->request, sizeof l->request, "%s", request);
	return false;
}

/* A card that is on a screen is taken from there when its question is over at the latest. */
static void sent(struct txn *t, const char *tenant, const char *token_id, struct lent *l, uint64_t now)
{
	struct rec_approval q;
	if (l->row.kind != PUSH_CARD) {
		push_del(t, tenant, token_id, l->run, l->request);
		return;
	}
	bool waits = approval_get(t, tenant, l->run, l->request, &q) && q.status == APPROVAL_PENDING;
	uint64_t left = waits && q.expires_at > t->now ? q.expires_at - t->now : 0;
	struct rec_push row = {.kind = PUSH_CLEAR, .due = now + left, .until = now + left + ttl_ms, .count = 1};
	push_put(t, tenant, token_id, l->run, l->request, &row);
}

static void settle(struct txn *t, const char *tenant, const char *token_id, struct rec_push_subscription *s,
		   const struct st_push_done *m)
{
	struct lent l = {.id = m->id};
	uint64_t now = push_tick(t), retry = m->retry_after;
	push_each(t, tenant, token_id, lent_row, &l);
	s->lent = 0;
	if (outcomes[m->outcome].success) {
		s->failures = 0;
		s->not_before = 0;
		t->adds.pushes_sent++;
	} else {
		t->adds.pushes_failed++;
	}
	if (outcomes[m->outcome].failure)
		s->not_before = now + pause_of(s->failures++);
	if (outcomes[m->outcome].told_when) {
		retry = retry == 0 ? 60 : retry > LIMIT_PUSH_TTL_SECONDS ? LIMIT_PUSH_TTL_SECONDS : retry;
		s->not_before = now + retry * second;
	}
	/* It may be there no more: its question was decided meanwhile. */
	if (l.found && outcomes[m->outcome].after == ROW_AGAIN) {
		l.row.lent = 0;
		l.row.attempts -= outcomes[m->outcome].told_when; /* surely it did not arrive */
		push_put(t, tenant, token_id, l.run, l.request, &l.row);
	} else if (l.found && outcomes[m->outcome].success) {
		sent(t, tenant, token_id, &l, now);
	} else if (l.found) {
		push_del(t, tenant, token_id, l.run, l.request);
	}
	subscription_put(t, tenant, token_id, s, push_when(t, tenant, token_id, s), false);
}

enum err push_done(struct txn *t, const struct st_push_done *m)
{
	struct push_devices d;
	struct rec_push_subscription s;
	struct rec_token token;
	if (m->outcome >= PUSH_OUTCOME__COUNT || m->id == 0)
		return ERR_INVALID_REQUEST;
	push_devices_of(t, m->tenant, &d);
	for (unsigned i = 0; i < d.n; i++) {
		const char *id = arena_dup(&t->arena, d.id[i], strlen(d.id[i]));
		if (id == NULL)
			return store_error(errno);
		if (!subscription_get(t, m->tenant, id, &s) || s.lent != m->id)
			continue;
		const char *label = token_get(t, id, &token) ? token.label : "";
		bool failed = outcomes[m->outcome].failure && s.failures + 1 >= PUSH_FAILURES;
		if (outcomes[m->outcome].evicts || failed) {
			t->adds.pushes_failed++;
			evict(t, m->tenant, id, label, failed ? "failures" : "gone");
		} else {
			settle(t, m->tenant, id, &s, m);
		}
		break;
	}
	return ERR_OK;
}
