/*
 * The table of streams: who has a place, how many of each tenant, and which runs they follow. A row is counted from
 * streams_reserve until it is swept or cancelled, whatever happens in between.
 */
#include "fcgi/pool.h"
#include "fcgi/stream.h"
#include "lib/chan.h"
#include "lib/die.h"
#include "lib/num.h"
#include "lib/secret.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { MOST = 4000, TENANT_MOST = 200 };

struct streams *streams_new(struct held_place *place, const char *store_path, uint32_t most)
{
	struct streams *s = calloc(1, sizeof *s);
	if (s == NULL)
		return NULL;
	struct held *h = held_now(place);
	uint32_t set = h->conf.global.max_streams > 0 ? h->conf.global.max_streams : MOST;
	held_done(h);
	if (set > most)
		log_warn("at most %u event streams: the limit of open files has no room for %u", most, set);
	s->place = place;
	s->most = set < most ? set : most;
	/* What is not used is not touched, so it costs nothing. */
	s->rows = calloc(s->most, sizeof *s->rows);
	s->free = calloc(s->most, sizeof *s->free);
	s->live = calloc(s->most, sizeof *s->live);
	s->in = malloc(ST_MAXFRAME + 1);
	s->out = malloc(ST_MAXFRAME);
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->rows == NULL || s->free == NULL || s->live == NULL || s->in == NULL || s->out == NULL || s->epoll < 0 ||
	    s->wake < 0)
		return NULL; /* the process ends */
	s->nfree = s->most;
	for (uint32_t i = 0; i < s->most; i++)
		s->free[i] = s->most - 1 - i;
	s->inbox = s->over = s->queue_first = s->queue_last = STREAM_NONE;
	s->ask = (struct store_conn){.path = store_path, .fd = -1};
	s->told = (struct store_conn){.path = store_path, .fd = -1, .subscribes = true};
	buf_init(&s->text, 4 * ST_MAXFRAME);
	buf_init(&s->line, ST_MAXFRAME);
	random_bytes(&s->next_op, sizeof s->next_op);
	(void)pthread_mutex_init(&s->lock, NULL);
	return s;
}

struct stream *stream_row(struct streams *s, uint32_t row)
{
	return &s->rows[row];
}

uint32_t stream_of(const struct streams *s, const struct stream *st)
{
	return (uint32_t)(st - s->rows);
}

static struct topic *topic_new(const struct stream_order *o)
{
	size_t n = strlen(o->tenant) + 1, m = strlen(o->run) + 1;
	struct topic *t = malloc(sizeof *t + n + m);
	if (t == NULL)
		return NULL;
	*t = (struct topic){.first = STREAM_NONE};
	memcpy(t->tenant, o->tenant, n);
	memcpy(t->tenant + n, o->run, m);
	t->run = t->tenant + n;
	return t;
}

/* Its row, or a free one, or STREAM_TENANTS. Under the lock. */
static uint32_t tenant_row(const struct streams *s, const char *name)
{
	uint32_t out = STREAM_TENANTS;
	for (uint32_t i = 0; i < STREAM_TENANTS; i++) {
		if (s->tenants[i].open > 0 && strcmp(s->tenants[i].name, name) == 0)
			return i;
		if (s->tenants[i].open == 0 && out == STREAM_TENANTS)
			out = i;
	}
	return out;
}

enum err streams_reserve(struct streams *s, const struct stream_order *o, struct stream **out)
{
	struct stream *st = NULL;
	if (strlen(o->tenant) >= sizeof s->tenants->name || strlen(o->token_id) >= sizeof st->token_id)
		return ERR_INTERNAL_ERROR;
	uint32_t who, most = o->most > 0 ? o->most : TENANT_MOST;
	struct topic *t = topic_new(o);
	if (t == NULL)
		return ERR_RESOURCES_EXHAUSTED;
	(void)pthread_mutex_lock(&s->lock);
	who = tenant_row(s, o->tenant);
	if (s->nfree > 0 && who < STREAM_TENANTS && s->tenants[who].open < most) {
		st = &s->rows[s->free[--s->nfree]];
		(void)snprintf(s->tenants[who].name, sizeof s->tenants->name, "%s", o->tenant);
		s->tenants[who].open++;
		s->figures.open++;
		s->figures.opened++;
	} else {
		s->figures.refused++;
	}
	(void)pthread_mutex_unlock(&s->lock);
	if (st == NULL) {
		free(t);
		return ERR_TOO_MANY_STREAMS;
	}
	*st = (struct stream){.topic = t, .cursor = o->after, .fd = -1, .tenant = (uint16_t)who};
	memcpy(st->token_id, o->token_id, strlen(o->token_id) + 1);
	memcpy(st->token_hash, o->token_hash, sizeof st->token_hash);
	*out = st;
	return ERR_OK;
}

