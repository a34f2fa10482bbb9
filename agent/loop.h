/* The agent's work from the first question to the end. */
#ifndef AGENT_LOOP_H
#define AGENT_LOOP_H
#include "agent/approve.h"
#include "agent/events.h"
#include "agent/model.h"
#include "agent/tools.h"

struct work {
	struct task task;
	struct guards guards;
	struct talk talk;
	struct tools tools;
	struct model model;
	struct events events;
	struct approve approve;
	/* How it ended: */
	bool success;
	char summary[4001];
	const char *terminal_reason; /* finished, or what ended it */
	bool called_off;             /* by the person who was asked */
};

void work_run(struct work *w);
/* The claim that is left as response.json; JSON text. */
void work_response(const struct work *w, struct buf *out);
#endif
