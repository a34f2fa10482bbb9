/* See queues.h. Tenants are few: one after the other. */
#include "store/queues.h"
#include "lib/die.h"
#include "store/t_run.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tenant_queue {
	char tenant[STORE_ID];
	int64_t queued;
};

static struct tenant_queue *find(const struct queues *q, const char *tenant)
{
	for (size_t i = 0; i < q->n; i++)
		if (strcmp(q->v[i].tenant, tenant) == 0)
			return &q->v[i];
	return NULL;
}

void queues_add(struct queues *q, const char *tenant, int64_t n)
{
	struct tenant_queue *of = find(q, tenant);
	if (of == NULL) {
		struct tenant_queue *v = realloc(q->v, (q->n + 1) * sizeof *v);
		if (v == NULL)
			fatal("no memory");
		q->v = v;
		of = &v[q->n++];
		(void)snprintf(of->tenant, sizeof of->tenant, "%s", tenant);
		of->queued = 0;
	}
	of->queued += n;
}

uint64_t queues_of(const struct queues *q, const char *tenant)
{
	const struct tenant_queue *of = find(q, tenant);
	return of != NULL && of->queued > 0 ? (uint64_t)of->queued : 0;
}

static bool count(void *with, const char *tenant, const char *run, uint8_t state, uint64_t created_at)
{
	(void)run;
	(void)created_at;
	if (state == RUN_QUEUED)
		queues_add(with, tenant, 1);
	return true;
}

void queues_open(struct queues *q, struct txn *t)
{
	run_open_each(t, NULL, NULL, NULL, count, q);
}

void queues_free(struct queues *q)
{
	free(q->v);
	*q = (struct queues){0};
}
