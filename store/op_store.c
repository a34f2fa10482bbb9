/* What the operator does with the store as a whole: figures, check, retention, compaction. A step at a time. */
#include "lib/num.h"
#include "store/check.h"
#include "store/op.h"
#include "store/t_run.h"
#include "store/upgrade.h"
#include <errno.h>
#include <string.h>

enum { CHECK_ROWS = 2000 };

static bool count_row(void *with, struct wire_bytes key, struct wire_bytes value)
{
	(void)key;
	(void)value;
	++*(uint64_t *)with;
	return true;
}

static bool count_blob(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct st_stats_are *a = with;
	struct rec_blob r;
	(void)key;
	a->blobs++;
	a->blob_bytes += rec_get_blob(value.p, value.n, &r) ? r.size : 0;
	return true;
}

static bool count_open(void *with, const char *tenant, const char *run, uint8_t state, uint64_t created_at)
{
	struct st_stats_are *a = with;
	(void)tenant;
	(void)run;
	(void)state;
	a->open_runs++;
	if (a->oldest_open == 0 || created_at < a->oldest_open)
		a->oldest_open = created_at;
	return true;
}

static enum err op_stat(struct txn *t, const struct st_stat *m, int *fds, struct st_stats_are *a, int *out)
{
	(void)m;
	(void)fds;
	(void)out;
	struct store_stats s;
	struct meta meta;
	struct run_ended kept, gone;
	struct key all = {.n = 0};
	store_stat(t->store, &s);
	*a = (struct st_stats_are){.runs = s.runs,
				   .commits = s.commits,
				   .flushes = s.flushes,
				   .log_bytes = s.log_bytes,
				   .keys = (uint64_t)s.figures.keys,
				   .data_bytes = s.data_bytes,
				   .log_files = s.log_files,
				   .log_files_bytes = s.log_files_bytes,
				   .free_bytes = s.free_bytes,
				   .floor_bytes = s.floor_bytes,
				   .ballast = s.ballast,
				   .checkpoint_at = s.checkpoint_at};
	run_open_each(t, NULL, NULL, NULL, count_open, a);
	table_scan(t, T_TENANT, &all, NULL, count_row, &a->tenants);
	table_scan(t, T_TOKEN, &all, NULL, count_row, &a->tokens);
	table_scan(t, T_BLOB, &all, NULL, count_blob, a);
	(void)run_ended_first(t, false, &kept);
	(void)run_ended_first(t, true, &gone);
	bool first = kept.ended != 0 && (gone.ended == 0 || kept.ended < gone.ended);
	a->oldest_ended = first ? kept.ended : gone.ended;
	if (!meta_get(t, &meta))
		return ERR_INTERNAL_ERROR;
	a->schema = meta.schema;
	a->generation = meta.generation;
	a->restored_at = meta.restored_at;
	return ERR_OK;
}
ST_OP(stat, stats_are, 0, 0)

static void add_text(void *with, const char *text)
{
	struct wire_list *l = with;
	struct st_text item = {.text = text};
	(void)LIST_PUT(l, text, ST_MAX_TEXT, &item);
}

static enum err op_store_check(struct txn *t, const struct st_store_check *m, int *fds, struct st_store_checked *a,
			       int *out)
{
	(void)fds;
	(void)out;
	struct wire_list texts = {.p = t->page, .cap = 100000};
	struct check c = {.t = t, .contents = m->contents, .says = add_text, .with = &texts, .table = m->table};
	if (m->table > T__COUNT || m->after.n > STORE_KEY)
		return ERR_INVALID_REQUEST;
	memcpy(c.next.p, m->after.p, m->after.n);
	c.next.n = m->after.n;
	a->done = !check_step(&c, m->rows > 0 && m->rows < CHECK_ROWS ? m->rows : CHECK_ROWS);
	a->table = (uint8_t)c.table;
	uint8_t *next = arena_get(&t->arena, STORE_KEY);
	if (next == NULL)
		return store_error(errno);
	memcpy(next, c.next.p, c.next.n);
	a->after = (struct wire_bytes){next, (uint32_t)c.next.n};
	a->rows = c.rows;
	a->findings = c.findings;
	a->texts = wire_list_done(&texts);
	return ERR_OK;
}
ST_OP(store_check, store_checked, 0, 0)

void st_on_store_prune(struct st_from *from, uint64_t op, const struct st_store_prune *m, int *fds)
{
	struct server *sv = from->server;
	struct st_store_pruned a = {0};
	struct pruned took = {0};
	struct txn t;
	(void)m;
	(void)fds;
	txn_init(&t, sv->store, sv->page);
	a.more = prune_step(&sv->prune, &t, &took);
	enum err e = txn_end(&t, ERR_OK);
	a.settled = store_settled(sv->store);
	a.artifacts = took.artifacts;
	a.runs = took.runs;
	a.keys = took.keys;
	a.tokens = took.tokens;
	op_done(from, op, &t, e, e == ERR_OK ? st_put_store_pruned(sv->frame, ST_MAXFRAME, op, &a) : 0, NULL, 0);
}

void st_on_store_compact(struct st_from *from, uint64_t op, const struct st_store_compact *m, int *fds)
{
	struct server *sv = from->server;
	struct st_store_compacted a = {.table = m->table};
	uint8_t after[STORE_KEY];
	uint32_t n = m->after.n;
	(void)fds;
	enum err e = m->table < T__COUNT && n <= sizeof after ? ERR_OK : ERR_INVALID_REQUEST;
	/* Its log would stay, and so would what a backup has copied already. */
	if (e == ERR_OK && sv->backup != NULL)
		e = ERR_BACKUP_BUSY;
	if (e == ERR_OK && !store_roomy(sv->store))
		e = ERR_STORAGE_FULL;
	if (e == ERR_OK) {
		memcpy(after, m->after.p, n);
		e = store_compact(sv->store, m->table, after, &n, &a.pages);
	}
	a.after = (struct wire_bytes){after, n};
	a.table = (uint8_t)(n > 0 ? m->table : m->table + 1);
	a.done = a.table == T__COUNT;
	server_answer(from, op, e, e == ERR_OK ? st_put_store_compacted(sv->frame, ST_MAXFRAME, op, &a) : 0, NULL, 0);
}
