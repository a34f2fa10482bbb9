/*
 * Transactions and tables over Berkeley DB. A commit here is written to the log file but not yet
 * durable: batch.c flushes once for all operations of a batch before any of them is answered.
 */
#include "store/txn.h"
#include "lib/die.h"
#include "lib/lack.h"
#include "store/bdb.h"
#include <endian.h>
#include <stdio.h>
#include <string.h>

enum { ARENA_MAX = 4 << 20 };

void txn_init(struct txn *t, struct store *s, uint8_t *page)
{
	memset(t, 0, sizeof *t);
	t->store = s;
	t->now = s->now;
	t->page = page;
	arena_init(&t->arena, ARENA_MAX);
}

void txn_fail(struct txn *t, enum err e)
{
	if (t->failed == ERR_OK)
		t->failed = e;
}

static bool begin(struct txn *t)
{
	if (t->failed != ERR_OK)
		return false;
	if (t->handle != NULL)
		return true;
	DB_TXN *h = NULL;
	DB_ENV *env = t->store->env;
	int ret = env->txn_begin(env, NULL, &h, DB_TXN_WRITE_NOSYNC);
	if (ret != 0) {
		txn_fail(t, bdb_error(t->store, ret, "begin"));
		return false;
	}
	t->handle = h;
	return true;
}

void txn_tenant(struct txn *t, const char *tenant)
{
	if (t->queue[0] != '\0' && strcmp(t->queue, tenant) != 0)
		panic("a transaction changes what is counted of two tenants");
	(void)snprintf(t->queue, sizeof t->queue, "%s", tenant);
}

void txn_audit(struct txn *t, const struct audit_line *line)
{
	if (t->naudit == TXN_AUDIT)
		panic("a transaction has more audit lines than it may");
	t->audit[t->naudit++] = *line;
}

/* The last step but the commit itself: then a line is missing only where nothing happened. */
static void write_audit(struct txn *t, uint64_t *last)
{
	struct audit *a = t->store->audit;
	struct audit_mark mark = {0};
	bool synced;
	*last = 0;
	if (a == NULL || t->naudit == 0)
		return;
	if (!audit_ahead(a, t->now, t->audit, t->naudit, last, &synced)) {
		txn_fail(t, ERR_AUDIT_UNAVAILABLE);
		return;
	}
	if (*last == 0)
		return;
	(void)audit_mark_get(t, &mark);
	audit_place(a, &mark);
	mark.synced = synced ? *last : mark.synced;
	audit_mark_put(t, &mark);
}

enum err txn_end(struct txn *t, enum err result)
{
	uint64_t line = 0;
	struct store *s = t->store;
	/* An operation may have nothing to write but its line. */
	bool writes = t->handle != NULL || t->naudit > 0;
	if (result == ERR_OK && t->failed == ERR_OK && writes)
		clock_record(t);
	if (result == ERR_OK && t->failed == ERR_OK && writes)
		write_audit(t, &line);
	/* What could not be read looks to an operation like what is not there: its refusal would be untrue. */
	if (t->failed != ERR_OK)
		result = t->failed;
	DB_TXN *h = t->handle;
	t->handle = NULL;
	if (h != NULL && result == ERR_OK) {
		/* Whatever commit returns, the handle is gone; an error means that it was undone. */
		result = bdb_error(s, h->commit(h, DB_TXN_WRITE_NOSYNC), "commit");
		if (result == ERR_OK) {
			s->commits++;
			s->operations.role[t->operations_of].rows += (uint64_t)(int64_t)t->operations;
			figures_add(&s->figures, &t->adds);
			if (t->queued != 0 || t->stored != 0)
				queues_add(&s->queues, t->queue, t->queued, t->stored);
			for (unsigned i = 0; i < t->nunused && s->nunused < STORE_UNUSED; i++)
				memcpy(s->unused[s->nunused++], t->unused[i], sizeof t->unused[i]);
			s->unflushed = s->log_grew = t->kept = true;
		}
	} else if (h != NULL) {
		int ret = h->abort(h);
		if (ret != 0)
			(void)bdb_error(s, ret, "undoing a transaction");
	}
	if (result != ERR_OK) {
		if (line != 0)
			audit_undone(s->audit, t->now, line, t->naudit);
		t->wake.set = t->wake.set && t->kept;
		s->recorded = 0; /* the clock may have been in what was undone */
	}
	t->naudit = 0; /* an operation may end its transaction itself */
	t->failed = result;
	return result;
}

