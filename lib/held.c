/* See held.h. Trusts what conf_load() and secrets_read() trust. */
#include "lib/held.h"
#include <stdlib.h>

struct held *held_load(int conf, int secrets, const char **why)
{
	struct held *h = calloc(1, sizeof *h);
	*why = h == NULL ? "no memory" : conf_load(&h->conf, conf);
	if (*why != NULL) {
		free(h);
		return NULL;
	}
	atomic_init(&h->uses, 1);
	if (secrets < 0 || secrets_read(&h->secrets, secrets))
		return h;
	*why = "the secrets that sandboxd passes on are malformed";
	held_done(h);
	return NULL;
}

struct held *held_use(struct held *h)
{
	atomic_fetch_add(&h->uses, 1);
	return h;
}

void held_done(struct held *h)
{
	if (h == NULL || atomic_fetch_sub(&h->uses, 1) != 1)
		return;
	if (h->free_own != NULL)
		h->free_own(h->own);
	secrets_wipe(&h->secrets);
	conf_free(&h->conf);
	free(h);
}

void held_init(struct held_place *p, struct held *first)
{
	(void)pthread_mutex_init(&p->lock, NULL);
	p->now = first;
}

struct held *held_now(struct held_place *p)
{
	(void)pthread_mutex_lock(&p->lock);
	struct held *h = held_use(p->now);
	(void)pthread_mutex_unlock(&p->lock);
	return h;
}

struct held *held_swap(struct held_place *p, struct held *next)
{
	(void)pthread_mutex_lock(&p->lock);
	struct held *before = p->now;
	p->now = next;
	(void)pthread_mutex_unlock(&p->lock);
	return before;
}
