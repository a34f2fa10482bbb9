/* GET /v1/runs?status=&after=&limit=: newest first, resumed by an opaque cursor. */
#include "gen/limits.h"
#include "gen/routes.h"
#include "handlers/query.h"
#include "handlers/runs.h"
#include "lib/ask.h"
#include "lib/digest.h"
#include "lib/names.h"
#include "lib/num.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
	LIST_DEFAULT = LIMIT_LIST_DEFAULT_RUNS,
	LIST_MAX = LIMIT_LIST_MAX_RUNS,
	LIST_BYTES = 1000000,
	CURSOR_BYTES = 160
};

/* The bits of every state whose public word this is; 0: there is none. */
static uint32_t states_of(const char *word)
{
	uint32_t bits = 0;
	for (unsigned i = 0; i < RUN_STATE__COUNT; i++)
		if (strcmp(run_public((enum run_state)i), word) == 0)
			bits |= 1u << i;
	return bits;
}

static bool cursor_read(const char *s, uint64_t *created, char run[129])
{
	char text[CURSOR_BYTES + 1];
	long n = b64url_decode(s, strlen(s), (uint8_t *)text, CURSOR_BYTES);
	if (n <= 0)
		return false;
	text[n] = '\0';
	char *colon = memchr(text, ':', (size_t)n);
	if (colon == NULL || !num_u64(text, (size_t)(colon - text), 1, INT64_MAX, created))
		return false;
	size_t len = (size_t)n - (size_t)(colon + 1 - text);
	if (!id_valid_n(colon + 1, len))
		return false;
	memcpy(run, colon + 1, len);
	run[len] = '\0';
	return true;
}

static void cursor_write(struct jw *w, const struct st_run_page *page)
{
	char text[CURSOR_BYTES], out[CURSOR_BYTES * 2];
	int n = snprintf(text, sizeof text, "%" PRIu64 ":%s", page->next_created, page->next_run);
	if (n < 0 || (size_t)n >= sizeof text || b64url_encode(text, (size_t)n, out, sizeof out) == 0)
		buf_fail(w->b, EINVAL);
	else
		jw_str(w, out);
}

static void put_item(struct jw *w, const struct st_run_item *r)
{
	jw_open(w, '{');
	jw_kstr(w, "runId", r->run);
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

/* ERR_OK with the question filled in, or ERR_INVALID_QUERY and the key at fault. */
static enum err read_question(struct request *rq, struct st_run_list *q, char run[129], char field[65])
{
	struct query_pair p[] = {{"status", NULL}, {"after", NULL}, {"limit", NULL}, {NULL, NULL}};
	const char *status, *after, *limit;
	uint64_t n = LIST_DEFAULT;
	enum err e = query_read(rq, p, field);
	if (e != ERR_OK)
		return e;
	status = p[0].value, after = p[1].value, limit = p[2].value;
	*q = (struct st_run_list){.tenant = rq->who->tenant, .before_run = ""};
	const char *bad = NULL;
	if (status != NULL && (q->states = states_of(status)) == 0)
		bad = "status";
	else if (after != NULL && !cursor_read(after, &q->before_created, run))
		bad = "after";
	else if (limit != NULL && !num_u64(limit, strlen(limit), 1, LIST_MAX, &n))
		bad = "limit";
	if (bad != NULL) {
		snprintf(field, 65, "%s", bad);
		return ERR_INVALID_QUERY;
	}
	if (after != NULL)
		q->before_run = run;
	q->limit = (uint16_t)n;
	return ERR_OK;
}

void handle_run_list(struct request *rq, struct reply *rp)
{
	char field[65], run[129];
	struct st_run_list question;
	struct st_run_page page;
	enum err e = read_question(rq, &question, run, field);
	if (e != ERR_OK) {
		reply_error(rp, e, field, NULL);
		return;
	}
	e = st_call_run_list(rq->ask, &question, NULL, &page, NULL);
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
	jw_key(&w, "next");
	if (page.more)
		cursor_write(&w, &page);
	else
		jw_null(&w);
	jw_close(&w, '}');
	if (bad)
		reply_error(rp, ERR_INTERNAL_ERROR, NULL, NULL);
	else
		reply_json(rp, 200, &b);
}
