/*
 * Two file trees side by side: what was uploaded and what the work box left. Only the judge's confined
 * child uses this; the second tree is whatever an agent wanted it to be.
 */
#ifndef STEWARD_TREE_H
#define STEWARD_TREE_H
#include "gen/errors.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum entry_type {
	ENTRY_FILE = 1,
	ENTRY_DIRECTORY,
	ENTRY_LINK,
	ENTRY_OTHER,
	ENTRY_TOO_LARGE,
	ENTRY_UNREADABLE,
	ENTRY_CREDENTIAL
};
enum { TREE_FILES = 4096, TREE_BYTES = 32000000 };

struct tree_file {
	char *path; /* NUL-terminated, but may hold any other byte */
	size_t path_n;
	uint8_t type;
	bool executable;
	uint8_t *content;
	size_t n;
};

struct tree {
	struct tree_file *v; /* sorted by path, no path twice */
	size_t n, room, bytes;
};

/* What else the work box's result holds. */
struct tree_claim {
	uint8_t *p; /* response.json as it was left; NULL: none */
	size_t n;
};

void tree_free(struct tree *t);
void tree_claim_free(struct tree_claim *c);
/* SOURCE frames up to SOURCE_END, whose count must agree. ERR_SANDBOX_RESULT_INVALID otherwise. */
enum err tree_upload(struct tree *t, int fd);
/* ENTRY frames of a work result; other frames are skipped, an unknown one, a path twice or a missing
 * COLLECTED is ERR_SANDBOX_RESULT_INVALID, an incomplete collection ERR_SANDBOX_OUTPUT_TOO_LARGE. */
enum err tree_result(struct tree *t, struct tree_claim *claim, int fd);
const struct tree_file *tree_find(const struct tree *t, const char *path);
#endif
