/* GET /v1/runs?status=&after=&limit=: newest first, resumed by an opaque cursor. */
#include "gen/routes.h"
#include "handlers/cursor.h"
#include "handlers/runs.h"
#include "lib/ask.h"
#include "lib/names.h"
#include <stdio.h>
#include <string.h>

enum { LIST_BYTES = 1000000 };

/* The bits of every state whose public word this is; 0: there is none. */
static uint32_t states_of(const char *word)
{
	uint32_t bits = 0;
	for (unsigned i = 0; i < RUN_STATE__COUNT; i++)
		if (strcmp(run_public((enum run_state)i), word) == 0)
			bits |= 1u << i;
	return bits;
}

static void put_item(struct jw *w, const struct st_run_item *r)
{
	jw_open(w, '{');
	jw_kstr(w, "runId", r->run);
	put_text(w, "title", r->title);
	jw_kstr(w, "status", run_public((enum run_state)r->state));
	if (!run_terminal(r->state) && r->phase < PHASE__COUNT)
		jw_kstr(w, "phase", phase_names[r->phase]);
	jw_kstr(w, "agent", r->agent);
	jw_kstr(w, "modelProfile", r->profile);
	put_time(w, "createdAt", r->created_at);
	put_time(w, "updatedAt", r->updated_at);
	put_time(w, "finishedAt", r->finished_at);
	jw_kbool(w, "cancelRequested", r->cancel_requested);
	if (*r->terminal_reason != '\0')
		jw_kstr(w, "terminalReason", r->terminal_reason);
	if (*r->error != '\0')
		jw_kstr(w, "error", r->error);
	jw_close(w, '}');
}

void handle_run_list(struct request *rq, struct reply *rp)
{
	struct query_pair more[] = {{"status", NULL}, {NULL, NULL}};
	const char *after;
	struct cursor from;
	struct st_run_list question = {.tenant = rq->who->tenant};
	struct st_run_page page;
	if (!list_asked(rq, rp, more, &after, &question.limit) || !cursor_read(rp, after, 1, &from))
		return;
	if (more[0].value != NULL && (question.states = states_of(more[0].value)) == 0) {
		list_bad(rp, "status");
		return;
	}
	question.before_created = from.at;
	question.before_run = from.id[0];
	enum err e = st_call_run_list(rq->ask, &question, NULL, &page, NULL);
	if (e != ERR_OK) {
		reply_store_error(rp, e, rq->ask);
		return;
	}
	own_buf struct buf b;
	struct jw w;
	struct wire_bytes rest = page.items, part;
	struct st_run_item item = {0};
	bool bad = false;
	buf_init(&b, LIST_BYTES);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_key(&w, "runs");
	jw_open(&w, '[');
	while (wire_list_next(&rest, &part, &bad)) {
		if (!st_get_run_item(part.p, part.n, &item) || item.state >= RUN_STATE__COUNT) {
			bad = true;
			break;
		}
		put_item(&w, &item);
	}
	jw_close(&w, ']');
	struct cursor next = {.at = page.next_created};
	(void)snprintf(next.id[0], CURSOR_ID, "%s", page.next_run);
	cursor_put(&w, page.more, &next, 1);
	jw_close(&w, '}');
	if (bad)
		reply_error(rp, ERR_INTERNAL_ERROR, NULL, NULL);
	else
		reply_json(rp, 200, &b);
}
