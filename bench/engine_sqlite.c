/* SQLite in WAL mode, each record a row of a table without rowid; see engine.h. */
#include "bench/engine.h"
#include "lib/die.h"
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

/* The bench's server is a process of one engine: its connection and statements stay here. */
static struct {
	sqlite3 *db;
	sqlite3_stmt *begin, *commit, *get[ENGINE_TABLES], *put[ENGINE_TABLES];
} q;

static sqlite3_stmt *prepare(const char *before, int table, const char *after)
{
	char sql[200];
	sqlite3_stmt *s;
	(void)snprintf(sql, sizeof sql, "%s t%d %s", before, table, after);
	if (sqlite3_prepare_v3(q.db, sql, -1, SQLITE_PREPARE_PERSISTENT, &s, NULL) != SQLITE_OK)
		fatal("sqlite: %s: %s", sql, sqlite3_errmsg(q.db));
	return s;
}

static void step(sqlite3_stmt *s)
{
	if (sqlite3_step(s) != SQLITE_DONE)
		fatal("sqlite: %s", sqlite3_errmsg(q.db));
	sqlite3_reset(s);
}

static void open_with(const char *dir, const char *synchronous)
{
	char path[300];
	(void)snprintf(path, sizeof path, "%s/sqlite", dir);
	if (sqlite3_open(path, &q.db) != SQLITE_OK ||
	    sqlite3_exec(q.db, "PRAGMA journal_mode=WAL; PRAGMA locking_mode=EXCLUSIVE", NULL, NULL, NULL) !=
		SQLITE_OK ||
	    sqlite3_exec(q.db, synchronous, NULL, NULL, NULL) != SQLITE_OK)
		fatal("sqlite: %s", sqlite3_errmsg(q.db));
	for (int i = 0; i < ENGINE_TABLES; i++) {
		sqlite3_stmt *s = prepare("CREATE TABLE", i, "(k BLOB PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID");
		step(s);
		sqlite3_finalize(s);
		q.get[i] = prepare("SELECT v FROM", i, "WHERE k = ?");
		q.put[i] = prepare("INSERT OR REPLACE INTO", i, "(k, v) VALUES (?, ?)");
	}
	if (sqlite3_prepare_v3(q.db, "BEGIN IMMEDIATE", -1, SQLITE_PREPARE_PERSISTENT, &q.begin, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v3(q.db, "COMMIT", -1, SQLITE_PREPARE_PERSISTENT, &q.commit, NULL) != SQLITE_OK)
		fatal("sqlite: %s", sqlite3_errmsg(q.db));
}

static void open_full(const char *dir)
{
	open_with(dir, "PRAGMA synchronous=FULL");
}

static void open_normal(const char *dir)
{
	open_with(dir, "PRAGMA synchronous=NORMAL");
}

static void begin(void)
{
	step(q.begin);
}

static void commit(void)
{
	step(q.commit);
}

static size_t get(enum engine_table t, const uint8_t *key, size_t n, uint8_t *out, size_t cap)
{
	sqlite3_stmt *s = q.get[t];
	size_t len = 0;
	sqlite3_bind_blob(s, 1, key, (int)n, SQLITE_STATIC);
	int r = sqlite3_step(s);
	if (r == SQLITE_ROW) {
		len = (size_t)sqlite3_column_bytes(s, 0);
		if (len > cap)
			fatal("sqlite: a record of %zu bytes", len);
		memcpy(out, sqlite3_column_blob(s, 0), len);
	} else if (r != SQLITE_DONE) {
		fatal("sqlite: %s", sqlite3_errmsg(q.db));
	}
	sqlite3_reset(s);
	return len;
}

static void put(enum engine_table t, const uint8_t *key, size_t n, const uint8_t *value, size_t len)
{
	sqlite3_stmt *s = q.put[t];
	sqlite3_bind_blob(s, 1, key, (int)n, SQLITE_STATIC);
	sqlite3_bind_blob(s, 2, value, (int)len, SQLITE_STATIC);
	step(s);
}

const struct engine engine_sqlite_full = {"SQLite WAL, synchronous=FULL", open_full, begin, get, put, commit};
const struct engine engine_sqlite_normal = {
    "SQLite WAL, synchronous=NORMAL (not durable)", open_normal, begin, get, put, commit};
