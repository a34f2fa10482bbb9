/*
 * Receives packets from the children and gives them to the generated dispatcher, which checks
 * number, role, state, descriptors and every field before answer.c sees a struct. Trusts none of them.
 */
#include "sandboxd/monitor.h"
#include "gen/sandbox_msg_on.h"
#include "lib/die.h"
#include "lib/packet.h"
#include "sandboxd/app.h"
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER = 4 << 20 }; /* thousands of messages; a child that leaves more unread is restarted */

void monitor_close(struct sbx_from *from)
{
	if (from->source.fd >= 0) /* it has an app only then */
		loop_drop(&from->app->loop, &from->source);
}

void monitor_fail(struct sbx_from *from, const char *why)
{
	log_error("audit: channel of %s closed: %s", from->child->row->program, why);
	monitor_close(from);
	child_kill(from->app, from->child);
}

static void receive(void *owner, uint32_t events)
{
	struct sbx_from *from = owner;
	(void)events;
	static uint8_t frame[SBX_MAXFRAME]; /* one packet at a time: sandboxd has one thread */
	int fds[WIRE_MAX_FDS], nfds = 0;
	ssize_t n = chan_recv(from->source.fd, frame, sizeof frame, fds, &nfds);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		if (n < 0)
			monitor_fail(from, strerror(errno));
		else /* its process is dying, or of no use any more */
			monitor_close(from), child_kill(from->app, from->child);
		return;
	}
	const char *why = sbx_dispatch(&from->conn, from, frame, (size_t)n, fds, nfds);
	if (why == NULL)
		return;
	chan_close_fds(fds, nfds);
	monitor_fail(from, why);
}

bool monitor_open(struct sbx_from *from, struct app *app, struct child *child, uint8_t role, int fd)
{
	*from = (struct sbx_from){.app = app, .child = child, .conn.role = role};
	int most = BUFFER;
	return setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &most, sizeof most) == 0 &&
	       loop_add(&app->loop, &from->source, fd, EPOLLIN, receive, from);
}

void monitor_send(struct sbx_from *from, const uint8_t *frame, size_t n, const int *fds, int nfds)
{
	if (from->source.fd < 0 || from->conn.state != SBX_STATE_READY)
		return; /* it learns everything by HELLO and LIST */
	if (n == 0)
		panic("a message of ours does not fit");
	if (chan_send(from->source.fd, frame, n, fds, nfds) != 0 && errno != EPIPE && errno != ECONNRESET)
		monitor_fail(from, errno == EAGAIN ? "it does not read" : strerror(errno));
}
