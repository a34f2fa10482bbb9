/* The table of tenants. */
#include "store/t_tenant.h"
#include "gen/records.h"

static struct key key_of(const char *tenant)
{
	struct key k;
	k.n = rec_key_tenant(k.p, sizeof k.p, tenant);
	return k;
}

bool tenant_exists(struct txn *t, const char *tenant)
{
	struct key k = key_of(tenant);
	return table_has(t, T_TENANT, &k);
}

void tenant_put(struct txn *t, const char *tenant)
{
	struct key k = key_of(tenant);
	if (table_has(t, T_TENANT, &k))
		return;
	struct rec_tenant r = {.created_at = t->now};
	uint8_t *p = txn_scratch(t);
	table_put(t, T_TENANT, &k, p, rec_put_tenant(p, STORE_SCRATCH, &r));
}
