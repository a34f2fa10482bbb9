/*
 * What streams ask stored: the next events behind a cursor, for all streams of that run and cursor at once; and of many
 * streams together, whether who reads still may. Trusts stored's frames as far as they decode; an event that cannot be
 * written as a frame ends the stream that should have had it.
 */
#include "fcgi/stream.h"
#include "handlers/runs.h"
#include "handlers/sse.h"
#include "lib/die.h"
#include "lib/num.h"
#include "lib/wire.h"
#include <string.h>

enum { AGAIN_MS = 500 };

static void leave_queue(struct streams *s, struct stream *st)
{
	if (!st->waits)
		return;
	st->waits = false;
	if (st->before != STREAM_NONE)
		s->rows[st->before].after = st->after;
	else
		s->queue_first = st->after;
	if (st->after != STREAM_NONE)
		s->rows[st->after].before = st->before;
	else
		s->queue_last = st->before;
}

void stream_forget(struct streams *s, struct stream *st)
{
	for (uint32_t i = 0; i < s->looking.n; i++)
		if (s->looking.rows[i] == stream_of(s, st))
			s->looking.rows[i] = STREAM_NONE;
	leave_queue(s, st);
}

static void wait_to_ask(struct streams *s, struct stream *st)
{
	if (st->waits)
		return;
	st->waits = true;
	st->before = s->queue_last;
	st->after = STREAM_NONE;
	if (s->queue_last != STREAM_NONE)
		s->rows[s->queue_last].after = stream_of(s, st);
	else
		s->queue_first = stream_of(s, st);
	s->queue_last = stream_of(s, st);
}

void stream_kick(struct streams *s, struct stream *st)
{
	if (st->chunk != NULL || st->ending)
		return;
	if (st->fresh || st->topic->last > st->cursor)
		wait_to_ask(s, st);
	else if (st->topic->terminal)
		stream_end(s, st);
}

/* all: of its streams also those that are being written to. */
static void each_stream(struct streams *s, struct topic *t, void (*act)(struct streams *s, struct stream *st))
{
	t->asked++; /* stays */
	for (uint32_t row = t->first; row != STREAM_NONE;) {
		struct stream *st = &s->rows[row];
		row = st->next; /* before it may be over */
		act(s, st);
	}
	t->asked--;
	topic_drop(s, t);
}

static void learn(struct streams *s, struct topic *t, uint64_t last, bool terminal)
{
	if (last <= t->last && t->terminal == (terminal || t->terminal))
		return;
	t->last = last > t->last ? last : t->last;
	t->terminal = t->terminal || terminal;
	each_stream(s, t, stream_kick);
}

void feed_woken(struct streams *s, const uint8_t *frame, size_t n)
{
	struct st_woken m;
	struct topic *t = st_get_woken(frame, n, &m) ? topic_find(s, m.tenant, m.run) : NULL;
	if (t != NULL)
		learn(s, t, m.last_sequence, run_terminal(m.state));
}

/* Is this question on its way already, for another stream? */
static bool goes_on(const struct streams *s, const struct topic *t, uint64_t after)
{
	for (unsigned i = 0; i < STREAM_READS; i++)
		if (s->readings[i].topic == t && s->readings[i].after == after)
			return true;
	return false;
}

static struct reading *free_reading(struct streams *s)
{
	for (unsigned i = 0; i < STREAM_READS; i++)
		if (s->readings[i].topic == NULL)
			return &s->readings[i];
	return NULL;
}

void feed_ask(struct streams *s)
{
	struct reading *g;
	if (s->ask.state != STORE_HERE || (s->pause_until > 0 && timer_ms() < s->pause_until))
		return;
	s->pause_until = 0;
	while (s->queue_first != STREAM_NONE && (g = free_reading(s)) != NULL) {
		struct stream *st = &s->rows[s->queue_first];
		struct topic *t = st->topic;
		if (!goes_on(s, t, st->cursor)) {
			struct st_events_read q = {
			    .tenant = t->tenant, .run = t->run, .after = st->cursor, .most = STREAM_PAGE};
			uint64_t op = s->next_op++;
			if (!store_send(s, &s->ask, s->out, st_put_events_read(s->out, ST_MAXFRAME, op, &q)))
				return; /* the next turn tries again */
			*g = (struct reading){.topic = t, .op = op, .after = st->cursor, .known = t->last};
			t->asked++;
		}
		leave_queue(s, st);
	}
}

/* The frames of a page. NULL: no memory, or an event that is none (*broken). */
static struct chunk *page_text(struct streams *s, const struct topic *t, const struct st_events_are *a, bool *broken)
{
	struct wire_bytes rest = a->events, part;
	bool bad = false;
	buf_reset(&s->text);
	while (wire_list_next(&rest, &part, &bad)) {
		struct st_event ev;
		*broken = *broken || !st_get_event(part.p, part.n, &ev);
		if (*broken || !sse_event(&s->text, &s->line, t->run, &ev))
			break;
	}
	*broken = *broken || bad;
	struct chunk *c =
	    *broken || buf_failed(&s->text) || buf_failed(&s->line) ? NULL : chunk_new(s, s->text.p, s->text.n);
	/* What a large page needed is not kept. */
	buf_free(&s->text);
	buf_free(&s->line);
	buf_init(&s->text, 4 * ST_MAXFRAME);
	buf_init(&s->line, ST_MAXFRAME);
	return c;
}

static void give_page(struct streams *s, struct topic *t, uint64_t after, uint64_t last, struct chunk *c)
{
	for (uint32_t row = t->first; row != STREAM_NONE;) {
		struct stream *st = &s->rows[row];
		row = st->next;
		if (st->cursor != after || st->chunk != NULL || st->ending)
			continue;
		st->fresh = false;
		if (c == NULL)
			continue;
		st->cursor = last;
		stream_put(s, st, c);
	}
}

