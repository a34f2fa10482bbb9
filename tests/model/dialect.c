/*
 * The same canned answer in the other wire formats, whole. Conversations of the others are counted as chats are: a turn
 * is what the model said at one time.
 */
#include "lib/own.h"
#include "tests/model/model.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *string(const struct json *o, const char *key)
{
	const struct json *v = json_get(o, key);
	return v && v->type == JSON_STRING ? v->text : NULL;
}

static bool ends_with(const char *s, const char *tail)
{
	size_t n = strlen(s), t = strlen(tail);
	return n >= t && strcmp(s + n - t, tail) == 0;
}

static const char gemini_streams[] = ":streamGenerateContent";

bool dialect_of(const char *path, enum dialect *d)
{
	static const char *const tails[] = {"/chat/completions",      "/responses",       "/messages",
					    "/messages/count_tokens", ":generateContent", ":countTokens"};
	char plain[256];

	snprintf(plain, sizeof plain, "%.*s", (int)strcspn(path, "?"), path);
	for (size_t i = 0; i < sizeof tails / sizeof *tails; i++)
		if (ends_with(plain, tails[i])) {
			*d = (enum dialect)i;
			return true;
		}
	*d = DIALECT_GEMINI;
	return ends_with(plain, gemini_streams);
}

bool dialect_streams(const char *path, const struct json *body)
{
	const struct json *v = json_get(body, "stream");
	return strstr(path, gemini_streams) || (v && v->type == JSON_BOOL && v->truth);
}

/* Did the model say this item of a conversation? */
static bool by_model(const struct json *item)
{
	const char *role = string(item, "role"), *type = string(item, "type");
	return (role && (strcmp(role, "assistant") == 0 || strcmp(role, "model") == 0)) ||
	       (type && (ends_with(type, "_call") || strcmp(type, "reasoning") == 0));
}

const char *dialect_says(enum dialect d)
{
	return d == DIALECT_RESPONSES                             ? "input"
	       : d == DIALECT_GEMINI || d == DIALECT_GEMINI_COUNT ? "contents"
								  : "messages";
}

unsigned dialect_turns(enum dialect d, const struct json *body)
{
	const struct json *said = json_get(body, dialect_says(d));
	unsigned turns = 0;
	bool before = false;

	for (const struct json *m = said && said->type == JSON_ARRAY ? said->child : NULL; m; m = m->next) {
		bool now = by_model(m);
		/* Of responses, what was said at one time is several items. */
		turns += now && !(before && d == DIALECT_RESPONSES);
		before = now;
	}
	return turns;
}

unsigned dialect_results(enum dialect d, const struct json *body)
{
	const struct json *said = json_get(body, dialect_says(d));
	unsigned n = 0;

	for (const struct json *m = said && said->type == JSON_ARRAY ? said->child : NULL; m; m = m->next) {
		const char *role = string(m, "role"), *type = string(m, "type");
		const struct json *content = json_get(m, "content");
		n += (role && strcmp(role, "tool") == 0) || (type && ends_with(type, "_call_output"));
		for (const struct json *p = content && content->type == JSON_ARRAY ? content->child : NULL; p;
		     p = p->next)
			n += string(p, "type") && strcmp(string(p, "type"), "tool_result") == 0;
		content = json_get(m, "parts");
		for (const struct json *p = content && content->type == JSON_ARRAY ? content->child : NULL; p;
		     p = p->next)
			n += json_get(p, "functionResponse") != NULL;
	}
	return n;
}

static void arguments(struct jw *w, const struct json *tool, bool as_text)
{
	const struct json *a = json_get(tool, "arguments");
	struct buf text own_buf = {0};

	buf_init(&text, BODY_MAX);
	if (a && a->type == JSON_STRING)
		buf_add(&text, a->text, a->len);
	else if (a)
		json_write(&text, a);
	else
		buf_adds(&text, "{}");
	if (as_text)
		jw_buf(w, &text);
	else
		jw_raw(w, text.p, text.n);
}

static void numbers(struct jw *w, const struct json *answer)
{
	const struct json *usage = json_get(answer, "usage");
	int64_t in = 100, out = 20, cached = 0;

	json_int(json_get(usage, "prompt"), 0, INT64_MAX, &in);
	json_int(json_get(usage, "completion"), 0, INT64_MAX, &out);
	json_int(json_get(usage, "cached"), 0, INT64_MAX, &cached);
	jw_key(w, "usage");
	jw_open(w, '{');
	jw_kint(w, "input_tokens", in);
	jw_kint(w, "output_tokens", out);
	jw_kint(w, "total_tokens", in + out);
	jw_kint(w, "cache_read_input_tokens", cached);
	jw_close(w, '}');
}

