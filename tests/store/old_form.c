/* Writes into a store that nobody else has open, with Berkeley DB's own calls: what an older program left behind. */
#include "tests/store/old_form.h"
#include "gen/records.h"
#include "lib/die.h"
#include <db.h>
#include <stdlib.h>
#include <string.h>

struct opened {
	DB_ENV *env;
	DB *db;
};

static void must(int ret, const char *what)
{
	if (ret != 0)
		fatal("%s: %s", what, db_strerror(ret));
}

static DB_ENV *env_of(const char *state)
{
	char home[300];
	DB_ENV *env;
	(void)snprintf(home, sizeof home, "%s/store", state);
	must(db_env_create(&env, 0), "env");
	must(env->set_lg_max(env, 2 << 20), "log");
	must(
	    env->open(env, home, DB_CREATE | DB_INIT_MPOOL | DB_INIT_LOG | DB_INIT_TXN | DB_PRIVATE | DB_RECOVER, 0600),
	    "open");
	return env;
}

static struct opened table_of(const char *state, const char *table)
{
	struct opened o = {.env = env_of(state)};
	must(db_create(&o.db, o.env, 0), "db");
	must(o.db->open(o.db, NULL, "pinfold.db", table, DB_BTREE, DB_CREATE | DB_AUTO_COMMIT, 0600), table);
	return o;
}

static void done(struct opened *o)
{
	must(o->db->close(o->db, 0), "close");
	must(o->env->close(o->env, 0), "close");
}

static DBT dbt(const void *p, size_t n)
{
	DBT d;
	memset(&d, 0, sizeof d);
	d.data = (void *)(uintptr_t)p;
	d.size = (uint32_t)n;
	return d;
}

/* The last fields go, and the versions with them. */
static unsigned shorten(const char *state, const char *table, uint8_t version, size_t fields)
{
	static uint8_t copy[200000];
	struct opened o = table_of(state, table);
	unsigned n = 0;
	DBC *c;
	DB_TXN *t;
	DBT k = dbt(NULL, 0), v = dbt(NULL, 0);
	must(o.env->txn_begin(o.env, NULL, &t, 0), "begin");
	must(o.db->cursor(o.db, t, &c, 0), "cursor");
	while (c->get(c, &k, &v, DB_NEXT) == 0) {
		if (((uint8_t *)v.data)[0] != version)
			fatal("%s: not of version %u", table, version);
		memcpy(copy, v.data, v.size);
		copy[0] = 1;
		DBT w = dbt(copy, v.size - fields);
		must(c->put(c, &k, &w, DB_CURRENT), "put");
		n++;
	}
	must(c->close(c), "close");
	must(t->commit(t, 0), "commit");
	done(&o);
	return n;
}

/* What root made belongs to stored again. */
static void own(const char *state)
{
	char command[400];
	(void)snprintf(command, sizeof command, "chown -R %d:%d %s/store", RIG_UID, RIG_UID, state);
	if (system(command) != 0)
		fatal("chown");
}

unsigned old_form(const char *state)
{
	unsigned n = shorten(state, "run", 9, 52) + shorten(state, "token", 4, 44);
	DB_ENV *env = env_of(state);
	must(env->dbremove(env, NULL, "pinfold.db", "run_ended", DB_AUTO_COMMIT), "remove");
	static const char *const later[] = {"waiting", "push_subscription", "push", "push_due", "push_budget", "spent",
					    "source",  "source_by_use"};
	for (size_t i = 0; i < sizeof later / sizeof *later; i++)
		must(env->dbremove(env, NULL, "pinfold.db", later[i], DB_AUTO_COMMIT), "remove");
	must(env->dbremove(env, NULL, "pinfold.db", "meta", DB_AUTO_COMMIT), "remove");
	must(env->close(env, 0), "close");
	own(state);
	return n;
}

