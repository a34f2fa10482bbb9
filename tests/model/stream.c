/*
 * An answer as the events of its format's stream, in chunked coding: texts and arguments in small pieces, each event in
 * two writes, as slow providers send them.
 */
#include "lib/own.h"
#include "tests/model/model.h"
#include <stdio.h>
#include <string.h>

enum { PIECE = 12 };

struct out {
	struct peer *p;
	const struct json *whole; /* the answer as it is without a stream */
	struct buf data, frame;
	struct jw w;
	bool ok;
	unsigned sequence;
};

static const char *string(const struct json *o, const char *key)
{
	const struct json *v = json_get(o, key);
	return v && v->type == JSON_STRING ? v->text : "";
}

static void frame_send(struct out *o)
{
	char size[32];
	size_t half = o->frame.n / 2;

	snprintf(size, sizeof size, "%zx\r\n", o->frame.n);
	o->ok = o->ok && !buf_failed(&o->frame) && !buf_failed(&o->data) && peer_write(o->p, size, strlen(size)) &&
		peer_write(o->p, o->frame.p, half) && peer_write(o->p, o->frame.p + half, o->frame.n - half) &&
		peer_write(o->p, "\r\n", 2);
	buf_reset(&o->frame);
}

/* name NULL: events of chats have none. */
static void begin(struct out *o, const char *name)
{
	buf_reset(&o->data);
	jw_init(&o->w, &o->data);
	jw_open(&o->w, '{');
	if (name) {
		buf_addf(&o->frame, "event: %s\n", name);
		jw_kstr(&o->w, "type", name);
	}
}

static void end(struct out *o)
{
	jw_close(&o->w, '}');
	buf_adds(&o->frame, "data: ");
	buf_add(&o->frame, o->data.p, o->data.n);
	buf_adds(&o->frame, "\n\n");
	frame_send(o);
}

static void put(struct out *o, const char *key, const struct json *v)
{
	jw_key(&o->w, key);
	if (v)
		jw_json(&o->w, v);
	else
		jw_null(&o->w);
}

/* The next few bytes of a text, whole characters. 0: there are no more. */
static size_t piece(const char *s)
{
	size_t n = strnlen(s, PIECE);
	while (((unsigned char)s[n] & 0xc0) == 0x80)
		n++;
	return n;
}

static void chat_open(struct out *o)
{
	begin(o, NULL);
	put(o, "id", json_get(o->whole, "id"));
	jw_kstr(&o->w, "object", "chat.completion.chunk");
	put(o, "created", json_get(o->whole, "created"));
	put(o, "model", json_get(o->whole, "model"));
	jw_key(&o->w, "choices");
	jw_open(&o->w, '[');
}

static void chat_delta(struct out *o)
{
	chat_open(o);
	jw_open(&o->w, '{');
	jw_kint(&o->w, "index", 0);
	jw_key(&o->w, "delta");
	jw_open(&o->w, '{');
}

static void chat_end(struct out *o, const struct json *finish)
{
	jw_close(&o->w, '}');
	put(o, "finish_reason", finish);
	jw_close(&o->w, '}');
	jw_close(&o->w, ']');
	end(o);
}

/* Whole: its id and name; else a piece of its arguments. */
static void chat_call(struct out *o, int64_t i, const struct json *whole, const char *s, size_t n)
{
	chat_delta(o);
	jw_key(&o->w, "tool_calls");
	jw_open(&o->w, '[');
	jw_open(&o->w, '{');
	jw_kint(&o->w, "index", i);
	if (whole) {
		put(o, "id", json_get(whole, "id"));
		jw_kstr(&o->w, "type", "function");
	}
	jw_key(&o->w, "function");
	jw_open(&o->w, '{');
	if (whole)
		put(o, "name", json_get(json_get(whole, "function"), "name"));
	jw_key(&o->w, "arguments");
	jw_strn(&o->w, s, n);
	jw_close(&o->w, '}');
	jw_close(&o->w, '}');
	jw_close(&o->w, ']');
	chat_end(o, NULL);
}

static void chat(struct out *o)
{
	const struct json *choices = json_get(o->whole, "choices"), *choice = choices ? choices->child : NULL;
	const struct json *message = json_get(choice, "message"), *calls = json_get(message, "tool_calls");
	int64_t i = 0;

	chat_delta(o);
	jw_kstr(&o->w, "role", "assistant");
	jw_kstr(&o->w, "content", "");
	chat_end(o, NULL);
	for (const char *s = string(message, "content"); *s; s += piece(s)) {
		chat_delta(o);
		jw_key(&o->w, "content");
		jw_strn(&o->w, s, piece(s));
		chat_end(o, NULL);
	}
	for (const struct json *c = calls ? calls->child : NULL; c; c = c->next, i++) {
		chat_call(o, i, c, "", 0);
		for (const char *s = string(json_get(c, "function"), "arguments"); *s; s += piece(s))
			chat_call(o, i, NULL, s, piece(s));
	}
	chat_delta(o);
	chat_end(o, json_get(choice, "finish_reason"));
	chat_open(o);
	jw_close(&o->w, ']');
	put(o, "usage", json_get(o->whole, "usage"));
	end(o);
	buf_adds(&o->frame, "data: [DONE]\n\n");
	frame_send(o);
}

