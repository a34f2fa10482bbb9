/* The canonical value of POST /v1/runs: every field rebuilt, nothing passed through (R-15...R-25, D-25...D-29). */
#ifndef HANDLERS_CANON_RUN_H
#define HANDLERS_CANON_RUN_H
#include "gen/errors.h"
#include "lib/conf.h"
#include "lib/json.h"

enum {
	CANON_FILES = 32,
	CANON_ALLOWED = 32,
	CANON_CHECKS = 4,
	CANON_ARGV = 16,
	CANON_PERMISSIONS = 32,
	CANON_FILE_BYTES = 64000,
	CANON_TREE_BYTES = 512000,
	CANON_INSTRUCTION = 32000,
	CANON_DEFAULT_STEPS = 12,
	CANON_DEFAULT_WALL = 180,
	CANON_DEFAULT_APPROVAL = 600
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
	const char *allowed[CANON_ALLOWED];
	const struct cf_tenant_check *checks[CANON_CHECKS];
	struct {
		const char *tool, *value;
	} permissions[CANON_PERMISSIONS];
	uint32_t nfiles, nallowed, nchecks, npermissions;
	uint32_t max_steps, wall_seconds, approval_wait_seconds, max_requests;
};

enum { CANON_FIELD = 200 };
/* ERR_OK and *out, or the first error in the order of the table, with the place at fault in field. */
enum err canon_run(const struct conf *conf, const struct conf_tenant *tenant, const struct json *body,
		   struct canon_run *out, char field[CANON_FIELD]);
/* The request summary: what snapshots show and the sandbox's request is made from. File contents are
 * not in it, only their path, size and SHA-256. */
struct buf;
void canon_run_summary(const struct canon_run *run, struct buf *out);
#endif
