/* Events: read in bounded pages, appended for agents within their part of the buffer. */
#include "gen/limits.h"
#include "lib/digest.h"
#include "lib/names.h"
#include "lib/num.h"
#include "store/op.h"
#include "store/questions.h"
#include "store/t_event.h"
#include <stdio.h>
#include <string.h>

enum { PAGE_BYTES = 150000, APPEND_MAX = 128 };

struct reading {
	struct wire_list list;
	uint64_t last;
	size_t most;
	bool more;
};

static bool read_event(void *with, uint64_t sequence, const struct rec_event *r)
{
	struct reading *g = with;
	struct st_event item = {.sequence = sequence,
				.created_at = r->created_at,
				.event_id = r->event_id,
				.type = r->type,
				.data = r->data};
	size_t most = ST_MAX_EVENT - 64000 + r->data.n;
	/* At least one always goes, in a page of any size. */
	uint8_t *p = g->list.n > 0 && g->list.n + most > g->most ? NULL : wire_list_room(&g->list, most);
	size_t n = p == NULL ? 0 : st_put_event(p, most, &item);
	if (n == 0) {
		g->more = true;
		return false;
	}
	wire_list_add(&g->list, n);
	g->last = sequence;
	return true;
}

static enum err op_events_read(struct txn *t, const struct st_events_read *m, int *fds, struct st_events_are *a,
			       int *out)
{
	(void)fds;
	(void)out;
	struct rec_run r;
	struct reading g = {.list = {.p = t->page, .cap = STORE_PAGE}, .last = m->after};
	enum err e = run_load(t, m->tenant, m->run, &r);
	if (e != ERR_OK)
		return e;
	g.most = m->most > 0 && m->most < PAGE_BYTES ? m->most : PAGE_BYTES;
	event_each(t, m->tenant, m->run, m->after, read_event, &g);
	a->more = g.more;
	a->terminal = run_is_final(&r);
	a->last = g.last;
	a->events = wire_list_done(&g.list);
	return ERR_OK;
}
ST_OP(events_read, events_are, 0, 0)

/* A question needs an id to be answered under, and what the answer is bound to. */
static bool good_question(const struct st_agent_event *ev, unsigned *questions)
{
	return ++*questions <= LIMIT_APPROVAL_BATCH && id_valid(ev->request) && ev->digest.n == SHA256_SIZE;
}

/* ERR_INVALID_EVENT_APPEND rejects the whole batch, before anything was written. */
static enum err check_batch(struct wire_bytes rest)
{
	struct wire_bytes part;
	struct st_agent_event ev;
	bool bad = false;
	unsigned n = 0, questions = 0;
	while (wire_list_next(&rest, &part, &bad)) {
		if (++n > APPEND_MAX || !st_get_agent_event(part.p, part.n, &ev) || ev.type[0] == '\0' ||
		    ev.data.n < 2 || ev.data.p[0] != '{' || ev.data.p[ev.data.n - 1] != '}' ||
		    memchr(ev.data.p, '\n', ev.data.n) != NULL ||
		    (ev.request[0] != '\0' && !good_question(&ev, &questions)))
			return ERR_INVALID_EVENT_APPEND;
	}
	return bad || n == 0 ? ERR_INVALID_EVENT_APPEND : ERR_OK;
}

/* An error refuses the whole batch: nothing that is repeated then is there twice. */
static enum err take(struct txn *t, const struct st_events_append *m, struct rec_run *r,
		     const struct st_agent_event *ev, uint32_t *accepted)
{
	char type[65];
	if (ev->request[0] != '\0') {
		++*accepted;
		return question_ask(t, m->tenant, m->run, r, ev);
	}
	if (r->events_truncated)
		return ERR_OK;
	/* The gateway has renamed these already; here it is a wall, not a service. */
	(void)snprintf(type, sizeof type, "%s%.*s", event_reserved(ev->type) ? "agent." : "", 58, ev->type);
	if (!event_reserved(ev->type))
		(void)snprintf(type, sizeof type, "%s", ev->type);
	if (event_add(t, m->tenant, m->run, r, EVENT_AGENT, type, ev->data))
		++*accepted;
	else
		event_truncated(t, m->tenant, m->run, r);
	return ERR_OK;
}

static enum err op_events_append(struct txn *t, const struct st_events_append *m, int *fds, struct st_events_taken *a,
				 int *out)
{
	(void)fds;
	(void)out;
	struct rec_run r;
	enum err e = run_load(t, m->tenant, m->run, &r);
	if (e == ERR_OK)
		e = check_batch(m->events);
	if (e != ERR_OK)
		return e;
	if (run_is_final(&r))
		return ERR_RUN_SESSION_EVENTS_REJECTED;
	if (!store_roomy(t->store))
		return ERR_STORAGE_FULL;
	struct wire_bytes rest = m->events, part;
	struct st_agent_event ev;
	bool bad = false;
	while (wire_list_next(&rest, &part, &bad)) {
		(void)st_get_agent_event(part.p, part.n, &ev);
		e = take(t, m, &r, &ev, &a->accepted);
		if (e != ERR_OK)
			return e;
	}
	a->last_sequence = r.last_sequence;
	run_save(t, m->tenant, m->run, &r);
	return ERR_OK;
}
ST_OP_ONCE(events_append, events_taken)
