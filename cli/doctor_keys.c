/*
 * Doctor: agents that are given real keys (credential_mode = env), and keys that stand where only their name should. No
 * byte of one is printed or kept.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "gen/store_msg.h"
#include "lib/keymask.h"
#include "lib/names.h"
#include "lib/own.h"
#include "lib/place.h"
#include "lib/wire.h"

static void add_secret(struct keymask *k, const char *name)
{
	char path[700];
	uint8_t text[SECRET_MAX + 1];

	snprintf(path, sizeof path, "%s/secrets/%s", place_dir(PLACE_SYSCONF), name);
	own_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	if (n > 0)
		keymask_add(k, text, (size_t)n); /* one that is too short is not looked for */
	wipe(text, sizeof text);
}

/* The first agent whose profile holds the value of a secret, as far as the secrets can be read; NULL: none. */
static const struct cf_agent *in_profiles(const struct conf *c)
{
	struct keymask k = {.n = 0};

	for (uint32_t i = 0; i < c->nsecrets; i++) {
		bool before = false;
		for (uint32_t j = 0; j < i; j++)
			before = before || strcmp(c->secrets[i].name, c->secrets[j].name) == 0;
		if (!before)
			add_secret(&k, c->secrets[i].name);
	}
	const struct cf_agent *a = conf_key_itself(c, &k);
	keymask_wipe(&k);
	return a;
}

/* Why runs of an agent with credential_mode = env are all refused; NULL: they are not. */
static const char *refused(const struct conf *c, const struct cf_agent *a)
{
	if (!a->env_mode)
		return NULL;
	if (!c->global.allow_env_credentials)
		return "its runs are refused, for allow_env_credentials is not set";
	for (uint32_t i = 0; i < c->ntenants; i++)
		if (c->tenants[i].t.env_credentials && conf_agent_allowed(&c->tenants[i], a->name))
			return NULL;
	return "its runs are refused, for no tenant that may name it has env_credentials";
}

static void itself(struct doctor *d)
{
	if (!need_conf(d))
		return;
	const struct cf_agent *a = in_profiles(&d->conf);
	if (a != NULL)
		found(d, DOCTOR_ERROR, "agent %s holds the value of a secret", a->name);
}

static void modes(struct doctor *d)
{
	unsigned n = 0;

	for (uint32_t i = 0; need_conf(d) && i < d->conf.nagents; i++) {
		const struct cf_agent *a = &d->conf.agents[i];
		const char *why = refused(&d->conf, a);
		if (!a->env_mode)
			continue;
		n++;
		found(d, DOCTOR_WARN, "agent %s gives a real key to its sandboxes, where whatever runs can read it%s%s",
		      a->name, why != NULL ? "; " : "", why != NULL ? why : "");
	}
	if (d->have_conf && n == 0)
		found(d, DOCTOR_OK, "no key of a provider enters a sandbox");
}

static const char wrong[] =
    "run its self_test by hand with a made-up key; correct inline_config, then systemctl reload pinfold";

/* One agent, in a row of its own. */
static void say_proof(struct doctor *d, const struct st_proof *p)
{
	const char *version = p->version[0] != '\0' ? p->version : "unknown";
	char text[500];

	if (p->state == PROOF_DONE) {
		snprintf(text, sizeof text, "agent %.128s: substitution proven for version %.100s%s", p->agent, version,
			 p->odd ? "" : ", keys with quotes or backslashes are refused");
		doctor_say(d, "keys.agent", DOCTOR_OK, text, NULL);
	} else if (p->state == PROOF_FAILED) {
		snprintf(text, sizeof text, "agent %.128s: not proven (version %.100s): %.200s; its runs are refused",
			 p->agent, version, p->why);
		doctor_say(d, "keys.agent", DOCTOR_ERROR, text, wrong);
	} else {
		snprintf(text, sizeof text, "agent %.128s: not proven: %s", p->agent,
			 p->state == PROOF_ON ? "its self-test goes on" : "it has no self_test");
		doctor_say(d, "keys.agent", DOCTOR_WARN, text,
			   "give it a self_test, which prints what it made of its configuration");
	}
}

static void proofs(struct doctor *d)
{
	struct st_proofs_are got;
	struct st_proof p;
	struct wire_bytes part;
	bool bad = false;
	unsigned n = 0, proven = 0;

	if (!need_service(d))
		return;
	enum err e = st_call_proofs_get(d->admin, &(struct st_proofs_get){0}, NULL, &got, NULL);
	if (e != ERR_OK) {
		found(d, DOCTOR_ERROR, "cannot be asked for: %s", err_code(e));
		return;
	}
	for (; wire_list_next(&got.items, &part, &bad) && st_get_proof(part.p, part.n, &p); n++) {
		proven += p.state == PROOF_DONE;
		say_proof(d, &p);
	}
	if (n == 0)
		doctor_say(d, "keys.agent", DOCTOR_SKIPPED, "there is none", NULL);
	found(d, proven == n ? DOCTOR_OK : DOCTOR_WARN, "of %u agents with real keys %u are proven", n, proven);
}

const struct doctor_check doctor_keys[] = {{"keys.literal", "no agent profile holds a secret itself",
					    "in profiles.d/*.conf name it in credential_secret, refer to it by {env:X} "
					    "or {file:X}, and replace the key: the file was readable",
					    itself},
					   {"keys.mode", "no agent is given a provider's real key",
					    "credential_mode = broker, unless docs/security.md leaves you no doubt",
					    modes},
					   {0}};

const struct doctor_check doctor_proofs[] = {{"keys.proven", "agents with real keys read them as they were given",
					      "see keys.agent: self_test of that agent in profiles.d/*.conf", proofs},
					     {"keys.agent", "each agent with real keys", wrong, NULL},
					     {0}};
