/* See pool.h. Every change of a row's state, and every close, happens under the lock: the watchdog never
 * shuts down a descriptor that has become another's. */
#include "fcgi/pool.h"
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
	STACK = 256 * 1024,
	SPARE_CONNS = 256,
	EVENTS = 64
};
/* Values of epoll data above any row. */
enum { TAG_LISTENER = 1u << 30, TAG_CONTROL, TAG_SIGNAL };

static void watch(struct pool *p, int fd, uint32_t tag, uint32_t events, int op)
{
	struct epoll_event e = {.events = events, .data.u32 = tag};
	if (epoll_ctl(p->epoll, op, fd, &e) != 0)
		log_error("epoll_ctl: %m");
}

void pool_init(struct pool *p)
{
	p->nconns = p->most + SPARE_CONNS;
	p->conns = calloc(p->nconns, sizeof *p->conns);
	p->queue = calloc(p->nconns, sizeof *p->queue);
	p->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (p->conns == NULL || p->queue == NULL || p->epoll < 0)
		fatal("cannot start: %m");
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->work, NULL);
}

static void drop(struct pool *p, struct conn *c)
{
	close(c->fd);
	free(c->held);
	c->held = NULL;
	c->state = CONN_FREE;
	c->fd = -1;
	p->used--;
}

