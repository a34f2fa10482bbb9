/* A connection to the store that is always there: which profiles can be asked is said over it again and again. */
#include "gateway/gateway.h"
#include "lib/die.h"
#include <errno.h>
#include <string.h>
#include <time.h>

enum { STAY_SECONDS = 5 };

static struct {
	const char *path;
	struct app *app;
	pthread_mutex_t lock;
	pthread_cond_t news;
	bool say; /* under the lock */
} s;

static void *stay(void *arg)
{
	(void)arg;
	struct ask *a = ask_new(s.path, GATE_STORE_PATIENCE_MS);
	uint8_t ready[CONF_PROFILES * 32]; /* fingerprints */
	struct timespec until;
	struct st_ok ok;

	while (a != NULL) {
		const struct terms *now = terms_now(s.app);
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
		pthread_mutex_lock(&s.lock);
		for (int waited = 0; !s.say && waited != ETIMEDOUT;)
			waited = pthread_cond_timedwait(&s.news, &s.lock, &until);
		s.say = false;
		pthread_mutex_unlock(&s.lock);
	}
	return NULL;
}

void store_stay_connected(const char *store_path, struct app *app)
{
	pthread_condattr_t attr;
	pthread_t thread;

	s.path = store_path;
	s.app = app;
	pthread_mutex_init(&s.lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s.news, &attr);
	pthread_condattr_destroy(&attr);
	if (pthread_create(&thread, NULL, stay, NULL) != 0)
		log_warn("cannot start the thread that stays connected to the store");
	else
		pthread_detach(thread);
}

void store_say_again(void)
{
	pthread_mutex_lock(&s.lock);
	s.say = true;
	pthread_cond_signal(&s.news);
	pthread_mutex_unlock(&s.lock);
}