static void response_event(struct out *o, const char *name)
{
	begin(o, name);
	jw_kint(&o->w, "sequence_number", o->sequence++);
}

/* Of an item, or of a part of it. */
static void response_place(struct out *o, const char *name, const struct json *item, int64_t i)
{
	response_event(o, name);
	put(o, "item_id", json_get(item, "id"));
	jw_kint(&o->w, "output_index", i);
	if (strcmp(string(item, "type"), "message") == 0)
		jw_kint(&o->w, "content_index", 0);
}

static void response_part(struct out *o, const char *name, const struct json *item, int64_t i, const char *text)
{
	response_place(o, name, item, i);
	jw_key(&o->w, "part");
	jw_open(&o->w, '{');
	jw_kstr(&o->w, "type", "output_text");
	jw_kstr(&o->w, "text", text);
	jw_key(&o->w, "annotations");
	jw_open(&o->w, '[');
	jw_close(&o->w, ']');
	jw_close(&o->w, '}');
	end(o);
}

static void response_item(struct out *o, const struct json *item, int64_t i)
{
	bool message = strcmp(string(item, "type"), "message") == 0;
	const struct json *content = json_get(item, "content");
	const char *text = message ? string(content ? content->child : NULL, "text") : string(item, "arguments");

	response_event(o, "response.output_item.added");
	jw_kint(&o->w, "output_index", i);
	jw_key(&o->w, "item");
	jw_open(&o->w, '{');
	for (const struct json *m = item->child; m; m = m->next)
		if (strcmp(m->key, "status") == 0)
			jw_kstr(&o->w, "status", "in_progress");
		else if (strcmp(m->key, "arguments") == 0)
			jw_kstr(&o->w, m->key, "");
		else if (strcmp(m->key, "content") == 0)
			jw_kstrs(&o->w, m->key, NULL, 0);
		else
			put(o, m->key, m);
	jw_close(&o->w, '}');
	end(o);
	if (message)
		response_part(o, "response.content_part.added", item, i, "");
	for (const char *s = text; *s; s += piece(s)) {
		response_place(o, message ? "response.output_text.delta" : "response.function_call_arguments.delta",
			       item, i);
		jw_key(&o->w, "delta");
		jw_strn(&o->w, s, piece(s));
		end(o);
	}
	response_place(o, message ? "response.output_text.done" : "response.function_call_arguments.done", item, i);
	jw_kstr(&o->w, message ? "text" : "arguments", text);
	end(o);
	if (message)
		response_part(o, "response.content_part.done", item, i, text);
	response_event(o, "response.output_item.done");
	jw_kint(&o->w, "output_index", i);
	put(o, "item", item);
	end(o);
}

static void responses(struct out *o)
{
	const struct json *output = json_get(o->whole, "output");
	int64_t i = 0;

	response_event(o, "response.created");
	jw_key(&o->w, "response");
	jw_open(&o->w, '{');
	put(o, "id", json_get(o->whole, "id"));
	jw_kstr(&o->w, "object", "response");
	put(o, "created_at", json_get(o->whole, "created_at"));
	jw_kstr(&o->w, "status", "in_progress");
	put(o, "model", json_get(o->whole, "model"));
	jw_kstrs(&o->w, "output", NULL, 0);
	jw_close(&o->w, '}');
	end(o);
	for (const struct json *item = output ? output->child : NULL; item; item = item->next)
		response_item(o, item, i++);
	response_event(o, "response.completed");
	put(o, "response", o->whole);
	end(o);
}

static void block_delta(struct out *o, int64_t i, const char *type, const char *key, const char *s, size_t n)
{
	begin(o, "content_block_delta");
	jw_kint(&o->w, "index", i);
	jw_key(&o->w, "delta");
	jw_open(&o->w, '{');
	jw_kstr(&o->w, "type", type);
	jw_key(&o->w, key);
	jw_strn(&o->w, s, n);
	jw_close(&o->w, '}');
	end(o);
}

