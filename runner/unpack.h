/*
 * Makes /workspace from the upload. All three functions run inside a child that has become the agent
 * (launch_run's `inside`): their value is an exit status, a failure's sentence goes to standard error.
 */
#ifndef RUNNER_UNPACK_H
#define RUNNER_UNPACK_H

struct unpack {
	int upload; /* the bundle */
};
/* The sources, request.json, the tokens. Everything must be new. */
int unpack_base(const void *unpack);
/* In a box that unpacks: the archive, as the agent's file, and an empty /workspace/source. */
#define UNPACK_ARCHIVE "/tmp/archive"
int unpack_parts(const void *unpack);
/* What a check box has on top of the first commit: removals, then changed files. */
int unpack_changes(const void *unpack);
#endif
