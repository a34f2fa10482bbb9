/* The tables of runs. */
#include "store/t_run.h"
#include "lib/die.h"
#include <stdio.h>
#include <string.h>

static struct key run_key(const char *tenant, const char *run)
{
	struct key k;
	k.n = rec_key_run(k.p, sizeof k.p, tenant, run);
	return k;
}

static void index_age(struct txn *t, const char *tenant, const char *run, const struct rec_run *r)
{
	struct rec_run_by_age v = {.state = r->state};
	struct key k;
	k.n = rec_key_run_by_age(k.p, sizeof k.p, tenant, ~r->created_at, run);
	uint8_t *p = txn_scratch(t);
	table_put(t, T_RUN_BY_AGE, &k, p, rec_put_run_by_age(p, STORE_SCRATCH, &v));
}

static void index_open(struct txn *t, const char *tenant, const char *run, const struct rec_run *r)
{
	struct rec_run_open v = {.created_at = r->created_at, .state = r->state};
	struct key k;
	k.n = rec_key_run_open(k.p, sizeof k.p, tenant, run);
	if (run_is_final(r)) {
		(void)table_del(t, T_RUN_OPEN, &k);
		return;
	}
	uint8_t *p = txn_scratch(t);
	table_put(t, T_RUN_OPEN, &k, p, rec_put_run_open(p, STORE_SCRATCH, &v));
}

/* Keys are text and numbers: the stage as one digit. */
static const char *stage_key(bool artifacts_gone)
{
	return artifacts_gone ? "1" : "0";
}

struct key run_ended_key(const char *tenant, const char *run, const struct rec_run *r)
{
	struct key k;
	k.n = rec_key_run_ended(k.p, sizeof k.p, stage_key(r->artifacts_gone), r->finished_at, tenant, run);
	return k;
}

void run_index_ended(struct txn *t, const char *tenant, const char *run, const struct rec_run *r)
{
	struct rec_run_ended v = {0};
	struct key k = run_ended_key(tenant, run, r);
	uint8_t *p = txn_scratch(t);
	table_put(t, T_RUN_ENDED, &k, p, rec_put_run_ended(p, STORE_SCRATCH, &v));
}

bool run_is_final(const struct rec_run *r)
{
	return run_final((enum run_state)r->state);
}

enum err run_load(struct txn *t, const char *tenant, const char *run, struct rec_run *out)
{
	struct key k = run_key(tenant, run);
	struct wire_bytes v;
	if (!table_get(t, T_RUN, &k, &v))
		return t->failed != ERR_OK ? t->failed : ERR_RUN_NOT_FOUND;
	if (rec_get_run(v.p, v.n, out) && out->state < RUN_STATE__COUNT)
		return ERR_OK;
	log_error("the record of run %s/%s cannot be read", tenant, run);
	return ERR_INTERNAL_ERROR;
}

static void write_run(struct txn *t, const char *tenant, const char *run, struct rec_run *r)
{
	struct key k = run_key(tenant, run);
	uint8_t *p = txn_scratch(t);
	r->updated_at = t->now;
	table_put(t, T_RUN, &k, p, rec_put_run(p, STORE_SCRATCH, r));
}

void run_save(struct txn *t, const char *tenant, const char *run, struct rec_run *r)
{
	write_run(t, tenant, run, r);
	run_wake(t, tenant, run, r);
}

void run_wake(struct txn *t, const char *tenant, const char *run, const struct rec_run *r)
{
	t->wake.set = true;
	t->wake.state = r->state;
	t->wake.phase = r->phase;
	t->wake.last_sequence = r->last_sequence;
	(void)snprintf(t->wake.tenant, sizeof t->wake.tenant, "%s", tenant);
	(void)snprintf(t->wake.run, sizeof t->wake.run, "%s", run);
}

static void count_state(struct txn *t, const char *tenant, uint8_t state, int n)
{
	t->adds.runs[state] += n;
	if (state != RUN_QUEUED)
		return;
	txn_tenant(t, tenant);
	t->queued += n;
}

void run_add(struct txn *t, const char *tenant, const char *run, const struct rec_run *r)
{
	struct rec_run copy = *r;
	run_save(t, tenant, run, &copy);
	index_age(t, tenant, run, r);
	index_open(t, tenant, run, r);
	count_state(t, tenant, r->state, 1);
	t->adds.created++;
}

