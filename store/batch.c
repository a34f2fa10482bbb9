/*
 * The loop: read every ready request (bounded), run each as one transaction, flush the log once, send
 * the answers, wake the subscribers. So an answer is durable before anybody sees it, and the price of
 * a flush is shared. A client that does not read its answers is closed, never waited for.
 * The one exception is an early answer (op_model_called), to which nobody holds us after a crash: its commit waits
 * for the next flush, at most OWED_MS, and until then nobody is told of it: any other answer flushes first.
 */
#include "gen/errors.h"
#include "lib/chan.h"
#include "lib/die.h"
#include "lib/num.h"
#include "store/op.h"
#include "store/t_operation.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { EVENTS = 64, LOOK_AROUND_MS = 5000, OWED_MS = 2 };

void server_answer(struct st_from *to, uint64_t op, enum err e, size_t n, const int *fds, int nfds)
{
	struct server *sv = to->server;
	if (n == 0) {
		if ((unsigned)e < REFUSALS)
			sv->refused[e]++;
		struct st_fail m = {.code = (uint16_t)(e == ERR_OK ? ERR_INTERNAL_ERROR : e),
				    .retry_after = sv->retry_after};
		if (e == ERR_OK)
			log_error("an answer to %s could not be encoded", client_role(to));
		n = st_put_fail(sv->frame, ST_MAXFRAME, op, &m);
		chan_close_fds((int[]){fds != NULL && nfds > 0 ? fds[0] : -1, fds != NULL && nfds > 1 ? fds[1] : -1},
			       2);
		nfds = 0;
	}
	uint8_t *p = malloc(n);
	if (p == NULL)
		fatal("no memory for an answer");
	memcpy(p, sv->frame, n);
	struct answer *a = &sv->answers[sv->nanswers++];
	*a = (struct answer){.to = to, .p = p, .n = n, .nfds = nfds};
	for (int i = 0; i < nfds; i++)
		a->fds[i] = fds[i];
	sv->answer_bytes += n;
}

void op_done(struct st_from *from, uint64_t op, struct txn *t, enum err e, size_t n, int *fds, int nfds)
{
	/* txn_end took it back where nothing was committed; a refusal may have left something to tell of. */
	if (t->wake.set)
		wakes_add(&from->server->wakes, &t->wake);
	from->server->retry_after = t->retry_after;
	server_answer(from, op, e, n, fds, nfds);
	from->server->retry_after = 0;
	from->server->answers[from->server->nanswers - 1].early = e == ERR_OK && t->early;
	txn_free(t);
}

enum err op_again(struct st_from *from, uint64_t op, struct txn *t, size_t *n)
{
	struct rec_operation last;
	*n = 0;
	if (from->client == 0 || !operation_get(t, from->wire.role, from->client, &last))
		return ERR_OK;
	/* An older question, overtaken while it lay in a connection that was given up. */
	if (op != last.op && (int64_t)(op - last.op) < 0)
		return ERR_INVALID_REQUEST;
	if (op == last.op) {
		memcpy(from->server->frame, last.answer.p, last.answer.n);
		*n = last.answer.n;
	}
	return ERR_OK;
}

void op_keep(struct st_from *from, uint64_t op, struct txn *t, size_t n)
{
	struct rec_operation r = {.op = op, .at = t->now, .answer = {from->server->frame, (uint32_t)n}};
	if (from->client != 0)
		operation_put(t, from->wire.role, from->client, &r);
}

static void send_answer(struct answer *a)
{
	/* Also to one that is closed for what it sent afterwards: this was earned before. */
	if (chan_send(a->to->fd, a->p, a->n, a->fds, a->nfds) != 0)
		client_close(a->to, errno == EPIPE || errno == ECONNRESET ? NULL : "it does not read its answers");
	chan_close_fds(a->fds, a->nfds);
	free(a->p);
}

/* True: the flush may wait, because nobody else does. */
static bool send_early(struct server *sv)
{
	size_t early = 0;
	for (size_t i = 0; i < sv->nanswers; i++)
		if (sv->answers[i].early) {
			send_answer(&sv->answers[i]);
			early++;
		}
	if (early > 0 && !sv->owing && store_owes(sv->store)) {
		sv->owing = true;
		sv->owed_since = timer_ms();
	}
	return early == sv->nanswers && sv->owing && timer_ms() - sv->owed_since < OWED_MS;
}

static void finish_batch(struct server *sv)
{
	if (!send_early(sv)) {
		store_flush(sv->store);
		sv->owing = false;
		for (size_t i = 0; i < sv->nanswers; i++)
			if (!sv->answers[i].early)
				send_answer(&sv->answers[i]);
		notify_all(sv);
	}
	sv->nanswers = 0;
	sv->answer_bytes = 0;
	clients_sweep(sv);
}

static void watch(struct server *sv, int *fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = fd};
	if (*fd >= 0 && epoll_ctl(sv->epoll, EPOLL_CTL_ADD, *fd, &ev) != 0)
		fatal("cannot watch descriptor %d: %m", *fd);
}

static void on_ready(struct server *sv, const struct epoll_event *ev)
{
	void *who = ev->data.ptr;
	if (who == &sv->listen_fd)
		client_accept(sv, sv->listen_fd, false);
	else if (who == &sv->admin_fd)
		client_accept(sv, sv->admin_fd, true);
	else if (who == &sv->control_fd)
		sv->stop = !config_hear(sv) || sv->stop;
	else if (who == &sv->signal_fd)
		sv->stop = true;
	else {
		struct st_from *c = who;
		if (!c->closing && (ev->events & EPOLLOUT) != 0)
			notify_more(c);
		if (!c->closing && (ev->events & ~(uint32_t)EPOLLOUT) != 0)
			client_read(c);
	}
}

void server_run(struct server *sv)
{
	sv->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (sv->epoll < 0)
		fatal("epoll: %m");
	watch(sv, &sv->listen_fd);
	watch(sv, &sv->admin_fd);
	watch(sv, &sv->control_fd);
	watch(sv, &sv->signal_fd);
	for (int next = 0; !sv->stop;) {
		struct epoll_event ev[EVENTS];
		int wait = store_idle(sv->store);
		if (wait < 0 || wait > LOOK_AROUND_MS)
			wait = LOOK_AROUND_MS;
		if (wait > next)
			wait = next;
		if (sv->owing && wait > OWED_MS)
			wait = OWED_MS;
		int n = epoll_wait(sv->epoll, ev, EVENTS, wait);
		if (n < 0 && errno != EINTR)
			fatal("epoll: %m");
		store_turn(sv->store);
		/* What does not fit into this batch stays ready for the next. */
		for (int i = 0; i < n && sv->nanswers < BATCH_REQUESTS && sv->answer_bytes < BATCH_BYTES; i++)
			on_ready(sv, &ev[i]);
		backup_turn(sv);
		next = prune_turn(&sv->prune, sv->store);
		finish_batch(sv);
	}
	for (struct st_from *c = sv->clients; c != NULL; c = c->next)
		c->closing = true;
	clients_sweep(sv);
	wakes_free(&sv->wakes);
	close(sv->epoll);
}