static void block(struct out *o, const struct json *b, int64_t i)
{
	bool tool = strcmp(string(b, "type"), "tool_use") == 0;
	struct buf input own_buf = {0};

	buf_init(&input, BODY_MAX);
	begin(o, "content_block_start");
	jw_kint(&o->w, "index", i);
	jw_key(&o->w, "content_block");
	jw_open(&o->w, '{');
	for (const struct json *m = b->child; m; m = m->next)
		if (strcmp(m->key, "text") == 0)
			jw_kstr(&o->w, "text", "");
		else if (strcmp(m->key, "input") == 0) {
			struct jw w;
			jw_init(&w, &input);
			jw_json(&w, m);
			jw_key(&o->w, "input");
			jw_raw(&o->w, "{}", 2);
		} else
			put(o, m->key, m);
	jw_close(&o->w, '}');
	end(o);
	buf_addc(&input, 0);
	o->ok = o->ok && !buf_failed(&input);
	for (const char *s = !o->ok ? "" : tool ? (const char *)input.p : string(b, "text"); *s; s += piece(s))
		block_delta(o, i, tool ? "input_json_delta" : "text_delta", tool ? "partial_json" : "text", s,
			    piece(s));
	begin(o, "content_block_stop");
	jw_kint(&o->w, "index", i);
	end(o);
}

static void messages(struct out *o)
{
	const struct json *content = json_get(o->whole, "content"), *usage = json_get(o->whole, "usage");
	int64_t i = 0;

	begin(o, "message_start");
	jw_key(&o->w, "message");
	jw_open(&o->w, '{');
	for (const struct json *m = o->whole->child; m; m = m->next)
		if (strcmp(m->key, "content") == 0)
			jw_kstrs(&o->w, "content", NULL, 0);
		else
			put(o, m->key, strcmp(m->key, "stop_reason") == 0 ? NULL : m);
	jw_close(&o->w, '}');
	end(o);
	begin(o, "ping");
	end(o);
	for (const struct json *b = content ? content->child : NULL; b; b = b->next)
		block(o, b, i++);
	begin(o, "message_delta");
	jw_key(&o->w, "delta");
	jw_open(&o->w, '{');
	put(o, "stop_reason", json_get(o->whole, "stop_reason"));
	put(o, "stop_sequence", NULL);
	jw_close(&o->w, '}');
	jw_key(&o->w, "usage");
	jw_open(&o->w, '{');
	put(o, "output_tokens", json_get(usage, "output_tokens"));
	jw_close(&o->w, '}');
	end(o);
	begin(o, "message_stop");
	end(o);
}

/* A part, or a piece of its text; the last has the end and the usage besides. */
static void gemini_event(struct out *o, const struct json *part, const char *s, size_t n, bool last)
{
	begin(o, NULL);
	jw_key(&o->w, "candidates");
	jw_open(&o->w, '[');
	jw_open(&o->w, '{');
	jw_kint(&o->w, "index", 0);
	jw_key(&o->w, "content");
	jw_open(&o->w, '{');
	jw_kstr(&o->w, "role", "model");
	jw_key(&o->w, "parts");
	jw_open(&o->w, '[');
	if (part)
		jw_json(&o->w, part);
	else {
		jw_open(&o->w, '{');
		jw_key(&o->w, "text");
		jw_strn(&o->w, s, n);
		jw_close(&o->w, '}');
	}
	jw_close(&o->w, ']');
	jw_close(&o->w, '}');
	if (last)
		jw_kstr(&o->w, "finishReason", "STOP");
	jw_close(&o->w, '}');
	jw_close(&o->w, ']');
	put(o, "modelVersion", json_get(o->whole, "modelVersion"));
	if (last)
		put(o, "usageMetadata", json_get(o->whole, "usageMetadata"));
	end(o);
}

static void gemini(struct out *o)
{
	const struct json *candidates = json_get(o->whole, "candidates");
	const struct json *parts = json_get(json_get(candidates ? candidates->child : NULL, "content"), "parts");

	for (const struct json *p = parts ? parts->child : NULL; p; p = p->next) {
		for (const char *s = string(p, "text"); *s; s += piece(s))
			gemini_event(o, NULL, s, piece(s), false);
		if (!json_get(p, "text"))
			gemini_event(o, p, NULL, 0, false);
	}
	gemini_event(o, NULL, "", 0, true);
}

bool stream_send(struct peer *p, enum dialect d, const struct buf *whole)
{
	static const char head[] =
	    "HTTP/1.1 200 Scripted\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
	struct arena arena own_arena = {0};
	struct out o = {.p = p, .ok = true};

	arena_init(&arena, 64000000);
	o.whole = json_parse(&arena, whole->p, whole->n, JSON_DEPTH_MODEL, 100000, NULL);
	if (!o.whole || !peer_write(p, head, sizeof head - 1))
		return false;
	buf_init(&o.data, BODY_MAX);
	buf_init(&o.frame, BODY_MAX);
	(d == DIALECT_RESPONSES  ? responses
	 : d == DIALECT_MESSAGES ? messages
	 : d == DIALECT_GEMINI   ? gemini
				 : chat)(&o);
	buf_free(&o.data);
	buf_free(&o.frame);
	return o.ok && peer_write(p, "0\r\n\r\n", 5);
}
