/*
 * The configuration that stored acts by, at its start and when another one comes into force: what it keeps of it
 * besides the pointer is set here and nowhere else.
 */
#include "gen/sandbox_msg.h"
#include "lib/die.h"
#include "lib/digest.h"
#include "lib/num.h"
#include "lib/place.h"
#include "store/op.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const uint64_t DAY_MS = 86400000;

static const char *digest_of(struct held *h, int fd)
{
	uint64_t size;
	h->own = malloc(SHA256_SIZE);
	h->free_own = free;
	return h->own != NULL && sha256_fd(fd, h->own, &size) ? NULL
							      : "it cannot be read, or there is no memory for it";
}

static const char *fits(void *arg, struct held *next, int conf)
{
	(void)arg;
	return digest_of(next, conf);
}

struct held *config_load(int fd, const char **why)
{
	struct held *h = held_load(fd, -1, why);
	*why = h != NULL ? digest_of(h, fd) : *why;
	return *why == NULL ? h : NULL;
}

static void use(struct server *sv, const struct held *h)
{
	const struct cf_global *g = &h->conf.global;
	const struct keep keep = {.artifacts = DAY_MS * g->keep_artifacts_days,
				  .runs = DAY_MS * g->keep_runs_days,
				  .tokens = DAY_MS * g->keep_tokens_days};
	const struct audit_settings audit = {
	    .redact = g->audit_redact, .max_bytes = g->audit_max_bytes, .generations = g->audit_generations};
	sv->conf = &h->conf;
	store_conf(sv->store, &h->conf);
	store_push_limits(sv->store, g->push_per_minute, g->push_per_hour);
	prune_keep(&sv->prune, &keep);
	audit_set(sv->audit, &audit);
}

/* Between two batches: no operation is under way. */
static void taken(void *arg, struct held *now, struct held *before)
{
	struct server *sv = arg;
	(void)before;
	use(sv, now);
	audit_config(sv->audit, sv->store, now->own);
}

static void hear_outcome(void *arg, uint16_t number, const uint8_t *frame, size_t n)
{
	struct server *sv = arg;
	struct outcome *o = &sv->outcome;
	struct sbx_outcome m;
	char digest[SHA256_HEX];
	if (number != SBX_OUTCOME || !sbx_get_outcome(frame, n, &m))
		fatal("sandboxd sent an unexpected message (%u)", number);
	bool over = o->told && !m.going && (o->going || m.number != o->number);
	*o = (struct outcome){.told = true, .going = m.going, .applied = m.applied, .number = m.number};
	(void)snprintf(o->why, sizeof o->why, "%s", m.why);
	if (!over)
		return;
	hex(sv->reload.place.now->own, SHA256_SIZE, digest);
	audit_note(sv->audit, store_now(sv->store),
		   &(struct audit_line){.event = AUDIT_CONFIG_RELOAD,
					.actor = "operator",
					.v = {{AUDIT_F_STATE, .text = m.applied ? "applied" : "refused"},
					      {AUDIT_F_DIGEST, .text = digest},
					      {AUDIT_F_SUBJECT, .text = m.why}}});
}

void config_start(struct server *sv, struct held *first)
{
	prune_init(&sv->prune, &(struct keep){0});
	use(sv, first);
	sv->reload.fits = fits;
	sv->reload.taken = taken;
	sv->reload.arg = sv;
	held_init(&sv->reload.place, first);
	reload_start(&sv->reload, sv->control_fd);
}

bool config_hear(struct server *sv)
{
	return reload_hear(&sv->reload, hear_outcome);
}

void st_on_reload_state(struct st_from *from, uint64_t op, const struct st_reload_state *m, int *fds)
{
	struct server *sv = from->server;
	const struct outcome *o = &sv->outcome;
	struct st_reload_is a = {.sandboxd = (uint32_t)getppid(),
				 .number = o->number,
				 .going = o->going || !o->told,
				 .applied = o->applied,
				 .why = o->why,
				 .digest = {sv->reload.place.now->own, SHA256_SIZE}};
	(void)m;
	(void)fds;
	server_answer(from, op, ERR_OK, st_put_reload_is(sv->frame, ST_MAXFRAME, op, &a), NULL, 0);
}
