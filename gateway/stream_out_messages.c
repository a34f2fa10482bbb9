/* See stream_out.h: messages. */
#include "gateway/stream_out.h"
#include <string.h>

static const char NO_USAGE[] = "{\"input_tokens\":0,\"output_tokens\":0}";

static void delta_open(struct frames *fr, int64_t index, const char *type)
{
	frame_open(fr, "content_block_delta");
	jw_kint(&fr->w, "index", index);
	jw_key(&fr->w, "delta");
	jw_open(&fr->w, '{');
	jw_kstr(&fr->w, "type", type);
}

static void delta_close(struct frames *fr)
{
	jw_close(&fr->w, '}');
	frame_close(fr);
}

/* A member that is a text, as the delta that has it. */
static void put_text(struct frames *fr, int64_t index, const struct json *block, const char *key, const char *type)
{
	const struct json *text = member_of(block, key, JSON_STRING);

	if (!text || text->len == 0)
		return;
	delta_open(fr, index, type);
	frame_value(fr, key, text);
	delta_close(fr);
}

static void put_citations(struct frames *fr, int64_t index, const struct json *block)
{
	const struct json *list = member_of(block, "citations", JSON_ARRAY);

	for (const struct json *c = list ? list->child : NULL; c; c = c->next) {
		delta_open(fr, index, "citations_delta");
		frame_value(fr, "citation", c);
		delta_close(fr);
	}
}

static void put_input(struct frames *fr, int64_t index, const struct json *input)
{
	struct buf text own_buf = {0};

	buf_init(&text, STREAM_OUT_MAX);
	json_write(&text, input);
	delta_open(fr, index, "input_json_delta");
	jw_key(&fr->w, "partial_json");
	jw_buf(&fr->w, &text);
	delta_close(fr);
}

static bool block_out(struct frames *fr, const struct json *block, int64_t index)
{
	static const struct frame_swap none[] = {{NULL, NULL}}, text[] = {{"text", "\"\""}, {NULL, NULL}},
				       cited[] = {{"text", "\"\""}, {"citations", "[]"}, {NULL, NULL}},
				       thinking[] = {{"thinking", "\"\""}, {"signature", "\"\""}, {NULL, NULL}},
				       tool[] = {{"input", "{}"}, {NULL, NULL}};
	const struct frame_swap *begin = none;
	const struct json *input = NULL;
	bool calls = member_is(block, "type", "tool_use") || member_is(block, "type", "server_tool_use");

	if (!member_of(block, "type", JSON_STRING))
		return false;
	if (member_is(block, "type", "text"))
		begin = member_of(block, "citations", JSON_ARRAY) ? cited : text;
	else if (member_is(block, "type", "thinking"))
		begin = thinking;
	else if (calls) {
		/* What is to be run has to be there. */
		if ((input = member_of(block, "input", JSON_OBJECT)) == NULL)
			return false;
		begin = tool;
	}
	frame_open(fr, "content_block_start");
	jw_kint(&fr->w, "index", index);
	jw_key(&fr->w, "content_block");
	frame_object(fr, block, begin);
	frame_close(fr);
	if (begin == text || begin == cited)
		put_text(fr, index, block, "text", "text_delta");
	if (begin == cited)
		put_citations(fr, index, block);
	if (begin == thinking) {
		put_text(fr, index, block, "thinking", "thinking_delta");
		put_text(fr, index, block, "signature", "signature_delta");
	}
	if (input)
		put_input(fr, index, input);
	frame_open(fr, "content_block_stop");
	jw_kint(&fr->w, "index", index);
	frame_close(fr);
	return true;
}

static void put_usage(struct frames *fr, const struct json *usage, bool begin)
{
	static const struct frame_swap none[] = {{NULL, NULL}}, first[] = {{"output_tokens", "0"}, {NULL, NULL}};

	jw_key(&fr->w, "usage");
	if (usage)
		frame_object(fr, usage, begin ? first : none);
	else
		jw_raw(&fr->w, NO_USAGE, strlen(NO_USAGE));
}

bool stream_out_messages(struct frames *fr)
{
	static const struct frame_swap begun[] = {
	    {"content", "[]"}, {"stop_reason", "null"}, {"stop_sequence", "null"}, {"usage", NULL}, {NULL, NULL}};
	const struct json *a = fr->answer, *content = member_of(a, "content", JSON_ARRAY),
			  *usage = member_of(a, "usage", JSON_OBJECT), *more;
	int64_t nth = 0;

	if (!content || !member_is(a, "type", "message") || !member_of(a, "stop_reason", JSON_STRING))
		return false;
	frame_open(fr, "message_start");
	jw_key(&fr->w, "message");
	jw_open(&fr->w, '{');
	frame_members(fr, a, begun);
	put_usage(fr, usage, true);
	jw_close(&fr->w, '}');
	frame_close(fr);
	for (const struct json *b = content->child; b; b = b->next)
		if (b->type != JSON_OBJECT || !block_out(fr, b, nth++))
			return false;
	frame_open(fr, "message_delta");
	jw_key(&fr->w, "delta");
	jw_open(&fr->w, '{');
	frame_value(fr, "stop_reason", json_get(a, "stop_reason"));
	jw_key(&fr->w, "stop_sequence");
	if ((more = json_get(a, "stop_sequence")) != NULL)
		jw_json(&fr->w, more);
	else
		jw_null(&fr->w);
	jw_close(&fr->w, '}');
	if ((more = json_get(a, "context_management")) != NULL)
		frame_value(fr, "context_management", more);
	put_usage(fr, usage, false);
	frame_close(fr);
	frame_open(fr, "message_stop");
	frame_close(fr);
	return true;
}
