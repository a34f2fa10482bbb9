/* The end of what a run left; see run_gone.h. */
#include "store/run_gone.h"
#include "store/blobs.h"
#include "store/t_approval.h"
#include "store/t_artifact.h"
#include "store/t_capability.h"
#include "store/t_event.h"

const char run_use_request[] = "request", run_use_upload[] = "upload";

void run_remove(struct txn *t, const char *tenant, const char *run, const struct rec_run *r, const char *by,
		const char *request_id)
{
	artifacts_del(t, tenant, run);
	blob_unname(t, r->request_sha, tenant, run, run_use_request);
	if (!r->artifacts_gone)
		blob_unname(t, r->upload_sha, tenant, run, run_use_upload);
	events_del(t, tenant, run);
	approvals_del(t, tenant, run);
	capability_del(t, tenant, run);
	run_del(t, tenant, run, r);
	struct audit_line l = {.event = AUDIT_RUN_DELETE,
			       .tenant = tenant,
			       .run = run,
			       .actor = by,
			       .request_id = request_id,
			       .v = {{AUDIT_F_STATE, .text = run_public((enum run_state)r->state)}}};
	txn_audit(t, &l);
}

void run_strip(struct txn *t, const char *tenant, const char *run, struct rec_run *r)
{
	artifacts_del(t, tenant, run);
	blob_unname(t, r->upload_sha, tenant, run, run_use_upload);
	run_artifacts_gone(t, tenant, run, r);
}
