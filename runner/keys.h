/*
 * The keys of an agent with credential_mode = env: from what sandboxd gives to the agent's main process, and to nowhere
 * else.
 */
#ifndef RUNNER_KEYS_H
#define RUNNER_KEYS_H
#include "lib/keymask.h"
#include "runner/launch.h"
#include "runner/plan.h"

enum { KEYS_FILE_MS = 60000 /* as long as a file that nobody reads stays */ };

struct keys {
	struct secret value[PLAN_KEYS];    /* as given; of made-up ones, too */
	struct secret variable[PLAN_KEYS]; /* "NAME=value" and a NUL, for exec */
	struct keymask mask;               /* the real ones */
	const struct plan *plan;
	int watch; /* inotify; -1: there is no file, or it went */
	int of[PLAN_KEYS];
	unsigned files; /* there still are */
	uint64_t until; /* timer_ms at which they go unread */
};

/* Takes what the plan names from the file `from` and puts variables into the plan's environment. NULL, or why not: a
 * sentence without a value. k must stay for as long as the plan is used. */
const char *keys_take(struct keys *k, struct plan *p, int from);
/* In a child that is the agent's uid: writes the files. 0 or 1, as an exit status. */
int keys_write(const void *k);
/* The files are there and the agent is about to start: from now on they are watched. */
void keys_watch(struct keys *k);
/* Something was told on k->watch, or the time has come: files that were read go, all of them after KEYS_FILE_MS. */
void keys_noticed(struct keys *k, uint64_t now);
void keys_wipe(struct keys *k);
#endif
