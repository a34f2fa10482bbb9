/*
 * The connections of the web servers and the threads that serve them.
 *
 * Theory of operation. One thread (pool_run, the main one) accepts, and watches every connection that waits:
 * for its first byte, for the rest of its parameters, or, where the web server keeps connections, for its
 * next request. Only a connection whose parameters have arrived, or are arriving, is given to a worker; so a
 * silent or a kept connection costs a table row and no thread. Workers are added while fewer than two are
 * idle, up to a cap. The main thread is also the watchdog: it shuts down what is overdue, first the reading
 * half, so that the worker can still answer, then all of it.
 */
#ifndef FCGI_POOL_H
#define FCGI_POOL_H
#include "handlers/request.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How long one read or write may wait for the peer. */
enum { POOL_IO_SECONDS = 10 };

enum conn_state {
	CONN_FREE,
	CONN_IDLE,   /* in the epoll set: nothing more has arrived of the next request */
	CONN_QUEUED, /* for a worker */
	CONN_BUSY    /* a worker's */
};

struct conn {
	int fd;
	enum conn_state state;
	atomic_int overdue; /* 1: the reading half is shut down, 2: all of it */
	uint64_t turn;      /* order in which connections began to wait: milliseconds are not fine enough */
	uint64_t deadline;  /* of the request that is being read or answered */
	uint8_t *held;      /* parameters that came in pieces: the first held_n bytes of the request */
	size_t held_n;
	uint32_t served;
	bool watched; /* in the epoll set */
};

struct pool {
	struct app *app;
	const char *store_path;
	int listener, control, epoll;
	uint32_t start, most, deadline_ms;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t work;
	struct conn *conns;
	uint32_t nconns, used;
	uint32_t *queue, head, queued;
	uint32_t wake; /* workers to wake once the lock is free */
	uint32_t threads, idle;
	bool listening, said_keep, said_full;
	uint64_t listen_again, turns;
};

/* What a worker did with a connection. */
enum serve_end { SERVE_CLOSE, SERVE_KEEP, SERVE_MORE };

/* fills in the rest; app, store_path, listener, control, start, most and deadline_ms are set. Fatal on no memory. */
void pool_init(struct pool *p);
/* Serves until SIGTERM (then within 1.5 s) or until control ends. */
void pool_run(struct pool *p);

/* serve.c: one request of one worker. */
struct worker;
struct worker *worker_new(const struct pool *p);
void worker_free(struct worker *w);
enum serve_end serve(struct worker *w, struct conn *c, bool *asked_keep);
#endif
