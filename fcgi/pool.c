/* See pool.h. Every change of a row's state happens under the lock, and a descriptor is closed only once its row
 * is free of it: the watchdog never shuts down a descriptor that has become another's. */
#include "fcgi/pool.h"
#include "gen/sandbox_msg.h"
#include "lib/die.h"
#include "lib/num.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	TICK_MS = 250,
	SHORT_TICK_MS = 20,
	GRACE_MS = 12000,
	STOP_MS = 1500,
	LISTEN_AGAIN_MS = 100,
	HELD_MS = 500,
	IN_TURN = 16, /* connections that one worker takes before it lets another: on a busy machine it may be halted */
	STACK = 256 * 1024
};
/* Epoll data: turn << 32 | row. A row above any is the listener. */
#define LISTENER UINT32_MAX

/* False: nobody will be woken by it. */
static bool arm(struct pool *p, int fd, uint64_t data, uint32_t events, int op)
{
	struct epoll_event e = {.events = events | EPOLLONESHOT, .data.u64 = data};
	if (epoll_ctl(p->epoll, op, fd, &e) == 0)
		return true;
	log_warn("epoll_ctl: %m");
	return false;
}

void pool_init(struct pool *p)
{
	p->nconns = p->most + POOL_SPARE;
	p->conns = calloc(p->nconns, sizeof *p->conns);
	p->free = calloc(p->nconns, sizeof *p->free);
	p->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (p->conns == NULL || p->free == NULL || p->epoll < 0)
		fatal("cannot start: %m");
	for (uint32_t i = 0; i < p->nconns; i++)
		p->free[i] = p->nconns - 1 - i;
	pthread_mutex_init(&p->lock, NULL);
}

/* Frees the row. The descriptor, now nobody's, is the caller's to close. */
static int give_up(struct pool *p, struct conn *c)
{
	int fd = c->fd;
	free(c->held);
	c->held = NULL;
	c->state = CONN_FREE;
	c->fd = -1;
	p->free[p->nconns - p->used--] = (uint32_t)(c - p->conns);
	return fd;
}

static void *work(void *arg);

/* Adds a worker unless two would wait. */
static void grow(struct pool *p)
{
	if (p->threads >= p->most || (p->threads >= p->start && p->idle >= 2))
		return;
	pthread_attr_t attr;
	pthread_t t;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&t, &attr, work, p) == 0)
		p->threads++, p->idle++;
	else
		log_warn("cannot start another thread; %u serve", p->threads);
	pthread_attr_destroy(&attr);
}

/* -1, or a descriptor that cannot be waited for and is the caller's to close. */
static int wait_for_more(struct pool *p, struct conn *c)
{
	c->state = CONN_IDLE;
	c->turn = p->turns++;
	if (!arm(p, c->fd, (uint64_t)c->turn << 32 | (uint32_t)(c - p->conns), EPOLLIN | EPOLLRDHUP,
		 c->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD))
		return give_up(p, c);
	c->watched = true;
	return -1;
}

static int keep(struct pool *p, struct conn *c)
{
	if (!p->said_keep)
		log_info("the web server keeps its connections to this service open; it works, but is not needed");
	p->said_keep = true;
	free(c->held);
	c->held = NULL;
	c->held_n = 0;
	c->served++;
	return wait_for_more(p, c);
}

