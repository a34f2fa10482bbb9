/* A folder as the body of POST /v1/runs. */
#ifndef CLI_UPLOAD_H
#define CLI_UPLOAD_H
#include <stdbool.h>

#include "lib/buf.h"
#include "lib/json.h"
#include "lib/path.h"

enum { UPLOAD_WORDS = 32, UPLOAD_NAMES = 3 };

/* The check of a run that names none. */
#define UPLOAD_CHECK "git diff --check"

struct upload {
	const char *dir, *instruction, *agent, *profile;
	const char *allow[UPLOAD_WORDS], *check[UPLOAD_WORDS];
	unsigned nallow, nchecks;
	struct {
		const char *tool, *word; /* what the agent may do with it: "ask", "deny" */
	} permit[UPLOAD_WORDS];
	unsigned npermits;
	const struct json *types; /* the tenant's extensions, each a string; NULL: those of a tenant that sets none */
};

/* What was uploaded, and what was not: how many, and the first names. */
struct uploaded {
	unsigned files, left_out;
	char names[UPLOAD_NAMES][PATH_MAX_CHARS * 2];
};

/*
 * Writes the request. Without --allow every uploaded file may be changed; without --check the check
 * is `git diff --check`. Links and files that are no text of the tenant's types are left out.
 * False after saying what is wrong.
 */
bool upload_write(const struct upload *u, struct buf *body, struct uploaded *told);
#endif
