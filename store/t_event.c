/* The table of events and the size of a run's buffer. */
#include "store/t_event.h"
#include "gen/limits.h"
#include "lib/num.h"
#include "store/env.h"
#include <errno.h>
#include <string.h>

enum {
	LINES = LIMIT_EVENTS_LINES,
	LINES_KEPT = LIMIT_EVENTS_RESERVED_LINES,
	BYTES = LIMIT_EVENTS_BYTES,
	BYTES_KEPT = LIMIT_EVENTS_RESERVED_BYTES
};

/* What the event takes as the line that callers see, its numbers at their widest. */
static size_t line_size(const char *run, const char *type, size_t data)
{
	static const char frame[] = "{\"event_type\":\"\",\"run_id\":\"\",\"task_id\":\"\",\"sequence\":10000,"
				    "\"created_at\":1700000000000,\"event_id\":\"\",\"data\":}\n";
	return sizeof frame - 1 + strlen(type) + 2 * strlen(run) + UUID_LEN + data;
}

static bool fits(const struct rec_run *r, enum event_part part, size_t size)
{
	if (part == EVENT_LAST)
		return true;
	/* One line and its bytes stay free for the terminal event. */
	uint64_t lines = part == EVENT_AGENT ? LINES - LINES_KEPT : LINES - 1;
	uint64_t bytes = part == EVENT_AGENT ? BYTES - BYTES_KEPT : BYTES - 1000;
	return r->event_lines < lines && r->event_bytes + size <= bytes;
}

bool event_fits(const struct rec_run *r, const char *run, const char *type, size_t data)
{
	return fits(r, EVENT_AGENT, line_size(run, type, data));
}

bool event_add(struct txn *t, const char *tenant, const char *run, struct rec_run *r, enum event_part part,
	       const char *type, struct wire_bytes data)
{
	size_t size = line_size(run, type, data.n);
	if (t->failed != ERR_OK || !fits(r, part, size))
		return false;
	char id[UUID_LEN + 1];
	uuid4(id);
	struct rec_event v = {.created_at = t->now, .event_id = id, .type = type, .data = data};
	struct key k;
	k.n = rec_key_event(k.p, sizeof k.p, tenant, run, r->last_sequence + 1);
	uint8_t *p = txn_scratch(t);
	table_put(t, T_EVENT, &k, p, rec_put_event(p, STORE_SCRATCH, &v));
	if (t->failed != ERR_OK)
		return false;
	r->last_sequence++;
	r->event_lines++;
	r->event_bytes += size;
	t->adds.events++;
	return true;
}

bool event_addb(struct txn *t, const char *tenant, const char *run, struct rec_run *r, enum event_part part,
		const char *type, const struct buf *data)
{
	if (buf_failed(data)) {
		txn_fail(t, store_error(errno));
		return false;
	}
	return event_add(t, tenant, run, r, part, type, (struct wire_bytes){data->p, (uint32_t)data->n});
}

void event_truncated(struct txn *t, const char *tenant, const char *run, struct rec_run *r)
{
	static const char data[] = "{\"reason\":\"the run's event buffer is full; further events of the agent are "
				   "dropped\"}";
	if (r->events_truncated)
		return;
	r->events_truncated = true;
	t->adds.truncated++;
	(void)event_add(t, tenant, run, r, EVENT_CONTROL, "events.truncated",
			(struct wire_bytes){(const uint8_t *)data, sizeof data - 1});
}

void events_del(struct txn *t, const char *tenant, const char *run)
{
	struct key prefix = key_prefix(tenant, run);
	(void)table_clear(t, T_EVENT, &prefix);
}

bool events_del_some(struct txn *t, const char *tenant, const char *run, uint64_t most)
{
	struct key prefix = key_prefix(tenant, run);
	return table_clear_some(t, T_EVENT, &prefix, most) == most;
}

struct each {
	event_row *row;
	void *with;
};

static bool one(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct each *e = with;
	struct rec_event r;
	(void)key_part(&key);
	(void)key_part(&key);
	return !rec_get_event(value.p, value.n, &r) || e->row(e->with, key_u64(&key), &r);
}

void event_each(struct txn *t, const char *tenant, const char *run, uint64_t after, event_row *row, void *with)
{
	struct each e = {row, with};
	struct key prefix = key_prefix(tenant, run), from;
	if (after == UINT64_MAX)
		return;
	from.n = rec_key_event(from.p, sizeof from.p, tenant, run, after + 1);
	table_scan(t, T_EVENT, &prefix, &from, one, &e);
}
