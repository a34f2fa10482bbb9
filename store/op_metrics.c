/*
 * METRICS: what stored counted, as Prometheus text. Says numbers of the whole service and names no tenant,
 * no run and no token; whoever may see it is decided by who may ask.
 */
#include "lib/buf.h"
#include "store/op.h"
#include "store/t_run.h"
#include <errno.h>

enum { TEXT_MAX = 60000, PROCESSES = 4 };

static void head(struct buf *b, const char *name, const char *type, const char *help)
{
	buf_addf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void one(struct buf *b, const char *name, const char *type, const char *help, uint64_t value)
{
	head(b, name, type, help);
	buf_addf(b, "%s %llu\n", name, (unsigned long long)value);
}

static void put_runs(struct buf *b, const struct figures *f)
{
	int64_t open = 0;
	head(b, "pinfold_runs", "gauge", "Runs in the store, by state.");
	for (int i = 0; i < RUN_STATE__COUNT; i++) {
		buf_addf(b, "pinfold_runs{state=\"%s\"} %lld\n", run_state_name((enum run_state)i),
			 (long long)f->runs[i]);
		open += run_final((enum run_state)i) ? 0 : f->runs[i];
	}
	one(b, "pinfold_runs_open", "gauge", "Runs that have not ended.", (uint64_t)open);
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
	head(b, "pinfold_process_up", "gauge", "1: the process is connected to the store.");
	buf_adds(b, "pinfold_process_up{process=\"stored\"} 1\n");
	for (int i = 0; i < n; i++)
		buf_addf(b, "pinfold_process_up{process=\"%s\"} %d\n", names[i], connections[i] > 0);
	head(b, "pinfold_store_connections", "gauge", "Connections to the store, by process.");
	for (int i = 0; i < n; i++)
		buf_addf(b, "pinfold_store_connections{process=\"%s\"} %u\n", names[i], connections[i]);
}

static void put_refusals(struct buf *b, const struct server *sv)
{
	head(b, "pinfold_store_refusals_total", "counter", "Operations refused by the store, by error code.");
	for (unsigned e = 1; e < REFUSALS; e++)
		if (sv->refused[e] > 0)
			buf_addf(b, "pinfold_store_refusals_total{code=\"%s\"} %llu\n", err_code((enum err)e),
				 (unsigned long long)sv->refused[e]);
}

void st_on_metrics(struct st_from *from, uint64_t op, const struct st_metrics *m, int *fds)
{
	const struct server *sv = from->server;
	struct store_stats s;
	own_buf struct buf b;
	(void)fds;
	(void)m;
	store_stat(sv->store, &s);
	buf_init(&b, TEXT_MAX);
	put_runs(&b, &s.figures);
	one(&b, "pinfold_runs_created_total", "counter", "Runs created.", s.figures.created);
	one(&b, "pinfold_runs_deleted_total", "counter", "Runs deleted.", s.figures.deleted);
	one(&b, "pinfold_idempotency_keys", "gauge", "Idempotency keys that are remembered.", (uint64_t)s.figures.keys);
	one(&b, "pinfold_events_total", "counter", "Events stored.", s.figures.events);
	one(&b, "pinfold_events_truncated_total", "counter", "Runs whose agent filled its event buffer.",
	    s.figures.truncated);
	one(&b, "pinfold_model_requests_total", "counter", "Model requests charged to runs.", s.figures.consumed);
	one(&b, "pinfold_model_tokens_total", "counter", "Tokens of models, in and out, as providers counted them.",
	    s.figures.tokens);
	one(&b, "pinfold_store_commits_total", "counter", "Transactions committed.", s.commits);
	one(&b, "pinfold_store_flushes_total", "counter", "Flushes of the log.", s.flushes);
	one(&b, "pinfold_store_log_bytes_total", "counter", "Bytes written to the log.", s.log_bytes);
	one(&b, "pinfold_store_tables_bytes", "gauge", "Bytes of the tables' file.", s.data_bytes);
	one(&b, "pinfold_store_log_files_bytes", "gauge", "Bytes of the logs on disk.", s.log_files_bytes);
	one(&b, "pinfold_store_free_bytes", "gauge", "Free bytes of the store's file system.", s.free_bytes);
	one(&b, "pinfold_store_floor_bytes", "gauge", "New work is refused below so many free bytes.", s.floor_bytes);
	one(&b, "pinfold_audit_lost_total", "counter", "Lines that could not be written into the audit log.",
	    audit_lost(sv->audit));
	one(&b, "pinfold_push_subscriptions", "gauge", "Devices that have push.", (uint64_t)s.figures.subscriptions);
	one(&b, "pinfold_pushes_sent_total", "counter", "Pushes that a push service took.", s.figures.pushes_sent);
	one(&b, "pinfold_pushes_failed_total", "counter", "Attempts to push that failed.", s.figures.pushes_failed);
	one(&b, "pinfold_pushes_held_total", "counter", "Questions that had no push, for there were too many.",
	    s.figures.pushes_held);
	one(&b, "pinfold_push_evicted_total", "counter", "Devices that lost push, for their service did not take it.",
	    s.figures.pushes_evicted);
	put_processes(&b, sv);
	put_refusals(&b, sv);
	if (buf_failed(&b)) {
		server_answer(from, op, store_error(errno), 0, NULL, 0);
		return;
	}
	struct st_metrics_are a = {.text = {b.p, (uint32_t)b.n}};
	server_answer(from, op, ERR_OK, st_put_metrics_are(from->server->frame, ST_MAXFRAME, op, &a), NULL, 0);
}
