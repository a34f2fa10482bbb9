/*
 * METRICS: what stored counted and what the others told it that they had (FIGURES), as Prometheus text. Says numbers of
 * the whole service and names no tenant, no run and no token; whoever may see it is decided by who may ask.
 */
#include "lib/buf.h"
#include "lib/names.h"
#include "store/metric_text.h"
#include "store/op.h"
#include "store/t_run.h"
#include <errno.h>
#include <stdlib.h>

enum { TEXT_MAX = 150000, PROCESSES = 4 };

static void put_runs(struct buf *b, const struct figures *f)
{
	int64_t open = 0;
	metric_head(b, METRIC_RUNS);
	for (int i = 0; i < RUN_STATE__COUNT; i++) {
		metric_line(b, METRIC_RUNS, run_state_name((enum run_state)i), (uint64_t)f->runs[i]);
		open += run_final((enum run_state)i) ? 0 : f->runs[i];
	}
	metric_one(b, METRIC_RUNS_OPEN, (uint64_t)open);
	metric_head(b, METRIC_RUN_PHASE_SECONDS);
	for (int i = 0; i < PHASE__COUNT; i++)
		metric_hist(b, METRIC_RUN_PHASE_SECONDS, phase_names[i], &f->phases[i]);
}

struct waiting_count {
	uint64_t n, oldest;
};

static bool count_waiting(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct waiting_count *w = with;
	(void)value;
	(void)key_part(&key);
	uint64_t asked = key_u64(&key);
	w->n++;
	w->oldest = w->oldest == 0 || asked < w->oldest ? asked : w->oldest;
	return true;
}

/* Looked at when it is asked, in the index of those that wait. */
static enum err put_approvals(struct buf *b, const struct server *sv, const struct figures *f)
{
	struct waiting_count w = {0};
	struct key all = {.n = 0};
	struct txn t;
	txn_init(&t, sv->store, NULL);
	table_scan(&t, T_WAITING, &all, NULL, count_waiting, &w);
	uint64_t age = w.n > 0 && t.now > w.oldest ? (t.now - w.oldest) / 1000 : 0;
	enum err e = txn_end(&t, ERR_OK);
	txn_free(&t);
	metric_one(b, METRIC_APPROVALS_WAITING, w.n);
	metric_one(b, METRIC_APPROVALS_OLDEST_SECONDS, age);
	metric_head(b, METRIC_APPROVAL_WAIT_SECONDS);
	for (int i = 0; i < APPROVAL_STATE__COUNT; i++)
		if (i != APPROVAL_PENDING)
			metric_hist(b, METRIC_APPROVAL_WAIT_SECONDS, approval_state_name((enum approval_state)i),
				    &f->waits[i]);
	return e;
}

/* Seen from here a process is up while it has a connection. This one answers, so it is. Where push is not set up its
 * process has no business here, which is no trouble. */
static void put_processes(struct buf *b, const struct server *sv)
{
	static const char *const names[PROCESSES] = {"fcgi", "gateway", "steward", "push"};
	const int n = sv->conf->push.contact[0] != '\0' ? PROCESSES : PROCESSES - 1;
	unsigned connections[PROCESSES] = {0};
	for (const struct st_from *c = sv->clients; c != NULL; c = c->next)
		for (int i = 0; i < PROCESSES; i++)
			if (!c->closing && strcmp(client_role(c), names[i]) == 0)
				connections[i]++;
	metric_head(b, METRIC_PROCESS_UP);
	metric_line(b, METRIC_PROCESS_UP, "stored", 1);
	for (int i = 0; i < n; i++)
		metric_line(b, METRIC_PROCESS_UP, names[i], connections[i] > 0);
	metric_head(b, METRIC_STORE_CONNECTIONS);
	for (int i = 0; i < n; i++)
		metric_line(b, METRIC_STORE_CONNECTIONS, names[i], connections[i]);
}

static void put_refusals(struct buf *b, const struct server *sv)
{
	metric_one(b, METRIC_BUDGET_REFUSALS_TOTAL, sv->refused[ERR_MODEL_REQUEST_BUDGET_EXHAUSTED]);
	metric_head(b, METRIC_STORE_REFUSALS_TOTAL);
	for (unsigned e = 1; e < REFUSALS; e++)
		if (sv->refused[e] > 0)
			metric_line(b, METRIC_STORE_REFUSALS_TOTAL, err_code((enum err)e), sv->refused[e]);
}

static int who(const struct st_from *from)
{
	return from->wire.role == ST_ROLE_FCGI ? METRIC_BY_FCGI : METRIC_BY_STEWARD;
}

/* What a process told that is gone now says nothing about the one after it. */
static bool here(const struct server *sv, int by)
{
	for (const struct st_from *c = sv->clients; c != NULL; c = c->next)
		if (!c->closing && (c->wire.role == ST_ROLE_FCGI || c->wire.role == ST_ROLE_STEWARD) && who(c) == by)
			return true;
	return false;
}