static void put_response(struct jw *w, const struct scenario *s, const struct json *answer, unsigned nth)
{
	const struct json *tools = json_get(answer, "tools");
	const char *content = string(answer, "content");
	char id[48];
	unsigned i = 0;

	snprintf(id, sizeof id, "resp_%u", nth);
	jw_open(w, '{');
	jw_kstr(w, "id", id);
	jw_kstr(w, "object", "response");
	jw_kint(w, "created_at", (int64_t)time(NULL));
	jw_kstr(w, "status", "completed");
	jw_kstr(w, "model", s->model);
	jw_key(w, "error");
	jw_null(w);
	jw_key(w, "incomplete_details");
	jw_null(w);
	jw_key(w, "output");
	jw_open(w, '[');
	if (content) {
		snprintf(id, sizeof id, "msg_%u", nth);
		jw_open(w, '{');
		jw_kstr(w, "type", "message");
		jw_kstr(w, "id", id);
		jw_kstr(w, "status", "completed");
		jw_kstr(w, "role", "assistant");
		jw_key(w, "content");
		jw_open(w, '[');
		jw_open(w, '{');
		jw_kstr(w, "type", "output_text");
		jw_kstr(w, "text", content);
		jw_key(w, "annotations");
		jw_open(w, '[');
		jw_close(w, ']');
		jw_close(w, '}');
		jw_close(w, ']');
		jw_close(w, '}');
	}
	for (const struct json *t = tools && tools->type == JSON_ARRAY ? tools->child : NULL; t; t = t->next, i++) {
		jw_open(w, '{');
		jw_kstr(w, "type", "function_call");
		snprintf(id, sizeof id, "fc_%u_%u", nth, i);
		jw_kstr(w, "id", id);
		snprintf(id, sizeof id, "call_%u_%u", nth, i);
		jw_kstr(w, "call_id", id);
		jw_kstr(w, "name", string(t, "name") ? string(t, "name") : "");
		jw_key(w, "arguments");
		arguments(w, t, true);
		jw_kstr(w, "status", "completed");
		jw_close(w, '}');
	}
	jw_close(w, ']');
	numbers(w, answer);
	jw_close(w, '}');
}

static void put_said(struct jw *w, const struct scenario *s, const struct json *answer, unsigned nth)
{
	const struct json *tools = json_get(answer, "tools");
	const char *content = string(answer, "content"), *reason = string(answer, "finish_reason");
	char id[48];
	unsigned i = 0;

	snprintf(id, sizeof id, "msg_%u", nth);
	jw_open(w, '{');
	jw_kstr(w, "id", id);
	jw_kstr(w, "type", "message");
	jw_kstr(w, "role", "assistant");
	jw_kstr(w, "model", s->model);
	jw_key(w, "content");
	jw_open(w, '[');
	if (content) {
		jw_open(w, '{');
		jw_kstr(w, "type", "text");
		jw_kstr(w, "text", content);
		jw_close(w, '}');
	}
	for (const struct json *t = tools && tools->type == JSON_ARRAY ? tools->child : NULL; t; t = t->next, i++) {
		snprintf(id, sizeof id, "toolu_%u_%u", nth, i);
		jw_open(w, '{');
		jw_kstr(w, "type", "tool_use");
		jw_kstr(w, "id", id);
		jw_kstr(w, "name", string(t, "name") ? string(t, "name") : "");
		jw_key(w, "input");
		arguments(w, t, false);
		jw_close(w, '}');
	}
	jw_close(w, ']');
	jw_kstr(w, "stop_reason", reason ? reason : tools ? "tool_use" : "end_turn");
	jw_key(w, "stop_sequence");
	jw_null(w);
	numbers(w, answer);
	jw_close(w, '}');
}

static void put_generated(struct jw *w, const struct scenario *s, const struct json *answer)
{
	const struct json *tools = json_get(answer, "tools"), *usage = json_get(answer, "usage");
	const char *content = string(answer, "content"), *reason = string(answer, "finish_reason");
	int64_t in = 100, out = 20;

	json_int(json_get(usage, "prompt"), 0, INT64_MAX, &in);
	json_int(json_get(usage, "completion"), 0, INT64_MAX, &out);
	jw_open(w, '{');
	jw_key(w, "candidates");
	jw_open(w, '[');
	jw_open(w, '{');
	jw_key(w, "content");
	jw_open(w, '{');
	jw_kstr(w, "role", "model");
	jw_key(w, "parts");
	jw_open(w, '[');
	if (content) {
		jw_open(w, '{');
		jw_kstr(w, "text", content);
		jw_close(w, '}');
	}
	for (const struct json *t = tools && tools->type == JSON_ARRAY ? tools->child : NULL; t; t = t->next) {
		jw_open(w, '{');
		jw_key(w, "functionCall");
		jw_open(w, '{');
		jw_kstr(w, "name", string(t, "name") ? string(t, "name") : "");
		jw_key(w, "args");
		arguments(w, t, false);
		jw_close(w, '}');
		jw_close(w, '}');
	}
	jw_close(w, ']');
	jw_close(w, '}');
	jw_kstr(w, "finishReason", reason ? reason : "STOP");
	jw_kint(w, "index", 0);
	jw_close(w, '}');
	jw_close(w, ']');
	jw_key(w, "usageMetadata");
	jw_open(w, '{');
	jw_kint(w, "promptTokenCount", in);
	jw_kint(w, "candidatesTokenCount", out);
	jw_kint(w, "totalTokenCount", in + out);
	jw_close(w, '}');
	jw_kstr(w, "modelVersion", s->model);
	jw_close(w, '}');
}

void dialect_put(struct buf *b, enum dialect d, const struct scenario *s, const struct json *answer, unsigned nth)
{
	struct jw w;

	jw_init(&w, b);
	if (d == DIALECT_RESPONSES)
		put_response(&w, s, answer, nth);
	else if (d == DIALECT_MESSAGES)
		put_said(&w, s, answer, nth);
	else if (d == DIALECT_GEMINI)
		put_generated(&w, s, answer);
	else {
		jw_open(&w, '{');
		jw_kint(&w, d == DIALECT_COUNT ? "input_tokens" : "totalTokens", 42);
		jw_close(&w, '}');
	}
}
