/* The limits that a box reached: told as events of the run, and what they mean for its end. */
#ifndef STEWARD_LIMITS_H
#define STEWARD_LIMITS_H
#include "steward/app.h"

/* One box's end, as the runner and sandboxd told it. */
struct limits_seen {
	const char *box; /* "work", or the check's name */
	bool wall, oom, truncated;
	uint8_t reached; /* RAN.reached, CHECKED.reached */
	int32_t status;  /* exit code, or minus the signal */
	uint32_t wall_seconds, output_bytes;
};

/* One event limit.reached for each of them, named as in GET /v1/limits. */
void limits_tell(struct app *app, const struct run *r, const struct limits_seen *s);
/* Why an agent that failed has failed, where a limit may be the reason. REASON_AGENT_FAILED: none was reached. */
enum reason limits_reason(const struct run *r, const struct limits_seen *s);
/* The agent, or a check, was ended because of its processor time. */
bool limits_cpu(uint8_t reached);
#endif
