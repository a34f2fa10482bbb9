/* The agent cannot answer itself: it posts a request under one token and only polls under another. */
#include "agent/approve.h"
#include "lib/num.h"
#include <errno.h>
#include <string.h>
#include <time.h>

enum { PREVIEW = 16000 };

static const char *const effects[TOOL__COUNT] = {
    [TOOL_LIST_FILES] = "read", [TOOL_READ_FILE] = "read",    [TOOL_WRITE_FILE] = "modify", [TOOL_EDIT_FILE] = "modify",
    [TOOL_SEARCH] = "read",     [TOOL_RUN_CHECK] = "execute", [TOOL_FINISH] = "read",
};

static bool post(struct approve *a, const struct approve_what *what, const char *id)
{
	own_buf struct buf b;
	struct jw w;
	size_t n = strlen(what->preview), fits = utf8_fit(what->preview, n, PREVIEW);
	buf_init(&b, EVENT_LINE);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "request_id", id);
	jw_kstr(&w, "action_id", what->action);
	jw_kstr(&w, "effect", effects[what->tool]);
	jw_kstr(&w, "reason", what->reason);
	jw_key(&w, "policy_reason");
	own_buf struct buf why;
	buf_init(&why, 256);
	buf_addf(&why, "the run's permission for %s is ask", tool_names[what->tool]);
	jw_str(&w, buf_cstr(&why) != NULL ? buf_cstr(&why) : "ask");
	jw_key(&w, "preview");
	jw_strn(&w, what->preview, fits);
	/* Who is asked must know that there is more. */
	if (fits < n)
		jw_kbool(&w, "truncated", true);
	jw_close(&w, '}');
	return buf_cstr(&b) != NULL && event_post(a->events, "approval.requested", buf_cstr(&b));
}

/* 0 still open, 1 allowed, -1 not. */
static int read_decision(struct approve *a, enum tool tool, int status, const struct buf *reply)
{
	if (status == 202)
		return 0;
	own_arena struct arena arena;
	arena_init(&arena, 1000000);
	const struct json *root = status == 200 ? json_parse(&arena, reply->p, reply->n, JSON_DEPTH, 100, NULL) : NULL;
	if (root == NULL || root->type != JSON_OBJECT)
		return -1;
	const struct json *state = json_get(root, "status"), *word = json_get(root, "decision");
	if (state == NULL || state->type != JSON_STRING || strcmp(state->text, "decided") != 0)
		return -1;
	if (word == NULL || word->type != JSON_STRING)
		return -1;
	if (strcmp(word->text, "allow_session") == 0)
		a->task->permission[tool] = PERMIT_ALLOW;
	return strcmp(word->text, "allow_session") == 0 || strcmp(word->text, "allow_once") == 0 ? 1 : -1;
}

bool approve_ask(struct approve *a, const struct approve_what *what, uint64_t left_ms)
{
	char id[UUID_LEN + 1];
	own_buf struct buf path, reply;
	uint64_t end = timer_ms() + (left_ms < APPROVE_PATIENCE_MS ? left_ms : APPROVE_PATIENCE_MS);
	uuid4(id);
	buf_init(&path, 512);
	buf_init(&reply, 65536);
	buf_addf(&path, "/runs/%s/approvals/%s", a->task->id, id);
	if (buf_cstr(&path) == NULL || !post(a, what, id))
		return false;
	for (;;) {
		uint64_t now = timer_ms();
		if (now >= end)
			return false;
		buf_reset(&reply);
		int status = http_send(a->http, buf_cstr(&path), a->token, NULL, 0, end - now, &reply);
		int decided = read_decision(a, what->tool, status, &reply);
		if (decided != 0)
			return decided > 0;
		struct timespec t = {.tv_nsec = APPROVE_POLL_MS * 1000000L};
		while (nanosleep(&t, &t) != 0 && errno == EINTR)
			continue;
	}
}