static void put_told(struct buf *b, const struct server *sv)
{
	for (int by = 0; by < METRIC_BY__COUNT; by++)
		if (by != METRIC_BY_STORED && here(sv, by))
			metric_items(b, (enum metric_by)by, (struct wire_bytes){sv->told[by].p, sv->told[by].n});
}

void st_on_figures(struct st_from *from, uint64_t op, const struct st_figures *m, int *fds)
{
	struct server *sv = from->server;
	struct wire_bytes rest = m->items, part;
	struct st_figure f;
	struct st_ok a = {0};
	bool bad = false, fits = true;
	(void)fds;
	while (fits && wire_list_next(&rest, &part, &bad))
		fits = st_get_figure(part.p, part.n, &f) && metric_told(&f, (enum metric_by)who(from));
	if (bad || !fits) {
		server_answer(from, op, ERR_INVALID_REQUEST, 0, NULL, 0);
		return;
	}
	struct told *told = &sv->told[who(from)];
	uint8_t *p = m->items.n > told->room ? realloc(told->p, m->items.n) : told->p;
	if (p == NULL && m->items.n > 0) {
		server_answer(from, op, store_error(errno), 0, NULL, 0);
		return;
	}
	told->room = m->items.n > told->room ? m->items.n : told->room;
	told->p = p;
	told->n = m->items.n;
	if (m->items.n > 0)
		memcpy(p, m->items.p, m->items.n);
	server_answer(from, op, ERR_OK, st_put_ok(sv->frame, ST_MAXFRAME, op, &a), NULL, 0);
}

void st_on_metrics(struct st_from *from, uint64_t op, const struct st_metrics *m, int *fds)
{
	struct server *sv = from->server;
	struct store_stats s;
	own_buf struct buf b;
	(void)fds;
	(void)m;
	store_stat(sv->store, &s);
	buf_init(&b, TEXT_MAX);
	put_runs(&b, &s.figures);
	metric_one(&b, METRIC_RUNS_CREATED_TOTAL, s.figures.created);
	metric_one(&b, METRIC_RUNS_DELETED_TOTAL, s.figures.deleted);
	metric_one(&b, METRIC_IDEMPOTENCY_KEYS, (uint64_t)s.figures.keys);
	metric_one(&b, METRIC_EVENTS_TOTAL, s.figures.events);
	metric_one(&b, METRIC_EVENTS_TRUNCATED_TOTAL, s.figures.truncated);
	metric_one(&b, METRIC_MODEL_REQUESTS_TOTAL, s.figures.consumed);
	metric_one(&b, METRIC_MODEL_TOKENS_TOTAL, s.figures.tokens);
	metric_one(&b, METRIC_STORE_COMMITS_TOTAL, s.commits);
	metric_one(&b, METRIC_STORE_FLUSHES_TOTAL, s.flushes);
	metric_one(&b, METRIC_STORE_LOG_BYTES_TOTAL, s.log_bytes);
	metric_one(&b, METRIC_STORE_TABLES_BYTES, s.data_bytes);
	metric_one(&b, METRIC_STORE_LOG_FILES_BYTES, s.log_files_bytes);
	metric_one(&b, METRIC_STORE_FREE_BYTES, s.free_bytes);
	metric_one(&b, METRIC_STORE_FLOOR_BYTES, s.floor_bytes);
	metric_one(&b, METRIC_AUDIT_LOST_TOTAL, audit_lost(sv->audit));
	metric_one(&b, METRIC_PUSH_SUBSCRIPTIONS, (uint64_t)s.figures.subscriptions);
	metric_one(&b, METRIC_PUSHES_SENT_TOTAL, s.figures.pushes_sent);
	metric_one(&b, METRIC_PUSHES_FAILED_TOTAL, s.figures.pushes_failed);
	metric_one(&b, METRIC_PUSHES_HELD_TOTAL, s.figures.pushes_held);
	metric_one(&b, METRIC_PUSH_EVICTED_TOTAL, s.figures.pushes_evicted);
	metric_head(&b, METRIC_STORE_FLUSH_SECONDS);
	metric_hist(&b, METRIC_STORE_FLUSH_SECONDS, "", &s.flush);
	enum err e = put_approvals(&b, sv, &s.figures);
	put_processes(&b, sv);
	put_refusals(&b, sv);
	put_told(&b, sv);
	if (e != ERR_OK || buf_failed(&b)) {
		server_answer(from, op, e != ERR_OK ? e : store_error(errno), 0, NULL, 0);
		return;
	}
	struct st_metrics_are a = {.text = {b.p, (uint32_t)b.n}};
	server_answer(from, op, ERR_OK, st_put_metrics_are(from->server->frame, ST_MAXFRAME, op, &a), NULL, 0);
}
