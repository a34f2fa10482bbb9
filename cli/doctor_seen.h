/* A box as root sees it from outside: what /proc says of one process in it, kept, and held against the table of walls.
 */
#ifndef CLI_DOCTOR_SEEN_H
#define CLI_DOCTOR_SEEN_H
#include "cli/doctor.h"
#include "gen/walls.h"

enum { SEEN_SPACES = 7 };

struct seen {
	pid_t pid, parent;
	uid_t uid;
	char status[4096], mounts[16384], limits[4096], groups[4096], net[4096], tcp[8192], uid_map[512], stat[1024];
	char memory[64], pids[64], oom_group[16]; /* of its groups */
	char fds[1024];                           /* "N target" lines */
	char space[SEEN_SPACES];                  /* 1: another namespace than ours */
	char runner[128];                         /* the parent's program */
	char etc[600], dev[600];                  /* names, each with a space behind */
	char resolv[600];
};

/* The uid of a process, where it is one of this instance's boxes; else 0. */
uid_t seen_box_uid(const struct doctor *d, pid_t pid);
/* Its name, as in /proc/PID/comm. */
bool seen_name(pid_t pid, char name[64]);
/* Takes it all. False: it was gone meanwhile. */
bool seen_take(const struct doctor *d, struct seen *s, pid_t pid);
/* Says what is seen of one wall, by found(). False: it cannot be seen from outside. */
bool seen_wall(struct doctor *d, const struct seen *s, enum step wall);
#endif
