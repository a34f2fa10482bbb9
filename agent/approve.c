/*
 * The agent cannot answer itself: it posts a request under one token and only polls under another. An allow counts for
 * what it was given for: its digest must be that of this action.
 */
#include "agent/approve.h"
#include "lib/digest.h"
#include "lib/num.h"
#include "lib/question.h"
#include <errno.h>
#include <string.h>
#include <time.h>

enum {
	DATA_MAX = 60000, /* twice as much, when it is a string in the body of the call, still fits */
	TRIES = 2,        /* under one id: the same question is not asked twice */
	POLL_TIMEOUT_MS = 30000
};

static enum approved post(struct approve *a, const struct approve_what *what, const char *id)
{
	own_buf struct buf b;
	struct jw w;
	buf_init(&b, DATA_MAX);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "request_id", id);
	jw_kstr(&w, "action_id", what->action);
	jw_kstr(&w, "effect", what->effect);
	jw_kstr(&w, "reason", what->reason);
	jw_key(&w, "policy_reason");
	own_buf struct buf why;
	buf_init(&why, 256);
	buf_addf(&why, "the run's permission for %s is ask", what->tool);
	jw_str(&w, buf_cstr(&why) != NULL ? buf_cstr(&why) : "ask");
	/* Whole: what is cut for a person's eyes is said to be cut, and the answer is bound to all of it. */
	jw_kstr(&w, "preview", what->preview);
	jw_close(&w, '}');
	if (buf_cstr(&b) == NULL)
		return TOO_LARGE;
	for (int i = 0; i < TRIES; i++)
		if (event_post(a->events, "approval.requested", buf_cstr(&b)))
			return APPROVED;
	return REFUSED;
}

static const char *text_of(const struct json *root, const char *key)
{
	const struct json *v = json_get(root, key);
	return v != NULL && v->type == JSON_STRING ? v->text : "";
}

/* False: still open, or nobody can say at the moment. */
static bool read_decision(int status, const struct buf *reply, const char *digest, enum approved *out)
{
	if (status == 202 || status <= 0 || status == 429 || status >= 500)
		return false;
	own_arena struct arena arena;
	arena_init(&arena, 1000000);
	const struct json *root = status == 200 ? json_parse(&arena, reply->p, reply->n, JSON_DEPTH, 100, NULL) : NULL;
	*out = REFUSED;
	if (root == NULL || root->type != JSON_OBJECT)
		return true;
	const char *word = text_of(root, "decision");
	if (strcmp(text_of(root, "status"), "expired") == 0)
		*out = UNANSWERED;
	if (strcmp(text_of(root, "status"), "decided") != 0)
		return true;
	if (strcmp(word, "cancel") == 0)
		*out = CALLED_OFF;
	if ((strcmp(word, "allow_session") == 0 || strcmp(word, "allow_once") == 0) &&
	    strcmp(text_of(root, "digest"), digest) == 0)
		*out = APPROVED;
	return true;
}

enum approved approve_ask(struct approve *a, const struct approve_what *what, uint64_t *waited_ms)
{
	char id[UUID_LEN + 1], digest[SHA256_HEX];
	uint8_t bytes[SHA256_SIZE];
	enum approved result;
	own_buf struct buf path, reply;
	uuid4(id);
	buf_init(&path, 512);
	buf_init(&reply, 65536);
	buf_addf(&path, "/runs/%s/approvals/%s", a->task->id, id);
	if (buf_cstr(&path) == NULL ||
	    !question_digest(what->effect, strlen(what->effect), what->preview, strlen(what->preview), bytes))
		return REFUSED;
	hex(bytes, sizeof bytes, digest);
	result = post(a, what, id);
	if (result != APPROVED)
		return result;
	for (uint64_t begin = timer_ms();;) {
		buf_reset(&reply);
		/* This process may be frozen between any two instructions, and for long: what failed is tried again. */
		int status = http_send(a->http, buf_cstr(&path), a->token, NULL, 0, POLL_TIMEOUT_MS, &reply);
		if (read_decision(status, &reply, digest, &result)) {
			/* The time goes on as soon as it is decided, and that is heard of a little later. */
			uint64_t waited = timer_ms() - begin;
			*waited_ms = waited > APPROVE_POLL_MS ? waited - APPROVE_POLL_MS : 0;
			return result;
		}
		struct timespec t = {.tv_nsec = APPROVE_POLL_MS * 1000000L};
		while (nanosleep(&t, &t) != 0 && errno == EINTR)
			continue;
	}
}
