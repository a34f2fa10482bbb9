/*
 * The connections of the web servers and the threads that serve them.
 *
 * Theory of operation. Every worker waits in one epoll set, in which are the listener and each connection that
 * waits: for its first byte, for the rest of its parameters, or, where the web server keeps connections, for its
 * next request. Each of them is armed once and wakes one worker, which serves it on the spot: no request is handed
 * from thread to thread. Whom the listener has woken holds it, and takes connection after connection without asking
 * for another wake-up, until nobody waits, it has taken a few, or it must wait itself, for the store or for its peer:
 * then it arms the listener for the next worker first. So answers that need nobody cost hardly a change of thread, and
 * no answer waits for another. A silent or a kept connection costs a table row and no thread. Workers are added while
 * fewer than two wait, up to a cap. The main thread is the watchdog: it shuts down what is overdue, first the reading
 * half, so that the worker can still answer, then all of it; and it arms the listener again after descriptors or rows
 * had run out, or where a worker holds it that does not come on.
 */
#ifndef FCGI_POOL_H
#define FCGI_POOL_H
#include "handlers/request.h"
#include "lib/reload.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How long one read or write may wait for the peer. */
enum { POOL_IO_SECONDS = 10 };
/* Connections that only wait, besides those that threads serve. */
enum { POOL_SPARE = 256 };

enum conn_state {
	CONN_FREE,
	CONN_IDLE, /* armed in the epoll set: nothing more has arrived of the next request */
	CONN_BUSY  /* a worker's */
};

struct conn {
	int fd;
	enum conn_state state;
	atomic_int overdue; /* 1: the reading half is shut down, 2: all of it */
	uint32_t turn;      /* order in which connections began to wait, and what its event must say */
	uint64_t deadline;  /* of the request that is being read or answered */
	uint8_t *held;      /* parameters that came in pieces: the first held_n bytes of the request */
	size_t held_n;
	uint32_t served;
	bool watched; /* in the epoll set */
	bool patient; /* reading from it may wait POOL_IO_SECONDS, not for ever */
	bool bounded; /* so may writing to it */
};

struct streams;
struct pool {
	struct app *app;
	struct streams *streams;
	const char *store_path;
	struct reload *reload;
	int listener, epoll;
	uint32_t start, most;
	_Atomic uint32_t deadline_ms;
	pthread_mutex_t lock; /* of all below */
	struct conn *conns;
	uint32_t nconns;
	uint32_t used;
	uint32_t *free; /* the first nconns - used of them are free rows */
	uint32_t threads, idle, turns;
	bool said_keep, said_full;
	atomic_bool stopping;             /* from here on without the lock */
	atomic_int listening;             /* enum pool_listening */
	_Atomic uint64_t listening_since; /* timer_ms: held, it last went on; later, it is to be armed */
};

enum pool_listening {
	LISTEN_ARMED, /* wakes one worker */
	LISTEN_HELD,  /* a worker's */
	LISTEN_LATER  /* nobody's, for want of descriptors or rows: the main thread arms it */
};

/* What a worker did with a connection. */
enum serve_end { SERVE_CLOSE, SERVE_KEEP, SERVE_MORE, SERVE_STREAM /* it is the streams' */ };

/* fills in the rest; app, reload, streams, store_path, listener, start, most and deadline_ms are set. Fatal on no
 * memory. */
void pool_init(struct pool *p);
/* Serves until SIGTERM (then within 1.5 s) or until sandboxd is gone. */
void pool_run(struct pool *p);

/* What sandboxd says besides what is said of a configuration: who of the others serves. arg: the pool. */
void pool_hear(void *arg, uint16_t number, const uint8_t *frame, size_t n);

/* Arms the listener, whoever held it. */
void pool_listen(struct pool *p);

/* The request that a worker serves on it may take longer, but what came fast saves up no time to stand still: from now
 * it has at most a request's time and this. */
void pool_more_time(struct pool *p, struct conn *c, unsigned ms);

/* A connection on which nothing goes on: its next request may come, if there is room for it. */
void pool_adopt(struct pool *p, int fd);

/* serve.c: one request of one worker. */
struct worker;
struct worker *worker_new(struct pool *p);
/* Does this worker hold the listener? */
bool worker_listens(const struct worker *w);
void worker_hold(struct worker *w, bool listens);
void worker_free(struct worker *w);
enum serve_end serve(struct worker *w, struct conn *c);
/* Behind SERVE_STREAM: the connection's descriptor, which nobody else knows any more; -1: it came to an end. */
void serve_stream(struct worker *w, int fd);
#endif