unsigned form_of(const char *state)
{
	struct opened o = table_of(state, "meta");
	struct rec_meta r = {0};
	DBT k = dbt("store", 6), v = dbt(NULL, 0);
	if (o.db->get(o.db, NULL, &k, &v, 0) == 0 && !rec_get_meta(v.data, v.size, &r))
		fatal("the meta record cannot be read");
	done(&o);
	own(state);
	return r.schema;
}

void form_set(const char *state, unsigned schema)
{
	struct opened o = table_of(state, "meta");
	struct rec_meta r = {.schema = schema, .generation = 1, .id = {(const uint8_t *)"0123456789abcdef", 16}};
	uint8_t p[64];
	DBT k = dbt("store", 6), v = dbt(p, rec_put_meta(p, sizeof p, &r));
	must(o.db->put(o.db, NULL, &k, &v, 0), "put");
	done(&o);
	own(state);
}

unsigned ended_rows(const char *state)
{
	struct opened o = table_of(state, "run_ended");
	unsigned n = 0;
	DBC *c;
	DBT k = dbt(NULL, 0), v = dbt(NULL, 0);
	must(o.db->cursor(o.db, NULL, &c, 0), "cursor");
	while (c->get(c, &k, &v, DB_NEXT) == 0)
		n++;
	must(c->close(c), "close");
	done(&o);
	own(state);
	return n;
}

/* SPOIL: its last byte; the other two a number of its, by the record's own codec, wherever it stands. */
enum change { DROP, CUT, SPOIL, SPOIL_PENDING, SPOIL_USED };

/* What shall stand there instead; its size. */
static size_t changed(uint8_t *to, size_t room, const uint8_t *p, size_t n, enum change how)
{
	struct rec_run run;
	struct rec_capability capability;
	if (how == SPOIL_PENDING) {
		if (!rec_get_run(p, n, &run))
			fatal("this is no run");
		run.pending ^= 0x55;
		return rec_put_run(to, room, &run);
	}
	if (how == SPOIL_USED) {
		if (!rec_get_capability(p, n, &capability))
			fatal("this is no capability");
		capability.used_requests ^= 0x55;
		return rec_put_capability(to, room, &capability);
	}
	memcpy(to, p, n);
	if (how == SPOIL)
		to[n - 1] ^= 0x55;
	return how == CUT ? n - 1 : n;
}

static void row_change(const char *state, const char *table, const char *prefix, size_t n, enum change how)
{
	static uint8_t copy[200000];
	struct opened o = table_of(state, table);
	DBC *c;
	DB_TXN *t;
	DBT k = dbt(prefix, n), v = dbt(NULL, 0);
	must(o.env->txn_begin(o.env, NULL, &t, 0), "begin");
	must(o.db->cursor(o.db, t, &c, 0), "cursor");
	must(c->get(c, &k, &v, DB_SET_RANGE), prefix);
	if (k.size < n || memcmp(k.data, prefix, n) != 0)
		fatal("%s: no row begins with %s", table, prefix);
	DBT w = dbt(copy, changed(copy, sizeof copy, v.data, v.size, how));
	must(how == DROP ? c->del(c, 0) : c->put(c, &k, &w, DB_CURRENT), "change");
	must(c->close(c), "close");
	must(t->commit(t, 0), "commit");
	done(&o);
	own(state);
}

void row_drop(const char *state, const char *table, const char *prefix, size_t n)
{
	row_change(state, table, prefix, n, DROP);
}

void row_spoil(const char *state, const char *table, const char *prefix, size_t n)
{
	row_change(state, table, prefix, n, SPOIL);
}

void row_spoil_pending(const char *state, const char *table, const char *prefix, size_t n)
{
	row_change(state, table, prefix, n, SPOIL_PENDING);
}

void row_spoil_used(const char *state, const char *table, const char *prefix, size_t n)
{
	row_change(state, table, prefix, n, SPOIL_USED);
}

void row_cut(const char *state, const char *table, const char *prefix, size_t n)
{
	row_change(state, table, prefix, n, CUT);
}
