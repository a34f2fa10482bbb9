/* See queue.h. Linear scans: a queue holds thousands at most and is looked at a few times a second. */
#include "steward/queue.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REFUSED = 32 };

void queue_free(struct queue *q)
{
	free(q->v);
	free(q->hash);
	free(q->tenant);
	*q = (struct queue){0};
}

static uint64_t mix(uint64_t h, const char *p)
{
	for (; *p != '\0'; p++)
		h = (h ^ (uint8_t)*p) * 1099511628211u;
	return h;
}

static uint64_t tenant_hash(const char *tenant)
{
	return mix(14695981039346656037u, tenant);
}

static uint64_t hash_of(const char *tenant, const char *run)
{
	return mix(mix(tenant_hash(tenant), "/"), run);
}

static size_t find(const struct queue *q, const char *tenant, const char *run)
{
	uint64_t h = hash_of(tenant, run);
	size_t i = 0;
	while (i < q->n && (q->hash[i] != h || strcmp(q->v[i].run, run) != 0 || strcmp(q->v[i].tenant, tenant) != 0))
		i++;
	return i;
}

static bool grow(struct queue *q)
{
	size_t room = q->room == 0 ? 64 : q->room * 2;
	struct waiting *v = realloc(q->v, room * sizeof *v);
	if (v == NULL)
		return false;
	q->v = v;
	uint64_t *hash = realloc(q->hash, room * sizeof *hash);
	if (hash == NULL)
		return false;
	q->hash = hash;
	uint64_t *tenant = realloc(q->tenant, room * sizeof *tenant);
	if (tenant == NULL)
		return false;
	q->tenant = tenant;
	q->room = room;
	return true;
}

void queue_put_back(struct queue *q, const struct waiting *w)
{
	if (find(q, w->tenant, w->run) < q->n || q->n >= QUEUE_MAX || (q->n == q->room && !grow(q)))
		return;
	q->hash[q->n] = hash_of(w->tenant, w->run);
	q->tenant[q->n] = tenant_hash(w->tenant);
	q->v[q->n++] = *w;
}

void queue_add(struct queue *q, const char *tenant, const char *run, int64_t since)
{
	struct waiting w = {.since = since};
	snprintf(w.tenant, sizeof w.tenant, "%s", tenant);
	snprintf(w.run, sizeof w.run, "%s", run);
	queue_put_back(q, &w);
}

uint64_t queue_asked(const struct queue *q, const char *tenant, const char *run)
{
	size_t i = find(q, tenant, run);
	return i < q->n && q->v[i].expires_at != 0 ? q->v[i].asked_at : 0;
}

static void take_at(struct queue *q, size_t i, struct waiting *out)
{
	if (out != NULL)
		*out = q->v[i];
	q->n--;
	memmove(&q->v[i], &q->v[i + 1], (q->n - i) * sizeof *q->v);
	memmove(&q->hash[i], &q->hash[i + 1], (q->n - i) * sizeof *q->hash);
	memmove(&q->tenant[i], &q->tenant[i + 1], (q->n - i) * sizeof *q->tenant);
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
		return a->since < b->since;
	bool a_later = strcmp(a->tenant, q->last) > 0, b_later = strcmp(b->tenant, q->last) > 0;
	return a_later != b_later ? a_later : order < 0;
}

/* Tenants that may start nothing now. Names are the operator's: were two ever of one hash, one would wait for the
 * other. */
struct refused {
	size_t n;
	uint64_t tenant[REFUSED];
};

static bool is_refused(const struct queue *q, const struct refused *r, size_t i)
{
	for (size_t k = 0; k < r->n; k++)
		if (r->tenant[k] == q->tenant[i])
			return true;
	return false;
}

bool queue_take(struct queue *q, bool (*may)(void *arg, const char *tenant), void *arg, struct waiting *out)
{
	size_t best = q->n;
	struct refused refused = {.n = 0};
	for (size_t i = 0; i < q->n; i++) {
		/* A tenant at its limit may have thousands here: it is asked about once. */
		if (is_refused(q, &refused, i) || (best < q->n && !before(q, &q->v[i], &q->v[best])))
			continue;
		if (may(arg, q->v[i].tenant))
			best = i;
		else
			refused.tenant[refused.n < REFUSED ? refused.n++ : REFUSED - 1] = q->tenant[i];
	}
	if (best == q->n)
		return false;
	snprintf(q->last, sizeof q->last, "%s", q->v[best].tenant);
	take_at(q, best, out);
	return true;
}

bool queue_take_older(struct queue *q, int64_t older, struct waiting *out)
{
	for (size_t i = 0; i < q->n; i++)
		if (q->v[i].since < older && q->v[i].expires_at == 0) {
			take_at(q, i, out);
			return true;
		}
	return false;
}
