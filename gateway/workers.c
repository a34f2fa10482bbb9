/*
 * The threads that ask the store, with a connection each: as many questions are under way at a time as there are of
 * them, and those that arrive together share a flush there. What has waited in the queue for longer than a question may
 * take is not asked any more, so that while the store is away nobody waits longer than that for being told.
 */
#include "gateway/gateway.h"
#include "gateway/loop.h"
#include "lib/die.h"
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>

enum { STACK = 512 * 1024 };

/* Whoever became idle last is woken first, with what it is to do: one change of threads, and as few of them as do. */
struct worker {
	struct workers *of;
	sem_t given;
	struct errand *errand;
	struct worker *next_idle; /* under the lock */
};

struct workers {
	struct loop *loop;
	const char *path;
	pthread_mutex_t lock;
	struct errand *first, **last; /* under the lock; empty while anyone is idle */
	struct worker *idle, all[GATE_STORE_CONNECTIONS];
};

void workers_give(struct workers *w, struct errand *e)
{
	e->since_ms = timer_ms();
	e->next = NULL;
	pthread_mutex_lock(&w->lock);
	struct worker *one = w->idle;
	if (one) {
		w->idle = one->next_idle;
	} else {
		*w->last = e;
		w->last = &e->next;
	}
	pthread_mutex_unlock(&w->lock);
	if (one) {
		one->errand = e;
		sem_post(&one->given);
	}
}

static struct errand *next_errand(struct worker *me)
{
	struct workers *w = me->of;

	pthread_mutex_lock(&w->lock);
	struct errand *e = w->first;
	if (e) {
		w->first = e->next;
		if (!w->first)
			w->last = &w->first;
	} else {
		me->next_idle = w->idle;
		w->idle = me;
	}
	pthread_mutex_unlock(&w->lock);
	if (e)
		return e;
	while (sem_wait(&me->given) != 0)
		;
	return me->errand;
}

static void *work(void *arg)
{
	struct worker *me = arg;
	struct workers *w = me->of;
	struct ask *store = ask_new(w->path, GATE_STORE_PATIENCE_MS);

	if (!store)
		fatal("no memory");
	for (;;) {
		struct errand *e = next_errand(me);
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
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK);
	/* Signals are the loop's. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	for (int i = 0; i < GATE_STORE_CONNECTIONS; i++) {
		pthread_t thread;
		w->all[i].of = w;
		sem_init(&w->all[i].given, 0, 0);
		if (pthread_create(&thread, &attr, work, &w->all[i]) != 0)
			fatal("cannot start the threads that ask the store: %m");
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return w;
}
