/* What sandboxd is made of; one value, owned by main. */
#ifndef SANDBOXD_APP_H
#define SANDBOXD_APP_H
#include "sandboxd/box.h"
#include "sandboxd/children.h"
#include "sandboxd/loop.h"
#include "sandboxd/settings.h"

enum stop { STOP_NO, STOP_STEWARD, STOP_BOXES, STOP_FRONT, STOP_STORED, STOP_DONE };

struct app {
	pid_t pid; /* our own */
	struct loop loop;
	struct settings conf;
	int conf_fd; /* sealed; every child gets it */
	struct boxes boxes;
	bool probed; /* every wall has been built once */
	struct child child[CHILD__COUNT];
	uint8_t told; /* enum child_up, and to which fcgi */
	pid_t told_to;
	int listener[LISTENER__COUNT]; /* kept here, so that a restarted child serves the same sockets */
	struct source signals;
	enum stop stop;
	uint64_t stop_next; /* timer_ms: the phase is over by then */
};

/* answer.c: what became of a box, told to the steward and the gateway. A box_teller; arg is the app. */
void answer_tell(void *arg, enum box_news what, const struct box *b);
/* stop.c: ends in order, within 5 s: the steward, the boxes, the gateway and the public side, the store. */
void stop_begin(struct app *app);
/* Moves on when a phase is over or its time is up; when to come again (timer_ms, 0: no need). */
uint64_t stop_tick(struct app *app, uint64_t now);
/* Tells the service manager (sd_notify(3)) a state such as READY=1, if there is one. */
void manager_tell(const char *state);
#endif
