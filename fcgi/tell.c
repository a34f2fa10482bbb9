/* See tell.h. A figure that is a second old is good enough, and one that did not change is said now and again only:
 * stored may be another one by then. */
#include "fcgi/tell.h"
#include "gen/store_msg.h"
#include "handlers/counts.h"
#include "lib/ask.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { EVERY_S = 1, ANYWAY = 10, PATIENCE_MS = 1000, STACK = 256 * 1024 };

struct teller {
	const struct app *app;
	struct ask *ask;
	uint8_t now[COUNTS_BYTES], said[COUNTS_BYTES];
	uint32_t nsaid;
};

static void *run(void *arg)
{
	struct teller *t = arg;
	for (unsigned quiet = ANYWAY;; quiet++) {
		struct wire_bytes items = counts_put(t->app, t->now);
		bool same = items.n == t->nsaid && memcmp(t->now, t->said, items.n) == 0;
		struct st_ok ok;
		if (!same || quiet >= ANYWAY) {
			quiet = 0;
			t->nsaid = items.n;
			memcpy(t->said, t->now, items.n);
			if (st_call_figures(t->ask, &(struct st_figures){.items = items}, NULL, &ok, NULL) != ERR_OK)
				t->nsaid = UINT32_MAX; /* said again */
		}
		(void)nanosleep(&(struct timespec){.tv_sec = EVERY_S}, NULL);
	}
	return NULL;
}

bool tell_start(const struct app *app, const char *store_path)
{
	struct teller *t = calloc(1, sizeof *t);
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	if (t == NULL)
		return false;
	t->app = app;
	t->ask = ask_new(store_path, PATIENCE_MS);
	errno = t->ask == NULL ? ENOMEM : 0;
	if (errno == 0) {
		/* Signals are the main thread's. */
		(void)sigfillset(&all);
		(void)pthread_sigmask(SIG_SETMASK, &all, &before);
		(void)pthread_attr_init(&attr);
		(void)pthread_attr_setstacksize(&attr, STACK);
		(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
		errno = pthread_create(&thread, &attr, run, t);
		(void)pthread_attr_destroy(&attr);
		(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	if (errno == 0)
		return true; /* and t is the thread's, for ever */
	int saved = errno;
	ask_free(t->ask);
	free(t);
	errno = saved;
	return false;
}
