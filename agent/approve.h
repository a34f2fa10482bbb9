/* Asks a person, through the control plane, whether a tool may be used. */
#ifndef AGENT_APPROVE_H
#define AGENT_APPROVE_H
#include "agent/events.h"

enum { APPROVE_POLL_MS = 500 };

struct approve {
	struct http *http;
	const struct secret *token;
	struct events *events;
	struct task *task;
};

struct approve_what {
	const char *effect; /* read, modify, modify_execute or execute */
	const char *tool;   /* by whose permission a person is asked */
	const char *action; /* the call's id */
	const char *reason; /* model_tool or final_verification */
	const char *preview;
};

enum approved {
	APPROVED,
	REFUSED,    /* also every failure, and an answer to something else */
	UNANSWERED, /* nobody answered in time */
	CALLED_OFF, /* the person wants the agent to stop */
	TOO_LARGE   /* to be asked */
};
/* What is allowed for the rest of the run is the control plane's to know: each use is asked for. Returns when it is
 * decided or over, however long that is: how long one may wait is the control plane's to say as well. waited_ms: what
 * of it was no wall time. */
enum approved approve_ask(struct approve *a, const struct approve_what *what, uint64_t *waited_ms);
#endif
