/* The event loop; see loop.h. Trusts nothing it reads, since it reads nothing. */
#include "sandboxd/loop.h"
#include "lib/clock.h"
#include "lib/die.h"
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

bool loop_open(struct loop *l)
{
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	return l->epoll >= 0;
}

bool loop_add(struct loop *l, struct source *s, int fd, uint32_t events, void (*ready)(void *, uint32_t), void *owner)
{
	*s = (struct source){.fd = fd, .ready = ready, .owner = owner};
	struct epoll_event ev = {.events = events, .data.ptr = s};
	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &ev) == 0)
		return true;
	s->fd = -1;
	return false;
}

void loop_drop(struct loop *l, struct source *s)
{
	if (s->fd < 0)
		return;
	epoll_ctl(l->epoll, EPOLL_CTL_DEL, s->fd, NULL);
	close(s->fd);
	s->fd = -1;
}

void loop_once(struct loop *l, uint64_t until)
{
	int wait = -1;
	if (until != 0) {
		uint64_t now = timer_ms();
		wait = until <= now ? 0 : until - now > 60000 ? 60000 : (int)(until - now);
	}
	struct epoll_event ev;
	int n = epoll_wait(l->epoll, &ev, 1, wait);
	if (n < 0 && errno != EINTR)
		fatal("epoll_wait: %m");
	if (n == 1) {
		struct source *s = ev.data.ptr;
		s->ready(s->owner, ev.events);
	}
}
