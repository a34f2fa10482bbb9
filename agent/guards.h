/* What ends a run that goes nowhere, and what keeps a claim of success honest. Pure: no input, no clock. */
#ifndef AGENT_GUARDS_H
#define AGENT_GUARDS_H
#include "agent/task.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GUARD_CALLS = 1024, GUARD_REPEATS = 3, GUARD_IDLE = 3 };

struct guards {
	uint32_t steps, max_steps; /* a step is one answer of the model */
	uint64_t deadline_ms;      /* of timer_ms */
	uint32_t idle;             /* answers in a row without a call */
	struct guard_call {
		uint64_t print[2];
		uint32_t times;
	} calls[GUARD_CALLS];
	size_t next;
	bool passed[TASK_CHECKS]; /* since the last write */
};

void guards_init(struct guards *g, const struct task *t, uint64_t now_ms);
/* NULL, or the terminal reason for which no further step may begin. */
const char *guards_step(struct guards *g, uint64_t now_ms);
/* NULL, or "no_tool_calls" when the model has only talked for too long. */
const char *guards_answer(struct guards *g, size_t calls);
/* NULL, or "repetition": this call has had this result three times. */
const char *guards_result(struct guards *g, const char *tool, const char *arguments, const void *result, size_t n);
void guards_wrote(struct guards *g);
void guards_checked(struct guards *g, size_t check, bool ok);
/* The first check that has not passed since the last write, or checks_n. */
size_t guards_open_check(const struct guards *g, const struct task *t);
/* So long was waited for a person, which is not wall time. */
void guards_waited(struct guards *g, uint64_t ms);
uint64_t guards_left_ms(const struct guards *g, uint64_t now_ms);
#endif
