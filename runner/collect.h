/*
 * Takes what the agent left: every file of /workspace/source, and /workspace/response.json.
 */
#ifndef RUNNER_COLLECT_H
#define RUNNER_COLLECT_H
#include "lib/keymask.h"
#include "runner/launch.h"
#include "runner/result.h"

enum { COLLECT_CLAIM_MAX = 1000000 };

/* Writes ENTRY..., CLAIM, COLLECTED. Call it when no process but this one is left. NULL, or what failed. What holds a
 * value of mask is named and not taken; in the claim it is hidden. bridged: what the bridge claims; -1: the agent has
 * none, and claims by response.json. */
const char *collect(const struct warden *w, struct result *r, const struct bn_go *limits, const struct keymask *mask,
		    int bridged);
#endif
