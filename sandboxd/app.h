/* What sandboxd is made of; one value, owned by main. */
#ifndef SANDBOXD_APP_H
#define SANDBOXD_APP_H
#include "gen/sandbox_msg.h"
#include "sandboxd/box.h"
#include "sandboxd/children.h"
#include "sandboxd/loop.h"
#include "sandboxd/settings.h"

enum stop { STOP_NO, STOP_STEWARD, STOP_BOXES, STOP_FRONT, STOP_STORED, STOP_DONE };

/* One attempt to bring another configuration into force, in every child or in none. */
struct reload {
	bool going, again, applied; /* again: asked for once more meanwhile; applied: how the last one went */
	uint32_t number;
	pid_t reader; /* 0: it is dead, and the children are asked */
	int report;   /* what it said on its standard error */
	struct given next;
	unsigned unheard; /* bits of enum child_id */
	uint64_t until;
	char why[1001];
};

struct app {
	pid_t pid; /* our own */
	struct loop loop;
	struct settings conf;
	struct given given; /* the one in force */
	struct reload reload;
	struct boxes boxes;
	bool probed; /* every wall has been built once */
	struct child child[CHILD__COUNT];
	uint8_t told;                  /* enum child_up, to fcgi */
	int listener[LISTENER__COUNT]; /* kept here, so that a restarted child serves the same sockets */
	struct source signals;
	enum stop stop;
	uint64_t stop_next; /* timer_ms: the phase is over by then */
};

/* reload.c: has the files read once more, unless that goes on; then it is done again behind it. */
void reload_begin(struct app *app);
/* Was this dead child of ours the reader? Then it is reaped. */
bool reload_reap(struct app *app, pid_t pid);
/* The child has said HELLO; it has answered. */
void reload_greeted(struct app *app, const struct child *c);
void reload_heard(struct app *app, const struct child *c, const struct sbx_loaded *m);
/* Gives up what takes too long; when to come again (timer_ms, 0: no need). */
uint64_t reload_tick(struct app *app, uint64_t now);
/* answer.c: what became of a box, told to the steward and the gateway. A box_teller; arg is the app. */
void answer_tell(void *arg, enum box_news what, const struct box *b);
/* stop.c: ends in order, within 5 s: the steward, the boxes, the gateway and the public side, the store. */
void stop_begin(struct app *app);
/* Moves on when a phase is over or its time is up; when to come again (timer_ms, 0: no need). */
uint64_t stop_tick(struct app *app, uint64_t now);
/* Tells the service manager (sd_notify(3)) a state such as READY=1, if there is one. */
void manager_tell(const char *state);
#endif
