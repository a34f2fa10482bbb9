/*
 * What a check came to. Its exit code is the kernel's word; whether it ran anything stands only in what it
 * printed, and for a check whose kind is known here a success that ran nothing is none.
 */
#ifndef STEWARD_CHECKS_H
#define STEWARD_CHECKS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum outcome {
	OUTCOME_NONE,
	OUTCOME_PASSED,
	OUTCOME_FAILED,
	OUTCOME_NO_TESTS,
	OUTCOME_TIMEOUT,
	OUTCOME_KILLED,
	OUTCOME__COUNT
};
extern const char *const outcome_names[OUTCOME__COUNT];

struct check_counts {
	bool known;       /* false: the output does not say, or the kind has none */
	uint32_t run;     /* came to an end, good or bad: what was skipped did not run */
	uint32_t failed;  /* of run, with errors */
	uint32_t skipped; /* beside run */
};

/* How one command ended, and what it had before it. */
struct check_end {
	bool started, timed_out;
	int32_t status; /* exit code, or minus the signal */
	const char *output;
	size_t n;
	uint32_t sources; /* Python files in the tree */
};

/* Does it look at what was changed, and at nothing else? */
bool checks_of_changes(const char *const *argv, uint32_t argc);
/* Pure. *counts is always set. */
enum outcome checks_judge(const char *const *argv, uint32_t argc, const struct check_end *end,
			  struct check_counts *counts);
#endif
