/* The table of approvals. */
#include "store/t_approval.h"
#include "lib/names.h"
#include <stdio.h>

static struct key key_of(const char *tenant, const char *run, const char *request)
{
	struct key k;
	k.n = rec_key_approval(k.p, sizeof k.p, tenant, run, request);
	return k;
}

bool approval_get(struct txn *t, const char *tenant, const char *run, const char *request, struct rec_approval *out)
{
	struct key k = key_of(tenant, run, request);
	struct wire_bytes v;
	if (!table_get(t, T_APPROVAL, &k, &v))
		return false;
	if (rec_get_approval(v.p, v.n, out))
		return true;
	txn_fail(t, ERR_INTERNAL_ERROR);
	return false;
}

void approval_put(struct txn *t, const char *tenant, const char *run, const char *request, const struct rec_approval *r)
{
	struct key k = key_of(tenant, run, request);
	uint8_t *p = txn_scratch(t);
	table_put(t, T_APPROVAL, &k, p, rec_put_approval(p, STORE_SCRATCH, r));
}

void approvals_del(struct txn *t, const char *tenant, const char *run)
{
	struct key prefix = key_prefix(tenant, run);
	(void)table_clear(t, T_APPROVAL, &prefix);
}

struct pending {
	bool found;
	char request[STORE_ID];
};

static bool first_pending(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct pending *p = with;
	struct rec_approval r;
	if (!rec_get_approval(value.p, value.n, &r) || r.status != APPROVAL_PENDING)
		return true;
	(void)key_part(&key);
	(void)key_part(&key);
	(void)snprintf(p->request, sizeof p->request, "%s", key_part(&key));
	p->found = true;
	return false;
}

void approvals_end(struct txn *t, const char *tenant, const char *run)
{
	struct key prefix = key_prefix(tenant, run);
	/* A scan must not write, so one at a time; few are ever pending. */
	for (struct pending p = {.found = true}; p.found && t->failed == ERR_OK;) {
		struct rec_approval r;
		p.found = false;
		table_scan(t, T_APPROVAL, &prefix, NULL, first_pending, &p);
		if (!p.found || !approval_get(t, tenant, run, p.request, &r))
			break;
		r.status = APPROVAL_EXPIRED;
		r.decided_at = t->now;
		approval_put(t, tenant, run, p.request, &r);
	}
}
