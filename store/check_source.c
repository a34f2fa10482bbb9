/* The rows of sources. */
#include "store/blobs.h"
#include "store/check_row.h"
#include "store/t_source.h"
#include <string.h>

bool check_source_use(struct check *c, const char *sha, const char *tenant, const char *run, const char *use)
{
	if (*run != '\0' || strcmp(use, source_use) != 0)
		return false;
	struct key source = source_key(tenant, sha);
	if (!check_has(c, T_SOURCE, &source))
		check_finding(c, "blob %s is used by a source of %s that is not there", sha, tenant);
	return true;
}

void check_source(struct check *c, struct wire_bytes key, struct wire_bytes value)
{
	struct rec_source r;
	struct key use, index;
	const char *tenant = key_part(&key), *sha = key_part(&key);
	if (!rec_get_source(value.p, value.n, &r)) {
		check_finding(c, "the source %s of %s cannot be read", sha, tenant);
		return;
	}
	use.n = rec_key_blob_use(use.p, sizeof use.p, sha, tenant, "", source_use);
	index = source_use_key(tenant, r.used_at, sha);
	if (!check_has(c, T_BLOB_USE, &use))
		check_finding(c, "the source %s of %s has no blob", sha, tenant);
	if (!check_has(c, T_SOURCE_BY_USE, &index))
		check_finding(c, "the source %s of %s is not in the index by use", sha, tenant);
}

void check_source_by_use(struct check *c, struct wire_bytes key, struct wire_bytes value)
{
	struct rec_source r;
	struct rec_source_by_use row;
	const char *tenant = key_part(&key);
	uint64_t used = key_u64(&key);
	const char *sha = key_part(&key);
	bool there = source_get(c->t, tenant, sha, &r);
	check_settle(c, NULL);
	if (!rec_get_source_by_use(value.p, value.n, &row) || !there || r.used_at != used)
		check_finding(c, "the index by use names the source %s of %s wrongly", sha, tenant);
}
