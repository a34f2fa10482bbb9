/*
 * Subscribers. A run that changed is told of once a batch, after the flush; a gateway hears only of runs that lost
 * their capability, since it has calls to end then and nothing to do otherwise; push only of those about which there is
 * something to send. A subscriber whose socket
 * is full keeps one entry a run and gets them when it reads again; one that lags behind by too many
 * runs, or does not read for ten seconds, is closed: it asks for everything when it comes back.
 */
#include "lib/chan.h"
#include "lib/die.h"
#include "lib/num.h"
#include "store/server.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

enum { PATIENCE_MS = 10000 };

void wakes_add(struct wake_list *l, const struct wake *w)
{
	for (size_t i = 0; i < l->n; i++) {
		if (strcmp(l->v[i].run, w->run) == 0 && strcmp(l->v[i].tenant, w->tenant) == 0) {
			bool revoked = l->v[i].revoked || w->revoked;
			bool push = l->v[i].push || w->push;
			l->v[i] = *w;
			l->v[i].revoked = revoked;
			l->v[i].push = push;
			return;
		}
	}
	if (l->n == l->room) {
		size_t room = l->room == 0 ? 16 : 2 * l->room;
		struct wake *v = reallocarray(l->v, room, sizeof *v);
		if (v == NULL)
			fatal("no memory for wake-ups");
		l->v = v;
		l->room = room;
	}
	l->v[l->n++] = *w;
}

void wakes_free(struct wake_list *l)
{
	free(l->v);
	*l = (struct wake_list){0};
}

static void watch(struct st_from *c, bool writing)
{
	struct epoll_event ev = {.events = EPOLLIN | (writing ? (uint32_t)EPOLLOUT : 0), .data.ptr = c};
	if (c->writing == writing)
		return;
	c->writing = writing;
	c->writing_since = timer_ms();
	if (epoll_ctl(c->server->epoll, EPOLL_CTL_MOD, c->fd, &ev) != 0)
		client_close(c, "it can't be watched");
}

/* False: its socket is full (or it is closing). */
static bool tell(struct st_from *c, const struct wake *w)
{
	struct st_woken m = {.tenant = w->tenant,
			     .run = w->run,
			     .state = w->state,
			     .last_sequence = w->last_sequence,
			     .phase = w->phase};
	size_t n = st_put_woken(c->server->frame, ST_MAXFRAME, 0, &m);
	if (n > 0 && chan_send(c->fd, c->server->frame, n, NULL, 0) == 0)
		return true;
	if (errno != EAGAIN && errno != ENOBUFS)
		client_close(c, NULL);
	return false;
}

void notify_more(struct st_from *c)
{
	size_t done = 0;
	while (done < c->waiting.n && tell(c, &c->waiting.v[done]))
		done++;
	if (done > 0) {
		c->waiting.n -= done;
		memmove(c->waiting.v, c->waiting.v + done, c->waiting.n * sizeof *c->waiting.v);
		c->writing_since = timer_ms();
	}
	if (!c->closing)
		watch(c, c->waiting.n > 0);
}

static bool wants(const struct st_from *c, const struct wake *w)
{
	if (c->wire.role == ST_ROLE_GATEWAY && !w->revoked)
		return false;
	if (c->wire.role == ST_ROLE_PUSH && !w->push)
		return false;
	return (c->tenant[0] == '\0' || strcmp(c->tenant, w->tenant) == 0) &&
	       (c->run[0] == '\0' || strcmp(c->run, w->run) == 0);
}

void notify_all(struct server *sv)
{
	for (struct st_from *c = sv->clients; c != NULL; c = c->next) {
		if (!c->subscribed || c->closing)
			continue;
		for (size_t i = 0; i < sv->wakes.n && !c->closing; i++) {
			const struct wake *w = &sv->wakes.v[i];
			if (!wants(c, w))
				continue;
			if (c->waiting.n > 0 || !tell(c, w))
				wakes_add(&c->waiting, w);
		}
		if (c->closing)
			continue;
		if (c->waiting.n > WAKES_WAITING || (c->writing && timer_ms() - c->writing_since > PATIENCE_MS))
			client_close(c, "it subscribed and does not read");
		else
			watch(c, c->waiting.n > 0);
	}
	sv->wakes.n = 0;
}
