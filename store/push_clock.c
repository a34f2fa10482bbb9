/* See push_clock.h. The record is in the table of the clock, under its own name. */
#include "store/push_clock.h"
#include "gen/records.h"
#include "lib/die.h"
#include "lib/num.h"
#include "store/bdb.h"

static struct key clock_key(void)
{
	return key_prefix("push", NULL);
}

void push_clock_turn(struct store *s)
{
	s->tick = s->tick_base + timer_ms();
}

uint64_t push_tick(const struct txn *t)
{
	return t->store->tick;
}

void push_clock_record(struct txn *t)
{
	struct store *s = t->store;
	struct rec_push_clock r = {.tick = s->tick, .timer = s->tick - s->tick_base};
	struct key k = clock_key();
	uint8_t *p = txn_scratch(t);
	table_put(t, T_CLOCK, &k, p, rec_put_push_clock(p, STORE_SCRATCH, &r));
}

bool push_clock_sound(struct txn *t)
{
	struct rec_push_clock r;
	struct wire_bytes v;
	struct key k = clock_key();
	return !table_get(t, T_CLOCK, &k, &v) || rec_get_push_clock(v.p, v.n, &r);
}

void push_clock_open(struct store *s)
{
	struct txn t;
	struct wire_bytes v;
	struct rec_push_clock r;
	struct key k = clock_key();
	uint64_t timer = timer_ms();
	txn_init(&t, s, NULL);
	/* Less than it was: the machine was started again, and was up at least that long since. */
	if (table_get(&t, T_CLOCK, &k, &v) && rec_get_push_clock(v.p, v.n, &r))
		s->tick_base = timer >= r.timer ? r.tick - r.timer : r.tick;
	push_clock_turn(s);
	/* Now, or a machine that stays up for longer than the one before would have it go back at the next start. */
	push_clock_record(&t);
	if (txn_end(&t, ERR_OK) != ERR_OK)
		log_warn("the push clock could not be recorded: a push may come late after the next start");
	txn_free(&t);
}
