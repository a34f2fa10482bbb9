/* See stream_out.h. What all formats share, chats, and errors. */
#include "gateway/stream_out.h"
#include "lib/lack.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { ARENA = 16000000, NODES = 100000 };

static bool stream_out_gemini(struct frames *fr);
static bool (*const writers[FORMAT__COUNT])(struct frames *) = {[FORMAT_CHAT] = stream_out_chat,
								[FORMAT_RESPONSES] = stream_out_responses,
								[FORMAT_MESSAGES] = stream_out_messages,
								[FORMAT_GEMINI_STREAM] = stream_out_gemini};

const struct json *member_of(const struct json *object, const char *key, enum json_type type)
{
	const struct json *v = json_get(object, key);
	return v && v->type == type ? v : NULL;
}

bool member_is(const struct json *object, const char *key, const char *text)
{
	const struct json *v = member_of(object, key, JSON_STRING);
	return v && strcmp(v->text, text) == 0;
}

void frame_open(struct frames *fr, const char *name)
{
	if (name)
		buf_addf(fr->out, "event: %s\n", name);
	buf_adds(fr->out, "data: ");
	jw_init(&fr->w, fr->out);
	jw_open(&fr->w, '{');
	if (name)
		jw_kstr(&fr->w, "type", name);
	if (fr->sequence >= 0)
		jw_kint(&fr->w, "sequence_number", fr->sequence++);
}

void frame_close(struct frames *fr)
{
	jw_close(&fr->w, '}');
	buf_adds(fr->out, "\n\n");
}

void frame_members(struct frames *fr, const struct json *object, const struct frame_swap *swaps)
{
	/* Where there is no room any more, the same is not looked at once more for each thing that an answer holds. */
	for (const struct json *m = object->child; m && !buf_failed(fr->out); m = m->next) {
		const struct frame_swap *s = swaps;
		while (s->key && strcmp(s->key, m->key) != 0)
			s++;
		if (s->key && !s->raw)
			continue;
		jw_key(&fr->w, m->key);
		if (s->key)
			jw_raw(&fr->w, s->raw, strlen(s->raw));
		else
			jw_json(&fr->w, m);
	}
}

void frame_object(struct frames *fr, const struct json *object, const struct frame_swap *swaps)
{
	jw_open(&fr->w, '{');
	frame_members(fr, object, swaps);
	jw_close(&fr->w, '}');
}

void frame_value(struct frames *fr, const char *key, const struct json *v)
{
	jw_key(&fr->w, key);
	jw_json(&fr->w, v);
}

/* A chunk with one choice, as far as to its delta's first member. */
static void delta_open(struct frames *fr, int64_t index)
{
	static const struct frame_swap once[] = {
	    {"object", "\"chat.completion.chunk\""}, {"choices", NULL}, {"usage", NULL}, {NULL, NULL}};

	frame_open(fr, NULL);
	frame_members(fr, fr->answer, once);
	jw_key(&fr->w, "choices");
	jw_open(&fr->w, '[');
	if (index < 0)
		return;
	jw_open(&fr->w, '{');
	jw_kint(&fr->w, "index", index);
	jw_key(&fr->w, "delta");
	jw_open(&fr->w, '{');
}

static void chunk_end(struct frames *fr, const struct json *usage)
{
	jw_close(&fr->w, ']');
	if (usage)
		frame_value(fr, "usage", usage);
	else if (fr->usage) {
		jw_key(&fr->w, "usage");
		jw_null(&fr->w);
	}
	frame_close(fr);
}

/* choice: of the last chunk, which has its finish_reason; NULL: it is not that. */
static void delta_close(struct frames *fr, const struct json *choice)
{
	static const struct frame_swap rest[] = {{"index", NULL}, {"message", NULL}, {NULL, NULL}};

	jw_close(&fr->w, '}');
	if (choice)
		frame_members(fr, choice, rest);
	else {
		jw_key(&fr->w, "finish_reason");
		jw_null(&fr->w);
	}
	jw_close(&fr->w, '}');
	chunk_end(fr, NULL);
}

