/* See model_oracle.h. */
#include "tests/unit/model_oracle.h"
#include <ctype.h>
#include <string.h>
#include <strings.h>

/* Places whose value is the model's alone, whatever is in it. */
static const char *const free_places[] = {"parameters", "input_schema",   "output_schema",
					  "schema",     "input_examples", NULL};
static const char *const never[] = {"file_id",
				    "fileId",
				    "file_url",
				    "vector_store_ids",
				    "container",
				    "server_url",
				    "connector_id",
				    "previous_response_id",
				    "conversation",
				    "mcp_servers",
				    "web_search_options",
				    "search_parameters",
				    "googleSearch",
				    "urlContext",
				    "codeExecution",
				    "best_of",
				    "audio",
				    "modalities",
				    "prediction",
				    "user",
				    "safety_identifier",
				    "metadata",
				    "client_metadata",
				    "service_tier",
				    "background",
				    "extra_body",
				    "api_base",
				    "plugins",
				    NULL};
static const char *const hosted[] = {"web_search",     "web_fetch",           "code_interpreter", "code_execution",
				     "file_search",    "image_generation",    "computer",         "mcp",
				     "item_reference", "bash_code_execution", "tool_search",      NULL};

static bool among(const char *const *list, const char *s)
{
	for (; *list; list++)
		if (strcasecmp(*list, s) == 0)
			return true;
	return false;
}

static bool hosted_type(const char *s)
{
	for (const char *const *h = hosted; *h; h++)
		if (strncasecmp(s, *h, strlen(*h)) == 0)
			return true;
	return strcmp(s, "url") == 0 || strcmp(s, "file") == 0;
}

static bool is(const struct json *o, const char *key, const char *text)
{
	const struct json *v = json_get(o, key);
	return v && v->type == JSON_STRING && strcmp(v->text, text) == 0;
}

static const char *tools(const struct json *list, bool messages)
{
	for (const struct json *t = list && list->type == JSON_ARRAY ? list->child : NULL; t; t = t->next) {
		const struct json *type = json_get(t, "type");
		if (!type && messages)
			continue;
		if (is(t, "type", "namespace") && !messages) {
			const char *why = tools(json_get(t, "tools"), false);
			if (why)
				return why;
		} else if (!is(t, "type", "function") && !is(t, "type", "custom"))
			return "a tool that is neither function nor custom";
	}
	return NULL;
}

static const char *look(const struct json *v, const struct json *parent, bool chat_file)
{
	if (v->key && among(never, v->key))
		return "a field that must not be there";
	/* "input" is free in what a tool was called with, "type":"file" is a part of chats that holds its own bytes. */
	if (v->key && (among(free_places, v->key) || (strcmp(v->key, "input") == 0 && is(parent, "type", "tool_use"))))
		return NULL;
	size_t n = v->key ? strlen(v->key) : 0;
	if (n >= 3 && v->type == JSON_STRING &&
	    (strcasecmp(v->key + n - 3, "url") == 0 || strcasecmp(v->key + n - 3, "uri") == 0) &&
	    strncmp(v->text, "data:", 5) != 0)
		return "an address that is no data";
	if (v->key && strcmp(v->key, "type") == 0 && v->type == JSON_STRING && hosted_type(v->text) &&
	    !(chat_file && strcmp(v->text, "file") == 0))
		return "a type that must not be there";
	for (const struct json *m = v->child; m; m = m->next) {
		const char *why = look(m, v, chat_file);
		if (why)
			return why;
	}
	return NULL;
}

static const char *top(const struct policy_rules *rules, const struct model_request *rq, const struct json *sent)
{
	static const char *const caps[] = {"max_tokens", "max_completion_tokens", "max_output_tokens"};
	static const char *const named[FORMAT__COUNT] = {"max_tokens", "max_output_tokens", "max_tokens", "", ""};
	const struct json *stream = json_get(sent, "stream"), *store = json_get(sent, "store"),
			  *thinking = json_get(sent, "thinking");
	const char *cap = rq->format->id == FORMAT_CHAT && rules->chat_cap ? rules->chat_cap : named[rq->format->id];
	int64_t n = 0, budget = 0;

	if (!is(sent, "model", rules->upstream_model))
		return "another model";
	if (json_get(sent, "n"))
		return "several answers";
	for (size_t i = 0; i < sizeof caps / sizeof *caps; i++)
		if (strcmp(caps[i], cap) == 0 ? !json_int(json_get(sent, cap), 1, rules->max_output_tokens, &n)
					      : json_get(sent, caps[i]) != NULL)
			return "an output cap that is missing, too high or of another name";
	if (*cap && (uint32_t)n != rq->cap)
		return "another cap than is said";
	if (rq->format->id == FORMAT_COUNT_TOKENS ? stream != NULL : !stream || stream->truth != rq->stream_up)
		return "another stream than is said";
	if (rq->stream && (!rules->stream || rq->stream_up == rules->buffered))
		return "a stream that is not permitted";
	if (store ? store->type != JSON_BOOL || store->truth : rq->format->id == FORMAT_RESPONSES)
		return "it would be stored";
	if (json_get(thinking, "budget_tokens") &&
	    (!json_int(json_get(thinking, "budget_tokens"), 1024, rules->max_output_tokens - 1, &budget) ||
	     (*cap && budget >= n)))
		return "a budget for thinking that is no less than the cap";
	return NULL;
}

