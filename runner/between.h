/*
 * The bridge: a process of a uid of its own that stands between the agent and the control plane (lib/bridged.h). The
 * agent can neither end it nor look into it, and what it was given lies in no file.
 */
#ifndef RUNNER_BETWEEN_H
#define RUNNER_BETWEEN_H
#include "runner/launch.h"

/* Descriptors of the runner and of the child that becomes the agent; -1: none. */
struct between {
	pid_t pid;
	int said, heard, ready; /* the agent's standard output and input; what the bridge says when it is ready */
	int out;                /* what the bridge prints */
	int ended;              /* where it is told of the agent's end */
};
#define BETWEEN_NONE                                                         \
	{                                                                    \
		.said = -1, .heard = -1, .ready = -1, .out = -1, .ended = -1 \
	}

/* Starts it with the pipes of its agent, whose child is forked next. False with errno: there is nothing. */
bool between_start(struct between *b, const struct warden *w, const struct launch *l);
/* In the child that becomes the agent: waits for the bridge, sets its standard input. False: there is no bridge. */
bool between_ready(const struct between *b);
/* What is the agent's alone is closed here. */
void between_agent_has(struct between *b);
void between_close(struct between *b);
#endif