/* Under the lock. */
static void give_back(struct streams *s, struct stream *st)
{
	s->tenants[st->tenant].open--;
	s->figures.open--;
	s->free[s->nfree++] = stream_of(s, st);
}

void streams_cancel(struct streams *s, struct stream *st)
{
	free(st->topic);
	(void)pthread_mutex_lock(&s->lock);
	give_back(s, st);
	(void)pthread_mutex_unlock(&s->lock);
}

void streams_take(struct streams *s, struct stream *st, int fd, uint16_t request, bool keep)
{
	const uint64_t one = 1;
	st->fd = fd;
	st->request = request;
	st->keep = keep;
	(void)pthread_mutex_lock(&s->lock);
	st->next = s->inbox;
	s->inbox = stream_of(s, st);
	(void)pthread_mutex_unlock(&s->lock);
	/* It can only be full, and then it wakes. */
	(void)!write(s->wake, &one, sizeof one);
}

void streams_figures(void *ctx, struct stream_figures *out)
{
	struct streams *s = ctx;
	(void)pthread_mutex_lock(&s->lock);
	*out = s->figures;
	(void)pthread_mutex_unlock(&s->lock);
}

static uint32_t bucket(const char *tenant, const char *run)
{
	uint32_t h = 2166136261u;
	for (const char *p = tenant; *p != '\0'; p++)
		h = (h ^ (uint8_t)*p) * 16777619u;
	h = (h ^ '/') * 16777619u;
	for (const char *p = run; *p != '\0'; p++)
		h = (h ^ (uint8_t)*p) * 16777619u;
	return h % STREAM_TOPICS;
}

struct topic *topic_find(struct streams *s, const char *tenant, const char *run)
{
	struct topic *t = s->topics[bucket(tenant, run)];
	while (t != NULL && (strcmp(t->run, run) != 0 || strcmp(t->tenant, tenant) != 0))
		t = t->next;
	return t;
}

void topic_drop(struct streams *s, struct topic *t)
{
	if (t->first != STREAM_NONE || t->asked > 0)
		return;
	struct topic **at = &s->topics[bucket(t->tenant, t->run)];
	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	free(t);
}

/* Its own topic, or the one that is there already. */
static void join(struct streams *s, struct stream *st)
{
	struct topic *t = topic_find(s, st->topic->tenant, st->topic->run);
	if (t != NULL) {
		free(st->topic);
	} else {
		t = st->topic;
		struct topic **head = &s->topics[bucket(t->tenant, t->run)];
		t->next = *head;
		*head = t;
	}
	st->topic = t;
	st->next = t->first;
	st->back = STREAM_NONE;
	if (t->first != STREAM_NONE)
		s->rows[t->first].back = stream_of(s, st);
	t->first = stream_of(s, st);
}

static void part(struct streams *s, struct stream *st)
{
	struct topic *t = st->topic;
	if (st->back != STREAM_NONE)
		s->rows[st->back].next = st->next;
	else
		t->first = st->next;
	if (st->next != STREAM_NONE)
		s->rows[st->next].back = st->back;
	st->topic = NULL;
	topic_drop(s, t);
}

bool stream_enter(struct streams *s, struct stream *st)
{
	join(s, st);
	st->live = s->nlive;
	s->live[s->nlive++] = stream_of(s, st);
	st->wrote = st->moved = st->looked = stream_now();
	st->fresh = true;
	struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.u64 = stream_of(s, st)};
	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, st->fd, &e) == 0;
}

void stream_close(struct streams *s, struct stream *st, bool back)
{
	int fd = st->fd;
	stream_forget(s, st);
	if (st->chunk != NULL)
		chunk_drop(s, st->chunk);
	st->chunk = NULL;
	st->fd = -1;
	part(s, st);
	s->live[st->live] = s->live[--s->nlive];
	s->rows[s->live[st->live]].live = st->live;
	st->next = s->over;
	s->over = stream_of(s, st);
	if (back && epoll_ctl(s->epoll, EPOLL_CTL_DEL, fd, NULL) == 0)
		pool_adopt(s->pool, fd);
	else
		close(fd);
}

void stream_sweep(struct streams *s)
{
	if (s->over == STREAM_NONE && s->slow == 0)
		return;
	(void)pthread_mutex_lock(&s->lock);
	s->figures.slow += s->slow;
	s->slow = 0;
	while (s->over != STREAM_NONE) {
		struct stream *st = &s->rows[s->over];
		s->over = st->next;
		give_back(s, st);
	}
	(void)pthread_mutex_unlock(&s->lock);
}
