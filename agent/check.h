/* Runs one of the checks that the request names: its exact arguments, no shell, nothing of ours in its hands. */
#ifndef AGENT_CHECK_H
#define AGENT_CHECK_H
#include "agent/task.h"
#include "lib/buf.h"

enum { CHECK_SECONDS = 60 };

struct check_end {
	bool started, timed_out, truncated;
	int status; /* exit code, or minus the signal */
};

/* Runs it in the folder root for at most limit_ms; the first and last part of its output, `most` bytes in
 * all, go to out, with control bytes replaced. */
struct check_end check_run(const struct task_check *check, int root, uint64_t limit_ms, size_t most, struct buf *out);
#endif
