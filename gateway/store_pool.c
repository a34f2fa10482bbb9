/*
 * Connections to stored: made when needed, at most GATE_STORE_CONNECTIONS, lent to one call at a time.
 * The last one given back is lent first, so that few stay in use.
 */
#include "gateway/gateway.h"
#include "lib/die.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STAY_SECONDS = 5 };

struct store_pool {
	pthread_mutex_t lock;
	pthread_cond_t freed, news;
	bool say; /* under the lock */
	const char *path;
	struct ask *idle[GATE_STORE_CONNECTIONS];
	unsigned nidle, nmade;
	struct app *app;
};

struct store_pool *store_pool_new(const char *socket_path)
{
	struct store_pool *p = calloc(1, sizeof *p);
	pthread_condattr_t attr;

	if (!p)
		fatal("no memory");
	p->path = socket_path;
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->freed, &attr);
	pthread_cond_init(&p->news, &attr);
	pthread_condattr_destroy(&attr);
	return p;
}

static void *stay(void *arg)
{
	struct store_pool *p = arg;
	struct ask *a = ask_new(p->path, GATE_STORE_PATIENCE_MS);
	uint8_t ready[CONF_PROFILES * 32]; /* fingerprints */
	struct timespec until;
	struct st_ok ok;

	while (a != NULL) {
		const struct terms *now = terms_now(p->app);
		struct st_profiles_ready m = {.fingerprints = {ready, 0}};
		for (uint32_t i = 0; i < now->ntargets; i++)
			if (now->targets[i].usable) {
				memcpy(ready + m.fingerprints.n, now->targets[i].fingerprint, 32);
				m.fingerprints.n += 32;
			}
		terms_done(now);
		(void)st_call_profiles_ready(a, &m, NULL, &ok, NULL);
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += STAY_SECONDS;
		pthread_mutex_lock(&p->lock);
		for (int waited = 0; !p->say && waited != ETIMEDOUT;)
			waited = pthread_cond_timedwait(&p->news, &p->lock, &until);
		p->say = false;
		pthread_mutex_unlock(&p->lock);
	}
	return NULL;
}

void store_stay_connected(struct store_pool *p, struct app *app)
{
	pthread_t thread;
	p->app = app;
	if (pthread_create(&thread, NULL, stay, p) != 0)
		log_warn("cannot start the thread that stays connected to the store");
	else
		pthread_detach(thread);
}

void store_say_again(struct store_pool *p)
{
	pthread_mutex_lock(&p->lock);
	p->say = true;
	pthread_cond_signal(&p->news);
	pthread_mutex_unlock(&p->lock);
}

struct ask *store_take(struct store_pool *p)
{
	struct timespec until;
	struct ask *a = NULL;
	int waited = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += GATE_STORE_PATIENCE_MS / 1000;
	pthread_mutex_lock(&p->lock);
	while (p->nidle == 0 && p->nmade == GATE_STORE_CONNECTIONS && waited != ETIMEDOUT)
		waited = pthread_cond_timedwait(&p->freed, &p->lock, &until);
	if (p->nidle > 0)
		a = p->idle[--p->nidle];
	else if (p->nmade < GATE_STORE_CONNECTIONS && (a = ask_new(p->path, GATE_STORE_PATIENCE_MS)) != NULL)
		p->nmade++;
	pthread_mutex_unlock(&p->lock);
	return a;
}

void store_give(struct store_pool *p, struct ask *a)
{
	pthread_mutex_lock(&p->lock);
	p->idle[p->nidle++] = a;
	pthread_cond_signal(&p->freed);
	pthread_mutex_unlock(&p->lock);
}