void blobs_release(struct store *s)
{
	struct txn t;
	txn_init(&t, s, NULL);
	for (unsigned i = 0; i < s->nunused; i++)
		blob_remove(&t, s->unused[i]);
	s->nunused = 0;
	(void)txn_end(&t, ERR_OK);
	txn_free(&t);
}

void figures_add(struct figures *to, const struct figures *adds)
{
	for (int i = 0; i < RUN_STATE__COUNT; i++)
		to->runs[i] += adds->runs[i];
	to->keys += adds->keys;
	to->created += adds->created;
	to->deleted += adds->deleted;
	to->events += adds->events;
	to->truncated += adds->truncated;
	to->consumed += adds->consumed;
	to->tokens += adds->tokens;
	to->subscriptions += adds->subscriptions;
	to->pushes_sent += adds->pushes_sent;
	to->pushes_failed += adds->pushes_failed;
	to->pushes_held += adds->pushes_held;
	to->pushes_evicted += adds->pushes_evicted;
	for (int i = 0; i < COURSE_STATE__COUNT; i++)
		hist_merge(&to->phases[i], &adds->phases[i]);
	for (int i = 0; i < APPROVAL_STATE__COUNT; i++)
		hist_merge(&to->waits[i], &adds->waits[i]);
}

void figures_took(struct hist *h, uint64_t since, uint64_t now)
{
	if (since != 0 && since <= now)
		hist_add(h, 1000 * (now - since));
}

void txn_free(struct txn *t)
{
	arena_free(&t->arena);
}

uint8_t *txn_scratch(struct txn *t)
{
	return t->store->scratch;
}

static DBT dbt(const void *p, size_t n)
{
	DBT d;
	memset(&d, 0, sizeof d);
	d.data = (void *)(uintptr_t)p;
	d.size = (uint32_t)n;
	return d;
}

static bool find(struct txn *t, enum table which, const struct key *key, DBT *value)
{
	if (t->failed != ERR_OK)
		return false;
	DB *db = t->store->db[which];
	DBT k = dbt(key->p, key->n);
	int ret = db->get(db, t->handle, &k, value, 0);
	if (ret == 0)
		return true;
	if (ret != DB_NOTFOUND)
		txn_fail(t, bdb_error(t->store, ret, "read"));
	return false;
}

bool table_get(struct txn *t, enum table which, const struct key *key, struct wire_bytes *value)
{
	DBT v = dbt(NULL, 0);
	if (key->n == 0 || !find(t, which, key, &v))
		return false;
	/* Berkeley DB's own memory is valid only until the next call. */
	uint8_t *p = arena_get(&t->arena, v.size + 1);
	if (p == NULL) {
		txn_fail(t, store_error(errno));
		return false;
	}
	memcpy(p, v.data, v.size);
	*value = (struct wire_bytes){p, v.size};
	return true;
}

bool table_has(struct txn *t, enum table which, const struct key *key)
{
	DBT v = dbt(NULL, 0);
	return key->n > 0 && find(t, which, key, &v);
}

void table_put(struct txn *t, enum table which, const struct key *key, const uint8_t *value, size_t n)
{
	/* A codec that refuses (an id that is none, a value too long) writes 0 bytes. */
	if (key->n == 0 || n == 0) {
		txn_fail(t, ERR_INTERNAL_ERROR);
		return;
	}
	if (!begin(t))
		return;
	DB *db = t->store->db[which];
	DBT k = dbt(key->p, key->n), v = dbt(value, n);
	int ret = db->put(db, t->handle, &k, &v, 0);
	if (ret != 0)
		txn_fail(t, bdb_error(t->store, ret, "write"));
}

