/*
 * The judge: compares what a work box left with what was uploaded, in a short-lived confined child, and
 * says what changed, whether that is allowed, the patch, and what the agent claims. The answer is frames
 * of bundle.msg (JUDGED, CHANGE..., PATCH, SUMMARY) in a memfd.
 */
#ifndef STEWARD_JUDGE_H
#define STEWARD_JUDGE_H
#include "gen/errors.h"
#include "gen/limits.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { JUDGE_CHANGES = LIMIT_RUN_CHANGED_FILES, JUDGE_PATCH_BYTES = LIMIT_RUN_PATCH_BYTES };

struct judge_rules {
	const char *const *allow; /* allowedPaths */
	size_t nallow;
	const char *const *extensions; /* of the tenant, such as ".py"; "*" is any */
	size_t nextensions;
	/* Of a source alone (source_tree.h): what it may come to, and where it must have room. */
	uint32_t files, workspace_inodes;
	uint64_t bytes, file_bytes, workspace_bytes;
};

/*
 * The decision itself, without confinement (the child calls it; tests and fuzzing too). patch_init was
 * called. Writes the frames to out. ERR_OK also when the changes were refused: JUDGED says so. One that passes
 * (lib/lack.h): it could not be found out.
 */
enum err judge_decide(int upload, int result, const struct judge_rules *rules, int out);

struct judge {
	pid_t pid;
	int pidfd; /* readable when the child has ended */
	int out;   /* memfd of its frames */
};
/* What the child does: judge_decide, or source_tree. */
typedef enum err (*judge_work)(int upload, int result, const struct judge_rules *rules, int out);
/* Forks the child. forget is called in it before it reads anything: it wipes what the child must not
 * know. False with errno; then nothing is left behind. */
bool judge_start(struct judge *j, judge_work work, int upload, int result, const struct judge_rules *rules,
		 void (*forget)(void *), void *arg);
/* Has it ended by itself? */
bool judge_ended(const struct judge *j);
/* Reaps (after killing, where it still runs). ERR_OK: it ended well, its frames may be read. ERR_RESOURCES_EXHAUSTED:
 * it lacked something; ERR_SANDBOX_RESULT_INVALID: anything else. */
enum err judge_end(struct judge *j);
#endif
