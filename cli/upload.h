/* A folder as the body of POST /v1/runs. */
#ifndef CLI_UPLOAD_H
#define CLI_UPLOAD_H
#include <stdbool.h>

#include "lib/buf.h"

enum { UPLOAD_WORDS = 32 };

struct upload {
	const char *dir, *instruction, *agent, *profile;
	const char *allow[UPLOAD_WORDS], *check[UPLOAD_WORDS];
	unsigned nallow, nchecks;
	struct {
		const char *tool, *word; /* what the agent may do with it: "ask", "deny" */
	} permit[UPLOAD_WORDS];
	unsigned npermits;
};

/*
 * Writes the request. Without --allow every uploaded file may be changed; without --check the check
 * is `git diff --check`. Files of other types than source text are left out and counted in *skipped.
 * False after saying what is wrong.
 */
bool upload_write(const struct upload *u, struct buf *body, unsigned *files, unsigned *skipped);
#endif
