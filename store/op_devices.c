/*
 * Devices: their pairing by a code, their list, their end. A device is a token of kind device; its label names it
 * among its tenant's that are alive. A code pairs once; five wrong guesses destroy it, whoever made them, since a
 * guess does not say whose code it means. Nothing here ever sees a code or a credential, only hashes.
 */
#include "gen/limits.h"
#include "lib/label.h"
#include "lib/num.h"
#include "lib/secret.h"
#include "lib/token.h"
#include "store/op.h"
#include "store/pushes.h"
#include "store/t_pairing.h"
#include "store/t_tenant.h"
#include "store/t_token.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { HASH = 32, DAYS_MAX = 3650 };
static const uint64_t day_ms = UINT64_C(86400000);

static enum err op_pair_begin(struct txn *t, const struct st_pair_begin *m, int *fds, struct st_pair_begun *a, int *out)
{
	(void)fds;
	(void)out;
	if (m->hash.n != HASH || m->days > DAYS_MAX)
		return ERR_INVALID_REQUEST;
	if (!tenant_exists(t, m->tenant))
		return ERR_TENANT_NOT_FOUND;
	struct rec_pairing r = {.hash = m->hash,
				.created_at = t->now,
				.expires_at = t->now + UINT64_C(1000) * LIMIT_PAIRING_CODE_SECONDS,
				.device_days = m->days};
	pairing_put(t, m->tenant, &r);
	a->expires_at = r.expires_at;
	struct audit_line l = {.event = AUDIT_DEVICE_CODE,
			       .tenant = m->tenant,
			       .actor = "operator",
			       .v = {{AUDIT_F_EXPIRES_AT, .number = r.expires_at}}};
	txn_audit(t, &l);
	return ERR_OK;
}
ST_OP(pair_begin, pair_begun, 0, 0)

struct guess {
	struct txn *t;
	const struct st_pair_claim *m;
	bool found, more;
	char after[STORE_ID];  /* look only behind this tenant */
	char tenant[STORE_ID]; /* whose code it is */
};

static bool meant(const struct guess *g, const char *tenant, const struct rec_pairing *r)
{
	return (g->m->tenant[0] == '\0' || strcmp(g->m->tenant, tenant) == 0) && r->expires_at > g->t->now;
}

/* Looks at all, so that nothing tells by its time whose code was guessed. */
static bool compare(void *with, const char *tenant, const struct rec_pairing *r)
{
	struct guess *g = with;
	if (meant(g, tenant, r) && secret_equal(r->hash.p, r->hash.n, g->m->hash.p, g->m->hash.n)) {
		g->found = true;
		(void)snprintf(g->tenant, sizeof g->tenant, "%s", tenant);
	}
	return true;
}

static bool next_meant(void *with, const char *tenant, const struct rec_pairing *r)
{
	struct guess *g = with;
	if (strcmp(tenant, g->after) <= 0 || !meant(g, tenant, r))
		return true;
	(void)snprintf(g->after, sizeof g->after, "%s", tenant);
	g->more = true;
	return false;
}

/* Counts against every code that could have been meant. A scan must not write, so one at a time. */
static void count_wrong(struct guess *g)
{
	for (g->more = true; g->more && g->t->failed == ERR_OK;) {
		struct rec_pairing r;
		g->more = false;
		pairing_each(g->t, next_meant, g);
		if (!g->more || !pairing_get(g->t, g->after, &r))
			return;
		if (++r.wrong < LIMIT_PAIRING_WRONG_GUESSES) {
			pairing_put(g->t, g->after, &r);
			continue;
		}
		pairing_del(g->t, g->after);
		struct audit_line l = {.event = AUDIT_DEVICE_CODE_DESTROYED,
				       .tenant = arena_dup(&g->t->arena, g->after, strlen(g->after)),
				       .actor = "system",
				       .request_id = g->m->request_id,
				       .v = {{AUDIT_F_COUNT, .number = r.wrong}}};
		if (l.tenant == NULL)
			txn_fail(g->t, store_error(errno));
		else if (g->t->naudit < TXN_AUDIT)
			txn_audit(g->t, &l);
	}
}

static enum err pair(struct guess *g, struct st_paired *a)
{
	const struct st_pair_claim *m = g->m;
	struct txn *t = g->t;
	struct rec_pairing code;
	struct rec_token old;
	if (!pairing_get(t, g->tenant, &code))
		return ERR_INTERNAL_ERROR;
	if (token_get(t, m->token_id, &old))
		return ERR_TOKEN_EXISTS;
	if (token_device(t, g->tenant, m->label, NULL, &old))
		return ERR_DEVICE_EXISTS;
	pairing_del(t, g->tenant);
	const char *tenant = arena_dup(&t->arena, g->tenant, strlen(g->tenant));
	if (tenant == NULL)
		return store_error(errno);
	struct rec_token r = {.tenant = tenant,
			      .kind = PRINCIPAL_DEVICE,
			      .hash = m->token_hash,
			      .label = m->label,
			      .created_at = t->now,
			      .expires_at = code.device_days == 0 ? 0 : t->now + code.device_days * day_ms};
	token_put(t, m->token_id, &r);
	*a = (struct st_paired){.tenant = tenant, .expires_at = r.expires_at};
	struct audit_line l = {.event = AUDIT_DEVICE_PAIR,
			       .tenant = tenant,
			       .actor = "system",
			       .request_id = m->request_id,
			       .v = {{AUDIT_F_TOKEN_ID, .text = m->token_id},
				     {AUDIT_F_LABEL, .text = m->label},
				     {AUDIT_F_EXPIRES_AT, .number = r.expires_at}}};
	txn_audit(t, &l);
	return ERR_OK;
}

