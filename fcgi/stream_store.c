/*
 * A connection to stored that never waits: it is made, greeted and, where it is for that, subscribed, a step at each
 * answer. Trusts no frame further than its decoder does. A step that makes no sense ends the connection, which is
 * then made again: whoever asked is told that it was lost.
 */
#include "fcgi/stream.h"
#include "lib/chan.h"
#include "lib/die.h"
#include "lib/num.h"
#include "lib/wire.h"
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { PAUSE_FIRST = 50, PAUSE_LAST = 500 };

void store_leave(struct store_conn *c)
{
	if (c->fd >= 0)
		close(c->fd); /* and leaves the epoll set by that */
	c->fd = -1;
	c->state = STORE_AWAY;
}

static void lose(struct store_conn *c)
{
	store_leave(c);
	c->pause = c->pause == 0 ? PAUSE_FIRST : c->pause < PAUSE_LAST ? 2 * c->pause : PAUSE_LAST;
	c->again = timer_ms() + c->pause;
}

bool store_send(struct streams *s, struct store_conn *c, const uint8_t *p, size_t n)
{
	(void)s;
	return c->fd >= 0 && n > 0 && chan_send(c->fd, p, n, NULL, 0) == 0;
}

void store_turn(struct streams *s, struct store_conn *c, uint64_t now)
{
	const struct st_hello hello = {.version = ST_VERSION};
	if (c->fd >= 0 || now < c->again)
		return;
	c->fd = chan_reach(c->path);
	struct epoll_event e = {.events = EPOLLIN, .data.u64 = c->subscribes ? STREAM_EV_TOLD : STREAM_EV_ASK};
	c->op = s->next_op++;
	c->state = STORE_GREETED;
	if (c->fd < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, c->fd, &e) != 0 ||
	    !store_send(s, c, s->out, st_put_hello(s->out, ST_MAXFRAME, c->op, &hello)))
		lose(c);
}

/* The next step of a beginning. False: that was no answer to the last one. */
static bool step(struct streams *s, struct store_conn *c, const uint8_t *frame, size_t n)
{
	const struct st_subscribe all = {.tenant = "", .run = ""};
	struct st_welcome welcome;
	struct st_ok ok;
	uint16_t number;
	uint64_t op;
	if (!wire_peek(frame, n, &number, &op) || op != c->op)
		return false;
	if (c->state == STORE_SUBSCRIBING) {
		c->state = STORE_HERE;
		return st_get_ok(frame, n, &ok);
	}
	if (!st_get_welcome(frame, n, &welcome) || welcome.version != ST_VERSION)
		return false;
	c->state = c->subscribes ? STORE_SUBSCRIBING : STORE_HERE;
	c->op = s->next_op++;
	return !c->subscribes || store_send(s, c, s->out, st_put_subscribe(s->out, ST_MAXFRAME, c->op, &all));
}

bool store_read(struct streams *s, struct store_conn *c, void (*serves)(struct streams *s),
		void (*each)(struct streams *s, const uint8_t *frame, size_t n))
{
	/* Not without end: streams want to be written to as well. */
	for (int i = 0; i < STREAM_READS && c->fd >= 0; i++) {
		ssize_t n = chan_recv(c->fd, s->in, ST_MAXFRAME + 1, NULL, &(int){0});
		if (n < 0 && errno == EAGAIN)
			return false;
		if (n > 0 && c->state == STORE_HERE) {
			each(s, s->in, (size_t)n);
			continue;
		}
		if (n > 0 && step(s, c, s->in, (size_t)n)) {
			if (c->state == STORE_HERE) {
				c->pause = 0;
				serves(s);
			}
			continue;
		}
		lose(c);
		return true;
	}
	return c->fd < 0;
}
