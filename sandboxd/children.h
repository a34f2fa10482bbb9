/*
 * The daemons: who is started, as whom, with which descriptors. A dead one is started again alone, after a
 * pause that doubles while it keeps dying quickly.
 */
#ifndef SANDBOXD_CHILDREN_H
#define SANDBOXD_CHILDREN_H
#include "sandboxd/monitor.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* In the order of starting. */
enum child_id { CHILD_STORED, CHILD_GATEWAY, CHILD_FCGI, CHILD_STEWARD, CHILD_PUSH, CHILD__COUNT };
enum listener { LISTENER_NONE = -1, LISTENER_STORE, LISTENER_ADMIN, LISTENER_FCGI, LISTENER__COUNT };

struct app;

struct child_row {
	const char *name, *program; /* name: also its role in the configuration and its group */
	bool shared;                /* is in the group that reaches stored */
	uint8_t role;               /* SBX_ROLE_ of its channel */
	enum listener listen, admin;
	uint8_t up; /* its bit of enum child_up */
};

extern const struct child_row child_rows[CHILD__COUNT];

struct child {
	const struct child_row *row;
	pid_t pid; /* 0: not running */
	int pidfd;
	struct sbx_from from;
	uint64_t started_at, restart_at; /* timer_ms */
	uint32_t pause_ms;
};

/* Makes the sockets; ends the program with a sentence when it cannot. */
void children_listen(struct app *app);
/* Starts those that are due; when to come again (timer_ms, 0: no need). */
uint64_t children_tick(struct app *app, uint64_t now);
/* Was this dead process one of them? Then it is reaped. */
bool children_reap(struct app *app, pid_t pid);
void child_signal(struct child *c, int sig);
/* Kills it and whatever it started. */
void child_kill(struct app *app, struct child *c);
void children_unlink(void);
#endif
