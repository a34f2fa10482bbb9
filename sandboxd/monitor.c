/*
 * Receives packets from the steward and the gateway and gives them to the generated dispatcher, which checks
 * number, role, state, descriptors and every field before answer.c sees a struct. Trusts neither process.
 */
#include "sandboxd/monitor.h"
#include "gen/sandbox_msg_on.h"
#include "lib/chan.h"
#include "lib/die.h"
#include "lib/own.h"
#include "sandboxd/app.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { QUEUE_MOST = 4096 };

struct packet {
	struct packet *next;
	size_t n;
	int fd;
	uint8_t bytes[];
};

static void drop_first(struct sbx_from *from)
{
	struct packet *p = from->head;
	from->head = p->next;
	from->tail = p->next == NULL ? &from->head : from->tail;
	from->queued--;
	if (p->fd >= 0)
		close(p->fd);
	free(p);
}

void monitor_close(struct sbx_from *from)
{
	int fd = from->source.fd;
	if (fd < 0)
		return;
	loop_drop(&from->app->loop, &from->source);
	close(fd);
	while (from->head != NULL)
		drop_first(from);
}

void monitor_fail(struct sbx_from *from, const char *why)
{
	log_error("audit: channel of %s closed: %s", from->child->row->program, why);
	monitor_close(from);
	child_kill(from->app, from->child);
}

static void flush(struct sbx_from *from)
{
	while (from->head != NULL) {
		struct packet *p = from->head;
		if (chan_send(from->source.fd, p->bytes, p->n, &p->fd, p->fd >= 0 ? 1 : 0) != 0) {
			if (errno != EAGAIN && errno != EPIPE &&
			    errno != ECONNRESET) /* those two: its death is told otherwise */
				monitor_fail(from, strerror(errno));
			return;
		}
		drop_first(from);
	}
	loop_change(&from->app->loop, &from->source, EPOLLIN);
}

static void receive(struct sbx_from *from)
{
	static uint8_t frame[SBX_MAXFRAME]; /* one packet at a time: sandboxd has one thread */
	int fds[WIRE_MAX_FDS], nfds = 0;
	ssize_t n = chan_recv(from->source.fd, frame, sizeof frame, fds, &nfds);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		monitor_fail(from, n == 0 ? "its end is closed" : strerror(errno));
		return;
	}
	const char *why = sbx_dispatch(&from->conn, from, frame, (size_t)n, fds, nfds);
	if (why == NULL)
		return;
	chan_close_fds(fds, nfds);
	monitor_fail(from, why);
}

static void ready(void *owner, uint32_t events)
{
	struct sbx_from *from = owner;
	if ((events & EPOLLOUT) != 0)
		flush(from);
	if (from->source.fd >= 0 && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
		receive(from);
}

bool monitor_open(struct sbx_from *from, struct app *app, struct child *child, uint8_t role, int fd)
{
	*from = (struct sbx_from){.app = app, .child = child, .conn.role = role, .tail = &from->head};
	return loop_add(&app->loop, &from->source, fd, EPOLLIN, ready, from);
}

void monitor_send(struct sbx_from *from, const uint8_t *frame, size_t n, int fd)
{
	if (from->source.fd < 0 || from->conn.state != SBX_STATE_READY)
		return; /* it learns everything by HELLO and LIST */
	if (n == 0)
		panic("a message of ours does not fit");
	if (from->head == NULL && chan_send(from->source.fd, frame, n, &fd, fd >= 0 ? 1 : 0) == 0)
		return;
	if (from->head == NULL && errno != EAGAIN)
		return; /* dying; its end is told by the reaper */
	struct packet *p = from->queued < QUEUE_MOST ? malloc(sizeof *p + n) : NULL;
	if (p == NULL) {
		monitor_fail(from, "it does not read");
		return;
	}
	*p = (struct packet){.n = n, .fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3)};
	memcpy(p->bytes, frame, n);
	*from->tail = p;
	from->tail = &p->next;
	from->queued++;
	if (fd >= 0 && p->fd < 0)
		monitor_fail(from, "no descriptor is left to queue for it");
	else
		loop_change(&from->app->loop, &from->source, EPOLLIN | EPOLLOUT);
}
