/* The table of artifacts. */
#include "store/t_artifact.h"
#include "store/blobs.h"

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

void artifacts_del(struct txn *t, const char *tenant, const char *run)
{
	struct key prefix = key_prefix(tenant, run);
	struct rec_artifact r;
	for (enum artifact name = 0; name < ART__COUNT; name++)
		if (artifact_get(t, tenant, run, name, &r))
			blob_unname(t, r.sha256, tenant, run, artifact_use(name));
	(void)table_clear(t, T_ARTIFACT, &prefix);
}

const char *artifact_use(enum artifact name)
{
	static const char *const uses[ART__COUNT] = {
	    [ART_REQUEST] = "artifact.request",       [ART_EVENTS] = "artifact.events",
	    [ART_CHECKPOINT] = "artifact.checkpoint", [ART_PATCH] = "artifact.patch",
	    [ART_TEST_LOG] = "artifact.test_log",     [ART_RESULT] = "artifact.result",
	    [ART_TRANSCRIPT] = "artifact.transcript"};
	return uses[name];
}

void artifact_put(struct txn *t, const char *tenant, const char *run, enum artifact name, const struct rec_artifact *r)
{
	struct key k = key_of(tenant, run, name);
	uint8_t *p = txn_scratch(t);
	table_put(t, T_ARTIFACT, &k, p, rec_put_artifact(p, STORE_SCRATCH, r));
}
