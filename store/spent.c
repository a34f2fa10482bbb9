/* See spent.h. Storage, which deletion and retention free, is counted by store/queues.h. */
#include "store/spent.h"
#include "gen/conf_msg.h"
#include "gen/records.h"
#include "store/check_row.h"
#include "store/env.h"
#include "store/push_clock.h"
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { ENTRY = SPENT_ENTRY, PIECES = 100, MINUTE = 60000, HOUR = 60 * MINUTE, STORAGE_SECONDS = 3600 };

struct kind {
	const char *name;
	uint64_t window, piece; /* milliseconds */
	enum err refusal;
};
static const struct kind kinds[SPENT__COUNT] = {
    [SPENT_RUNS] = {"runs", HOUR, MINUTE, ERR_RUN_RATE_EXCEEDED},
    [SPENT_REQUESTS] = {"requests", 24 * HOUR, HOUR / 2, ERR_TENANT_REQUEST_QUOTA_EXHAUSTED},
    [SPENT_TOKENS] = {"tokens", 24 * HOUR, HOUR / 2, ERR_TENANT_TOKEN_QUOTA_EXHAUSTED},
};
/* Of one run, in its capability. */
static const struct kind calls = {NULL, MINUTE, MINUTE / 12, ERR_MODEL_CALL_RATE_EXCEEDED};

struct piece {
	uint64_t at, n;
};

struct used {
	struct piece v[PIECES + 1];
	size_t n;
	uint64_t sum;
};