static bool has_input(int fd)
{
	char one;
	return recv(fd, &one, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

/* Makes room by ending the connection that has waited longest; one whose next request is there only waits for a
 * worker. False: there is none. */
static bool evict(struct pool *p)
{
	struct conn *oldest = NULL;
	for (uint32_t i = 0; i < p->nconns; i++) {
		struct conn *c = &p->conns[i];
		/* By their distance, since the count of turns begins anew one day. */
		if (c->state == CONN_IDLE && (oldest == NULL || p->turns - c->turn > p->turns - oldest->turn) &&
		    !has_input(c->fd))
			oldest = c;
	}
	if (oldest == NULL)
		return false;
	close(give_up(p, oldest));
	return true;
}

/* Leaves the listener unarmed: the main thread will arm it. */
static void listen_later(struct pool *p)
{
	atomic_store(&p->listening_since, timer_ms() + LISTEN_AGAIN_MS);
	atomic_store(&p->listening, LISTEN_LATER);
}

void pool_listen(struct pool *p)
{
	/* Said before it is so: whom it wakes says that it is held. */
	atomic_store(&p->listening, LISTEN_ARMED);
	if (!arm(p, p->listener, LISTENER, EPOLLIN, EPOLL_CTL_MOD))
		listen_later(p);
}

static bool somebody_waits(const struct pool *p)
{
	struct pollfd pending = {.fd = p->listener, .events = POLLIN};
	return poll(&pending, 1, 0) == 1;
}

/* A row for one more connection. NULL: there is none, and *later says whether somebody waits for one. */
static struct conn *take_row(struct pool *p, bool *later)
{
	struct conn *c = NULL;
	pthread_mutex_lock(&p->lock);
	*later = p->used == p->nconns && somebody_waits(p) && !evict(p);
	if (*later && !p->said_full) {
		log_warn("all %u connections are in use; new ones wait", p->nconns);
		p->said_full = true;
	}
	if (p->used < p->nconns) {
		c = &p->conns[p->free[p->nconns - 1 - p->used++]];
		*c = (struct conn){.fd = -1, .state = CONN_BUSY, .deadline = timer_ms() + p->deadline_ms};
		p->idle--;
	}
	pthread_mutex_unlock(&p->lock);
	return c;
}

/* accept failed for want of descriptors or memory. True: there is room now. */
static bool make_room(struct pool *p, int why)
{
	pthread_mutex_lock(&p->lock);
	errno = why;
	if (!p->said_full)
		log_warn("accept: %m; the longest idle connections are ended for new ones");
	p->said_full = true;
	bool room = evict(p);
	pthread_mutex_unlock(&p->lock);
	return room;
}

/* -1: nobody waits any more, and *later says whether the listener must stay unarmed. */
static int accept_one(struct pool *p, bool *later)
{
	for (;;) {
		int fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0 || (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM))
			return fd; /* EAGAIN, or a connection that is gone already */
		int why = errno;
		/* The kernel says so before it looks whether anybody waits. */
		if (!somebody_waits(p))
			return -1;
		*later = !make_room(p, why);
		if (*later)
			return -1;
	}
}

/* The row gets its connection; without one it is free again. */
static void fill_row(struct pool *p, struct conn *c, int fd)
{
	pthread_mutex_lock(&p->lock);
	if (fd >= 0) {
		c->fd = fd;
		grow(p);
	} else {
		(void)give_up(p, c);
		p->idle++;
	}
	pthread_mutex_unlock(&p->lock);
}

/* For who holds the listener. NULL: nobody waits, and it is held no more. */
static struct conn *take_new(struct pool *p)
{
	bool later;
	if (atomic_load(&p->stopping))
		return NULL;
	struct conn *c = take_row(p, &later);
	int fd = c != NULL ? accept_one(p, &later) : -1;
	if (c != NULL)
		fill_row(p, c, fd);
	if (fd >= 0) {
		atomic_store(&p->listening_since, timer_ms());
		return c;
	}
	if (later)
		listen_later(p);
	else
		pool_listen(p);
	return NULL;
}

/* A connection that waited has woken this worker; NULL: it was ended meanwhile. */
static struct conn *take_waiting(struct pool *p, uint32_t row, uint32_t turn)
{
	struct conn *c = &p->conns[row];
	pthread_mutex_lock(&p->lock);
	if (c->state == CONN_IDLE && c->turn == turn) {
		c->state = CONN_BUSY;
		if (c->held_n == 0)
			c->deadline = timer_ms() + p->deadline_ms;
		p->idle--;
		grow(p);
	} else {
		c = NULL;
	}
	pthread_mutex_unlock(&p->lock);
	return c;
}

/* The row's connection becomes the streams'. What is overdue the watchdog has shut down: that one ends. */
static void give_away(struct pool *p, struct worker *w, struct conn *c)
{
	pthread_mutex_lock(&p->lock);
	p->idle++;
	bool watched = c->watched, over = atomic_load(&c->overdue) != 0;
	int fd = give_up(p, c);
	pthread_mutex_unlock(&p->lock);
	over = over || (watched && epoll_ctl(p->epoll, EPOLL_CTL_DEL, fd, NULL) != 0);
	if (over)
		close(fd);
	serve_stream(w, over ? -1 : fd);
}

void pool_more_time(struct pool *p, struct conn *c, unsigned ms)
{
	pthread_mutex_lock(&p->lock);
	uint64_t most = timer_ms() + p->deadline_ms + ms;
	c->deadline = c->deadline + ms < most ? c->deadline + ms : most;
	pthread_mutex_unlock(&p->lock);
}

void pool_adopt(struct pool *p, int fd)
{
	pthread_mutex_lock(&p->lock);
	if (p->used < p->nconns && !atomic_load(&p->stopping)) {
		struct conn *c = &p->conns[p->free[p->nconns - 1 - p->used++]];
		*c = (struct conn){.fd = fd, .served = 1, .deadline = timer_ms() + p->deadline_ms};
		fd = wait_for_more(p, c);
	}
	pthread_mutex_unlock(&p->lock);
	if (fd >= 0)
		close(fd);
}

static void put_back(struct pool *p, struct worker *w, struct conn *c, enum serve_end end)
{
	int fd = -1;
	if (end == SERVE_STREAM) {
		give_away(p, w, c);
		return;
	}
	pthread_mutex_lock(&p->lock);
	p->idle++;
	if (end == SERVE_KEEP)
		fd = keep(p, c);
	else if (end == SERVE_MORE)
		fd = wait_for_more(p, c);
	else
		fd = give_up(p, c);
	pthread_mutex_unlock(&p->lock);
	if (fd >= 0)
		close(fd);
}

/* Waits for something to do; NULL: it was nothing. */
static struct conn *await(struct pool *p, struct worker *w)
{
	struct epoll_event ev;
	int n = epoll_wait(p->epoll, &ev, 1, -1);
	if (n < 0 && errno != EINTR)
		panic("epoll_wait: %m");
	if (n < 1)
		return NULL;
	uint32_t row = (uint32_t)ev.data.u64;
	if (row != LISTENER)
		return take_waiting(p, row, (uint32_t)(ev.data.u64 >> 32));
	atomic_store(&p->listening_since, timer_ms());
	atomic_store(&p->listening, LISTEN_HELD);
	worker_hold(w, true);
	return NULL;
}

static void *work(void *arg)
{
	struct pool *p = arg;
	struct worker *w = worker_new(p);
	unsigned in_turn = 0;
	while (w != NULL) {
		struct conn *c = NULL;
		if (!worker_listens(w)) {
			in_turn = 0;
			c = await(p, w);
		}
		if (c == NULL && worker_listens(w)) {
			c = take_new(p);
			worker_hold(w, c != NULL && ++in_turn < IN_TURN);
			if (in_turn == IN_TURN)
				pool_listen(p);
		}
		if (c != NULL)
			put_back(p, w, c, serve(w, c));
	}
	pthread_mutex_lock(&p->lock);
	p->threads--, p->idle--;
	pthread_mutex_unlock(&p->lock);
	log_error("a thread could not start: no memory");
	return NULL;
}

static void watchdog(struct pool *p, uint64_t now)
{
	for (uint32_t i = 0; i < p->nconns; i++) {
		struct conn *c = &p->conns[i];
		switch (c->state) {
		case CONN_IDLE:
			/* A kept connection may wait for its next request as long as there is room. */
			if ((c->served == 0 || c->held_n > 0) && now >= c->deadline)
				close(give_up(p, c));
			break;
		case CONN_BUSY:
			if (now >= c->deadline + GRACE_MS && atomic_load(&c->overdue) < 2) {
				atomic_store(&c->overdue, 2);
				shutdown(c->fd, SHUT_RDWR);
			} else if (now >= c->deadline && atomic_load(&c->overdue) < 1) {
				atomic_store(&c->overdue, 1);
				shutdown(c->fd, SHUT_RD);
			}
			break;
		case CONN_FREE:
			break;
		}
	}
}

void pool_hear(void *arg, uint16_t number, const uint8_t *frame, size_t n)
{
	const struct pool *p = arg;
	struct sbx_up m;
	if (number != SBX_UP || !sbx_get_up(frame, n, &m))
		fatal("sandboxd sent an unexpected message (%u)", number);
	atomic_store(&p->app->up, m.who);
}

static void look_after_listener(struct pool *p, uint64_t now)
{
	int state = atomic_load(&p->listening);
	uint64_t patience = state == LISTEN_HELD ? HELD_MS : 0;
	if (state != LISTEN_ARMED && now >= atomic_load(&p->listening_since) + patience)
		pool_listen(p);
}

/* Does everything that is due. Returns how long to wait for the next, or -1: the service has stopped. */
static int turn(struct pool *p, uint64_t now, uint64_t stop_at, bool tick)
{
	pthread_mutex_lock(&p->lock);
	if (tick)
		watchdog(p, now);
	/* Threads that ended for want of memory are replaced even when nobody accepts. */
	if (stop_at == 0 && tick)
		grow(p);
	bool over = stop_at != 0 && (now >= stop_at || p->idle == p->threads);
	pthread_mutex_unlock(&p->lock);
	if (stop_at == 0)
		look_after_listener(p, now);
	bool soon = stop_at != 0 || atomic_load(&p->listening) == LISTEN_LATER;
	return over ? -1 : soon ? SHORT_TICK_MS : TICK_MS;
}

static void start_workers(struct pool *p)
{
	pthread_mutex_lock(&p->lock);
	while (p->threads < p->start) {
		uint32_t had = p->threads;
		grow(p);
		if (p->threads == had)
			fatal("cannot start %u threads", p->start);
	}
	pthread_mutex_unlock(&p->lock);
}

void pool_run(struct pool *p)
{
	sigset_t stop;
	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigaddset(&stop, SIGINT);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	int signals = signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0)
		fatal("signalfd: %m");
	if (!arm(p, p->listener, LISTENER, EPOLLIN, EPOLL_CTL_ADD))
		fatal("cannot wait for connections");
	start_workers(p);
	struct pollfd heard[2] = {{.fd = p->reload->control, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
	uint64_t stop_at = 0, next_tick = 0;
	for (;;) {
		uint64_t now = timer_ms();
		bool tick = now >= next_tick;
		if (tick)
			next_tick = now + TICK_MS;
		int wait = turn(p, now, stop_at, tick);
		if (wait < 0)
			return;
		if (poll(heard, 2, wait) <= 0)
			continue;
		if (heard[0].revents != 0 && !reload_hear(p->reload, pool_hear))
			return; /* sandboxd is gone */
		if (heard[1].revents != 0 && stop_at == 0) {
			stop_at = timer_ms() + STOP_MS;
			atomic_store(&p->stopping, true);
			heard[1].fd = -1;
		}
	}
}
