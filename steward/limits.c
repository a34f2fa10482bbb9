/*
 * See limits.h. Some limits end a box (wall time, memory, processor time), and are its end's reason. Others only make
 * a call of the agent's fail: that is its own trouble, but a tenant must be able to see it, and if the agent then
 * fails, the limit is what is named. What counts was seen by sandboxd and the runner, never said by the agent.
 */
#include "steward/limits.h"
#include "steward/tell.h"
#include <signal.h>

enum { REACHED_BYTES = 1, REACHED_FILES = 2, REACHED_CPU = 4 };

bool limits_cpu(uint8_t reached)
{
	return (reached & REACHED_CPU) != 0;
}

static void one(struct app *app, const struct run *r, const char *box, const char *limit, uint64_t most, uint64_t used)
{
	own_buf struct buf b;
	struct jw w;
	buf_init(&b, 2000);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "limit", limit);
	jw_kstr(&w, "box", box);
	jw_kint(&w, "most", (int64_t)most);
	if (used > 0)
		jw_kint(&w, "used", (int64_t)used);
	jw_close(&w, '}');
	tell_event(app, r, "limit.reached", &b);
}

void limits_tell(struct app *app, const struct run *r, const struct limits_seen *s)
{
	const struct cf_agent *a = r->agent;
	const struct {
		bool reached;
		const char *limit;
		uint64_t most, used;
	} rows[] = {
	    {s->wall, "wallTimeSeconds", s->wall_seconds, 0},
	    {s->oom, "memoryBytes", a->memory_bytes, r->peak_bytes},
	    {limits_cpu(s->reached), "cpuSeconds", a->cpu_seconds, r->cpu_us / 1000000},
	    {(s->reached & REACHED_BYTES) != 0, "workspaceBytes", a->workspace_bytes, 0},
	    {(s->reached & REACHED_FILES) != 0, "workspaceFiles", a->workspace_inodes, 0},
	    {r->forks_refused > 0, "processes", a->pids, 0},
	    {s->status == -SIGXFSZ, "fileBytes", a->file_bytes, 0},
	    {s->truncated, "outputBytes", s->output_bytes, 0},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].reached)
			one(app, r, s->box, rows[i].limit, rows[i].most, rows[i].used);
}

enum reason limits_reason(const struct run *r, const struct limits_seen *s)
{
	return s->status == -SIGXFSZ               ? REASON_FILE_SIZE_EXCEEDED
	       : (s->reached & REACHED_BYTES) != 0 ? REASON_WORKSPACE_FULL
	       : (s->reached & REACHED_FILES) != 0 ? REASON_WORKSPACE_FILES_EXCEEDED
	       : r->forks_refused > 0              ? REASON_PROCESSES_EXCEEDED
						   : REASON_AGENT_FAILED;
}
