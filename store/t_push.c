/* The tables of Web Push. */
#include "store/t_push.h"
#include "store/push_clock.h"
#include <stdio.h>
#include <string.h>

static struct key subscription_key(const char *tenant, const char *token_id)
{
	struct key k;
	k.n = rec_key_push_subscription(k.p, sizeof k.p, tenant, token_id);
	return k;
}

static struct key push_key(const char *tenant, const char *token_id, const char *run, const char *request)
{
	struct key k;
	k.n = rec_key_push(k.p, sizeof k.p, tenant, token_id, run, request);
	return k;
}

struct key push_due_key(uint64_t due, const char *tenant, const char *token_id)
{
	struct key k;
	k.n = rec_key_push_due(k.p, sizeof k.p, due, tenant, token_id);
	return k;
}

static bool take_device(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct push_devices *d = with;
	(void)value;
	(void)key_part(&key);
	(void)snprintf(d->id[d->n++], STORE_ID, "%s", key_part(&key));
	return d->n < LIMIT_PUSH_DEVICES;
}

void push_devices_of(struct txn *t, const char *tenant, struct push_devices *out)
{
	struct key prefix = key_prefix(tenant, NULL);
	out->n = 0;
	table_scan(t, T_PUSH_SUBSCRIPTION, &prefix, NULL, take_device, out);
}

bool subscription_get(struct txn *t, const char *tenant, const char *token_id, struct rec_push_subscription *out)
{
	struct key k = subscription_key(tenant, token_id);
	struct wire_bytes v;
	if (!table_get(t, T_PUSH_SUBSCRIPTION, &k, &v))
		return false;
	if (rec_get_push_subscription(v.p, v.n, out))
		return true;
	txn_fail(t, ERR_INTERNAL_ERROR);
	return false;
}

void subscription_put(struct txn *t, const char *tenant, const char *token_id, struct rec_push_subscription *r,
		      uint64_t due, bool added)
{
	struct key k = subscription_key(tenant, token_id);
	struct rec_push_due v = {.out = r->lent != 0};
	struct key was = push_due_key(r->due, tenant, token_id), is = push_due_key(due, tenant, token_id);
	uint8_t *p = txn_scratch(t);
	if (r->due != 0 && r->due != due)
		(void)table_del(t, T_PUSH_DUE, &was);
	if (due != 0)
		table_put(t, T_PUSH_DUE, &is, p, rec_put_push_due(p, STORE_SCRATCH, &v));
	r->due = due;
	p = txn_scratch(t);
	table_put(t, T_PUSH_SUBSCRIPTION, &k, p, rec_put_push_subscription(p, STORE_SCRATCH, r));
	push_clock_record(t);
	t->adds.subscriptions += added;
}

bool subscription_del(struct txn *t, const char *tenant, const char *token_id)
{
	struct rec_push_subscription r;
	struct key k = subscription_key(tenant, token_id), rows = key_prefix(tenant, token_id);
	if (!subscription_get(t, tenant, token_id, &r))
		return false;
	struct key due = push_due_key(r.due, tenant, token_id);
	if (r.due != 0)
		(void)table_del(t, T_PUSH_DUE, &due);
	(void)table_clear(t, T_PUSH, &rows);
	(void)table_del(t, T_PUSH_SUBSCRIPTION, &k);
	t->adds.subscriptions--;
	return true;
}

bool push_get(struct txn *t, const char *tenant, const char *token_id, const char *run, const char *request,
	      struct rec_push *out)
{
	struct key k = push_key(tenant, token_id, run, request);
	struct wire_bytes v;
	if (!table_get(t, T_PUSH, &k, &v))
		return false;
	if (rec_get_push(v.p, v.n, out))
		return true;
	txn_fail(t, ERR_INTERNAL_ERROR);
	return false;
}

void push_put(struct txn *t, const char *tenant, const char *token_id, const char *run, const char *request,
	      const struct rec_push *r)
{
	struct key k = push_key(tenant, token_id, run, request);
	uint8_t *p = txn_scratch(t);
	table_put(t, T_PUSH, &k, p, rec_put_push(p, STORE_SCRATCH, r));
}

void push_del(struct txn *t, const char *tenant, const char *token_id, const char *run, const char *request)
{
	struct key k = push_key(tenant, token_id, run, request);
	(void)table_del(t, T_PUSH, &k);
}

struct each {
	push_row *row;
	void *with;
};

static bool one(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct each *e = with;
	struct rec_push r;
	(void)key_part(&key);
	(void)key_part(&key);
	const char *run = key_part(&key);
	return !rec_get_push(value.p, value.n, &r) || e->row(e->with, run, key_part(&key), &r);
}

void push_each(struct txn *t, const char *tenant, const char *token_id, push_row *row, void *with)
{
	struct each e = {row, with};
	struct key prefix = key_prefix(tenant, token_id);
	table_scan(t, T_PUSH, &prefix, NULL, one, &e);
}

struct each_due {
	push_due_row *row;
	void *with;
};

static bool one_due(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct each_due *e = with;
	struct rec_push_due v = {.out = false};
	(void)rec_get_push_due(value.p, value.n, &v);
	uint64_t due = key_u64(&key);
	const char *tenant = key_part(&key);
	return e->row(e->with, due, tenant, key_part(&key), v.out);
}

void push_due_each(struct txn *t, uint64_t from, push_due_row *row, void *with)
{
	struct each_due e = {row, with};
	struct key all = {.n = 0}, start = push_due_key(from, "", "");
	table_scan(t, T_PUSH_DUE, &all, &start, one_due, &e);
}

static bool first(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct key *k = with;
	(void)value;
	memcpy(k->p, key.p, key.n);
	k->n = key.n;
	return false;
}

static void clear(struct txn *t, enum table which)
{
	struct key all = {.n = 0}, k;
	do {
		k.n = 0;
		table_scan(t, which, &all, NULL, first, &k);
	} while (k.n > 0 && table_del(t, which, &k));
}

struct next {
	char tenant[STORE_ID], id[STORE_ID];
};

static bool next_due(void *with, uint64_t due, const char *tenant, const char *token_id, bool out)
{
	struct next *n = with;
	(void)due;
	(void)out;
	(void)snprintf(n->tenant, sizeof n->tenant, "%s", tenant);
	(void)snprintf(n->id, sizeof n->id, "%s", token_id);
	return false;
}

void pushes_drop(struct txn *t)
{
	for (;;) {
		struct next n = {"", ""};
		struct rec_push_subscription r;
		push_due_each(t, 0, next_due, &n);
		if (n.id[0] == '\0' || !subscription_get(t, n.tenant, n.id, &r) || r.due == 0)
			break;
		r.lent = 0;
		subscription_put(t, n.tenant, n.id, &r, 0, false);
	}
	clear(t, T_PUSH);
	clear(t, T_PUSH_DUE);
}
