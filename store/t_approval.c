/* The table of approvals. */
#include "store/t_approval.h"
#include "lib/digest.h"
#include "lib/names.h"
#include <stdio.h>
#include <string.h>

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

struct key waiting_key(const char *tenant, uint64_t asked, const char *run, const char *request)
{
	struct key k;
	k.n = rec_key_waiting(k.p, sizeof k.p, tenant, asked, run, request);
	return k;
}

void approval_put(struct txn *t, const char *tenant, const char *run, const char *request, const struct rec_approval *r)
{
	struct key k = key_of(tenant, run, request), waits = waiting_key(tenant, r->requested_at, run, request);
	uint8_t *p = txn_scratch(t);
	table_put(t, T_APPROVAL, &k, p, rec_put_approval(p, STORE_SCRATCH, r));
	struct rec_waiting v = {.expires_at = r->expires_at};
	if (r->status == APPROVAL_PENDING)
		table_put(t, T_WAITING, &waits, p, rec_put_waiting(p, STORE_SCRATCH, &v));
	else
		(void)table_del(t, T_WAITING, &waits);
}

struct waiting {
	waiting_row *row;
	void *with;
	struct key skip; /* the row to resume behind */
};

static bool one_waits(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct waiting *w = with;
	struct rec_waiting r;
	if ((key.n == w->skip.n && memcmp(key.p, w->skip.p, key.n) == 0) || !rec_get_waiting(value.p, value.n, &r))
		return true;
	(void)key_part(&key);
	uint64_t asked = key_u64(&key);
	const char *run = key_part(&key);
	return w->row(w->with, asked, run, key_part(&key), r.expires_at);
}

void waiting_each(struct txn *t, const char *tenant, uint64_t asked, const char *run, const char *request,
		  waiting_row *row, void *with)
{
	struct waiting w = {.row = row, .with = with};
	struct key prefix = key_prefix(tenant, NULL);
	if (asked != 0)
		w.skip = waiting_key(tenant, asked, run, request);
	table_scan(t, T_WAITING, &prefix, asked != 0 ? &w.skip : NULL, one_waits, &w);
}

void approvals_del(struct txn *t, const char *tenant, const char *run)
{
	struct key prefix = key_prefix(tenant, run);
	(void)table_clear(t, T_APPROVAL, &prefix);
	(void)table_clear(t, T_GRANT, &prefix);
}

struct pending {
	uint64_t expires_at;
	char *request;
};

static bool look_pending(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct rec_approval r;
	struct pending *p = with;
	if (!rec_get_approval(value.p, value.n, &r) || r.status != APPROVAL_PENDING || r.expires_at >= p->expires_at)
		return true;
	p->expires_at = r.expires_at;
	(void)key_part(&key);
	(void)key_part(&key);
	(void)snprintf(p->request, STORE_ID, "%s", key_part(&key));
	return true;
}

uint64_t approval_pending(struct txn *t, const char *tenant, const char *run, char *request)
{
	struct key prefix = key_prefix(tenant, run);
	struct pending p = {UINT64_MAX, request};
	request[0] = '\0';
	table_scan(t, T_APPROVAL, &prefix, NULL, look_pending, &p);
	return p.expires_at;
}

struct each {
	approval_row *row;
	void *with;
	const char *after;
};

static bool one(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct each *e = with;
	struct rec_approval r;
	(void)key_part(&key);
	(void)key_part(&key);
	const char *request = key_part(&key);
	return strcmp(request, e->after) == 0 || !rec_get_approval(value.p, value.n, &r) ||
	       e->row(e->with, request, &r);
}

void approval_each(struct txn *t, const char *tenant, const char *run, const char *after, approval_row *row, void *with)
{
	struct each e = {row, with, after};
	struct key prefix = key_prefix(tenant, run), from = key_of(tenant, run, after);
	table_scan(t, T_APPROVAL, &prefix, after[0] != '\0' ? &from : NULL, one, &e);
}

static struct key grant_key(const char *tenant, const char *run, struct wire_bytes digest)
{
	struct key k = {.n = 0};
	char text[SHA256_HEX];
	if (digest.n != SHA256_SIZE)
		return k;
	hex(digest.p, SHA256_SIZE, text);
	k.n = rec_key_grant(k.p, sizeof k.p, tenant, run, text);
	return k;
}

bool grant_has(struct txn *t, const char *tenant, const char *run, struct wire_bytes digest)
{
	struct key k = grant_key(tenant, run, digest);
	return k.n > 0 && table_has(t, T_GRANT, &k);
}

void grant_put(struct txn *t, const char *tenant, const char *run, struct wire_bytes digest, const char *request)
{
	struct key k = grant_key(tenant, run, digest);
	struct rec_grant r = {.created_at = t->now, .request = request};
	uint8_t *p = txn_scratch(t);
	table_put(t, T_GRANT, &k, p, rec_put_grant(p, STORE_SCRATCH, &r));
}

bool grant_of(struct txn *t, const char *tenant, const char *run, struct wire_bytes digest, const char *request)
{
	struct key k = grant_key(tenant, run, digest);
	struct wire_bytes v;
	struct rec_grant r;
	return k.n > 0 && table_get(t, T_GRANT, &k, &v) && rec_get_grant(v.p, v.n, &r) &&
	       strcmp(r.request, request) == 0;
}

void grant_del(struct txn *t, const char *tenant, const char *run, struct wire_bytes digest)
{
	struct key k = grant_key(tenant, run, digest);
	(void)table_del(t, T_GRANT, &k);
}
