/*
 * Two file trees side by side: what was uploaded and what the work box left. Only the judge's confined
 * child uses this; the second tree is whatever an agent wanted it to be.
 */
#ifndef STEWARD_TREE_H
#define STEWARD_TREE_H
#include "gen/bundle_msg.h"
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
/* Of one tree; what may be in it is bounded more closely where it is made. Only the paths are copied. */
enum { TREE_FILES = 300000, TREE_PATHS = 100000000 };

struct tree_file {
	char *path; /* NUL-terminated, but may hold any other byte */
	size_t path_n;
	uint8_t type;
	bool executable;
	const uint8_t *content; /* in the bundle */
	size_t n;
};

struct tree {
	struct tree_file *v; /* sorted by path, no path twice */
	size_t n, room, paths;
	void *bundle; /* all of it, mapped: what is read here is sealed */
	size_t bundle_n;
};

/* What else a box's result holds. */
struct tree_claim {
	uint8_t *p; /* response.json as it was left; NULL: none */
	size_t n;
	struct bn_ran *ran; /* how it ended; its output is in the bundle. NULL: it does not say */
};

void tree_free(struct tree *t);
void tree_claim_free(struct tree_claim *c);
/* A file of an upload, be it SOURCE or PROGRAM; false: another frame, or malformed. */
bool tree_source(const uint8_t *frame, size_t n, struct bn_source *s, bool *executable);
/* SOURCE and PROGRAM frames up to SOURCE_END, whose count must agree. ERR_SANDBOX_RESULT_INVALID otherwise. */
enum err tree_upload(struct tree *t, int fd);
/* ENTRY frames of a work result; other frames are skipped, an unknown one, a path twice or a missing
 * COLLECTED is ERR_SANDBOX_RESULT_INVALID, an incomplete collection ERR_SANDBOX_OUTPUT_TOO_LARGE. */
enum err tree_result(struct tree *t, struct tree_claim *claim, int fd);
/* By path; a path twice is ERR_SANDBOX_RESULT_INVALID. Reading a tree has done it. */
enum err tree_sort(struct tree *t);
const struct tree_file *tree_find(const struct tree *t, const char *path);
#endif