static bool has_input(int fd)
{
	char one;
	return recv(fd, &one, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

static void *work(void *arg);

/* Adds a worker unless two would be idle with all that is queued. */
static void grow(struct pool *p)
{
	if (p->threads >= p->most || (p->threads >= p->start && p->idle >= p->queued + 2))
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

static void enqueue(struct pool *p, struct conn *c)
{
	c->state = CONN_QUEUED;
	p->queue[(p->head + p->queued++) % p->nconns] = (uint32_t)(c - p->conns);
	p->wake++;
	grow(p);
}

/* Gives the lock up, and only then wakes as many workers as there is new work: they would wait for it. */
static void unlock_and_wake(struct pool *p)
{
	uint32_t n = p->wake;
	p->wake = 0;
	pthread_mutex_unlock(&p->lock);
	while (n-- > 0)
		pthread_cond_signal(&p->work);
}

static struct conn *dequeue(struct pool *p)
{
	while (p->queued == 0)
		pthread_cond_wait(&p->work, &p->lock);
	struct conn *c = &p->conns[p->queue[p->head]];
	p->head = (p->head + 1) % p->nconns;
	p->queued--;
	p->idle--;
	c->state = CONN_BUSY;
	return c;
}

static void wait_for_more(struct pool *p, struct conn *c)
{
	c->state = CONN_IDLE;
	c->turn = p->turns++;
	watch(p, c->fd, (uint32_t)(c - p->conns), EPOLLIN | EPOLLRDHUP | EPOLLONESHOT,
	      c->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD);
	c->watched = true;
}

static void keep(struct pool *p, struct conn *c)
{
	if (!p->said_keep)
		log_info("the web server keeps its connections to this service open; it works, but is not needed");
	p->said_keep = true;
	free(c->held);
	c->held = NULL;
	c->held_n = 0;
	c->served++;
	wait_for_more(p, c);
}

static void *work(void *arg)
{
	struct pool *p = arg;
	struct worker *w = worker_new(p);
	pthread_mutex_lock(&p->lock);
	while (w != NULL) {
		struct conn *c = dequeue(p);
		bool asked_keep;
		pthread_mutex_unlock(&p->lock);
		enum serve_end end = serve(w, c, &asked_keep);
		pthread_mutex_lock(&p->lock);
		p->idle++;
		if (end == SERVE_KEEP)
			keep(p, c);
		else if (end == SERVE_MORE)
			wait_for_more(p, c);
		else
			drop(p, c);
	}
	p->threads--, p->idle--;
	pthread_mutex_unlock(&p->lock);
	log_error("a thread could not start: no memory");
	return NULL;
}

/* Makes room by ending the connection that has waited longest. False: none waits. */
static bool evict(struct pool *p)
{
	struct conn *oldest = NULL;
	for (uint32_t i = 0; i < p->nconns; i++) {
		struct conn *c = &p->conns[i];
		if (c->state == CONN_IDLE && (oldest == NULL || c->turn < oldest->turn))
			oldest = c;
	}
	if (oldest == NULL)
		return false;
	drop(p, oldest);
	return true;
}

static void listen_on(struct pool *p, bool on)
{
	if (on != p->listening)
		watch(p, p->listener, TAG_LISTENER, on ? EPOLLIN : 0, EPOLL_CTL_MOD);
	p->listening = on;
	p->listen_again = timer_ms() + LISTEN_AGAIN_MS;
}

static void admit(struct pool *p, int fd)
{
	struct timeval patience = {.tv_sec = POOL_IO_SECONDS};
	struct conn *c = p->conns;
	while (c->state != CONN_FREE)
		c++;
	/* An accepted socket does not inherit these from the listener. */
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	*c = (struct conn){.fd = fd};
	c->deadline = timer_ms() + p->deadline_ms;
	p->used++;
	/* Most web servers have sent the request by now. */
	if (has_input(fd))
		enqueue(p, c);
	else
		wait_for_more(p, c);
}

static void accept_all(struct pool *p)
{
	for (int i = 0; i < EVENTS; i++) {
		if (p->used == p->nconns && !evict(p)) {
			if (!p->said_full)
				log_warn("all %u connections are in use; new ones wait", p->nconns);
			p->said_full = true;
			listen_on(p, false);
			return;
		}
		int fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0) {
			admit(p, fd);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			/* The kernel says so before it looks whether anybody waits. */
			struct pollfd pending = {.fd = p->listener, .events = POLLIN};
			int why = errno;
			if (poll(&pending, 1, 0) != 1)
				return;
			errno = why;
			if (!p->said_full)
				log_warn("accept: %m; the longest idle connections are ended for new ones");
			p->said_full = true;
			if (evict(p))
				continue;
			listen_on(p, false);
		}
		return; /* EAGAIN, or a connection that is gone already */
	}
}

static void woke(struct pool *p, uint32_t row)
{
	struct conn *c = &p->conns[row];
	if (c->state != CONN_IDLE)
		return;
	if (!has_input(c->fd)) {
		drop(p, c);
		return;
	}
	if (c->held_n == 0)
		c->deadline = timer_ms() + p->deadline_ms;
	enqueue(p, c);
}

static void watchdog(struct pool *p, uint64_t now)
{
	for (uint32_t i = 0; i < p->nconns; i++) {
		struct conn *c = &p->conns[i];
		switch (c->state) {
		case CONN_IDLE:
			/* A kept connection may wait for its next request as long as there is room. */
			if ((c->served == 0 || c->held_n > 0) && now >= c->deadline)
				drop(p, c);
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
		case CONN_QUEUED:
			break;
		}
	}
}

static bool at_work(const struct pool *p)
{
	return p->queued > 0 || p->idle < p->threads;
}

/* sandboxd says who of the others serves. False: its end is closed. */
static bool hear(struct pool *p)
{
	uint8_t up[64];
	ssize_t n = read(p->control, up, sizeof up);
	if (n > 0)
		atomic_store(&p->app->up, up[n - 1]);
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
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
	watch(p, p->listener, TAG_LISTENER, EPOLLIN, EPOLL_CTL_ADD);
	watch(p, p->control, TAG_CONTROL, EPOLLIN | EPOLLRDHUP, EPOLL_CTL_ADD);
	watch(p, signals, TAG_SIGNAL, EPOLLIN, EPOLL_CTL_ADD);
	p->listening = true;
	uint64_t stop_at = 0, next_tick = 0;
	pthread_mutex_lock(&p->lock);
	while (p->threads < p->start) {
		uint32_t had = p->threads;
		grow(p);
		if (p->threads == had)
			fatal("cannot start %u threads", p->start);
	}
	for (;;) {
		struct epoll_event ev[EVENTS];
		uint64_t now = timer_ms();
		if (now >= next_tick) {
			watchdog(p, now);
			next_tick = now + TICK_MS;
		}
		if (stop_at != 0 && (now >= stop_at || !at_work(p)))
			break;
		if (stop_at == 0 && !p->listening && now >= p->listen_again)
			listen_on(p, true);
		int wait = !p->listening || stop_at != 0 ? SHORT_TICK_MS : TICK_MS;
		unlock_and_wake(p);
		int n = epoll_wait(p->epoll, ev, EVENTS, wait);
		pthread_mutex_lock(&p->lock);
		for (int i = 0; i < n; i++) {
			switch (ev[i].data.u32) {
			case TAG_LISTENER:
				if (stop_at == 0)
					accept_all(p);
				break;
			case TAG_CONTROL:
				if (!hear(p))
					return; /* sandboxd is gone */
				break;
			case TAG_SIGNAL:
				stop_at = timer_ms() + STOP_MS;
				listen_on(p, false);
				break;
			default:
				woke(p, ev[i].data.u32);
			}
		}
	}
}
