/* The tables of sources. */
#include "store/t_source.h"
#include "store/blobs.h"
#include <stdio.h>
#include <string.h>

const char source_use[] = "source";

struct key source_key(const char *tenant, const char *sha)
{
	struct key k;
	k.n = rec_key_source(k.p, sizeof k.p, tenant, sha);
	return k;
}

struct key source_use_key(const char *tenant, uint64_t used_at, const char *sha)
{
	struct key k;
	k.n = rec_key_source_by_use(k.p, sizeof k.p, tenant, used_at, sha);
	return k;
}

bool source_get(struct txn *t, const char *tenant, const char *sha, struct rec_source *out)
{
	struct wire_bytes v;
	struct key k = source_key(tenant, sha);
	if (!table_get(t, T_SOURCE, &k, &v))
		return false;
	if (rec_get_source(v.p, v.n, out))
		return true;
	txn_fail(t, ERR_INTERNAL_ERROR);
	return false;
}

void source_put(struct txn *t, const char *tenant, const char *sha, const struct rec_source *old,
		struct rec_source *now)
{
	now->used_at = t->now;
	struct key k = source_key(tenant, sha), index = source_use_key(tenant, now->used_at, sha);
	struct rec_source_by_use row = {0};
	uint8_t *p = txn_scratch(t);
	if (old != NULL) {
		struct key was = source_use_key(tenant, old->used_at, sha);
		(void)table_del(t, T_SOURCE_BY_USE, &was);
	}
	table_put(t, T_SOURCE, &k, p, rec_put_source(p, STORE_SCRATCH, now));
	table_put(t, T_SOURCE_BY_USE, &index, p, rec_put_source_by_use(p, STORE_SCRATCH, &row));
}

void source_remove(struct txn *t, const char *tenant, const char *sha, const struct rec_source *r, const char *by,
		   const char *request_id)
{
	uint8_t digest[BLOB_SHA];
	struct key k = source_key(tenant, sha), index = source_use_key(tenant, r->used_at, sha);
	if (unhex(sha, strlen(sha), digest, sizeof digest))
		blob_unname(t, (struct wire_bytes){digest, sizeof digest}, tenant, "", source_use);
	(void)table_del(t, T_SOURCE_BY_USE, &index);
	(void)table_del(t, T_SOURCE, &k);
	struct audit_line l = {.event = AUDIT_SOURCE_DELETE,
			       .tenant = tenant,
			       .actor = by,
			       .request_id = request_id,
			       .v = {{AUDIT_F_DIGEST, .text = sha}, {AUDIT_F_BYTES, .number = r->size}}};
	txn_audit(t, &l);
}

struct count {
	unsigned n, most;
};

static bool one(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct count *c = with;
	(void)key;
	(void)value;
	return ++c->n < c->most;
}

bool sources_reach(struct txn *t, const char *tenant, unsigned most)
{
	struct count c = {.most = most};
	struct key prefix = key_prefix(tenant, NULL);
	table_scan(t, T_SOURCE_BY_USE, &prefix, NULL, one, &c);
	return c.n >= most;
}

struct page {
	struct txn *t;
	uint64_t before;
	unsigned n, most;
	struct old {
		uint64_t used_at;
		const char *sha;
	} * v;
};

static bool old_one(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct page *p = with;
	(void)value;
	(void)key_part(&key);
	uint64_t used = key_u64(&key);
	if (used >= p->before)
		return false;
	const char *sha = key_part(&key);
	p->v[p->n].used_at = used;
	p->v[p->n].sha = arena_dup(&p->t->arena, sha, strlen(sha));
	return p->v[p->n].sha != NULL && ++p->n < p->most;
}

unsigned sources_prune(struct txn *t, const char *tenant, uint64_t before, unsigned most)
{
	/* The audit lines are written when the transaction ends: their texts must be there then. */
	struct page p = {.t = t, .before = before, .most = most, .v = arena_get(&t->arena, most * sizeof(struct old))};
	const char *whose = arena_dup(&t->arena, tenant, strlen(tenant));
	struct key prefix = key_prefix(tenant, NULL);
	if (p.v == NULL || whose == NULL)
		return 0; /* it comes again */
	table_scan(t, T_SOURCE_BY_USE, &prefix, NULL, old_one, &p);
	for (unsigned i = 0; i < p.n; i++) {
		struct rec_source r;
		if (source_get(t, whose, p.v[i].sha, &r) && r.used_at == p.v[i].used_at) {
			source_remove(t, whose, p.v[i].sha, &r, "retention", NULL);
			continue;
		}
		struct key stray = source_use_key(whose, p.v[i].used_at, p.v[i].sha);
		(void)table_del(t, T_SOURCE_BY_USE, &stray);
	}
	return p.n;
}
