/*
 * What a call is done under: one configuration, its secrets, and what this process made of both. A call takes the one
 * in force at its beginning and gives it back at its end. A box keeps the one it was opened under for as long as a
 * profile of it is no longer there, so that a run which began goes on under what it recorded.
 */
#include "gateway/gateway.h"
#include "lib/die.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MODEL_TIMEOUT_MS = 120000 };

static bool key_usable(const struct secret *key)
{
	return key && key->n > 0 && !memchr(key->p, '\n', key->n) && !memchr(key->p, '\r', key->n) &&
	       !memchr(key->p, 0, key->n);
}

static void load_target(struct upstream_target *t, const struct held *h, const struct cf_profile *p)
{
	const struct cf_provider *provider = conf_provider(&h->conf, p->provider);

	t->profile = p;
	if (!provider || !conf_fingerprint(&h->conf, p, t->fingerprint)) {
		log_error("profile %s: its provider %s is not configured", p->name, p->provider);
		return;
	}
	t->ca_file = provider->ca_file;
	if (*provider->secret) {
		t->key = secrets_find(&h->secrets, provider->secret);
		if (!key_usable(t->key)) {
			log_error("provider %s: its secret %s is missing or not one line; its model calls are refused "
				  "until its file is written and the configuration reloaded",
				  provider->name, provider->secret);
			return;
		}
	}
	for (int f = 0; f < FORMAT__COUNT; f++) {
		t->url[f] = upstream_url(provider, format_get((enum format_id)f));
		t->usable = t->usable || t->url[f];
	}
}

static void terms_free(void *own)
{
	struct terms *t = own;

	for (uint32_t i = 0; i < t->ntargets; i++)
		for (int f = 0; f < FORMAT__COUNT; f++)
			free(t->targets[i].url[f]);
	free(t);
}

static bool long_enough(const struct secret *s)
{
	return s && s->n >= TOKEN_SECRET_MIN;
}

const struct terms *terms_make(struct held *h, const char **why)
{
	struct terms *t = calloc(1, sizeof *t);
	const char *next = h->conf.global.run_token_secret_next;

	*why = t ? NULL : "no memory";
	if (!t)
		return NULL;
	h->own = t;
	h->free_own = terms_free;
	t->held = h;
	t->conf = &h->conf;
	t->token_key = secrets_find(&h->secrets, conf_run_secret(&h->conf));
	t->token_next = *next ? secrets_find(&h->secrets, next) : NULL;
	if (!long_enough(t->token_key) || (*next && !long_enough(t->token_next)))
		*why = "a secret of run tokens is missing or too short: remove its file and run \"pinfold setup\"";
	t->model_timeout_ms = h->conf.global.model_timeout_ms ? h->conf.global.model_timeout_ms : MODEL_TIMEOUT_MS;
	for (uint32_t i = 0; i < h->conf.nprofiles && !*why; i++)
		load_target(&t->targets[t->ntargets++], h, &h->conf.profiles[i]);
	return *why ? NULL : t;
}

const struct terms *terms_now(struct app *app)
{
	return held_now(&app->held)->own;
}

const struct terms *terms_of_box(struct box *box)
{
	pthread_mutex_lock(&box->lock);
	const struct terms *t = held_use(box->opened_under->held)->own;
	pthread_mutex_unlock(&box->lock);
	return t;
}

void terms_done(const struct terms *t)
{
	if (t)
		held_done(t->held);
}
