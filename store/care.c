/*
 * What an operator does with a store that serves: figures, compaction, and the files of a backup. All of it in stored's
 * one thread, in pieces, so that no page is written while it is read and callers wait for one piece at most.
 */
#include "lib/die.h"
#include "lib/num.h"
#include "store/bdb.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COMPACT_ROWS = 2000, LOG_NAME = 14 /* log.0000000001 */ };

void store_hold(struct store *s, bool on)
{
	if (on == s->held)
		return;
	if (on)
		store_checkpoint(s);
	s->held = on;
	int ret = s->env->log_set_config(s->env, DB_LOG_AUTO_REMOVE, on ? 0 : 1);
	if (ret != 0)
		log_warn("the removal of logs cannot be set: %s", db_strerror(ret));
	s->log_grew = true;
	if (!on)
		blobs_release(s);
}

static bool is_log(const char *name)
{
	return strncmp(name, "log.", 4) == 0 && strlen(name) == LOG_NAME && strspn(name + 4, "0123456789") == 10;
}

static int only_logs(const struct dirent *d)
{
	return is_log(d->d_name);
}

bool store_logs(struct store *s, store_name *row, void *with)
{
	struct dirent **list;
	struct stat st;
	bool more = true;
	int n = scandirat(s->dir, ".", &list, only_logs, alphasort);
	for (int i = 0; i < n; i++) {
		if (more && fstatat(s->dir, list[i]->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
			more = row(with, list[i]->d_name, (uint64_t)st.st_size);
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	return n >= 0;
}

int store_file(struct store *s, const char *name)
{
	if (strcmp(name, "pinfold.db") != 0 && !is_log(name)) {
		errno = ENOENT;
		return -1;
	}
	return openat(s->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

/* The key so many rows behind start; false: the table ends before. */
static bool rows_ahead(DB *db, const DBT *start, DBT *out)
{
	DBC *c;
	DBT k = *start, v;
	bool found = false;
	unsigned rows = 0;
	memset(&v, 0, sizeof v);
	v.flags = DB_DBT_PARTIAL; /* of no length: the key alone */
	if (db->cursor(db, NULL, &c, 0) != 0)
		return false;
	int ret = c->get(c, &k, &v, k.size > 0 ? DB_SET_RANGE : DB_FIRST);
	for (; ret == 0 && rows < COMPACT_ROWS; rows++)
		ret = c->get(c, &k, &v, DB_NEXT);
	if (ret == 0 && k.size <= out->ulen) {
		memcpy(out->data, k.data, k.size);
		out->size = k.size;
		found = true;
	}
	(void)c->close(c);
	return found;
}

enum err store_compact(struct store *s, unsigned table, uint8_t *after, uint32_t *n, uint64_t *pages)
{
	DB_COMPACT c;
	DBT start, stop;
	uint8_t last[STORE_KEY] = {0};
	memset(&c, 0, sizeof c);
	memset(&start, 0, sizeof start);
	memset(&stop, 0, sizeof stop);
	start.data = after;
	start.size = *n;
	stop.data = last;
	stop.ulen = sizeof last;
	bool more = rows_ahead(s->db[table], &start, &stop);
	/* It makes transactions of its own. */
	int ret = s->db[table]->compact(s->db[table], NULL, *n > 0 ? &start : NULL, more ? &stop : NULL, &c,
					DB_FREE_SPACE, NULL);
	s->unflushed = s->log_grew = true;
	*pages += c.compact_pages_free;
	*n = ret == 0 && more ? stop.size : 0;
	memcpy(after, last, *n);
	return bdb_error(s, ret, "compaction");
}

static bool add_log(void *with, const char *name, uint64_t size)
{
	struct store_stats *out = with;
	(void)name;
	out->log_files++;
	out->log_files_bytes += size;
	return true;
}

void store_stat(struct store *s, struct store_stats *out)
{
	DB_LOG_STAT *log = NULL;
	*out = (struct store_stats){
	    .commits = s->commits, .flushes = s->flushes, .figures = s->figures, .flush = s->flush};
	for (int i = 0; i < RUN_STATE__COUNT; i++)
		out->runs += (uint64_t)s->figures.runs[i];
	if (s->env->log_stat(s->env, &log, 0) == 0) {
		out->log_bytes = (uint64_t)log->st_w_mbytes * (1 << 20) + log->st_w_bytes;
		free(log);
	}
	struct stat st;
	if (fstatat(s->dir, "pinfold.db", &st, AT_SYMLINK_NOFOLLOW) == 0)
		out->data_bytes = (uint64_t)st.st_size;
	(void)store_logs(s, add_log, out);
	out->free_bytes = floor_free(&s->floor);
	out->floor_bytes = s->floor.least;
	out->ballast = s->floor.have[BALLAST_WORK] && s->floor.have[BALLAST_START];
	out->checkpoint_at = s->checkpoint_at;
}

/* Berkeley DB calls back without a pointer of ours; one thread, one call. */
static void (*verify_says)(void *with, const char *text);

static void on_verify(const DB_ENV *env, const char *prefix, const char *text)
{
	(void)env;
	(void)prefix;
	verify_says(NULL, text);
}

bool store_verify(const char *state_dir, const char *name, void (*says)(void *with, const char *text))
{
	char path[400], folder[400];
	DB_ENV *env;
	DB *db;
	(void)snprintf(path, sizeof path, "%s/%s/pinfold.db", state_dir, name);
	(void)snprintf(folder, sizeof folder, "%s/%s", state_dir, name);
	/* An environment of its own, for one thing: what does not fit into memory is put beside the store, not into a
	 * folder of the machine's. */
	if (db_env_create(&env, 0) != 0)
		return false;
	if (env->set_tmp_dir(env, folder) != 0 ||
	    env->open(env, NULL, DB_CREATE | DB_PRIVATE | DB_INIT_MPOOL, 0) != 0 || db_create(&db, env, 0) != 0) {
		(void)env->close(env, 0);
		return false;
	}
	verify_says = says;
	db->set_errcall(db, on_verify);
	/* Frees the handle, whatever it finds. */
	int ret = db->verify(db, path, NULL, NULL, 0);
	if (ret != 0)
		says(NULL, db_strerror(ret));
	(void)env->close(env, 0);
	return ret == 0;
}
