/* See stream_out.h: responses. */
#include "gateway/stream_out.h"
#include <stdio.h>
#include <string.h>

/* Where a part is. */
struct at {
	const struct json *item;
	const char *id; /* the item's; looked for once, among members that may be many */
	int64_t output, part;
	const char *part_name; /* "content_index" or "summary_index"; NULL: it is the item's own */
};

static void open_at(struct frames *fr, const char *name, const struct at *at)
{
	frame_open(fr, name);
	jw_kstr(&fr->w, "item_id", at->id);
	jw_kint(&fr->w, "output_index", at->output);
	if (at->part_name)
		jw_kint(&fr->w, at->part_name, at->part);
}

/* A text in one delta, where it has any, and then the whole of it as the event has it. */
static void put_text(struct frames *fr, const struct at *at, const char *event, const struct json *text,
		     const char *whole)
{
	char name[80];
	bool said = strcmp(event, "response.output_text") == 0;

	if (text->len > 0) {
		(void)snprintf(name, sizeof name, "%s.delta", event);
		open_at(fr, name, at);
		frame_value(fr, "delta", text);
		if (said)
			jw_kstrs(&fr->w, "logprobs", NULL, 0);
		frame_close(fr);
	}
	(void)snprintf(name, sizeof name, "%s.done", event);
	open_at(fr, name, at);
	frame_value(fr, whole, text);
	if (said)
		jw_kstrs(&fr->w, "logprobs", NULL, 0);
	else if (strcmp(event, "response.function_call_arguments") == 0 && member_of(at->item, "name", JSON_STRING))
		frame_value(fr, "name", member_of(at->item, "name", JSON_STRING));
	frame_close(fr);
}

static void put_notes(struct frames *fr, const struct at *at, const struct json *part)
{
	const struct json *notes = member_of(part, "annotations", JSON_ARRAY);
	int64_t nth = 0;

	for (const struct json *a = notes ? notes->child : NULL; a; a = a->next) {
		open_at(fr, "response.output_text.annotation.added", at);
		jw_kint(&fr->w, "annotation_index", nth++);
		frame_value(fr, "annotation", a);
		frame_close(fr);
	}
}

static void put_part(struct frames *fr, const struct at *at, const struct json *part)
{
	/* type of a part, the event of its text, and the member that the text is */
	static const struct {
		const char *type, *event, *member;
	} kinds[] = {{"output_text", "response.output_text", "text"},
		     {"refusal", "response.refusal", "refusal"},
		     {"reasoning_text", "response.reasoning_text", "text"},
		     {"summary_text", "response.reasoning_summary_text", "text"}};
	bool summary = strcmp(at->part_name, "summary_index") == 0;
	struct frame_swap begin[] = {{NULL, "\"\""}, {"annotations", "[]"}, {"logprobs", "[]"}, {NULL, NULL}};
	const struct json *text = NULL;
	size_t k = 0;

	while (k < sizeof kinds / sizeof *kinds && !member_is(part, "type", kinds[k].type))
		k++;
	if (k < sizeof kinds / sizeof *kinds)
		text = member_of(part, kinds[k].member, JSON_STRING);
	static const struct frame_swap none[] = {{NULL, NULL}};
	if (text)
		begin[0].key = kinds[k].member;
	open_at(fr, summary ? "response.reasoning_summary_part.added" : "response.content_part.added", at);
	jw_key(&fr->w, "part");
	frame_object(fr, part, text ? begin : none);
	frame_close(fr);
	if (text) {
		put_text(fr, at, kinds[k].event, text, kinds[k].member);
		put_notes(fr, at, part);
	}
	open_at(fr, summary ? "response.reasoning_summary_part.done" : "response.content_part.done", at);
	frame_value(fr, "part", part);
	frame_close(fr);
}

static bool put_parts(struct frames *fr, struct at at, const char *list, const char *part_name)
{
	const struct json *parts = member_of(at.item, list, JSON_ARRAY);

	at.part_name = part_name;
	for (const struct json *p = parts ? parts->child : NULL; p; p = p->next, at.part++) {
		if (p->type != JSON_OBJECT)
			return false;
		put_part(fr, &at, p);
	}
	return true;
}

static void put_item(struct frames *fr, const char *name, const struct json *item, int64_t output,
		     const struct frame_swap *swaps)
{
	frame_open(fr, name);
	jw_kint(&fr->w, "output_index", output);
	jw_key(&fr->w, "item");
	frame_object(fr, item, swaps);
	frame_close(fr);
}

static bool item_out(struct frames *fr, const struct json *item, int64_t output)
{
	static const struct frame_swap none[] = {{NULL, NULL}},
				       parts[] = {{"status", "\"in_progress\""},
						  {"content", "[]"},
						  {"summary", "[]"},
						  {NULL, NULL}},
				       call[] = {{"status", "\"in_progress\""}, {"arguments", "\"\""}, {NULL, NULL}},
				       custom[] = {{"status", "\"in_progress\""}, {"input", "\"\""}, {NULL, NULL}};
	bool said = member_is(item, "type", "message") || member_is(item, "type", "reasoning");
	const struct json *arguments = member_is(item, "type", "function_call")
					   ? member_of(item, "arguments", JSON_STRING)
					   : NULL,
			  *input = member_is(item, "type", "custom_tool_call") ? member_of(item, "input", JSON_STRING)
									       : NULL,
			  *id = member_of(item, "id", JSON_STRING);
	struct at at = {.item = item, .id = id ? id->text : "", .output = output};

	if (!member_of(item, "type", JSON_STRING))
		return false;
	/* What is to be run has to be there. */
	if ((member_is(item, "type", "function_call") && !arguments) ||
	    (member_is(item, "type", "custom_tool_call") && !input))
		return false;
	put_item(fr, "response.output_item.added", item, output,
		 said        ? parts
		 : arguments ? call
		 : input     ? custom
			     : none);
	if (said && (!put_parts(fr, at, "summary", "summary_index") || !put_parts(fr, at, "content", "content_index")))
		return false;
	if (arguments)
		put_text(fr, &at, "response.function_call_arguments", arguments, "arguments");
	if (input)
		put_text(fr, &at, "response.custom_tool_call_input", input, "input");
	put_item(fr, "response.output_item.done", item, output, none);
	return true;
}

static void whole_out(struct frames *fr, const char *name, const struct frame_swap *swaps)
{
	frame_open(fr, name);
	jw_key(&fr->w, "response");
	frame_object(fr, fr->answer, swaps);
	frame_close(fr);
}

bool stream_out_responses(struct frames *fr)
{
	static const struct frame_swap none[] = {{NULL, NULL}}, begun[] = {{"status", "\"in_progress\""},
									   {"output", "[]"},
									   {"usage", "null"},
									   {"error", "null"},
									   {"incomplete_details", "null"},
									   {"completed_at", "null"},
									   {"output_text", "\"\""},
									   {NULL, NULL}};
	static const char *const ends[] = {"completed", "incomplete", "failed"};
	const struct json *output = member_of(fr->answer, "output", JSON_ARRAY);
	char last[40] = "";
	int64_t nth = 0;

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (member_is(fr->answer, "status", ends[i]))
			(void)snprintf(last, sizeof last, "response.%s", ends[i]);
	if (!*last || !output)
		return false;
	whole_out(fr, "response.created", begun);
	whole_out(fr, "response.in_progress", begun);
	for (const struct json *i = output->child; i; i = i->next)
		if (i->type != JSON_OBJECT || !item_out(fr, i, nth++))
			return false;
	whole_out(fr, last, none);
	return true;
}
