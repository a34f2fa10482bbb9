/* The table of operations; see t_operation.h. */
#include "store/t_operation.h"
#include "store/env.h"
#include <stdio.h>

/* Keys are text and numbers: the role as one digit. */
static const char *role_key(uint8_t role)
{
	static const char names[OPERATION_ROLES][2] = {"0", "1", "2", "3"};
	return names[role];
}

static struct key key_of(uint8_t role, uint64_t client)
{
	struct key k;
	k.n = rec_key_operation(k.p, sizeof k.p, role_key(role), client);
	return k;
}

bool operation_get(struct txn *t, uint8_t role, uint64_t client, struct rec_operation *out)
{
	struct key k = key_of(role, client);
	struct wire_bytes v;
	if (!table_get(t, T_OPERATION, &k, &v))
		return false;
	if (rec_get_operation(v.p, v.n, out))
		return true;
	txn_fail(t, ERR_INTERNAL_ERROR);
	return false;
}

struct step {
	uint64_t now, keep_ms, last;
	unsigned seen, old;
	uint64_t client[OPERATIONS_STEP];
};

static bool look(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct step *s = with;
	struct rec_operation r;
	(void)key_part(&key);
	s->last = key_u64(&key);
	/* What lies in the future is from before the clock was set back: it goes only when room is needed. */
	bool kept = rec_get_operation(value.p, value.n, &r) &&
		    (r.at > s->now ? s->keep_ms == OPERATION_KEEP_MS : s->now - r.at < s->keep_ms);
	if (!kept)
		s->client[s->old++] = s->last;
	return ++s->seen < OPERATIONS_STEP;
}

static void prune(struct txn *t, uint8_t role)
{
	struct operations *o = store_operations(t->store);
	uint64_t rows = o->role[role].rows;
	struct step s = {.now = t->now,
			 .keep_ms = rows < OPERATIONS_MANY       ? OPERATION_KEEP_MS
				    : rows < 2 * OPERATIONS_MANY ? OPERATION_ASK_MS
								 : 0};
	struct key prefix = key_prefix(role_key(role), NULL), from = key_of(role, o->role[role].at);
	table_scan(t, T_OPERATION, &prefix, &from, look, &s);
	o->role[role].at = s.seen < OPERATIONS_STEP || s.last == UINT64_MAX ? 0 : s.last + 1;
	for (unsigned i = 0; i < s.old; i++) {
		struct key k = key_of(role, s.client[i]);
		if (table_del(t, T_OPERATION, &k))
			t->operations--;
	}
}

void operation_put(struct txn *t, uint8_t role, uint64_t client, const struct rec_operation *r)
{
	struct key k = key_of(role, client);
	t->operations_of = role;
	if (!table_has(t, T_OPERATION, &k)) {
		prune(t, role);
		t->operations++;
	}
	uint8_t *p = txn_scratch(t);
	table_put(t, T_OPERATION, &k, p, rec_put_operation(p, STORE_SCRATCH, r));
}

static bool count(void *with, struct wire_bytes key, struct wire_bytes value)
{
	(void)key;
	(void)value;
	++*(uint64_t *)with;
	return true;
}

void operations_open(struct operations *o, struct txn *t)
{
	for (int role = 0; role < OPERATION_ROLES; role++) {
		struct key prefix = key_prefix(role_key((uint8_t)role), NULL);
		table_scan(t, T_OPERATION, &prefix, NULL, count, &o->role[role].rows);
	}
}
