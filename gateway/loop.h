/*
 * The one thread that serves all boxes and all calls to providers, and the few that it has ask the store.
 * The loop never waits for anything but its descriptors; whatever may take a while (the store, reading a large JSON
 * text) is a step of a call, done by a worker, after which the call comes back to the loop.
 */
#ifndef GATEWAY_LOOP_H
#define GATEWAY_LOOP_H
#include <stdbool.h>
#include <stdint.h>

struct ask;
struct loop;

/* Something to be done by the loop, or by a worker and then by the loop. Part of what it is about. */
struct errand {
	struct errand *next;
	void (*work)(struct errand *e, struct ask *store); /* by a worker; store NULL: it was asked for too long ago */
	void (*done)(struct errand *e);                    /* by the loop, afterwards */
	uint64_t since_ms;
};

/* Ends the program where it cannot. */
struct loop *loop_new(void);
/* Calls ready(arg, events) when the descriptor is; returns a number that stands for this watch and no other, 0: cannot.
 */
uint64_t loop_watch(struct loop *l, int fd, uint32_t events, void (*ready)(void *arg, uint32_t events), void *arg);
bool loop_rewatch(struct loop *l, uint64_t watch, uint32_t events);
/* Before the descriptor is closed. 0 is none. */
void loop_unwatch(struct loop *l, uint64_t watch);
/* turn(arg) is called at the end of each turn and returns in how many milliseconds it wants to be, at the latest. */
void loop_each_turn(struct loop *l, int (*turn)(void *arg), void *arg);
/* By any thread: e->done is called by the loop, soon. */
void loop_post(struct loop *l, struct errand *e);
/* By the loop: the next turn comes at once. */
void loop_again(struct loop *l);
/* By any thread: there is another turn. */
void loop_wake(struct loop *l);
void loop_run(struct loop *l) __attribute__((noreturn));

/* workers.c: threads with a connection to stored each. Ends the program where it cannot. */
struct workers;
struct workers *workers_new(struct loop *l, const char *store_path);
/* By the loop: e->work by the next free worker, in the order of giving, then e->done by the loop. */
void workers_give(struct workers *w, struct errand *e);
#endif