bool table_del(struct txn *t, enum table which, const struct key *key)
{
	if (key->n == 0 || !begin(t))
		return false;
	DB *db = t->store->db[which];
	DBT k = dbt(key->p, key->n);
	int ret = db->del(db, t->handle, &k, 0);
	if (ret != 0 && ret != DB_NOTFOUND)
		txn_fail(t, bdb_error(t->store, ret, "delete"));
	return ret == 0;
}

void table_scan(struct txn *t, enum table which, const struct key *prefix, const struct key *from, table_row *row,
		void *with)
{
	if (t->failed != ERR_OK)
		return;
	DB *db = t->store->db[which];
	DBC *c;
	int ret = db->cursor(db, t->handle, &c, 0);
	if (ret != 0) {
		txn_fail(t, bdb_error(t->store, ret, "read"));
		return;
	}
	const struct key *start = from != NULL ? from : prefix;
	DBT k = dbt(start->p, start->n), v = dbt(NULL, 0);
	for (ret = c->get(c, &k, &v, DB_SET_RANGE); ret == 0; ret = c->get(c, &k, &v, DB_NEXT)) {
		if (k.size < prefix->n || memcmp(k.data, prefix->p, prefix->n) != 0)
			break;
		if (!row(with, (struct wire_bytes){k.data, k.size}, (struct wire_bytes){v.data, v.size}))
			break;
	}
	if (ret != 0 && ret != DB_NOTFOUND)
		txn_fail(t, bdb_error(t->store, ret, "read"));
	ret = c->close(c);
	if (ret != 0)
		txn_fail(t, bdb_error(t->store, ret, "read"));
}

uint64_t table_clear(struct txn *t, enum table which, const struct key *prefix)
{
	return table_clear_some(t, which, prefix, UINT64_MAX);
}

uint64_t table_clear_some(struct txn *t, enum table which, const struct key *prefix, uint64_t most)
{
	DBC *c;
	uint64_t n = 0;
	/* Without a prefix it would be everything. */
	if (prefix->n == 0 || !begin(t))
		return 0;
	DB *db = t->store->db[which];
	int ret = db->cursor(db, t->handle, &c, 0);
	if (ret != 0) {
		txn_fail(t, bdb_error(t->store, ret, "delete"));
		return 0;
	}
	DBT k = dbt(prefix->p, prefix->n), v = dbt(NULL, 0);
	for (ret = c->get(c, &k, &v, DB_SET_RANGE); ret == 0; ret = c->get(c, &k, &v, DB_NEXT)) {
		if (n == most || k.size < prefix->n || memcmp(k.data, prefix->p, prefix->n) != 0)
			break;
		ret = c->del(c, 0);
		if (ret != 0)
			break;
		n++;
	}
	if (ret != 0 && ret != DB_NOTFOUND)
		txn_fail(t, bdb_error(t->store, ret, "delete"));
	ret = c->close(c);
	if (ret != 0)
		txn_fail(t, bdb_error(t->store, ret, "delete"));
	return n;
}

const char *key_part(struct wire_bytes *rest)
{
	const uint8_t *nul = rest->n > 0 ? memchr(rest->p, 0, rest->n) : NULL;
	if (nul == NULL)
		return "";
	const char *part = (const char *)rest->p;
	uint32_t used = (uint32_t)(nul - rest->p) + 1;
	rest->p += used;
	rest->n -= used;
	return part;
}

uint64_t key_u64(struct wire_bytes *rest)
{
	uint64_t v = 0;
	if (rest->n < sizeof v)
		return 0;
	memcpy(&v, rest->p, sizeof v);
	rest->p += sizeof v;
	rest->n -= (uint32_t)sizeof v;
	return be64toh(v);
}

struct key key_prefix(const char *a, const char *b)
{
	struct key k;
	struct wire_w w = wire_plain(k.p, sizeof k.p);
	wire_put_key(&w, a);
	if (b != NULL)
		wire_put_key(&w, b);
	k.n = wire_end_plain(&w);
	return k;
}
