/* The model's tools: each looks at every argument, does one thing below the source folder, and says how it went. */
#ifndef AGENT_TOOLS_H
#define AGENT_TOOLS_H
#include "agent/guards.h"
#include "agent/task.h"
#include "lib/buf.h"
#include "lib/json.h"

struct tools {
	int root; /* the source folder */
	const struct task *task;
	struct guards *guards;
};

struct tool_answer {
	bool ok;
	struct buf text; /* for the model */
	/* Of finish: */
	bool success;
	char summary[4001];
};

/* The JSON of the tools as the model is told them. */
extern const char tools_described[];

/* NULL, or what is wrong with the arguments (a static phrase). */
const char *tool_arguments(enum tool tool, const struct json *args);
/* Runs a tool whose arguments are right and whose use is permitted. */
void tool_run(struct tools *t, enum tool tool, const struct json *args, struct tool_answer *answer);
/* Runs check number i and tells the guards. True: it passed. */
bool tool_check(struct tools *t, size_t i, struct buf *text);
#endif
