/* The table of capabilities. */
#include "store/t_capability.h"

static struct key key_of(const char *tenant, const char *run)
{
	struct key k;
	k.n = rec_key_capability(k.p, sizeof k.p, tenant, run);
	return k;
}

bool capability_get(struct txn *t, const char *tenant, const char *run, struct rec_capability *out)
{
	struct key k = key_of(tenant, run);
	struct wire_bytes v;
	if (!table_get(t, T_CAPABILITY, &k, &v))
		return false;
	if (rec_get_capability(v.p, v.n, out))
		return true;
	txn_fail(t, ERR_INTERNAL_ERROR);
	return false;
}

void capability_put(struct txn *t, const char *tenant, const char *run, const struct rec_capability *r)
{
	struct key k = key_of(tenant, run);
	uint8_t *p = txn_scratch(t);
	table_put(t, T_CAPABILITY, &k, p, rec_put_capability(p, STORE_SCRATCH, r));
}

void capability_del(struct txn *t, const char *tenant, const char *run)
{
	struct key k = key_of(tenant, run);
	if (table_has(t, T_CAPABILITY, &k) && table_del(t, T_CAPABILITY, &k))
		t->wake.revoked = true; /* told with the run's own wake-up */
}