static uint64_t plus(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static struct key key_of(const char *tenant, const char *what)
{
	struct key k;
	k.n = rec_key_spent(k.p, sizeof k.p, tenant, what);
	return k;
}

static struct piece piece_of(const uint8_t *p)
{
	struct piece x;
	memcpy(&x.at, p, sizeof x.at);
	memcpy(&x.n, p + sizeof x.at, sizeof x.n);
	return (struct piece){be64toh(x.at), be64toh(x.n)};
}

bool spent_sound(struct wire_bytes value)
{
	struct rec_spent r;
	return rec_get_spent(value.p, value.n, &r) && r.buckets.n % ENTRY == 0 && r.buckets.n <= PIECES * ENTRY;
}

/* The moment at which it stops counting. */
static uint64_t out_at(const struct piece *p, const struct kind *k)
{
	return plus(p->at, k->piece + k->window);
}

static void unpack(const struct txn *t, struct wire_bytes buckets, const struct kind *k, struct used *u)
{
	*u = (struct used){.n = 0};
	for (uint32_t i = 0; i + ENTRY <= buckets.n && u->n < PIECES; i += ENTRY) {
		struct piece p = piece_of(buckets.p + i);
		if (out_at(&p, k) <= push_tick(t))
			continue;
		u->v[u->n++] = p;
		u->sum = plus(u->sum, p.n);
	}
}

static uint32_t pack(const struct used *u, uint8_t *bytes)
{
	for (size_t i = 0; i < u->n; i++) {
		const uint64_t x[2] = {htobe64(u->v[i].at), htobe64(u->v[i].n)};
		memcpy(bytes + i * ENTRY, x, ENTRY);
	}
	return (uint32_t)(u->n * ENTRY);
}

/* False: the transaction has failed. */
static bool load(struct txn *t, const char *tenant, enum spent what, struct used *u)
{
	struct key k = key_of(tenant, kinds[what].name);
	struct wire_bytes v;
	struct rec_spent r;
	*u = (struct used){.n = 0};
	if (!table_get(t, T_SPENT, &k, &v))
		return t->failed == ERR_OK;
	if (!spent_sound(v) || !rec_get_spent(v.p, v.n, &r)) {
		txn_fail(t, ERR_INTERNAL_ERROR);
		return false;
	}
	unpack(t, r.buckets, &kinds[what], u);
	return true;
}

static void save(struct txn *t, const char *tenant, const char *what, const struct used *u)
{
	struct key k = key_of(tenant, what);
	uint8_t bytes[PIECES * ENTRY], *p = txn_scratch(t);
	struct rec_spent r = {.buckets = {bytes, pack(u, bytes)}};
	table_put(t, T_SPENT, &k, p, rec_put_spent(p, STORE_SCRATCH, &r));
}

uint64_t spent_now(struct txn *t, const char *tenant, enum spent what)
{
	struct used u;
	return load(t, tenant, what, &u) ? u.sum : 0;
}

/* Is there room for n more? Otherwise after how long it is, if nothing is added meanwhile. */
static enum err fits(struct txn *t, const struct used *u, const struct kind *k, uint64_t n, uint64_t most)
{
	uint64_t now = push_tick(t), left = u->sum, until = now;
	if (plus(left, n) <= most)
		return ERR_OK;
	for (size_t i = 0; i < u->n && plus(left, n) > most; i++) {
		left -= u->v[i].n < left ? u->v[i].n : left;
		until = out_at(&u->v[i], k);
	}
	if (until <= now) /* never */
		until = plus(now, k->window);
	t->retry_after = (uint32_t)((until - now + 999) / 1000);
	return k->refusal;
}

/* most 0: always. */
static enum err room(struct txn *t, const char *tenant, enum spent what, uint64_t n, uint64_t most)
{
	struct used u;
	if (most == 0)
		return ERR_OK;
	return load(t, tenant, what, &u) ? fits(t, &u, &kinds[what], n, most) : t->failed;
}

enum err quota_call(struct txn *t, const char *tenant, uint64_t tokens)
{
	const struct cf_tenant *q = store_quotas(t->store, tenant);
	enum err e = room(t, tenant, SPENT_REQUESTS, 1, q->max_model_requests_day);
	return e != ERR_OK ? e : room(t, tenant, SPENT_TOKENS, tokens > 0 ? tokens : 1, q->max_tokens_day);
}

uint64_t quota_run_tokens(const struct txn *t, const char *tenant, const char *agent)
{
	const struct cf_agent *a = store_agent(t->store, agent);
	uint64_t most = store_quotas(t->store, tenant)->max_tokens_run;
	uint64_t its = a != NULL ? a->max_tokens_run : 0;
	return its > 0 && (most == 0 || its < most) ? its : most;
}

enum err quota_run(struct txn *t, const char *tenant, uint64_t bytes)
{
	const struct cf_tenant *q = store_quotas(t->store, tenant);
	enum err e = room(t, tenant, SPENT_RUNS, 1, q->max_runs_hour);
	/* A run that could ask no model would only fail. */
	if (e == ERR_OK)
		e = quota_call(t, tenant, 0);
	return e == ERR_OK ? quota_stored(t, tenant, bytes) : e;
}

enum err quota_stored(struct txn *t, const char *tenant, uint64_t bytes)
{
	const struct cf_tenant *q = store_quotas(t->store, tenant);
	if (q->max_stored_bytes == 0 || plus(store_stored(t->store, tenant), bytes) <= q->max_stored_bytes)
		return ERR_OK;
	/* Nobody knows when something is deleted; retention looks each hour. */
	t->retry_after = STORAGE_SECONDS;
	return ERR_TENANT_STORAGE_FULL;
}

static uint64_t start_of(struct txn *t, const struct kind *k)
{
	return push_tick(t) - push_tick(t) % k->piece;
}

/* True: a piece has begun. */
static bool count(struct txn *t, struct used *u, const struct kind *k, uint64_t n)
{
	uint64_t start = start_of(t, k);
	bool begins = u->n == 0 || u->v[u->n - 1].at < start;
	if (begins) {
		if (u->n == PIECES) { /* cannot be, but for a clock that was far behind: the oldest two become one */
			u->v[1].n = plus(u->v[0].n, u->v[1].n);
			memmove(u->v, u->v + 1, --u->n * sizeof *u->v);
		}
		u->v[u->n++] = (struct piece){.at = start};
	}
	u->v[u->n - 1].n = plus(u->v[u->n - 1].n, n);
	return begins;
}

uint64_t spent_add(struct txn *t, const char *tenant, enum spent what, uint64_t n)
{
	struct used u;
	if (n == 0 || !load(t, tenant, what, &u))
		return 0;
	/* After a start of the machine the clock goes on from here, at least. */
	if (count(t, &u, &kinds[what], n))
		push_clock_record(t);
	save(t, tenant, kinds[what].name, &u);
	return u.v[u.n - 1].at;
}

void spent_settle(struct txn *t, const char *tenant, enum spent what, uint64_t at, uint64_t reserved, uint64_t n)
{
	struct used u;
	if (n == reserved || !load(t, tenant, what, &u))
		return;
	for (size_t i = 0; i < u.n && reserved > 0; i++) {
		struct piece *p = &u.v[i];
		if (p->at != at || p->n < reserved)
			continue;
		p->n = plus(p->n - reserved, n);
		save(t, tenant, kinds[what].name, &u);
		return;
	}
	/* Its window is over, and nothing is left to be given back; or nothing was reserved. */
	spent_add(t, tenant, what, n);
}

enum err quota_minute(struct txn *t, uint64_t most, struct rec_capability *cap, uint8_t bytes[SPENT_MINUTE])
{
	struct used u;
	if (most == 0)
		return ERR_OK;
	unpack(t, cap->minute, &calls, &u);
	if (u.n > 0 && u.v[u.n - 1].at > push_tick(t)) { /* the machine was started again, and its clock began anew */
		u.v[0] = (struct piece){start_of(t, &calls), u.sum};
		u.n = 1;
	}
	enum err e = fits(t, &u, &calls, 1, most);
	if (e != ERR_OK)
		return e;
	count(t, &u, &calls, 1);
	cap->minute = (struct wire_bytes){bytes, pack(&u, bytes)};
	return ERR_OK;
}

/* --- for a restore and a check -------------------------------------------------------------------- */

struct telling {
	struct txn *t;
	spent_piece *piece;
	void *with;
};

static bool tell(void *with, struct wire_bytes key, struct wire_bytes value)
{
	const struct telling *g = with;
	const char *tenant = key_part(&key), *what = key_part(&key);
	uint64_t now = push_tick(g->t);
	struct rec_spent r;
	if (!spent_sound(value) || !rec_get_spent(value.p, value.n, &r))
		return true;
	for (uint32_t i = 0; i < r.buckets.n; i += ENTRY) {
		struct piece p = piece_of(r.buckets.p + i);
		g->piece(g->with, tenant, what, p.at < now ? now - p.at : 0, p.n);
	}
	return true;
}

void spent_each(struct txn *t, spent_piece *piece, void *with)
{
	struct telling g = {t, piece, with};
	struct key all = {.n = 0};
	table_scan(t, T_SPENT, &all, NULL, tell, &g);
}

void spent_drop(struct txn *t)
{
	struct key all = {.n = 0};
	(void)table_clear(t, T_SPENT, &all);
}

void spent_put(struct txn *t, const char *tenant, const char *what, uint64_t age, uint64_t n)
{
	uint64_t now = push_tick(t);
	for (enum spent k = 0; k < SPENT__COUNT; k++) {
		struct used u;
		if (strcmp(kinds[k].name, what) != 0 || !load(t, tenant, k, &u) || u.n == PIECES)
			continue;
		u.v[u.n++] = (struct piece){.at = age < now ? now - age : 0, .n = n};
		save(t, tenant, what, &u);
		push_clock_record(t);
	}
}

void check_spent(struct check *c, struct wire_bytes key, struct wire_bytes value)
{
	const char *tenant = key_part(&key), *what = key_part(&key);
	if (!spent_sound(value))
		check_finding(c, "what %s used of %s cannot be read", tenant, what);
}
