/* The table of idempotency keys and its index by age. A key and its run are written in one transaction. */
#include "store/t_idempotency.h"
#include "gen/limits.h"
#include <stdio.h>
#include <string.h>

enum { LIFE_MS = LIMIT_REQUEST_IDEMPOTENCY_SECONDS * 1000, PRUNED_AT_ONCE = 8 };

static struct key key_of(const char *tenant, const char *key)
{
	struct key k;
	k.n = rec_key_idempotency(k.p, sizeof k.p, tenant, key);
	return k;
}

static struct key age_of(const char *tenant, uint64_t created_at, const char *key)
{
	struct key k;
	k.n = rec_key_idempotency_by_age(k.p, sizeof k.p, tenant, created_at, key);
	return k;
}

static bool expired(const struct txn *t, uint64_t created_at)
{
	return t->now >= created_at && t->now - created_at >= LIFE_MS;
}

static bool load(struct txn *t, const char *tenant, const char *key, struct rec_idempotency *out)
{
	struct key k = key_of(tenant, key);
	struct wire_bytes v;
	if (!table_get(t, T_IDEMPOTENCY, &k, &v))
		return false;
	if (rec_get_idempotency(v.p, v.n, out))
		return true;
	txn_fail(t, ERR_INTERNAL_ERROR);
	return false;
}

bool idempotency_get(struct txn *t, const char *tenant, const char *key, struct rec_idempotency *out)
{
	return load(t, tenant, key, out) && !expired(t, out->created_at);
}

static void drop(struct txn *t, const char *tenant, uint64_t created_at, const char *key)
{
	struct key k = key_of(tenant, key), age = age_of(tenant, created_at, key);
	if (table_del(t, T_IDEMPOTENCY, &k))
		t->adds.keys--;
	(void)table_del(t, T_IDEMPOTENCY_BY_AGE, &age);
}

void idempotency_put(struct txn *t, const char *tenant, const char *key, const struct rec_idempotency *r)
{
	struct rec_idempotency old;
	if (load(t, tenant, key, &old))
		drop(t, tenant, old.created_at, key);
	struct key k = key_of(tenant, key), age = age_of(tenant, r->created_at, key);
	struct rec_idempotency_by_age a = {.created_at = r->created_at};
	uint8_t *p = txn_scratch(t);
	table_put(t, T_IDEMPOTENCY, &k, p, rec_put_idempotency(p, STORE_SCRATCH, r));
	t->adds.keys++;
	table_put(t, T_IDEMPOTENCY_BY_AGE, &age, p, rec_put_idempotency_by_age(p, STORE_SCRATCH, &a));
}

struct old {
	struct txn *t;
	unsigned n;
	uint64_t created_at[PRUNED_AT_ONCE];
	char key[PRUNED_AT_ONCE][STORE_ID];
};

static bool collect(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct old *o = with;
	(void)value;
	(void)key_part(&key);
	uint64_t created_at = key_u64(&key);
	if (o->n == PRUNED_AT_ONCE || !expired(o->t, created_at))
		return false;
	o->created_at[o->n] = created_at;
	(void)snprintf(o->key[o->n++], STORE_ID, "%s", key_part(&key));
	return true;
}

void idempotency_prune(struct txn *t, const char *tenant)
{
	struct key prefix = key_prefix(tenant, NULL);
	struct old o = {.t = t};
	table_scan(t, T_IDEMPOTENCY_BY_AGE, &prefix, NULL, collect, &o);
	for (unsigned i = 0; i < o.n; i++)
		drop(t, tenant, o.created_at[i], o.key[i]);
}