/* The same claim again, because its answer was lost? */
static bool paired_so(struct txn *t, const struct st_pair_claim *m, struct st_paired *a)
{
	struct rec_token r;
	if (!token_get(t, m->token_id, &r) || r.kind != PRINCIPAL_DEVICE || r.revoked ||
	    strcmp(r.label, m->label) != 0 || !secret_equal(r.hash.p, r.hash.n, m->token_hash.p, m->token_hash.n))
		return false;
	*a = (struct st_paired){.tenant = r.tenant, .expires_at = r.expires_at};
	return true;
}

static enum err op_pair_claim(struct txn *t, const struct st_pair_claim *m, int *fds, struct st_paired *a, int *out)
{
	(void)fds;
	(void)out;
	if (m->hash.n != HASH || m->token_hash.n != HASH || !id_valid(m->token_id))
		return ERR_INVALID_REQUEST;
	if (!label_valid(m->label))
		return ERR_INVALID_DEVICE_LABEL;
	if (paired_so(t, m, a))
		return ERR_OK;
	struct guess g = {.t = t, .m = m};
	pairing_each(t, compare, &g);
	if (g.found)
		return pair(&g, a);
	count_wrong(&g);
	/* The refusal is the answer, but the count is kept: ended here with success. */
	enum err e = txn_end(t, ERR_OK);
	return e != ERR_OK ? e : ERR_INVALID_PAIRING_CODE;
}
ST_OP(pair_claim, paired, 0, 0)

/* The smallest labels behind one, in order. The table is in the order of ids. */
struct listing {
	const char *tenant, *after;
	uint64_t now;
	bool more;
	unsigned n, most;
	struct place {
		char label[LABEL_BYTES + 1], id[STORE_ID];
	} v[LIST_MAX];
};

static bool pick_device(void *with, const char *token_id, const struct rec_token *r)
{
	struct listing *l = with;
	if (strcmp(r->tenant, l->tenant) != 0 || !token_is_device(r, l->now) || strcmp(r->label, l->after) <= 0)
		return true;
	unsigned at = l->n;
	while (at > 0 && strcmp(l->v[at - 1].label, r->label) > 0)
		at--;
	l->more = l->more || l->n == l->most;
	if (at == l->most)
		return true;
	l->n -= l->n == l->most;
	memmove(&l->v[at + 1], &l->v[at], (l->n++ - at) * sizeof l->v[0]);
	(void)snprintf(l->v[at].label, sizeof l->v[at].label, "%s", r->label);
	(void)snprintf(l->v[at].id, sizeof l->v[at].id, "%s", token_id);
	return true;
}

static enum err op_device_list(struct txn *t, const struct st_device_list *m, int *fds, struct st_devices_are *a,
			       int *out)
{
	(void)fds;
	(void)out;
	static struct listing l; /* too large for the stack; one thread */
	l = (struct listing){.tenant = m->tenant, .after = m->after, .now = t->now, .most = list_limit(m->limit)};
	struct wire_list list = {.p = t->page, .cap = STORE_PAGE};
	if (!tenant_exists(t, m->tenant))
		return ERR_TENANT_NOT_FOUND;
	token_each(t, pick_device, &l);
	for (unsigned i = 0; i < l.n && t->failed == ERR_OK; i++) {
		struct rec_token r;
		if (!token_get(t, l.v[i].id, &r))
			continue;
		struct st_device item = {.token_id = l.v[i].id,
					 .label = r.label,
					 .created_at = r.created_at,
					 .expires_at = r.expires_at,
					 .last_seen_at = r.last_seen_at};
		if (!LIST_PUT(&list, device, ST_MAX_DEVICE, &item))
			return ERR_INTERNAL_ERROR;
	}
	a->more = l.more;
	a->items = wire_list_done(&list);
	return ERR_OK;
}
ST_OP(device_list, devices_are, 0, 0)

static enum err op_device_revoke(struct txn *t, const struct st_device_revoke *m, int *fds, struct st_ok *a, int *out)
{
	(void)fds;
	(void)a;
	(void)out;
	struct rec_token r;
	char id[STORE_ID];
	if (!token_device(t, m->tenant, m->label, id, &r))
		return t->failed != ERR_OK ? t->failed : ERR_DEVICE_NOT_FOUND;
	const char *kept = arena_dup(&t->arena, id, strlen(id));
	if (kept == NULL)
		return store_error(errno);
	r.revoked = true;
	r.revoked_at = t->now;
	token_put(t, kept, &r);
	(void)push_gone(t, m->tenant, kept);
	struct audit_line l = {.event = AUDIT_DEVICE_REVOKE,
			       .tenant = m->tenant,
			       .actor = m->by,
			       .request_id = m->request_id,
			       .v = {{AUDIT_F_TOKEN_ID, .text = kept}, {AUDIT_F_LABEL, .text = m->label}}};
	txn_audit(t, &l);
	return ERR_OK;
}
ST_OP_ONCE(device_revoke, ok)
