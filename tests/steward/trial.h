/* One judgement over an upload and a result that tables give. For tests. */
#ifndef TESTS_STEWARD_TRIAL_H
#define TESTS_STEWARD_TRIAL_H
#include "steward/judge.h"
#include "steward/tree.h"
#include "tests/steward/bundles.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { CHANGES = 40 };

struct said {
	bool accepted;
	enum err code;
	char field[4097];
	uint32_t seen, n;
	char path[CHANGES][161];
	uint8_t how[CHANGES];
	bool exec[CHANGES];
	char *patch;
	size_t patch_n;
	bool truncated;
	char summary[16001], status[33];
};

struct trial {
	const char *allow[4];
	struct given up[8], left[8];
	size_t nup, nleft;
};

extern const char *const trial_extensions[4];

/* Reads the judge's frames; the strings in s are copies. */
void trial_hear(int out, struct said *s);
/* Decides in this process. claim may be NULL. The caller frees with trial_end. */
struct said *trial_judge(const struct trial *t, const char *claim);
void trial_end(struct said *s);
#endif
