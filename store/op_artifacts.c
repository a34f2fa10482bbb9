/* Artifacts: put while a run goes on, got when it has ended. */
#include "lib/names.h"
#include "store/blobs.h"
#include "store/op.h"
#include "store/t_artifact.h"
#include "store/t_run.h"

static enum err put(struct txn *t, const struct st_artifact_put *m, const struct blob *blob)
{
	struct rec_run r;
	enum err e = run_load(t, m->tenant, m->run, &r);
	if (e != ERR_OK)
		return e;
	struct rec_artifact v = {.size = blob->size, .sha256 = {blob->sha, BLOB_SHA}};
	struct rec_artifact old;
	if (artifact_get(t, m->tenant, m->run, (enum artifact)m->name, &old) &&
	    (old.sha256.n != BLOB_SHA || memcmp(old.sha256.p, blob->sha, BLOB_SHA) != 0))
		blob_unname(t, old.sha256, m->tenant, m->run, artifact_use((enum artifact)m->name));
	blob_name(t, blob, m->tenant, m->run, artifact_use((enum artifact)m->name));
	artifact_put(t, m->tenant, m->run, (enum artifact)m->name, &v);
	r.artifacts |= 1u << m->name;
	run_save(t, m->tenant, m->run, &r);
	return ERR_OK;
}

static enum err op_artifact_put(struct txn *t, const struct st_artifact_put *m, int *fds, struct st_ok *a, int *out)
{
	(void)a;
	(void)out;
	struct rec_run r;
	enum err e = run_load(t, m->tenant, m->run, &r);
	if (e != ERR_OK)
		return e;
	if (m->name >= ART__COUNT)
		return ERR_ARTIFACT_NOT_FOUND;
	if (run_is_final(&r))
		return ERR_ILLEGAL_RUN_TRANSITION;
	if (!store_roomy(t->store))
		return ERR_STORAGE_FULL;
	struct blob blob;
	e = blob_take(t, fds[0], BLOB_MAX, &blob);
	if (e != ERR_OK)
		return e;
	e = txn_end(t, put(t, m, &blob));
	if (e != ERR_OK)
		blob_undo(t, &blob);
	return e;
}
ST_OP(artifact_put, ok, 1, 0)

static enum err op_artifact_get(struct txn *t, const struct st_artifact_get *m, int *fds, struct st_artifact_is *a,
				int *out)
{
	(void)fds;
	struct rec_run r;
	struct rec_artifact v;
	enum err e = run_load(t, m->tenant, m->run, &r);
	if (e != ERR_OK)
		return e;
	if (m->name >= ART__COUNT)
		return ERR_ARTIFACT_NOT_FOUND;
	if (!run_is_final(&r))
		return ERR_RUN_NOT_TERMINAL;
	if (!artifact_get(t, m->tenant, m->run, (enum artifact)m->name, &v))
		return ERR_ARTIFACT_NOT_FOUND;
	out[0] = blob_read(t, v.sha256);
	*a = (struct st_artifact_is){.size = v.size, .sha256 = v.sha256};
	return ERR_OK;
}
ST_OP(artifact_get, artifact_is, 0, 1)