/* Who speaks, and what is not said at all. */
static void chat_begin(struct frames *fr, int64_t index, const struct json *message)
{
	const struct json *role = member_of(message, "role", JSON_STRING);

	delta_open(fr, index);
	jw_kstr(&fr->w, "role", role ? role->text : "assistant");
	if (member_of(message, "content", JSON_STRING))
		jw_kstr(&fr->w, "content", "");
	for (const struct json *m = message->child; m; m = m->next)
		if (m->type == JSON_NULL && strcmp(m->key, "role") != 0)
			frame_value(fr, m->key, m);
	delta_close(fr, NULL);
}

/* What is thought, refused, noted: before what is said, as models do it. */
static void chat_others(struct frames *fr, int64_t index, const struct json *message)
{
	static const char *const apart[] = {"role", "content", "tool_calls"};
	bool any = false;

	for (const struct json *m = message->child; m; m = m->next) {
		bool own = m->type == JSON_NULL;
		for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
			own = own || strcmp(m->key, apart[i]) == 0;
		if (own)
			continue;
		if (!any)
			delta_open(fr, index);
		any = true;
		frame_value(fr, m->key, m);
	}
	if (any)
		delta_close(fr, NULL);
}

static bool chat_calls(struct frames *fr, int64_t index, const struct json *message)
{
	static const struct frame_swap no_index[] = {{"index", NULL}, {NULL, NULL}};
	const struct json *calls = json_get(message, "tool_calls");
	int64_t nth = 0;

	if (!calls || calls->type == JSON_NULL)
		return true;
	if (calls->type != JSON_ARRAY)
		return false;
	for (const struct json *c = calls->child; c; c = c->next, nth++) {
		if (c->type != JSON_OBJECT)
			return false;
		delta_open(fr, index);
		jw_key(&fr->w, "tool_calls");
		jw_open(&fr->w, '[');
		jw_open(&fr->w, '{');
		jw_kint(&fr->w, "index", nth);
		frame_members(fr, c, no_index);
		jw_close(&fr->w, '}');
		jw_close(&fr->w, ']');
		delta_close(fr, NULL);
	}
	return true;
}

static bool chat_choice(struct frames *fr, int64_t index, const struct json *choice)
{
	const struct json *message = member_of(choice, "message", JSON_OBJECT),
			  *said = message ? json_get(message, "content") : NULL;

	if (!message || !member_of(choice, "finish_reason", JSON_STRING))
		return false;
	json_int(json_get(choice, "index"), 0, NODES, &index);
	chat_begin(fr, index, message);
	chat_others(fr, index, message);
	if (said && said->type != JSON_NULL && (said->type != JSON_STRING || said->len > 0)) {
		delta_open(fr, index);
		frame_value(fr, "content", said);
		delta_close(fr, NULL);
	}
	if (!chat_calls(fr, index, message))
		return false;
	delta_open(fr, index);
	delta_close(fr, choice);
	return true;
}

bool stream_out_chat(struct frames *fr)
{
	const struct json *choices = member_of(fr->answer, "choices", JSON_ARRAY),
			  *error = json_get(fr->answer, "error"), *usage = member_of(fr->answer, "usage", JSON_OBJECT);
	int64_t nth = 0;

	if (!choices || !choices->child || (error && error->type != JSON_NULL))
		return false;
	for (const struct json *c = choices->child; c; c = c->next)
		if (c->type != JSON_OBJECT || !chat_choice(fr, nth++, c))
			return false;
	if (fr->usage && usage) {
		delta_open(fr, -1);
		chunk_end(fr, usage);
	}
	buf_adds(fr->out, "data: [DONE]\n\n");
	return true;
}

