/* LMDB with its own settings (each commit is synced); see engine.h. */
#include "bench/engine.h"
#include "lib/die.h"
#include <lmdb.h>
#include <stdio.h>
#include <string.h>

enum { MAP_BYTES = 256 << 20 };

/* The bench's server is a process of one engine: its environment stays here. */
static struct {
	MDB_env *env;
	MDB_txn *txn;
	MDB_dbi db[ENGINE_TABLES];
} q;

static void must(int ret, const char *doing)
{
	if (ret != 0)
		fatal("lmdb: %s: %s", doing, mdb_strerror(ret));
}

static void begin(void)
{
	must(mdb_txn_begin(q.env, NULL, 0, &q.txn), "begin");
}

static void commit(void)
{
	must(mdb_txn_commit(q.txn), "commit");
}

static void open_env(const char *dir)
{
	char path[300];
	(void)snprintf(path, sizeof path, "%s/lmdb", dir);
	must(mdb_env_create(&q.env), "create");
	must(mdb_env_set_mapsize(q.env, MAP_BYTES), "size");
	must(mdb_env_set_maxdbs(q.env, ENGINE_TABLES), "tables");
	must(mdb_env_open(q.env, path, MDB_NOSUBDIR, 0600), path);
	begin();
	for (int i = 0; i < ENGINE_TABLES; i++) {
		char name[2] = {(char)('a' + i), 0};
		must(mdb_dbi_open(q.txn, name, MDB_CREATE, &q.db[i]), "table");
	}
	commit();
}

static size_t get(enum engine_table t, const uint8_t *key, size_t n, uint8_t *out, size_t cap)
{
	MDB_val k = {n, (void *)(uintptr_t)key}, v;
	int ret = mdb_get(q.txn, q.db[t], &k, &v);
	if (ret == MDB_NOTFOUND)
		return 0;
	must(ret, "get");
	if (v.mv_size > cap)
		fatal("lmdb: a record of %zu bytes", v.mv_size);
	memcpy(out, v.mv_data, v.mv_size);
	return v.mv_size;
}

static void put(enum engine_table t, const uint8_t *key, size_t n, const uint8_t *value, size_t len)
{
	MDB_val k = {n, (void *)(uintptr_t)key}, v = {len, (void *)(uintptr_t)value};
	must(mdb_put(q.txn, q.db[t], &k, &v, 0), "put");
}

const struct engine engine_lmdb = {"LMDB", open_env, begin, get, put, commit};
