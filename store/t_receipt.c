/* The table of receipts. */
#include "store/t_receipt.h"
#include "lib/num.h"
#include "store/t_token.h"
#include <stdlib.h>
#include <string.h>

static struct key key_of(const char *tenant, uint64_t at, const char *receipt)
{
	struct key k;
	k.n = rec_key_receipt(k.p, sizeof k.p, tenant, ~at, receipt);
	return k;
}

void receipt_add(struct txn *t, const char *tenant, const char *actor, const struct rec_receipt *r)
{
	static const char device[] = "device:";
	struct rec_receipt kept = *r;
	struct rec_token token;
	char id[STORE_ID];
	if (strncmp(actor, device, sizeof device - 1) != 0)
		return;
	kept.by = actor + sizeof device - 1;
	kept.device = token_get(t, kept.by, &token) ? token.label : "";
	uuid4(id);
	struct key k = key_of(tenant, t->now, id);
	uint8_t *p = txn_scratch(t);
	table_put(t, T_RECEIPT, &k, p, rec_put_receipt(p, STORE_SCRATCH, &kept));
}

struct each {
	receipt_row *row;
	void *with;
	struct key skip; /* the row to resume behind */
};

static bool one(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct each *e = with;
	struct rec_receipt r;
	if ((key.n == e->skip.n && memcmp(key.p, e->skip.p, key.n) == 0) || !rec_get_receipt(value.p, value.n, &r))
		return true;
	(void)key_part(&key);
	uint64_t at = ~key_u64(&key);
	return e->row(e->with, at, key_part(&key), &r);
}

void receipt_each(struct txn *t, const char *tenant, uint64_t before, const char *receipt, receipt_row *row, void *with)
{
	struct each e = {.row = row, .with = with};
	struct key prefix = key_prefix(tenant, NULL);
	if (before != 0)
		e.skip = key_of(tenant, before, receipt);
	table_scan(t, T_RECEIPT, &prefix, before != 0 ? &e.skip : NULL, one, &e);
}

struct page {
	unsigned n, most;
	struct key *key;
};

static bool old(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct page *p = with;
	(void)value;
	memcpy(p->key[p->n].p, key.p, key.n);
	p->key[p->n++].n = key.n;
	return p->n < p->most;
}

unsigned receipts_prune(struct txn *t, const char *tenant, uint64_t until, unsigned most)
{
	struct page p = {.most = most, .key = arena_get(&t->arena, most * sizeof *p.key)};
	struct key prefix = key_prefix(tenant, NULL), from = key_of(tenant, until, "");
	/* Retention comes again. */
	if (p.key == NULL)
		return 0;
	/* A scan must not write. */
	table_scan(t, T_RECEIPT, &prefix, &from, old, &p);
	for (unsigned i = 0; i < p.n; i++)
		(void)table_del(t, T_RECEIPT, &p.key[i]);
	return p.n;
}
