/* See prune.h. Every step is bounded: one run, some of a run's events, or a few keys or tokens. */
#include "store/prune.h"
#include "gen/records.h"
#include "lib/die.h"
#include "lib/num.h"
#include "store/env.h"
#include "store/pushes.h"
#include "store/run_gone.h"
#include "store/t_event.h"
#include "store/t_idempotency.h"
#include "store/t_receipt.h"
#include "store/t_source.h"
#include "store/t_token.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { EVENTS = 500, TOKENS = 64, RECEIPTS = 64, SOURCES = 8, PAUSE_MS = 20, ROUND_MS = 60000 };

static const char by[] = "retention";

void prune_init(struct prune *p, const struct keep *keep)
{
	*p = (struct prune){.keep = *keep, .due = timer_ms() + PAUSE_MS};
}

void prune_keep(struct prune *p, const struct keep *keep)
{
	p->keep = *keep;
	p->due = timer_ms() + PAUSE_MS;
}

static bool over(const struct txn *t, uint64_t since, uint64_t keep)
{
	return keep != 0 && t->now > since && t->now - since >= keep;
}

/* The index names a run that is not there, or not as it says: the row goes, and check would have said so. */
static void stray(struct txn *t, const struct run_ended *row, bool gone)
{
	struct rec_run as = {.finished_at = row->ended, .artifacts_gone = gone};
	struct key k = run_ended_key(row->tenant, row->run, &as);
	log_warn("the index of ended runs names %s/%s wrongly; the row was removed", row->tenant, row->run);
	(void)table_del(t, T_RUN_ENDED, &k);
}

static bool prune_run(struct prune *p, struct txn *t, bool gone, struct pruned *out)
{
	struct run_ended row;
	struct rec_run r;
	if (!run_ended_first(t, gone, &row))
		return false;
	bool whole = over(t, row.ended, p->keep.runs);
	if (!whole && (gone || !over(t, row.ended, p->keep.artifacts)))
		return false;
	enum err e = run_load(t, row.tenant, row.run, &r);
	if (e == ERR_RUN_NOT_FOUND ||
	    (e == ERR_OK && (!run_is_final(&r) || r.finished_at != row.ended || r.artifacts_gone != gone))) {
		stray(t, &row, gone);
		return true;
	}
	if (e != ERR_OK) {
		txn_fail(t, e);
		return false;
	}
	if (!gone) {
		run_strip(t, row.tenant, row.run, &r);
		out->artifacts++;
	} else if (!events_del_some(t, row.tenant, row.run, EVENTS)) {
		/* The line is written by txn_end, when row is gone. */
		const char *tenant = arena_dup(&t->arena, row.tenant, strlen(row.tenant));
		const char *run = arena_dup(&t->arena, row.run, strlen(row.run));
		if (tenant == NULL || run == NULL) {
			txn_fail(t, store_error(errno));
			return false;
		}
		run_remove(t, tenant, run, &r, by, NULL);
		out->runs++;
	}
	return true;
}

static bool next_tenant(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct prune *p = with;
	const char *tenant = key_part(&key);
	(void)value;
	if (strcmp(tenant, p->tenant) == 0)
		return true;
	(void)snprintf(p->tenant, sizeof p->tenant, "%s", tenant);
	return false;
}

/* Another tenant at each step, a few keys, sources and receipts each. */
static bool prune_tenant(struct prune *p, struct txn *t, struct pruned *out)
{
	char before[STORE_ID];
	struct key all = {.n = 0}, from = key_prefix(p->tenant, NULL);
	memcpy(before, p->tenant, sizeof before);
	if (p->keys_done)
		return false;
	int64_t had = t->adds.keys;
	if (p->tenant[0] != '\0')
		idempotency_prune(t, p->tenant);
	if (t->adds.keys < had) {
		out->keys += (uint32_t)(had - t->adds.keys);
		return true;
	}
	uint64_t unused = store_source_ms(t->store);
	if (p->tenant[0] != '\0' && t->now > unused && sources_prune(t, p->tenant, t->now - unused, SOURCES) > 0)
		return true;
	if (p->tenant[0] != '\0' && p->keep.runs != 0 && t->now > p->keep.runs &&
	    receipts_prune(t, p->tenant, t->now - p->keep.runs, RECEIPTS) > 0)
		return true;
	table_scan(t, T_TENANT, &all, p->tenant[0] != '\0' ? &from : NULL, next_tenant, p);
	p->keys_done = strcmp(before, p->tenant) == 0;
	return !p->keys_done;
}

struct token_page {
	const struct prune *p;
	const struct txn *t;
	unsigned seen, n;
	char last[STORE_ID], old[TOKENS][STORE_ID];
};

static bool old_token(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct token_page *g = with;
	struct rec_token r;
	(void)snprintf(g->last, sizeof g->last, "%s", key_part(&key));
	if (!rec_get_token(value.p, value.n, &r))
		return ++g->seen < TOKENS;
	bool dead = !token_alive(&r, g->t->now);
	uint64_t expired = r.next_hash.n > 0 && r.next_expires_at > r.expires_at ? r.next_expires_at : r.expires_at;
	/* Revoked before there was a moment for it: since it was made, at the earliest. */
	uint64_t since = r.revoked_at != 0 ? r.revoked_at : r.revoked ? r.created_at : expired;
	if (dead && over(g->t, since, g->p->keep.tokens))
		(void)snprintf(g->old[g->n++], STORE_ID, "%s", g->last);
	return ++g->seen < TOKENS;
}

static bool prune_tokens(struct prune *p, struct txn *t, struct pruned *out)
{
	static struct token_page g; /* too large for the stack; one thread */
	struct key all = {.n = 0}, from = key_prefix(p->token, NULL);
	g = (struct token_page){.p = p, .t = t};
	if (p->keep.tokens == 0)
		return false;
	table_scan(t, T_TOKEN, &all, p->token[0] != '\0' ? &from : NULL, old_token, &g);
	for (unsigned i = 0; i < g.n; i++) {
		struct key k = key_prefix(g.old[i], NULL);
		struct rec_token r;
		if (token_get(t, g.old[i], &r))
			(void)push_gone(t, r.tenant, g.old[i]);
		if (table_del(t, T_TOKEN, &k))
			out->tokens++;
	}
	bool more = g.seen == TOKENS && strcmp(p->token, g.last) != 0;
	(void)snprintf(p->token, sizeof p->token, "%s", more ? g.last : "");
	return more;
}

bool prune_step(struct prune *p, struct txn *t, struct pruned *out)
{
	if (!store_settled(t->store))
		return false;
	if (prune_run(p, t, true, out) || prune_run(p, t, false, out) || prune_tenant(p, t, out) ||
	    prune_tokens(p, t, out))
		return true;
	p->keys_done = false;
	p->tenant[0] = '\0';
	return false;
}

int prune_turn(struct prune *p, struct store *s)
{
	uint64_t at = timer_ms();
	if (at >= p->due) {
		struct txn t;
		struct pruned took = {0};
		txn_init(&t, s, NULL);
		bool more = prune_step(p, &t, &took);
		bool ok = txn_end(&t, ERR_OK) == ERR_OK;
		txn_free(&t);
		p->due = at + (ok && more ? PAUSE_MS : ROUND_MS);
	}
	return (int)(p->due - at);
}
