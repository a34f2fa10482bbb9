/* The table of pairing codes. A row that cannot be read is as good as none: it pairs nothing. */
#include "store/t_pairing.h"
#include <string.h>

static struct key key_of(const char *tenant)
{
	struct key k;
	k.n = rec_key_pairing(k.p, sizeof k.p, tenant);
	return k;
}

bool pairing_get(struct txn *t, const char *tenant, struct rec_pairing *out)
{
	struct key k = key_of(tenant);
	struct wire_bytes v;
	return table_get(t, T_PAIRING, &k, &v) && rec_get_pairing(v.p, v.n, out);
}

void pairing_put(struct txn *t, const char *tenant, const struct rec_pairing *r)
{
	struct key k = key_of(tenant);
	uint8_t *p = txn_scratch(t);
	table_put(t, T_PAIRING, &k, p, rec_put_pairing(p, STORE_SCRATCH, r));
}

void pairing_del(struct txn *t, const char *tenant)
{
	struct key k = key_of(tenant);
	(void)table_del(t, T_PAIRING, &k);
}

struct each {
	pairing_row *row;
	void *with;
};

static bool one(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct each *e = with;
	struct rec_pairing r;
	return !rec_get_pairing(value.p, value.n, &r) || e->row(e->with, key_part(&key), &r);
}

void pairing_each(struct txn *t, pairing_row *row, void *with)
{
	struct each e = {row, with};
	struct key all = {.n = 0};
	table_scan(t, T_PAIRING, &all, NULL, one, &e);
}

static bool first(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct key *k = with;
	(void)value;
	memcpy(k->p, key.p, key.n);
	k->n = key.n;
	return false;
}

void pairings_drop(struct txn *t)
{
	struct key all = {.n = 0}, k;
	/* A scan must not write; there is one a tenant at most. Also what cannot be read goes. */
	do {
		k.n = 0;
		table_scan(t, T_PAIRING, &all, NULL, first, &k);
	} while (k.n > 0 && table_del(t, T_PAIRING, &k));
}
