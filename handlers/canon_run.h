/* The canonical value of POST /v1/runs: every field rebuilt, nothing passed through (R-15...R-25, D-25...D-29). */
#ifndef HANDLERS_CANON_RUN_H
#define HANDLERS_CANON_RUN_H
#include "gen/errors.h"
#include "gen/limits.h"
#include "lib/conf.h"
#include "lib/json.h"

enum {
	CANON_FILES = 32,
	CANON_ALLOWED = 32,
	CANON_CHECKS = 4,
	CANON_ARGV = 16,
	CANON_PERMISSIONS = 32,
	CANON_FILE_BYTES = 64000,
	CANON_TREE_BYTES = LIMIT_REQUEST_TREE_BYTES,
	CANON_INSTRUCTION = 32000,
	CANON_DEFAULT_STEPS = LIMIT_RUN_DEFAULT_STEPS,
	CANON_DEFAULT_WALL = LIMIT_RUN_DEFAULT_WALL_TIME_SECONDS,
	CANON_FILES_WALL = 240, /* where tokens of one life are files in the box */
	CANON_DEFAULT_APPROVAL = LIMIT_RUN_DEFAULT_APPROVAL_WAIT_SECONDS
};

/* Pointers lead into the parsed body, the configuration and the arena given to canon_run(). */
struct canon_run {
	const char *instruction;
	size_t instruction_n;
	const struct cf_profile *profile;
	const struct cf_agent *agent;
	struct {
		const char *path;
		const char *content;
		size_t n;
	} files[CANON_FILES];
	const char *source; /* its id; NULL: there are files */
	uint8_t source_sha[32];
	const char *allowed[CANON_ALLOWED];
	const struct cf_tenant_check *checks[CANON_CHECKS];
	struct canon_permission {
		const char *tool, *value;
	} permissions[CANON_PERMISSIONS]; /* sorted by tool */
	uint32_t nfiles, nallowed, nchecks, npermissions;
	uint32_t max_steps, wall_seconds, approval_wait_seconds, max_requests;
};

enum { CANON_FIELD = 200 };
/* ERR_OK and *out, or the first error in the order of the table, with the place at fault in field. */
enum err canon_run(const struct conf *conf, const struct conf_tenant *tenant, const struct json *body,
		   struct canon_run *out, char field[CANON_FIELD]);
/* The request summary: the canonical form, the same bytes for the same request. It is what snapshots show and the
 * sandbox's request is made from. File contents are not in it, only their path, size and SHA-256. */
struct buf;
void canon_run_summary(const struct canon_run *run, struct buf *out);
/* By what a person knows the run again: the first line of its instruction with anything to read on it, cleaned. */
void canon_run_title(const struct canon_run *run, struct buf *out);
#endif
