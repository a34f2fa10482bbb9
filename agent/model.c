/* Trusts nothing in an answer: a call is text until a tool has looked at every argument. */
#include "agent/model.h"
#include "lib/die.h"
#include "lib/json.h"
#include "lib/num.h"
#include "lib/own.h"
#include <errno.h>
#include <string.h>
#include <time.h>

enum { ANSWER_BYTES = 1100000, ANSWER_NODES = 20000, TRIES = 3, CALL_ID = 128, TOOL_NAME = 64 };

static const struct json *first_message(const struct json *root)
{
	const struct json *choices = root->type == JSON_OBJECT ? json_get(root, "choices") : NULL;
	const struct json *choice = choices != NULL && choices->type == JSON_ARRAY ? choices->child : NULL;
	const struct json *message = choice != NULL && choice->type == JSON_OBJECT ? json_get(choice, "message") : NULL;
	return message != NULL && message->type == JSON_OBJECT ? message : NULL;
}

static bool read_call(struct talk_call *call, const struct json *v)
{
	const struct json *f = v->type == JSON_OBJECT ? json_get(v, "function") : NULL;
	const struct json *id = f != NULL ? json_get(v, "id") : NULL;
	const struct json *name = f != NULL && f->type == JSON_OBJECT ? json_get(f, "name") : NULL;
	const struct json *arguments = name != NULL ? json_get(f, "arguments") : NULL;
	if (id == NULL || id->type != JSON_STRING || id->len == 0 || id->len > CALL_ID)
		return false;
	if (name == NULL || name->type != JSON_STRING || name->len > TOOL_NAME)
		return false;
	if (arguments != NULL && arguments->type != JSON_STRING)
		return false;
	*call = (struct talk_call){id->text, name->text, arguments != NULL ? arguments->text : "{}"};
	return true;
}

const char *model_parse(struct model_answer *answer, const void *json, size_t n)
{
	const struct json *root = json_parse(&answer->arena, json, n, JSON_DEPTH_MODEL, ANSWER_NODES, NULL);
	const struct json *message = root != NULL ? first_message(root) : NULL;
	if (message == NULL)
		return "invalid_model_response";
	const struct json *content = json_get(message, "content");
	if (content != NULL && content->type == JSON_STRING && content->len > 0)
		answer->content = content->text;
	const struct json *calls = json_get(message, "tool_calls");
	if (calls != NULL && calls->type == JSON_ARRAY)
		for (const struct json *v = calls->child; v != NULL && answer->calls_n < TALK_CALLS; v = v->next)
			if (!read_call(&answer->calls[answer->calls_n++], v))
				return "invalid_model_response";
	const struct json *usage = json_get(root, "usage");
	if (usage != NULL && usage->type == JSON_OBJECT) {
		const struct json *p = json_get(usage, "prompt_tokens"), *c = json_get(usage, "completion_tokens");
		if (p == NULL || !json_int(p, 0, INT32_MAX, &answer->prompt_tokens))
			answer->prompt_tokens = 0;
		if (c == NULL || !json_int(c, 0, INT32_MAX, &answer->completion_tokens))
			answer->completion_tokens = 0;
	}
	return NULL;
}

/* The error code of a refusal, for the response file. */
static void read_code(struct model *m, struct arena *a, const struct buf *body)
{
	m->code[0] = 0;
	const struct json *root = json_parse(a, body->p, body->n, JSON_DEPTH_MODEL, ANSWER_NODES, NULL);
	const struct json *code = root != NULL && root->type == JSON_OBJECT ? json_get(root, "error") : NULL;
	if (code == NULL || code->type != JSON_STRING || code->len >= sizeof m->code)
		return;
	if (code->text[strspn(code->text, "abcdefghijklmnopqrstuvwxyz0123456789_")] == 0)
		memcpy(m->code, code->text, code->len + 1);
}

/* Of the run or of its tenant; none that is waited for. */
static bool budget_gone(const struct model *m, int status)
{
	static const char *const codes[] = {"model_request_budget_exhausted", "model_token_budget_exhausted",
					    "tenant_request_quota_exhausted", "tenant_token_quota_exhausted"};
	for (size_t i = 0; status == 429 && i < sizeof codes / sizeof *codes; i++)
		if (strcmp(m->code, codes[i]) == 0)
			return true;
	return false;
}

static bool again(const struct model *m, int status)
{
	if (status == 0 || status == 502 || status == 503 || status == 504)
		return true;
	/* A provider that is busy, not a budget that is gone. */
	return status == 429 && !budget_gone(m, status);
}

static void pause_ms(uint64_t ms)
{
	struct timespec t = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
	while (nanosleep(&t, &t) != 0 && errno == EINTR)
		continue;
}

const char *model_ask(struct model *m, struct talk *talk, uint64_t left_ms, struct model_answer *answer)
{
	own_buf struct buf body, reply;
	*answer = (struct model_answer){0};
	arena_init(&answer->arena, 16 * ANSWER_BYTES);
	buf_init(&body, 4 * TALK_BODY);
	buf_init(&reply, ANSWER_BYTES);
	m->code[0] = 0;
	if (!talk_body(talk, m->task, m->tools, &body))
		return "request_too_large";
	uint64_t end = timer_ms() + left_ms;
	int status = 0;
	for (int i = 0; i < TRIES; i++) {
		uint64_t now = timer_ms();
		if (now >= end)
			return "wall_time";
		m->requests++;
		buf_reset(&reply);
		status = http_send(m->http, "/chat/completions", m->token, body.p, body.n, end - now, &reply);
		if (status == 200) {
			const char *why = model_parse(answer, reply.p, reply.n);
			m->prompt_tokens += answer->prompt_tokens;
			m->completion_tokens += answer->completion_tokens;
			return why;
		}
		read_code(m, &answer->arena, &reply);
		log_warn("model request: status %d %s", status, m->code);
		if (!again(m, status))
			break;
		uint64_t wait = 500u << i;
		if (i + 1 < TRIES && timer_ms() + wait < end)
			pause_ms(wait);
	}
	if (timer_ms() >= end)
		return "wall_time";
	if (budget_gone(m, status))
		return "model_budget_exhausted";
	if (status == 401 || status == 403)
		return "model_refused";
	return status == 400 || status == 413 ? "model_request_invalid" : "model_unavailable";
}
