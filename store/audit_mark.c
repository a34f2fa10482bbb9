/* The record of how far the audit log belongs to what was committed; it lies in the table of the clock. */
#include "gen/records.h"
#include "store/txn.h"
#include <stdio.h>
#include <string.h>

static struct key key_of_mark(void)
{
	return key_prefix("audit", NULL);
}

bool audit_mark_get(struct txn *t, struct audit_mark *mark)
{
	struct wire_bytes v;
	struct rec_audit_mark r;
	struct key k = key_of_mark();
	if (!table_get(t, T_CLOCK, &k, &v) || !rec_get_audit_mark(v.p, v.n, &r) || r.config.n != sizeof mark->config)
		return false;
	mark->seq = r.seq;
	mark->synced = r.synced;
	memcpy(mark->config, r.config.p, sizeof mark->config);
	(void)snprintf(mark->hash, sizeof mark->hash, "%s", r.hash);
	return true;
}

void audit_mark_put(struct txn *t, const struct audit_mark *mark)
{
	struct rec_audit_mark r = {.seq = mark->seq,
				   .synced = mark->synced,
				   .config = {mark->config, sizeof mark->config},
				   .hash = mark->hash};
	struct key k = key_of_mark();
	uint8_t *p = txn_scratch(t);
	table_put(t, T_CLOCK, &k, p, rec_put_audit_mark(p, STORE_SCRATCH, &r));
}
