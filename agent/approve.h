/* Asks a person, through the control plane, whether a tool may be used. */
#ifndef AGENT_APPROVE_H
#define AGENT_APPROVE_H
#include "agent/events.h"

enum { APPROVE_POLL_MS = 500, APPROVE_PATIENCE_MS = 210000 };

struct approve {
	struct http *http;
	const struct secret *token;
	struct events *events;
	struct task *task; /* allow_session changes a permission to allow */
};

struct approve_what {
	enum tool tool;
	const char *action; /* the call's id */
	const char *reason; /* model_tool or final_verification */
	const char *preview;
};

/* True only for an allow. No answer in time, a refusal and every failure are a no. */
bool approve_ask(struct approve *a, const struct approve_what *what, uint64_t left_ms);
#endif
