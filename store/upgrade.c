/*
 * The upgrade of a store, in steps. A step leads from one form to the next in small transactions, and does nothing
 * twice; that it is done is recorded behind it. So a kill costs at most the work of one step.
 */
#include "store/upgrade.h"
#include "gen/records.h"
#include "lib/die.h"
#include "lib/names.h"
#include "lib/secret.h"
#include "store/env.h"
#include "store/t_approval.h"
#include "store/t_run.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 200 /* of one transaction */ };

static struct key meta_key(void)
{
	return key_prefix("store", NULL);
}

bool meta_get(struct txn *t, struct meta *out)
{
	struct wire_bytes v;
	struct rec_meta r;
	struct key k = meta_key();
	*out = (struct meta){.schema = 1, .generation = 1};
	if (!table_get(t, T_META, &k, &v))
		return t->failed == ERR_OK;
	if (!rec_get_meta(v.p, v.n, &r))
		return false;
	*out = (struct meta){.schema = r.schema, .generation = r.generation, .restored_at = r.restored_at};
	if (r.id.n == META_ID)
		memcpy(out->id, r.id.p, META_ID);
	return r.id.n == META_ID;
}

void meta_put(struct txn *t, const struct meta *m)
{
	struct rec_meta r = {
	    .schema = m->schema, .generation = m->generation, .restored_at = m->restored_at, .id = {m->id, META_ID}};
	struct key k = meta_key();
	uint8_t *p = txn_scratch(t);
	table_put(t, T_META, &k, p, rec_put_meta(p, STORE_SCRATCH, &r));
}

/* Rows of one table, in transactions of so many: those that are wanted are entered elsewhere. */
struct rows {
	struct key next; /* n 0: from the beginning */
	unsigned seen, n;
	bool (*wanted)(struct wire_bytes value);
	struct key row[ROWS];
};

static bool a_row(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct rows *p = with;
	struct key k = {.n = key.n};
	memcpy(k.p, key.p, key.n);
	p->next = k;
	if (p->seen++ == ROWS)
		return false;
	if (p->wanted(value))
		p->row[p->n++] = k;
	return true;
}

static enum err enter_rows(struct store *s, enum table which, bool (*wanted)(struct wire_bytes value),
			   void (*enter)(struct txn *t, struct wire_bytes key))
{
	struct rows *p = calloc(1, sizeof *p);
	struct key all = {.n = 0};
	enum err e = ERR_OK;
	bool more = true;
	if (p == NULL)
		return store_error(errno);
	p->wanted = wanted;
	while (e == ERR_OK && more) {
		struct txn t;
		txn_init(&t, s, NULL);
		p->seen = p->n = 0;
		table_scan(&t, which, &all, p->next.n > 0 ? &p->next : NULL, a_row, p);
		more = p->seen > ROWS;
		for (unsigned i = 0; i < p->n; i++)
			enter(&t, (struct wire_bytes){p->row[i].p, (uint32_t)p->row[i].n});
		e = txn_end(&t, ERR_OK);
		txn_free(&t);
	}
	free(p);
	return e;
}

/* Form 2: runs that have ended are in an index of their own, by their end. */
static bool has_ended(struct wire_bytes value)
{
	struct rec_run r;
	return rec_get_run(value.p, value.n, &r) && r.state < RUN_STATE__COUNT && run_is_final(&r);
}

static void enter_ended(struct txn *t, struct wire_bytes key)
{
	struct rec_run r;
	const char *tenant = key_part(&key), *run = key_part(&key);
	if (run_load(t, tenant, run, &r) == ERR_OK)
		run_index_ended(t, tenant, run, &r);
}

static enum err index_ended(struct store *s)
{
	return enter_rows(s, T_RUN, has_ended, enter_ended);
}

/* Form 3: questions that wait are in an index of their own, by when they were asked. */
static bool waits(struct wire_bytes value)
{
	struct rec_approval r;
	return rec_get_approval(value.p, value.n, &r) && r.status == APPROVAL_PENDING;
}

static void enter_waiting(struct txn *t, struct wire_bytes key)
{
	struct rec_approval r;
	const char *tenant = key_part(&key), *run = key_part(&key), *request = key_part(&key);
	if (approval_get(t, tenant, run, request, &r))
		approval_put(t, tenant, run, request, &r);
}

static enum err index_waiting(struct store *s)
{
	return enter_rows(s, T_APPROVAL, waits, enter_waiting);
}

/* Forms 4 to 6: records that the form before cannot read, and nothing to be done to those there are. */
static enum err nothing(struct store *s)
{
	(void)s;
	return ERR_OK;
}

/* A new form is a row here, and SCHEMA. */
static const struct {
	uint32_t to;
	const char *what;
	enum err (*step)(struct store *s);
} steps[] = {{2, "an index of runs that have ended", index_ended},
	     {3, "an index of questions that wait", index_waiting},
	     {4, "when a run's phase began", nothing},
	     {5, "which runs get keys, and tokens that are reserved", nothing},
	     {6, "sources, and runs whose upload is an archive", nothing}};

static struct meta load(struct store *s)
{
	struct txn t;
	struct meta m;
	txn_init(&t, s, NULL);
	if (!meta_get(&t, &m))
		fatal("the store's own record cannot be read: restore a backup");
	(void)txn_end(&t, ERR_OK);
	txn_free(&t);
	return m;
}

void schema_check(struct store *s)
{
	struct meta m = load(s);
	if (m.schema > SCHEMA)
		fatal("the store has form %u, and this program knows forms up to %d: install the Pinfold that wrote "
		      "it, or restore a backup from before its upgrade",
		      (unsigned)m.schema, SCHEMA);
}

static bool one_row(void *with, struct wire_bytes key, struct wire_bytes value)
{
	(void)key;
	(void)value;
	*(bool *)with = false;
	return false;
}

/* A store that was made just now. */
static bool empty(struct store *s)
{
	struct txn t;
	struct key all = {.n = 0};
	bool none = true;
	txn_init(&t, s, NULL);
	table_scan(&t, T_TENANT, &all, NULL, one_row, &none);
	(void)txn_end(&t, ERR_OK);
	txn_free(&t);
	return none;
}

void schema_upgrade(struct store *s)
{
	struct meta m = load(s);
	bool made = empty(s);
	static const uint8_t none[META_ID];
	if (memcmp(m.id, none, META_ID) == 0)
		random_bytes(m.id, META_ID);
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		if (steps[i].to <= m.schema)
			continue;
		if (!made)
			log_info("the store is upgraded to form %u: %s", (unsigned)steps[i].to, steps[i].what);
		enum err e = steps[i].step(s);
		struct txn t;
		txn_init(&t, s, NULL);
		m.schema = steps[i].to;
		meta_put(&t, &m);
		e = txn_end(&t, e);
		txn_free(&t);
		if (e != ERR_OK)
			fatal("the store cannot be upgraded (%s): the next start goes on with it", err_code(e));
		store_flush(s);
	}
}
