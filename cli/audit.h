/* The audit log's chain, looked at from outside: without the service, file by file. */
#ifndef CLI_AUDIT_H
#define CLI_AUDIT_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/audit_chain.h"

/* A walk over the files, oldest first. Zeroed at the start; the first fault ends it. */
struct audit_walk {
	bool any; /* a line was seen: the two below are set */
	uint64_t seq;
	char hash[AUDIT_HASH + 1];
	uint64_t lines, first_seq, torn, lost, gone; /* gone: lines that were undone */
	/* a line that a crash cut short, until the next one says so */
	bool broken;
	uint64_t broken_line, broken_bytes;
	char broken_digest[65];
	/* the fault */
	char path[512], broken_path[512]; /* path: the caller's, of the present file; at a fault, of the one at fault */
	uint64_t at;                      /* line of it */
	char why[300];                    /* "" : none */
};

/* True: this file is sound and follows what came before. */
bool audit_walk_file(struct audit_walk *w, FILE *f);
/* Behind the last file. */
bool audit_walk_end(struct audit_walk *w);
/* cmd_audit.c: all of this instance's log. 0: it is whole. Else why and where are set, or it is said that a file cannot
 * be opened. *files: how many there are. */
int audit_walk_log(struct audit_walk *w, unsigned *files);
#endif
