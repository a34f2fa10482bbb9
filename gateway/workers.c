/*
 * The threads that ask the store, with a connection each: as many questions are under way at a time as there are of
 * them, and those that arrive together share a flush there. What has waited in the queue for longer than a question may
 * take is not asked any more, so that while the store is away nobody waits longer than that for being told.
 */
#include "gateway/gateway.h"
#include "gateway/loop.h"
#include "lib/die.h"
#include <signal.h>
#include <stdlib.h>

enum { STACK = 512 * 1024 };

struct workers {
	struct loop *loop;
	const char *path;
	pthread_mutex_t lock;
	pthread_cond_t some;
	struct errand *first, **last; /* under the lock */
};

void workers_give(struct workers *w, struct errand *e)
{
	e->since_ms = timer_ms();
	pthread_mutex_lock(&w->lock);
	e->next = NULL;
	*w->last = e;
	w->last = &e->next;
	pthread_cond_signal(&w->some);
	pthread_mutex_unlock(&w->lock);
}

static struct errand *next_errand(struct workers *w)
{
	pthread_mutex_lock(&w->lock);
	while (!w->first)
		pthread_cond_wait(&w->some, &w->lock);
	struct errand *e = w->first;
	w->first = e->next;
	if (!w->first)
		w->last = &w->first;
	pthread_mutex_unlock(&w->lock);
	return e;
}

static void *work(void *arg)
{
	struct workers *w = arg;
	struct ask *store = ask_new(w->path, GATE_STORE_PATIENCE_MS);

	if (!store)
		fatal("no memory");
	for (;;) {
		struct errand *e = next_errand(w);
		e->work(e, timer_ms() - e->since_ms > GATE_STORE_PATIENCE_MS ? NULL : store);
		loop_post(w->loop, e);
	}
	return NULL;
}

struct workers *workers_new(struct loop *l, const char *store_path)
{
	struct workers *w = calloc(1, sizeof *w);
	pthread_attr_t attr;
	sigset_t all, before;

	if (!w)
		fatal("no memory");
	w->loop = l;
	w->path = store_path;
	w->last = &w->first;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->some, NULL);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK);
	/* Signals are the loop's. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	for (int i = 0; i < GATE_STORE_CONNECTIONS; i++) {
		pthread_t thread;
		if (pthread_create(&thread, &attr, work, w) != 0)
			fatal("cannot start the threads that ask the store: %m");
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return w;
}