/*
 * Gemini's requests: each part and each tool is one of a few kinds, and nothing that the provider would fetch, execute
 * or keep is anywhere but in what is the model's. Names are spelt one way, as is sent.
 */
static const char *gemini_look(const struct json *v, bool said)
{
	static const char *const models[] = {
	    "args", "response", "parameters", "parametersJsonSchema", "responseJsonSchema", "responseSchema", NULL};
	static const char *const denied[] = {"fileData",
					     "fileUri",
					     "cachedContent",
					     "googleSearch",
					     "googleSearchRetrieval",
					     "urlContext",
					     "codeExecution",
					     "executableCode",
					     "codeExecutionResult",
					     "googleMaps",
					     "fileSearch",
					     "computerUse",
					     "mcpServers",
					     "retrieval",
					     "continuationToken",
					     "speechConfig",
					     NULL};
	static const char *const kinds[] = {
	    "text", "thought", "thoughtSignature", "inlineData", "functionCall", "functionResponse", NULL};
	const char *why = NULL;

	for (const struct json *m = v->child; m && !why; m = m->next) {
		bool parts = said && v->key && strcmp(v->key, "parts") == 0;
		if (m->key && among(denied, m->key))
			return "a field that must not be there";
		for (const struct json *x = parts ? m->child : NULL; x; x = x->next)
			if (!among(kinds, x->key))
				return "a part of a kind that must not be there";
		bool now =
		    said || (m->key && (strcmp(m->key, "contents") == 0 || strcmp(m->key, "systemInstruction") == 0));
		if (!m->key || !among(models, m->key))
			why = gemini_look(m, now);
	}
	return why;
}

/* Two that some reader takes for one. */
static bool twins(const struct json *o)
{
	for (const struct json *m = o ? o->child : NULL; m; m = m->next)
		for (const struct json *x = m->next; x; x = x->next) {
			const char *a = m->key, *b = x->key;
			while (*a && tolower((unsigned char)*a) == tolower((unsigned char)*b)) {
				a += 1 + (a[1] == '_');
				b += 1 + (b[1] == '_');
			}
			if (*a == *b)
				return true;
		}
	return false;
}

static const char *gemini(const struct policy_rules *rules, const struct model_request *rq, const struct json *sent)
{
	const struct json *config = json_get(sent, "generationConfig"), *modes = json_get(config, "responseModalities"),
			  *thinking = json_get(config, "thinkingConfig"), *several = json_get(config, "candidateCount");
	int64_t n = 0, budget = 0;

	if (rq->format->id == FORMAT_GEMINI_COUNT
		? config || rq->cap
		: !json_int(json_get(config, "maxOutputTokens"), 1, rules->max_output_tokens, &n) || n != rq->cap)
		return "an output cap that is missing, too high or another than is said";
	const struct json *tools = json_get(sent, "tools");
	for (const struct json *t = tools ? tools->child : NULL; t; t = t->next)
		if (t->count > 1 || (t->child && strcmp(t->child->key, "functionDeclarations") != 0))
			return "a tool of a kind that must not be there";
	if (json_get(sent, "model") || json_get(sent, "labels") || json_get(sent, "store"))
		return "another model, or who asks";
	if (twins(sent) || twins(config) || twins(thinking))
		return "a field in two spellings";
	if (several && !json_int(several, 1, 1, &n))
		return "several answers";
	for (const struct json *m = modes ? modes->child : NULL; m; m = m->next)
		if (strcmp(m->text, "TEXT") != 0)
			return "an answer that is no text";
	if (json_get(thinking, "thinkingBudget") &&
	    !json_int(json_get(thinking, "thinkingBudget"), -1, (int64_t)rq->cap - 1, &budget))
		return "a budget for thinking that is no less than the cap";
	if (rq->stream != (rq->format->id == FORMAT_GEMINI_STREAM) ||
	    (rq->stream && rq->stream_up == rules->buffered) || (rq->stream && !rules->stream))
		return "a stream that is not permitted, or not asked for";
	return gemini_look(sent, false);
}

const char *oracle(const struct policy_rules *rules, const struct model_request *rq, const struct json *sent)
{
	bool messages = rq->format->family == FAMILY_ANTHROPIC;
	if (rq->format->family == FAMILY_GEMINI)
		return sent && sent->type == JSON_OBJECT ? gemini(rules, rq, sent) : "no object";
	const char *why = sent && sent->type == JSON_OBJECT ? top(rules, rq, sent) : "no object";

	for (const struct json *m = why ? NULL : sent->child; m && !why; m = m->next)
		why = look(m, sent, rq->format->id == FORMAT_CHAT);
	if (!why)
		why = tools(json_get(sent, "tools"), messages);
	const struct json *input = rq->format->id == FORMAT_RESPONSES ? json_get(sent, "input") : NULL;
	for (const struct json *m = input && input->type == JSON_ARRAY ? input->child : NULL; m && !why; m = m->next)
		why = tools(json_get(m, "tools"), false);
	return why;
}
