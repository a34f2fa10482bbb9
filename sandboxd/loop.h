/*
 * The event loop: descriptors on epoll. One event is taken at a time, so that a source may be dropped
 * by any other source's function.
 */
#ifndef SANDBOXD_LOOP_H
#define SANDBOXD_LOOP_H
#include <stdbool.h>
#include <stdint.h>

struct source {
	int fd; /* -1: not in the loop */
	void (*ready)(void *owner, uint32_t events);
	void *owner;
};

struct loop {
	int epoll;
};

/* False with errno. */
bool loop_open(struct loop *l);
/* Watches fd (EPOLLIN, EPOLLOUT ...). The source must stay where it is until dropped. False with errno. */
bool loop_add(struct loop *l, struct source *s, int fd, uint32_t events, void (*ready)(void *, uint32_t), void *owner);
/* Forgets the source and closes its descriptor. */
void loop_drop(struct loop *l, struct source *s);
/* Waits for one event until `until` (timer_ms; 0: for ever) and runs its function. */
void loop_once(struct loop *l, uint64_t until);
#endif
