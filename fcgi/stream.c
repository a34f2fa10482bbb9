/*
 * The loop of the stream thread (stream.h has the theory). It waits in one epoll set for the connections of the
 * streams, for stored, and for streams that workers hand over; four times a second it looks at everybody's clock.
 */
#include "fcgi/stream.h"
#include "gen/limits.h"
#include "handlers/sse.h"
#include "lib/die.h"
#include "lib/num.h"
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { TICK_MS = 250, STILL_MS = 1000, ALONE_MS = 10000, EVENTS = 128, STACK = 256 * 1024 };

static const uint32_t heartbeat_ms = 1000 * LIMIT_EVENTS_HEARTBEAT_SECONDS, slow_ms = 1000 * LIMIT_EVENTS_SLOW_SECONDS;

/* What workers have handed over, oldest last: nobody notices. */
static void take_in(struct streams *s)
{
	uint64_t n;
	(void)!read(s->wake, &n, sizeof n);
	(void)pthread_mutex_lock(&s->lock);
	uint32_t row = s->inbox;
	s->inbox = STREAM_NONE;
	(void)pthread_mutex_unlock(&s->lock);
	while (row != STREAM_NONE) {
		struct stream *st = &s->rows[row];
		row = st->next;
		if (stream_enter(s, st))
			stream_kick(s, st);
		else
			stream_close(s, st, false);
	}
}

static void cut(struct streams *s, struct stream *st)
{
	s->slow++;
	stream_close(s, st, false);
}

/* One stream's clock. */
static void look_after(struct streams *s, struct stream *st, uint32_t now)
{
	bool pending = st->chunk != NULL || st->ending;
	if (pending && now - st->moved >= slow_ms) {
		cut(s, st);
		return;
	}
	if (pending)
		stream_ready(s, st, EPOLLOUT); /* there was no memory for it, perhaps */
	else if (now - st->wrote >= heartbeat_ms)
		stream_put(s, st, s->heartbeat);
}

/* Too much is held for those who do not read: who has not for longest goes. */
static void make_room(struct streams *s, uint32_t now)
{
	while (s->held > STREAM_HELD) {
		struct stream *worst = NULL;
		for (uint32_t i = 0; i < s->nlive; i++) {
			struct stream *st = &s->rows[s->live[i]];
			if (st->chunk != NULL && now - st->moved >= STILL_MS &&
			    (worst == NULL || now - st->moved > now - worst->moved))
				worst = st;
		}
		if (worst == NULL)
			return;
		cut(s, worst);
	}
}

static void tick(struct streams *s)
{
	uint32_t now = stream_now();
	/* From behind: who is over is replaced by the last one. */
	for (uint32_t i = s->nlive; i > 0; i--)
		if (i <= s->nlive)
			look_after(s, &s->rows[s->live[i - 1]], now);
	s->looking.due = true;
	make_room(s, now);
}

/* Whatever happened while nobody told: everybody is looked at. */
static void told_again(struct streams *s)
{
	uint32_t then = stream_now() - STREAM_LOOK_MS;
	for (uint32_t i = 0; i < s->nlive; i++)
		s->rows[s->live[i]].looked = then;
	s->looking.due = true;
}

static void nothing(struct streams *s)
{
	(void)s;
}

static void on_event(struct streams *s, const struct epoll_event *e)
{
	if (e->data.u64 == STREAM_EV_WAKE) {
		take_in(s);
	} else if (e->data.u64 == STREAM_EV_ASK) {
		if (store_read(s, &s->ask, nothing, feed_answer))
			feed_lost(s);
	} else if (e->data.u64 == STREAM_EV_TOLD) {
		(void)store_read(s, &s->told, told_again, feed_woken);
	} else {
		struct stream *st = &s->rows[e->data.u64];
		/* One event of those that came together may have ended it. */
		if (st->fd >= 0)
			stream_ready(s, st, e->events);
	}
}

static void meet_store(struct streams *s, uint64_t now)
{
	if (s->nlive > 0) {
		s->alone_at = now;
		store_turn(s, &s->ask, now);
		store_turn(s, &s->told, now);
	} else if (now - s->alone_at >= ALONE_MS) {
		/* Nobody listens: stored need not talk. */
		store_leave(&s->told);
	}
}

/* How long nothing need be done by itself. */
static int patience(const struct streams *s, uint64_t now, uint64_t next_tick)
{
	if (s->nlive > 0)
		return next_tick <= now ? 0 : (int)(next_tick - now);
	return s->told.fd < 0 ? -1 : ALONE_MS;
}

static void *run(void *arg)
{
	struct streams *s = arg;
	uint64_t next_tick = 0;
	for (;;) {
		struct epoll_event ev[EVENTS];
		int n = epoll_wait(s->epoll, ev, EVENTS, patience(s, timer_ms(), next_tick));
		if (n < 0 && errno != EINTR)
			panic("epoll_wait: %m");
		for (int i = 0; i < n; i++)
			on_event(s, &ev[i]);
		uint64_t now = timer_ms();
		if (now >= next_tick) {
			tick(s);
			next_tick = now + TICK_MS;
		}
		meet_store(s, now);
		feed_look(s);
		feed_ask(s);
		stream_sweep(s);
	}
	return NULL;
}

bool streams_start(struct streams *s, struct pool *p)
{
	struct epoll_event e = {.events = EPOLLIN, .data.u64 = STREAM_EV_WAKE};
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t t;
	s->pool = p;
	s->heartbeat = chunk_new(s, SSE_HEARTBEAT, sizeof SSE_HEARTBEAT - 1);
	if (s->heartbeat == NULL || epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->wake, &e) != 0)
		return false;
	/* Signals are the main thread's. */
	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, STACK);
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	errno = pthread_create(&t, &attr, run, s);
	(void)pthread_attr_destroy(&attr);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return errno == 0;
}
