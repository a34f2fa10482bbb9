/* See loop.h. What an event is of is a row and the row's turn of use, so that one that was waiting to be handled when
 * its watch ended finds nobody. */
#include "gateway/loop.h"
#include "lib/die.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { EVENTS = 64, TURNS = 4, ROWS_FIRST = 256, ROWS_LAST = 1 << 20 };

struct row {
	void (*ready)(void *, uint32_t);
	void *arg;
	int fd;
	uint32_t use, next_free;
};

struct loop {
	int epoll, bell;
	struct row *rows;
	uint32_t nrows, free; /* row 0 is nobody's */
	struct {
		int (*turn)(void *);
		void *arg;
	} turns[TURNS];
	unsigned nturns;
	bool again;
	pthread_mutex_t lock;
	struct errand *first, **last; /* under the lock */
};

struct loop *loop_new(void)
{
	struct loop *l = calloc(1, sizeof *l);
	struct epoll_event ev = {.events = EPOLLIN};

	if (!l)
		fatal("no memory");
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	l->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	l->last = &l->first;
	pthread_mutex_init(&l->lock, NULL);
	if (l->epoll < 0 || l->bell < 0 || epoll_ctl(l->epoll, EPOLL_CTL_ADD, l->bell, &ev) != 0)
		fatal("cannot make the loop: %m");
	return l;
}

static bool more_rows(struct loop *l)
{
	uint32_t n = l->nrows ? 2 * l->nrows : ROWS_FIRST;
	struct row *rows = n <= ROWS_LAST ? realloc(l->rows, n * sizeof *rows) : NULL;

	if (!rows)
		return false;
	l->rows = rows;
	for (uint32_t i = n - 1; i > 0 && i >= l->nrows; i--) {
		rows[i] = (struct row){.fd = -1, .next_free = l->free};
		l->free = i;
	}
	l->nrows = n;
	return true;
}

static struct row *row_of(struct loop *l, uint64_t watch)
{
	uint32_t i = (uint32_t)watch;
	return i > 0 && i < l->nrows && l->rows[i].ready && l->rows[i].use == watch >> 32 ? &l->rows[i] : NULL;
}

uint64_t loop_watch(struct loop *l, int fd, uint32_t events, void (*ready)(void *, uint32_t), void *arg)
{
	if (!l->free && !more_rows(l))
		return 0;
	uint32_t i = l->free;
	struct row *r = &l->rows[i];
	uint64_t watch = (uint64_t)r->use << 32 | i;
	struct epoll_event ev = {.events = events, .data.u64 = watch};
	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &ev) != 0)
		return 0;
	l->free = r->next_free;
	*r = (struct row){.ready = ready, .arg = arg, .fd = fd, .use = r->use};
	return watch;
}

bool loop_rewatch(struct loop *l, uint64_t watch, uint32_t events)
{
	struct row *r = row_of(l, watch);
	struct epoll_event ev = {.events = events, .data.u64 = watch};
	return r && epoll_ctl(l->epoll, EPOLL_CTL_MOD, r->fd, &ev) == 0;
}

void loop_unwatch(struct loop *l, uint64_t watch)
{
	struct row *r = row_of(l, watch);

	if (!r)
		return;
	(void)epoll_ctl(l->epoll, EPOLL_CTL_DEL, r->fd, NULL);
	*r = (struct row){.fd = -1, .use = r->use + 1, .next_free = l->free};
	l->free = (uint32_t)watch;
}

void loop_each_turn(struct loop *l, int (*turn)(void *), void *arg)
{
	if (l->nturns == TURNS)
		panic("more turns than there is room for");
	l->turns[l->nturns].turn = turn;
	l->turns[l->nturns++].arg = arg;
}

void loop_again(struct loop *l)
{
	l->again = true;
}

void loop_wake(struct loop *l)
{
	uint64_t one = 1;
	/* Full is as good: it wakes. */
	if (write(l->bell, &one, sizeof one) != sizeof one && errno != EAGAIN)
		fatal("the loop cannot be woken: %m");
}

void loop_post(struct loop *l, struct errand *e)
{
	pthread_mutex_lock(&l->lock);
	bool first = l->first == NULL;
	e->next = NULL;
	*l->last = e;
	l->last = &e->next;
	pthread_mutex_unlock(&l->lock);
	if (first)
		loop_wake(l);
}

static void do_errands(struct loop *l)
{
	pthread_mutex_lock(&l->lock);
	struct errand *e = l->first;
	l->first = NULL;
	l->last = &l->first;
	pthread_mutex_unlock(&l->lock);
	while (e) {
		struct errand *next = e->next;
		e->done(e);
		e = next;
	}
}

static void on_event(struct loop *l, const struct epoll_event *ev)
{
	uint64_t count;
	struct row *r = row_of(l, ev->data.u64);

	if (r)
		r->ready(r->arg, ev->events);
	else if (ev->data.u64 == 0 && read(l->bell, &count, sizeof count) != sizeof count && errno != EAGAIN)
		fatal("the loop's bell: %m");
}

void loop_run(struct loop *l)
{
	struct epoll_event ev[EVENTS];
	int patience = 0;

	for (;;) {
		int n = epoll_wait(l->epoll, ev, EVENTS, patience);
		if (n < 0 && errno != EINTR)
			fatal("epoll: %m");
		for (int i = 0; i < n; i++)
			on_event(l, &ev[i]);
		do_errands(l);
		patience = -1;
		l->again = false;
		for (unsigned i = 0; i < l->nturns; i++) {
			int ms = l->turns[i].turn(l->turns[i].arg);
			if (ms >= 0 && (patience < 0 || ms < patience))
				patience = ms;
		}
		if (l->again)
			patience = 0;
	}
}