/* Each of its events is an answer, and one that says why it finished is the last: the whole is one event. */
static bool stream_out_gemini(struct frames *fr)
{
	static const struct frame_swap none[] = {{NULL, NULL}};

	if (!format_finished(fr->answer) || json_get(fr->answer, "error"))
		return false;
	frame_open(fr, NULL);
	frame_members(fr, fr->answer, none);
	frame_close(fr);
	return true;
}

enum err stream_out(const struct format *f, const struct json *answer, bool usage, struct buf *out)
{
	struct frames fr = {
	    .answer = answer, .usage = usage, .out = out, .sequence = f->id == FORMAT_RESPONSES ? 0 : -1};

	if (answer->type != JSON_OBJECT || !writers[f->id] || !writers[f->id](&fr))
		return ERR_INVALID_MODEL_RESPONSE;
	if (!buf_failed(out))
		return ERR_OK;
	return errno == EOVERFLOW ? ERR_MODEL_RESPONSE_TOO_LARGE : lack_error();
}

/*
 * Clients of responses know an end that failed, and by its code whether to ask again: never where it is
 * invalid_prompt, in so many seconds where it is rate_limit_exceeded and says them.
 */
static void failed_response(struct frames *fr, const struct json *error, bool stop, unsigned retry_after,
			    const char *request_id)
{
	const struct json *code = member_of(error, "code", JSON_STRING),
			  *message = member_of(error, "message", JSON_STRING);
	char text[1200];

	/* For this one its clients have a remedy of their own. */
	if (member_is(error, "code", "context_length_exceeded"))
		stop = false;
	if (stop && code)
		(void)snprintf(text, sizeof text, "%s (%s)", message ? message->text : "", code->text);
	else if (retry_after > 0)
		(void)snprintf(text, sizeof text, "%s Please try again in %us.", message ? message->text : "",
			       retry_after);
	else
		(void)snprintf(text, sizeof text, "%s", message ? message->text : "");
	fr->sequence = 0;
	frame_open(fr, "response.failed");
	jw_key(&fr->w, "response");
	jw_open(&fr->w, '{');
	jw_kstr(&fr->w, "id", request_id);
	jw_kstr(&fr->w, "object", "response");
	jw_kint(&fr->w, "created_at", 0);
	jw_kstr(&fr->w, "status", "failed");
	jw_key(&fr->w, "error");
	jw_open(&fr->w, '{');
	jw_kstr(&fr->w, "code",
		stop              ? "invalid_prompt"
		: retry_after > 0 ? "rate_limit_exceeded"
		: code            ? code->text
				  : "server_error");
	jw_kstr(&fr->w, "message", text);
	jw_close(&fr->w, '}');
	jw_key(&fr->w, "output");
	jw_open(&fr->w, '[');
	jw_close(&fr->w, ']');
	jw_close(&fr->w, '}');
	frame_close(fr);
}

void stream_out_error(const struct format *f, const struct buf *reply, bool stop, unsigned retry_after,
		      const char *request_id, struct buf *out)
{
	static const struct frame_swap none[] = {{"type", NULL}, {NULL, NULL}};
	struct arena arena own_arena = {0};
	struct frames fr = {.out = out, .sequence = -1};

	/* A provider's refusal has what shape it likes; who is told nothing asks again. */
	static const char refused[] =
	    "{\"error\":{\"message\":\"The model provider refused the call.\",\"type\":\"invalid_request_error\"}}";
	arena_init(&arena, ARENA);
	const struct json *said = json_parse(&arena, reply->p, reply->n, JSON_DEPTH_MODEL, NODES, NULL);
	if (!member_of(said, "error", JSON_OBJECT))
		said = json_parse(&arena, refused, sizeof refused - 1, JSON_DEPTH_MODEL, NODES, NULL);
	const struct json *error = member_of(said, "error", JSON_OBJECT);
	if (!error)
		return;
	if (f->id == FORMAT_RESPONSES)
		failed_response(&fr, error, stop, retry_after, request_id);
	else {
		frame_open(&fr, f->typed_events ? "error" : NULL);
		frame_members(&fr, said, none);
		frame_close(&fr);
	}
}
