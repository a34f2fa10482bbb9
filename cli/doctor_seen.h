/* A box as root sees it from outside: what /proc says of one process in it, kept, and held against the table of walls.
 */
#ifndef CLI_DOCTOR_SEEN_H
#define CLI_DOCTOR_SEEN_H
#include "cli/doctor.h"
#include "gen/walls.h"

enum { SEEN_SPACES = 7 };
extern const char *const seen_spaces[SEEN_SPACES]; /* user is the last */

struct seen {
	pid_t pid, parent;
	uid_t uid;
	bool stranger; /* that is no user of a box */
	char status[4096], mounts[16384], limits[4096], groups[4096], net[4096], tcp[8192], uid_map[512], stat[1024];
	char memory[64], pids[64], oom_group[16]; /* of its groups */
	char fds[1024];                           /* "N target" lines */
	char space[SEEN_SPACES];                  /* 1: another namespace than ours */
	char runner[128], runner_groups[4096];    /* the parent's program and groups */
	unsigned template;                        /* sandboxd has its mount namespace open */
	unsigned watches;                         /* counters of memory that sandboxd watches */
	const char *outlived;                     /* NULL: not tried */
	bool died;
	char etc[600], dev[600]; /* names, each with a space behind */
	char resolv[600];
};

/* --- cli/seen_process.c ---------------------------------------------------------------------- */
/* A small file of /proc/PID, ended with a NUL; its length, or -1. */
ssize_t seen_text(pid_t pid, const char *name, char *out, size_t room);
/* Whose a process is. False: it is not there. */
bool seen_uid(pid_t pid, uid_t *uid);
/* Is it one of the users of this instance's boxes? */
bool seen_is_box(const struct conf *conf, uid_t uid);
/* A process that runs this program (a path) in a box, or 0: one that has a box's user, or whose runner is a child of
 * this pinfold-sandboxd (0: not known). */
pid_t seen_program(const struct conf *conf, pid_t sandboxd, const char *program);
/* The parent of a process, or 0. */
pid_t seen_parent(pid_t pid);
/* What keeps a process apart on its core: 0 for none. False: there is no core scheduling here. */
bool seen_core(pid_t pid, unsigned long long *cookie);
/*
 * Kills pinfold-sandboxd, of which runner is a child, to see whether that box dies with it while its process 1 cannot
 * act: true where it does. *detail says how it went. Every run of the service ends, and who started it starts it anew.
 */
bool seen_outlive(pid_t runner, const char **detail);
/* --- cli/doctor_seen.c ----------------------------------------------------------------------- */
/* Takes it all. False: it was gone meanwhile. */
bool seen_take(const struct doctor *d, struct seen *s, pid_t pid);
/* Says what is seen of one wall, by found(). False: it cannot be seen from outside. */
bool seen_wall(struct doctor *d, const struct seen *s, enum step wall);
#endif
