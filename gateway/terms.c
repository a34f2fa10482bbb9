/*
 * What a call is done under: one configuration, its secrets, and what this process made of both. A call takes the one
 * in force at its beginning and gives it back at its end. A box keeps the one it was opened under for as long as a
 * profile of it is no longer there, so that a run which began goes on under what it recorded.
 */
#include "gateway/gateway.h"
#include "lib/die.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	MODEL_TIMEOUT_MS = 120000,
	MODEL_IDLE_SECONDS = 60,
	MODEL_STREAM_SECONDS = 900,
	MODEL_STREAM_BYTES = 4000000,
	MODEL_MEMORY_BYTES = 512000000
};

bool key_usable(const struct secret *key)
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
		t->url[f] = upstream_url(provider, format_get((enum format_id)f), p->model);
		t->usable = t->usable || t->url[f];
	}
}

static void terms_free(void *own)
{
	struct terms *t = own;

	for (uint32_t i = 0; i < t->ntargets; i++)
		for (int f = 0; f < FORMAT__COUNT; f++)
			free(t->targets[i].url[f]);
	keymask_wipe(&t->keys);
	free(t);
}

static bool long_enough(const struct secret *s)
{
	return s && s->n >= TOKEN_SECRET_MIN;
}

/* The file that "pinfold secret rotate" makes, unless the configuration names another. */
static const char *next_secret(const struct conf *c, char name[128])
{
	const char *next = c->global.run_token_secret_next;
	(void)snprintf(name, 128, "%s%s", *next ? next : conf_run_secret(c), *next ? "" : SECRET_NEXT);
	return name;
}

static void take_limits(struct terms *t, const struct cf_global *g)
{
	t->model_timeout_ms = g->model_timeout_ms ? g->model_timeout_ms : MODEL_TIMEOUT_MS;
	t->model_idle_seconds = g->model_idle_seconds ? g->model_idle_seconds : MODEL_IDLE_SECONDS;
	t->model_stream_seconds = g->model_stream_seconds ? g->model_stream_seconds : MODEL_STREAM_SECONDS;
	t->model_stream_bytes = g->model_stream_bytes ? g->model_stream_bytes : MODEL_STREAM_BYTES;
	t->model_heartbeat_ms = 1000 * g->model_heartbeat_seconds;
	t->model_memory_bytes = g->model_memory_bytes ? g->model_memory_bytes : MODEL_MEMORY_BYTES;
}

const struct terms *terms_make(struct held *h, const char **why)
{
	struct terms *t = calloc(1, sizeof *t);
	char name[128];

	*why = t ? NULL : "no memory";
	if (!t)
		return NULL;
	h->own = t;
	h->free_own = terms_free;
	t->held = h;
	t->conf = &h->conf;
	t->token_key = secrets_find(&h->secrets, conf_run_secret(&h->conf));
	t->token_next = secrets_find(&h->secrets, next_secret(&h->conf, name));
	if (!long_enough(t->token_key) || (*h->conf.global.run_token_secret_next && !long_enough(t->token_next)))
		*why = "a secret of run tokens is missing or too short: remove its file and run \"pinfold setup\"";
	if (t->token_next && !long_enough(t->token_next)) {
		log_error(
		    "the secret %s is empty or shorter than %d bytes, and not accepted: run \"pinfold secret drop %s\"",
		    name, TOKEN_SECRET_MIN, conf_run_secret(&h->conf));
		t->token_next = NULL;
	}
	if (!*why)
		*why = keys_load(&t->keys, h);
	take_limits(t, &h->conf.global);
	for (uint32_t i = 0; i < h->conf.nprofiles && !*why; i++)
		load_target(&t->targets[t->ntargets++], h, &h->conf.profiles[i]);
	return *why ? NULL : t;
}

/* At the start what cannot be used is told and left out; while the service runs, the old is kept instead. */
const char *terms_fit(struct held *next)
{
	const char *why;
	char name[128];
	static char said[400];
	const struct secret *key = secrets_find(&next->secrets, next_secret(&next->conf, name));
	if (key && !long_enough(key)) {
		(void)snprintf(said, sizeof said, "the secret %s is empty or shorter than %d bytes", name,
			       TOKEN_SECRET_MIN);
		return said;
	}
	for (uint32_t i = 0; i < next->conf.nproviders; i++) {
		const struct cf_provider *p = &next->conf.providers[i];
		key = *p->secret ? secrets_find(&next->secrets, p->secret) : NULL;
		if (key && !key_usable(key)) {
			(void)snprintf(said, sizeof said, "provider %s: its secret %s is empty or not one line",
				       p->name, p->secret);
			return said;
		}
		if (*p->ca_file && access(p->ca_file, R_OK) != 0) {
			/* What this process may read was decided at its start. */
			(void)snprintf(said, sizeof said,
				       "provider %s: ca_file %s cannot be read; outside of /etc and /usr, a folder "
				       "that is new needs a restart",
				       p->name, p->ca_file);
			return said;
		}
	}
	return terms_make(next, &why) ? NULL : why;
}

void terms_renew(struct box *box)
{
	const struct terms *now = terms_now(box->app), *gone = now;
	pthread_mutex_lock(&box->lock);
	const struct terms *before = box->opened_under;
	/* An agent with a key of its own has that key for as long as its box is there. */
	const struct cf_agent *agent = conf_agent(before->conf, box->agent);
	bool same = before->keys.n == 0 || (agent && !agent->env_mode);
	for (uint32_t i = 0; i < before->ntargets && same; i++)
		same = !before->targets[i].usable || terms_offer(now, &before->targets[i]);
	if (same) {
		box->opened_under = now;
		gone = before;
	}
	pthread_mutex_unlock(&box->lock);
	terms_done(gone);
}

bool terms_offer(const struct terms *terms, const struct upstream_target *t)
{
	for (uint32_t i = 0; i < terms->ntargets; i++)
		if (terms->targets[i].usable &&
		    memcmp(terms->targets[i].fingerprint, t->fingerprint, sizeof t->fingerprint) == 0)
			return true;
	return false;
}

const struct terms *terms_now(struct app *app)
{
	return held_now(&app->reload.place)->own;
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