enum err run_move(struct txn *t, const char *tenant, const char *run, struct rec_run *r, enum run_event ev,
		  bool *changed)
{
	enum run_state to = (enum run_state)r->state;
	enum err e = run_step((enum run_state)r->state, ev, &to);
	*changed = e == ERR_OK && to != (enum run_state)r->state;
	if (!*changed)
		return e;
	count_state(t, tenant, r->state, -1);
	count_state(t, tenant, (uint8_t)to, 1);
	r->state = (uint8_t)to;
	if (run_is_final(r))
		r->finished_at = t->now;
	index_age(t, tenant, run, r);
	index_open(t, tenant, run, r);
	if (run_is_final(r))
		run_index_ended(t, tenant, run, r);
	return ERR_OK;
}

void run_artifacts_gone(struct txn *t, const char *tenant, const char *run, struct rec_run *r)
{
	struct key k = run_ended_key(tenant, run, r);
	(void)table_del(t, T_RUN_ENDED, &k);
	r->artifacts = 0;
	r->artifacts_gone = true;
	run_index_ended(t, tenant, run, r);
	write_run(t, tenant, run, r);
}

static bool first_ended(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct run_ended *out = with;
	(void)value;
	(void)key_part(&key);
	out->ended = key_u64(&key);
	(void)snprintf(out->tenant, sizeof out->tenant, "%s", key_part(&key));
	(void)snprintf(out->run, sizeof out->run, "%s", key_part(&key));
	return false;
}

bool run_ended_first(struct txn *t, bool gone, struct run_ended *out)
{
	struct key prefix = key_prefix(stage_key(gone), NULL);
	*out = (struct run_ended){0};
	table_scan(t, T_RUN_ENDED, &prefix, NULL, first_ended, out);
	return out->run[0] != '\0';
}

void run_del(struct txn *t, const char *tenant, const char *run, const struct rec_run *r)
{
	struct key k = run_key(tenant, run), age, ended = run_ended_key(tenant, run, r);
	age.n = rec_key_run_by_age(age.p, sizeof age.p, tenant, ~r->created_at, run);
	(void)table_del(t, T_RUN, &k);
	(void)table_del(t, T_RUN_BY_AGE, &age);
	(void)table_del(t, T_RUN_ENDED, &ended);
	count_state(t, tenant, r->state, -1);
	t->adds.deleted++;
}

struct each {
	run_row *row;
	void *with;
	struct key skip; /* the row to resume behind */
};

static bool skipped(const struct each *e, struct wire_bytes key)
{
	return key.n == e->skip.n && memcmp(key.p, e->skip.p, key.n) == 0;
}

static bool age_row(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct each *e = with;
	struct rec_run_by_age v;
	if (skipped(e, key) || !rec_get_run_by_age(value.p, value.n, &v))
		return true;
	const char *tenant = key_part(&key);
	uint64_t created = ~key_u64(&key);
	return e->row(e->with, tenant, key_part(&key), v.state, created);
}

void run_by_age_each(struct txn *t, const char *tenant, uint64_t before_created, const char *before_run, run_row *row,
		     void *with)
{
	struct each e = {.row = row, .with = with};
	struct key prefix = key_prefix(tenant, NULL);
	if (before_created != 0)
		e.skip.n = rec_key_run_by_age(e.skip.p, sizeof e.skip.p, tenant, ~before_created, before_run);
	table_scan(t, T_RUN_BY_AGE, &prefix, before_created != 0 ? &e.skip : NULL, age_row, &e);
}

static bool open_row(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct each *e = with;
	struct rec_run_open v;
	if (skipped(e, key) || !rec_get_run_open(value.p, value.n, &v))
		return true;
	const char *tenant = key_part(&key);
	return e->row(e->with, tenant, key_part(&key), v.state, v.created_at);
}

void run_open_each(struct txn *t, const char *tenant, const char *after_tenant, const char *after_run, run_row *row,
		   void *with)
{
	struct each e = {.row = row, .with = with};
	struct key prefix = {.n = 0};
	if (tenant != NULL)
		prefix = key_prefix(tenant, NULL);
	bool resume = after_tenant != NULL && after_tenant[0] != '\0';
	if (resume)
		e.skip.n = rec_key_run_open(e.skip.p, sizeof e.skip.p, after_tenant, after_run);
	table_scan(t, T_RUN_OPEN, &prefix, resume ? &e.skip : NULL, open_row, &e);
}
