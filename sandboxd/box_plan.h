/*
 * What the child that becomes a box is told, and the pieces it runs. Everything here is called in that
 * child, as real root in new namespaces, before anything foreign runs. All pieces return false with errno.
 */
#ifndef SANDBOXD_BOX_PLAN_H
#define SANDBOXD_BOX_PLAN_H
#include "gen/walls.h"
#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct cg;

struct box_limits {
	uint32_t wall_seconds;
	uint64_t memory_bytes;
	uint32_t pids;
	uint64_t workspace_bytes;
	uint32_t workspace_inodes;
};

/* What is the same for every box of this instance. */
struct box_place {
	const char *stage;  /* an empty root-owned folder to build on */
	const char *runner; /* folder with the programs of the box */
	uint16_t port;      /* the gateway's, inside */
	int parent;         /* pidfd of sandboxd */
	int template_ns;    /* a mount namespace with all that boxes share, read-only; -1: none yet */
	struct stat made_from;
	struct sock_fprog filter; /* of spec/seccomp.tab, made once at start */
};

struct box_plan {
	const struct box_place *place;
	const struct cg *cg;
	uint32_t slot;
	uid_t uid; /* the runner's, the first of its BOX_UIDS; gids are the same numbers */
	struct box_limits limits;
	bool listener; /* a work box */
	bool probe;    /* at start: build everything, run nothing */
	int upload, keys, result, control, build;
};

/* One note from the child to sandboxd, on the build socket. */
enum note_what { NOTE_MAPS = 1, NOTE_EXEC, NOTE_FAILED, NOTE_LACKS };
struct box_note {
	int32_t what, step, error;
};

/* The whole of the child; never returns. */
void box_child(const struct box_plan *p) __attribute__((noreturn));

/* Each part of the new root; *step says which one failed. */
bool box_root(const struct box_plan *p, enum step *step);
/* In sandboxd: makes the shared part of all roots when there is none or the host's libraries have changed. */
bool box_template(struct box_place *place, enum step *step);
bool box_caps(void);
bool box_landlock(void);
/* Does the kernel have what this extra wall of Landlock needs? */
bool box_landlock_has(enum step extra);
/* In sandboxd: the two lines of each map of the child. */
bool box_ids_map(pid_t pid, uid_t first);
#endif