static void take_page(struct streams *s, const struct reading *g, const struct st_events_are *a)
{
	struct topic *t = g->topic;
	struct chunk *c = NULL;
	bool broken = a->last < g->after || (a->last == g->after) != (a->events.n == 0);
	/* It has fewer than it had: it is another store, and whoever comes back is told all. */
	broken = broken || (!a->more && a->last < g->known);
	if (!broken && a->events.n > 0) {
		c = page_text(s, t, a, &broken);
		if (c == NULL && !broken) {
			s->pause_until = timer_ms() + AGAIN_MS;
			each_stream(s, t, stream_kick);
			return;
		}
	}
	if (broken) {
		log_warn("the events of run %s behind %llu cannot be sent", t->run, (unsigned long long)g->after);
		each_stream(s, t, stream_end);
		return;
	}
	/* Before anybody is written to, who would take what was known before for all there is. */
	uint64_t last = a->last + (a->more ? 1 : 0);
	t->last = last > t->last ? last : t->last;
	t->terminal = t->terminal || (a->terminal && !a->more);
	give_page(s, t, g->after, a->last, c);
	if (c != NULL)
		chunk_drop(s, c);
	each_stream(s, t, stream_kick);
}

static void take_failure(struct streams *s, const struct reading *g, const uint8_t *frame, size_t n)
{
	struct st_fail f;
	if (st_get_fail(frame, n, &f) && f.code == ERR_RUN_NOT_FOUND) {
		each_stream(s, g->topic, stream_end);
		return;
	}
	s->pause_until = timer_ms() + AGAIN_MS;
	each_stream(s, g->topic, stream_kick);
}

static void take_looks(struct streams *s, const uint8_t *frame, size_t n)
{
	struct st_streams_are a;
	struct st_stream_state state;
	struct wire_bytes part;
	bool bad = false;
	struct held *h = held_now(s->place);
	s->looking.op = 0;
	if (!st_get_streams_are(frame, n, &a))
		a.items.n = 0; /* refused: they are looked at the next time */
	/* What is learned of one may be the end of another: stream_forget strikes it out. */
	for (uint32_t i = 0; i < s->looking.n && wire_list_next(&a.items, &part, &bad); i++) {
		if (!st_get_stream_state(part.p, part.n, &state) || s->looking.rows[i] == STREAM_NONE)
			continue;
		struct stream *st = &s->rows[s->looking.rows[i]];
		/* Whoever has more than there is has seen another store's: an older one was restored. */
		if (state.refused != 0 || state.last_sequence < st->cursor ||
		    conf_tenant(&h->conf, st->topic->tenant) == NULL)
			stream_end(s, st);
		else
			learn(s, st->topic, state.last_sequence, state.terminal);
	}
	s->looking.n = 0;
	held_done(h);
}

void feed_answer(struct streams *s, const uint8_t *frame, size_t n)
{
	uint16_t number;
	uint64_t op;
	struct st_events_are a;
	if (!wire_peek(frame, n, &number, &op))
		return;
	if (op == s->looking.op && op != 0) {
		take_looks(s, frame, n);
		return;
	}
	for (unsigned i = 0; i < STREAM_READS; i++) {
		struct reading g = s->readings[i];
		if (g.topic == NULL || g.op != op)
			continue;
		s->readings[i].topic = NULL; /* the reference is g's now */
		if (number == ST_EVENTS_ARE && st_get_events_are(frame, n, &a))
			take_page(s, &g, &a);
		else
			take_failure(s, &g, frame, n);
		g.topic->asked--;
		topic_drop(s, g.topic);
		return;
	}
}

void feed_lost(struct streams *s)
{
	s->looking.op = 0;
	s->looking.n = 0;
	for (unsigned i = 0; i < STREAM_READS; i++) {
		struct topic *t = s->readings[i].topic;
		s->readings[i].topic = NULL;
		if (t == NULL)
			continue;
		each_stream(s, t, stream_kick);
		t->asked--;
		topic_drop(s, t);
	}
}

void feed_look(struct streams *s)
{
	struct looking *k = &s->looking;
	uint32_t now = stream_now(), seen = 0;
	if (!k->due || k->op != 0 || s->ask.state != STORE_HERE)
		return;
	struct wire_list list = {.p = s->in, .cap = STREAM_LOOKS * (size_t)(ST_MAX_STREAM_ITEM + 4)};
	for (k->n = 0; seen < s->nlive && k->n < STREAM_LOOKS; seen++) {
		uint32_t row = s->live[k->from++ % s->nlive];
		struct stream *st = &s->rows[row];
		if (st->ending || now - st->looked < STREAM_LOOK_MS)
			continue;
		struct st_stream_item m = {.tenant = st->topic->tenant,
					   .run = st->topic->run,
					   .token_id = st->token_id,
					   .token_hash = {st->token_hash, sizeof st->token_hash}};
		uint8_t *p = wire_list_room(&list, ST_MAX_STREAM_ITEM);
		wire_list_add(&list, p == NULL ? 0 : st_put_stream_item(p, ST_MAX_STREAM_ITEM, &m));
		st->looked = now;
		k->rows[k->n++] = row;
	}
	k->due = seen < s->nlive;
	if (k->n == 0)
		return;
	struct st_streams_check q = {.items = wire_list_done(&list)};
	uint64_t op = s->next_op++;
	if (store_send(s, &s->ask, s->out, st_put_streams_check(s->out, ST_MAXFRAME, op, &q)))
		k->op = op;
	else
		k->n = 0;
}
