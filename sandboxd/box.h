/*
 * The list of boxes: one slot each, with three uids that no other slot has. Everything happens on the event
 * loop; nothing here waits. What became of a box is told, in this order:
 *
 *   spawned, [opened], [closed], exited, gone          or          refused
 *
 * The states of a slot are spec/sandbox.fsm. An exited box keeps its entry and its result until it is killed too. A
 * quarantined slot (its processes or groups did not go away) is not used again by this process; the next one sweeps it.
 */
#ifndef SANDBOXD_BOX_H
#define SANDBOXD_BOX_H
#include "gen/errors.h"
#include "gen/sandbox_fsm.h"
#include "sandboxd/box_cg.h"
#include "sandboxd/box_plan.h"
#include "sandboxd/loop.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { BOX_NAME = 129, BOX_BUILD_MS = 10000, BOX_DESTROY_MS = 5000 };

struct box {
	struct boxes *all;
	uint32_t slot;
	enum sandbox_state state;
	char run[BOX_NAME], tenant[BOX_NAME];
	uint8_t kind;
	bool probe;
	struct box_limits limits;
	uint64_t op, kill_op;
	pid_t pid;
	int pidfd;                     /* -1 once reaped */
	int result, listener, control; /* ours; -1 none */
	struct source build, oom;
	bool executing; /* the child said that exec is next */
	bool alive_once, kill_asked, timed_out, oom_seen, groups_left;
	uint32_t grace_ms;
	uint64_t late_at,
	    retry_at; /* timer_ms, 0: none; the end of the state's time, the next try to take groups away */
	enum step failed;
	int failed_errno, status;
	uint64_t lacks; /* a bit a step: extra walls that the kernel does not have */
	struct cg_use use;
	bool clean;       /* GONE */
	enum err code;    /* REFUSED */
	char detail[160]; /* REFUSED */
};

/* What the owner of the list is told of a box. For a box that never was (REFUSED, GONE) only run, kind, op and
 * the last three fields are filled. */
enum box_news { NEWS_SPAWNED, NEWS_REFUSED, NEWS_OPENED, NEWS_CLOSED, NEWS_EXITED, NEWS_GONE };
typedef void box_teller(void *arg, enum box_news what, const struct box *b);

struct boxes {
	struct box *v;
	uint32_t slots;
	uid_t uid_base;
	struct loop *loop;
	struct cg cg;
	struct box_place place;
	box_teller *tell;
	void *tell_arg;
};

/* False: out of memory. place, cg and tell are filled by the caller. */
bool boxes_init(struct boxes *all, struct loop *loop, uint32_t slots, uid_t uid_base);
struct box *boxes_find(struct boxes *all, const char *run, uint8_t kind);
/* Starts a box, or refuses. upload, result and keys (-1: none) are taken over in any case. */
void box_spawn(struct boxes *all, uint64_t op, const char *run, const char *tenant, uint8_t kind,
	       const struct box_limits *limits, int upload, int result, int keys);
/* Tells that there will be no such box. */
void box_refuse(struct boxes *all, uint64_t op, const char *run, uint8_t kind, enum err code, const char *detail);
/* Builds a box at start that runs nothing, so that a missing wall is known before work is taken. False: no slot is
 * free. */
bool box_probe(struct boxes *all);
/* At start: slots that hold groups of an earlier life are free when those are gone, or quarantined. */
void boxes_sweep(struct boxes *all);
/* TERM now, everything killed after grace_ms; then gone. */
void box_kill(struct boxes *all, uint64_t op, const char *run, uint8_t kind, uint32_t grace_ms);
/* A work box that is alive: its runner's clock stands, its agent's processes are frozen, or they go on. */
void box_pause(struct boxes *all, const char *run, bool stands, bool frozen);
/* Kills everything now. */
void boxes_destroy_all(struct boxes *all);
/* Was this dead child of ours a box? Then it is reaped. */
bool boxes_reap(struct boxes *all, pid_t pid);
/* Does what is due; when to come again (timer_ms, 0: no need). */
uint64_t boxes_tick(struct boxes *all, uint64_t now);
/* Boxes that still have processes or groups. */
uint32_t boxes_busy(const struct boxes *all);

/* box_build.c: makes the groups and the child. ERR_OK or the step and errno in b. Takes upload and keys over. */
bool box_build(struct box *b, int upload, int keys);
/* Reads what the child has said so far. */
void box_build_read(void *box, uint32_t events);
/* box.c: the child has become the runner. */
void box_is_alive(struct box *b);
void box_destroy(struct box *b);
#endif
