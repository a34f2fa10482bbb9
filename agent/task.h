/* What the run asks for: /workspace/request.json, read once. Its sender is the control plane and is trusted. */
#ifndef AGENT_TASK_H
#define AGENT_TASK_H
#include "lib/buf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TASK_PATHS = 64, TASK_CHECKS = 16, TASK_ARGS = 16 };

enum tool {
	TOOL_LIST_FILES,
	TOOL_READ_FILE,
	TOOL_WRITE_FILE,
	TOOL_EDIT_FILE,
	TOOL_SEARCH,
	TOOL_RUN_CHECK,
	TOOL_FINISH,
	TOOL__COUNT
};
enum permission { PERMIT_ALLOW, PERMIT_ASK, PERMIT_DENY };

struct task_check {
	const char *name;
	const char *argv[TASK_ARGS + 1]; /* ends with NULL */
};

struct task {
	struct arena arena;
	const char *id, *instruction, *model, *gateway; /* gateway: a base URL without a slash at its end */
	const char *allowed[TASK_PATHS];
	size_t allowed_n;
	struct task_check checks[TASK_CHECKS];
	size_t checks_n;
	uint32_t max_steps, wall_seconds;
	size_t max_output, max_patch; /* bytes */
	enum permission permission[TOOL__COUNT];
};

extern const char *const tool_names[TOOL__COUNT];
/* The tool of that name, or TOOL__COUNT. */
enum tool tool_find(const char *name);

/* NULL, or why the request cannot be used (a static phrase). The caller frees with task_free in both cases. */
const char *task_read(struct task *t, int workspace);
const char *task_parse(struct task *t, const void *json, size_t n);
void task_free(struct task *t);
bool task_allows(const struct task *t, const char *path); /* may this file be written? */
#endif
