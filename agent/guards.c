/* The agent's own guards. They save time and model calls; the control plane does not rely on them. */
#include "agent/guards.h"
#include <string.h>

/* Kept back from the wall time for writing the response. */
enum { RESERVE_MS = 2000, RESERVE_FROM_MS = 10000 };

void guards_init(struct guards *g, const struct task *t, uint64_t now_ms)
{
	uint64_t wall = (uint64_t)t->wall_seconds * 1000;
	memset(g, 0, sizeof *g);
	g->max_steps = t->max_steps;
	g->deadline_ms = now_ms + (wall > RESERVE_FROM_MS ? wall - RESERVE_MS : wall);
}

void guards_waited(struct guards *g, uint64_t ms)
{
	g->deadline_ms += ms;
}

uint64_t guards_left_ms(const struct guards *g, uint64_t now_ms)
{
	return now_ms < g->deadline_ms ? g->deadline_ms - now_ms : 0;
}

const char *guards_step(struct guards *g, uint64_t now_ms)
{
	if (guards_left_ms(g, now_ms) == 0)
		return "wall_time";
	if (g->steps >= g->max_steps)
		return "max_steps";
	g->steps++;
	return NULL;
}

const char *guards_answer(struct guards *g, size_t calls)
{
	g->idle = calls > 0 ? 0 : g->idle + 1;
	return g->idle >= GUARD_IDLE ? "no_tool_calls" : NULL;
}

/* FNV-1a, twice from different starts: this tells calls apart, it keeps nobody out. The length goes in
 * first, so that two parts cannot be divided in two ways. */
static void mix(uint64_t print[2], const void *p, size_t n)
{
	const uint8_t *b = p;
	for (int k = 0; k < 2; k++) {
		for (unsigned i = 0; i < 8; i++)
			print[k] = (print[k] ^ ((n >> (8 * i)) & 0xff)) * 0x100000001b3u;
		for (size_t i = 0; i < n; i++)
			print[k] = (print[k] ^ b[i]) * 0x100000001b3u;
	}
}

const char *guards_result(struct guards *g, const char *tool, const char *arguments, const void *result, size_t n)
{
	uint64_t print[2] = {0xcbf29ce484222325u, 0x84222325cbf29ce4u};
	mix(print, tool, strlen(tool));
	mix(print, arguments, strlen(arguments));
	mix(print, result, n);
	for (size_t i = 0; i < GUARD_CALLS && g->calls[i].times > 0; i++)
		if (memcmp(g->calls[i].print, print, sizeof print) == 0)
			return ++g->calls[i].times >= GUARD_REPEATS ? "repetition" : NULL;
	struct guard_call *call = &g->calls[g->next++ % GUARD_CALLS];
	memcpy(call->print, print, sizeof print);
	call->times = 1;
	return NULL;
}

void guards_wrote(struct guards *g)
{
	memset(g->passed, 0, sizeof g->passed);
}

void guards_checked(struct guards *g, size_t check, bool ok)
{
	g->passed[check] = ok;
}

size_t guards_open_check(const struct guards *g, const struct task *t)
{
	size_t i = 0;
	while (i < t->checks_n && g->passed[i])
		i++;
	return i;
}
