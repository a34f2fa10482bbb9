/* The table of artifacts. */
#include "store/t_artifact.h"

static struct key key_of(const char *tenant, const char *run, enum artifact name)
{
	struct key k;
	k.n = rec_key_artifact(k.p, sizeof k.p, tenant, run, artifact_names[name]);
	return k;
}

bool artifact_get(struct txn *t, const char *tenant, const char *run, enum artifact name, struct rec_artifact *out)
{
	struct key k = key_of(tenant, run, name);
	struct wire_bytes v;
	if (!table_get(t, T_ARTIFACT, &k, &v))
		return false;
	if (rec_get_artifact(v.p, v.n, out))
		return true;
	txn_fail(t, ERR_INTERNAL_ERROR);
	return false;
}

void artifact_put(struct txn *t, const char *tenant, const char *run, enum artifact name, const struct rec_artifact *r)
{
	struct key k = key_of(tenant, run, name);
	uint8_t *p = txn_scratch(t);
	table_put(t, T_ARTIFACT, &k, p, rec_put_artifact(p, STORE_SCRATCH, r));
}
