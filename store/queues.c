/* See queues.h. Tenants are few: one after the other. */
#include "store/queues.h"
#include "gen/records.h"
#include "lib/die.h"
#include "store/t_run.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tenant_queue {
	char tenant[STORE_ID];
	int64_t queued, stored;
};

static struct tenant_queue *find(const struct queues *q, const char *tenant)
{
	for (size_t i = 0; i < q->n; i++)
		if (strcmp(q->v[i].tenant, tenant) == 0)
			return &q->v[i];
	return NULL;
}

void queues_add(struct queues *q, const char *tenant, int64_t queued, int64_t stored)
{
	struct tenant_queue *of = find(q, tenant);
	if (of == NULL) {
		struct tenant_queue *v = realloc(q->v, (q->n + 1) * sizeof *v);
		if (v == NULL)
			fatal("no memory");
		q->v = v;
		of = &v[q->n++];
		(void)snprintf(of->tenant, sizeof of->tenant, "%s", tenant);
		of->queued = of->stored = 0;
	}
	of->queued += queued;
	of->stored += stored;
}

uint64_t queues_of(const struct queues *q, const char *tenant)
{
	const struct tenant_queue *of = find(q, tenant);
	return of != NULL && of->queued > 0 ? (uint64_t)of->queued : 0;
}

uint64_t queues_stored(const struct queues *q, const char *tenant)
{
	const struct tenant_queue *of = find(q, tenant);
	return of != NULL && of->stored > 0 ? (uint64_t)of->stored : 0;
}

static bool count(void *with, const char *tenant, const char *run, uint8_t state, uint64_t created_at)
{
	(void)run;
	(void)created_at;
	if (state == RUN_QUEUED)
		queues_add(with, tenant, 1, 0);
	return true;
}

struct uses {
	struct queues *q;
	struct txn *t;
	int64_t size;
};

static bool a_use(void *with, struct wire_bytes key, struct wire_bytes value)
{
	const struct uses *u = with;
	(void)key_part(&key);
	(void)value;
	queues_add(u->q, key_part(&key), 0, u->size);
	return true;
}

static bool a_blob(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct uses *u = with;
	struct rec_blob r;
	struct key prefix = {.n = key.n};
	if (key.n > sizeof prefix.p || !rec_get_blob(value.p, value.n, &r))
		return true; /* "store check" says so */
	memcpy(prefix.p, key.p, key.n);
	u->size = (int64_t)r.size;
	table_scan(u->t, T_BLOB_USE, &prefix, NULL, a_use, u);
	return true;
}

void queues_open(struct queues *q, struct txn *t)
{
	struct uses u = {.q = q, .t = t};
	struct key all = {.n = 0};
	run_open_each(t, NULL, NULL, NULL, count, q);
	table_scan(t, T_BLOB, &all, NULL, a_blob, &u);
}

void queues_free(struct queues *q)
{
	free(q->v);
	*q = (struct queues){0};
}
