/* See queue.h. Linear scans: a queue holds thousands at most and is looked at a few times a second. */
#include "steward/queue.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void queue_free(struct queue *q)
{
	free(q->v);
	*q = (struct queue){0};
}

static size_t find(const struct queue *q, const char *tenant, const char *run)
{
	size_t i = 0;
	while (i < q->n && (strcmp(q->v[i].run, run) != 0 || strcmp(q->v[i].tenant, tenant) != 0))
		i++;
	return i;
}

void queue_add(struct queue *q, const char *tenant, const char *run, uint64_t created_at)
{
	if (find(q, tenant, run) < q->n || q->n >= QUEUE_MAX)
		return;
	if (q->n == q->room) {
		size_t room = q->room == 0 ? 64 : q->room * 2;
		struct waiting *v = realloc(q->v, room * sizeof *v);
		if (v == NULL)
			return;
		q->v = v;
		q->room = room;
	}
	struct waiting *w = &q->v[q->n++];
	snprintf(w->tenant, sizeof w->tenant, "%s", tenant);
	snprintf(w->run, sizeof w->run, "%s", run);
	w->created_at = created_at;
}

static void take_at(struct queue *q, size_t i, struct waiting *out)
{
	if (out != NULL)
		*out = q->v[i];
	q->n--;
	memmove(&q->v[i], &q->v[i + 1], (q->n - i) * sizeof *q->v);
}

bool queue_remove(struct queue *q, const char *tenant, const char *run)
{
	size_t i = find(q, tenant, run);
	if (i == q->n)
		return false;
	take_at(q, i, NULL);
	return true;
}

/* Is a before b in turn? Tenants after the last served come first, in the order of their names. */
static bool before(const struct queue *q, const struct waiting *a, const struct waiting *b)
{
	int order = strcmp(a->tenant, b->tenant);
	if (order == 0)
		return a->created_at < b->created_at;
	bool a_later = strcmp(a->tenant, q->last) > 0, b_later = strcmp(b->tenant, q->last) > 0;
	return a_later != b_later ? a_later : order < 0;
}

bool queue_take(struct queue *q, bool (*may)(void *arg, const char *tenant), void *arg, struct waiting *out)
{
	size_t best = q->n;
	for (size_t i = 0; i < q->n; i++)
		if ((best == q->n || before(q, &q->v[i], &q->v[best])) && may(arg, q->v[i].tenant))
			best = i;
	if (best == q->n)
		return false;
	snprintf(q->last, sizeof q->last, "%s", q->v[best].tenant);
	take_at(q, best, out);
	return true;
}

bool queue_take_older(struct queue *q, uint64_t created_before, struct waiting *out)
{
	for (size_t i = 0; i < q->n; i++)
		if (q->v[i].created_at < created_before) {
			take_at(q, i, out);
			return true;
		}
	return false;
}
