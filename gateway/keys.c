/*
 * Agents that are given real keys (credential_mode = env). The gateway has those keys as well: it knows by them that it
 * is the box's own agent that asks, puts no other in their place, and looks for them in all that an agent says.
 */
#include "gateway/gateway.h"
#include "gen/audit.h"
#include "lib/die.h"
#include "lib/digest.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *keys_load(struct keymask *mask, const struct held *h)
{
	static char why[300];
	struct keymask all = {.n = 0};

	/* Every secret of this process: none has a place in a profile. Short ones are not looked for. */
	for (size_t i = 0; i < h->secrets.n; i++)
		keymask_add(&all, h->secrets.v[i].value.p, h->secrets.v[i].value.n);
	const struct cf_agent *named = conf_key_itself(&h->conf, &all);
	keymask_wipe(&all);
	if (named) {
		snprintf(why, sizeof why,
			 "agent %.128s holds the value of a secret: name it in credential_secret and refer to it",
			 named->name);
		return why;
	}
	for (uint32_t i = 0; i < h->conf.nagents; i++) {
		struct conf_key keys[CONF_KEYS];
		const struct cf_agent *a = &h->conf.agents[i];
		for (uint32_t k = 0; conf_keys(a, keys) == NULL && k < a->credentials_n; k++) {
			const struct secret *s = secrets_find(&h->secrets, keys[k].secret);
			if (!s || !keymask_add(mask, s->p, s->n))
				log_error(
				    "agent %s: its secret %s is missing, or not of %d to %d bytes; its runs fail until "
				    "it is written and the configuration reloaded",
				    a->name, keys[k].secret, KEYMASK_LEAST, KEYMASK_MOST);
		}
	}
	return NULL;
}

size_t keys_hide(const struct gate_call *call, void *p, size_t n)
{
	n = keymask_hide(&call->terms->keys, p, n);
	return call->before == call->terms ? n : keymask_hide(&call->before->keys, p, n);
}

/* One of the agent's own, by the terms given. */
static const struct secret *find(const struct terms *t, const char *agent, const char *given, size_t n)
{
	struct conf_key keys[CONF_KEYS];
	const struct cf_agent *a = conf_agent(t->conf, agent);
	const struct secret *found = NULL;

	for (uint32_t i = 0; a && conf_keys(a, keys) == NULL && i < a->credentials_n; i++) {
		const struct secret *s = secrets_find(&t->held->secrets, keys[i].secret);
		if (s && secret_equal(s->p, s->n, given, n))
			found = s;
	}
	return found;
}

bool keys_own(struct gate_call *call, const char *given, size_t n)
{
	const char *agent = call->box->agent;
	const struct cf_agent *a = conf_agent(call->before->conf, agent);

	if (!a || !a->env_mode)
		return true;
	/* The one its box was made with; or the one in force, where the file was changed a moment before. */
	call->key = given ? find(call->before, agent, given, n) : NULL;
	if (given && !call->key)
		call->key = find(call->terms, agent, given, n);
	return call->key != NULL;
}

void keys_said(struct gate_call *call)
{
	const struct cf_provider *p = conf_provider(call->terms->conf, call->target->profile->provider);
	struct st_ok ok;
	struct st_audit_note m = {.event = AUDIT_KEY_WITHHELD,
				  .tenant = call->box->tenant,
				  .run = call->box->run,
				  .actor = "gateway",
				  .request_id = call->request_id,
				  .subject = call->key || !p ? "the agent's own" : p->secret};

	log_warn("run %s: provider %s said the key that it was asked with; the answer was withheld", call->box->run,
		 call->target->profile->provider);
	if (!call->store || st_call_audit_note(call->store, &m, NULL, &ok, NULL) != ERR_OK)
		log_warn("run %s: that a key was withheld was not told to the audit log", call->box->run);
}

/* Of a box that was opened: told by a worker, who may wait. */
struct note {
	struct errand errand;
	const struct terms *terms;
	char run[129], tenant[129];
};

static void note_key(const struct note *note, struct ask *store, const char *name)
{
	const struct secret *s = secrets_find(&note->terms->held->secrets, name);
	char subject[300], digits[SHA256_HEX] = "";
	uint8_t digest[SHA256_SIZE];
	struct st_ok ok;
	struct st_audit_note m = {.event = AUDIT_CREDENTIAL_GIVEN,
				  .tenant = note->tenant,
				  .run = note->run,
				  .actor = "gateway",
				  .subject = subject};

	if (s && sha256(s->p, s->n, digest))
		hex(digest, sizeof digest, digits);
	snprintf(subject, sizeof subject, "%s sha256:%.16s", name, s ? digits : "unknown");
	if (st_call_audit_note(store, &m, NULL, &ok, NULL) != ERR_OK)
		log_warn("run %s: that it was given the key %s was not told to the audit log", note->run, name);
}

static void note_work(struct errand *e, struct ask *store)
{
	const struct note *note = (const struct note *)(const void *)e;
	struct st_cap_check m = {.tenant = note->tenant, .run = note->run};
	struct conf_key keys[CONF_KEYS];
	struct st_cap_is is;

	if (!store || st_call_cap_check(store, &m, NULL, &is, NULL) != ERR_OK) {
		log_warn("run %s: whether it was given keys was not told to the audit log", note->run);
		return;
	}
	const struct cf_agent *a = conf_agent(note->terms->conf, is.agent);
	for (uint32_t i = 0; a && conf_keys(a, keys) == NULL && i < a->credentials_n; i++)
		note_key(note, store, keys[i].secret);
}

static void note_done(struct errand *e)
{
	struct note *note = (struct note *)(void *)e;

	terms_done(note->terms);
	free(note);
}

void keys_note(struct app *app, const char *run, const char *tenant)
{
	const struct terms *terms = terms_now(app);
	struct note *note = terms->keys.n > 0 ? calloc(1, sizeof *note) : NULL;

	if (!note) {
		if (terms->keys.n > 0)
			log_warn("run %s: whether it was given keys was not told to the audit log", run);
		terms_done(terms);
		return;
	}
	note->errand = (struct errand){.work = note_work, .done = note_done};
	note->terms = terms;
	snprintf(note->run, sizeof note->run, "%s", run);
	snprintf(note->tenant, sizeof note->tenant, "%s", tenant);
	workers_give(app->workers, &note->errand);
}
