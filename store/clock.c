/*
 * The moment every operation of a batch sees. It never goes back by a little (up to CLOCK_SLACK it
 * stands still), and before it goes back by more, everything that had expired at the highest moment is
 * made to stay expired: capabilities are deleted, principal tokens revoked, questions over; no pairing code and no
 * first tap is left. So a clock that is set back revives nothing, and one that was wrong for a while does not stop new
 * runs once it is right.
 */
#include "gen/records.h"
#include "lib/die.h"
#include "lib/names.h"
#include "lib/num.h"
#include "store/bdb.h"
#include "store/t_approval.h"
#include "store/t_pairing.h"
#include "store/t_run.h"
#include "store/t_token.h"
#include <string.h>

enum { CLOCK_SLACK = 5000, RECORD_EVERY = 1000, DAY = 86400000 };

static struct key clock_key(void)
{
	return key_prefix("highest", NULL);
}

static void put_clock(struct txn *t, uint64_t highest)
{
	struct rec_clock r = {.highest = highest};
	struct key k = clock_key();
	uint8_t *p = txn_scratch(t);
	table_put(t, T_CLOCK, &k, p, rec_put_clock(p, STORE_SCRATCH, &r));
	t->store->recorded = highest;
}

void clock_record(struct txn *t)
{
	if (t->store->highest - t->store->recorded >= RECORD_EVERY)
		put_clock(t, t->store->highest);
}

void clock_open(struct store *s)
{
	struct txn t;
	struct wire_bytes v;
	struct rec_clock r;
	struct key k = clock_key();
	txn_init(&t, s, NULL);
	if (table_get(&t, T_CLOCK, &k, &v) && rec_get_clock(v.p, v.n, &r))
		s->highest = s->recorded = r.highest;
	(void)txn_end(&t, ERR_OK);
	txn_free(&t);
	clock_turn(s);
}

struct sweep {
	struct txn *t;
	struct buf keys; /* u32 length and key, repeated: a scan must not write */
};

static void keep_key(struct sweep *w, struct wire_bytes key)
{
	buf_add(&w->keys, &key.n, sizeof key.n);
	buf_add(&w->keys, key.p, key.n);
}

static bool expired_capability(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct sweep *w = with;
	struct rec_capability r;
	if (rec_get_capability(value.p, value.n, &r) && r.expires_at <= w->t->store->highest)
		keep_key(w, key);
	return true;
}

static bool expired_token(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct sweep *w = with;
	struct rec_token r;
	if (rec_get_token(value.p, value.n, &r) && token_settle(&r, w->t->store->highest, w->t->store->highest))
		keep_key(w, key);
	return true;
}

static bool waiting_question(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct sweep *w = with;
	struct rec_approval r;
	if (rec_get_approval(value.p, value.n, &r) && r.status == APPROVAL_PENDING &&
	    (r.confirm.n > 0 || r.expires_at <= w->t->store->highest))
		keep_key(w, key);
	return true;
}

static bool open_run(void *with, const char *tenant, const char *run, uint8_t state, uint64_t created_at)
{
	struct sweep *w = with;
	struct key prefix = key_prefix(tenant, run);
	(void)state;
	(void)created_at;
	table_scan(w->t, T_APPROVAL, &prefix, NULL, waiting_question, w);
	return true;
}

static bool next_key(const struct buf *b, size_t *at, struct key *k)
{
	uint32_t n;
	if (*at + sizeof n > b->n)
		return false;
	memcpy(&n, b->p + *at, sizeof n);
	memcpy(k->p, b->p + *at + sizeof n, n);
	k->n = n;
	*at += sizeof n + n;
	return true;
}

/* A question that is over is told of by who looks next. */
static void settle_questions(struct sweep *w, uint64_t now)
{
	struct txn *t = w->t;
	struct key k;
	size_t at = 0;
	run_open_each(t, NULL, NULL, NULL, open_run, w);
	while (next_key(&w->keys, &at, &k)) {
		struct rec_approval r;
		struct wire_bytes rest = {k.p, (uint32_t)k.n};
		const char *tenant = key_part(&rest), *run = key_part(&rest), *request = key_part(&rest);
		if (!approval_get(t, tenant, run, request, &r))
			continue;
		if (r.expires_at <= t->store->highest)
			r.expires_at = now;
		r.confirm = (struct wire_bytes){NULL, 0};
		approval_put(t, tenant, run, request, &r);
	}
}

static void step_back(struct store *s, uint64_t now)
{
	struct txn t;
	struct key k, all = {.n = 0};
	size_t at = 0;
	txn_init(&t, s, NULL);
	struct sweep w = {.t = &t};
	buf_init(&w.keys, 64 << 20);
	table_scan(&t, T_CAPABILITY, &all, NULL, expired_capability, &w);
	while (next_key(&w.keys, &at, &k))
		(void)table_del(&t, T_CAPABILITY, &k);
	bool failed = buf_failed(&w.keys);
	buf_reset(&w.keys);
	table_scan(&t, T_TOKEN, &all, NULL, expired_token, &w);
	for (at = 0; next_key(&w.keys, &at, &k);) {
		struct wire_bytes v;
		struct rec_token r;
		if (!table_get(&t, T_TOKEN, &k, &v) || !rec_get_token(v.p, v.n, &r))
			continue;
		(void)token_settle(&r, s->highest, now);
		uint8_t *p = txn_scratch(&t);
		table_put(&t, T_TOKEN, &k, p, rec_put_token(p, STORE_SCRATCH, &r));
	}
	failed = failed || buf_failed(&w.keys);
	buf_reset(&w.keys);
	settle_questions(&w, now);
	failed = failed || buf_failed(&w.keys);
	pairings_drop(&t);
	buf_free(&w.keys);
	put_clock(&t, now);
	uint64_t before = s->highest;
	s->highest = now;
	if (txn_end(&t, failed ? ERR_INTERNAL_ERROR : ERR_OK) == ERR_OK) {
		store_flush(s);
		log_warn("the clock went back by %llu s; what had expired stays expired",
			 (unsigned long long)((before - now) / 1000));
	} else {
		s->highest = before; /* not written: stand still and try at the next turn */
	}
	s->now = s->highest;
	txn_free(&t);
}

void clock_raise(struct store *s, uint64_t highest)
{
	if (highest > s->highest)
		s->now = s->highest = highest;
}

bool store_settled(const struct store *s)
{
	return s->leapt == 0 || timer_ms() - s->leapt >= DAY;
}

void clock_turn(struct store *s)
{
	uint64_t now = clock_ms();
	/* Also a machine that was off for long, which does no harm: what waits for this can wait. */
	if (s->highest != 0 && now > s->highest && now - s->highest >= DAY) {
		s->leapt = timer_ms();
		log_warn("the clock is %llu days later than when it was last looked at: nothing is pruned for a day",
			 (unsigned long long)((now - s->highest) / DAY));
	}
	if (now >= s->highest)
		s->now = s->highest = now;
	else if (s->highest - now <= CLOCK_SLACK)
		s->now = s->highest;
	else
		step_back(s, now);
}
