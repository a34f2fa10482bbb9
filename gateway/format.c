/* See format.h. No input or output here, and nothing that an agent says is trusted. */
#include "gateway/format.h"
#include <stdio.h>
#include <string.h>

enum { SOON = 5, USAGE_MAX = 1 << 30 };

static const char *const chat_ends[] = {"[DONE]", NULL};
static const char *const responses_ends[] = {"response.completed", "response.failed", "response.incomplete", NULL};
static const char *const messages_ends[] = {"message_stop", NULL};
static const char *const no_ends[] = {NULL};
static const char bearer[] = "Authorization: Bearer ", goog[] = "x-goog-api-key: ", x_api[] = "x-api-key: ";

static const struct format formats[FORMAT__COUNT] = {
    [FORMAT_CHAT] = {.name = "chat_completions",
		     .route = "chat",
		     .path = "/chat/completions",
		     .protocol = "openai",
		     .key_header = bearer,
		     .stop_status = 403,
		     .other_model = 404,
		     .says = "messages",
		     .cap = "max_tokens",
		     .ends = chat_ends,
		     .grows = "delta",
		     .heartbeat = ": still there\n\n"},
    [FORMAT_RESPONSES] = {.id = FORMAT_RESPONSES,
			  .with = FORMAT_RESPONSES,
			  .whole = FORMAT_RESPONSES,
			  .name = "responses",
			  .route = "responses",
			  .path = "/responses",
			  .protocol = "openai",
			  .key_header = bearer,
			  .stop_status = 400, /* its clients repeat on 403 */
			  .other_model = 400, /* and on 404 */
			  .says = "input",
			  .cap = "max_output_tokens",
			  .ends = responses_ends,
			  .fails = true,
			  .typed_events = true,
			  .grows = "delta",
			  .heartbeat = ": still there\n\n"},
    [FORMAT_MESSAGES] = {.id = FORMAT_MESSAGES,
			 .family = FAMILY_ANTHROPIC,
			 .with = FORMAT_MESSAGES,
			 .whole = FORMAT_MESSAGES,
			 .name = "messages",
			 .route = "messages",
			 .path = "/messages",
			 .protocol = "anthropic",
			 .key_header = x_api,
			 .stop_status = 403,
			 .other_model = 403, /* on 404 they ask again without a stream */
			 .says = "messages",
			 .cap = "max_tokens",
			 .ends = messages_ends,
			 .typed_events = true,
			 .grows = "delta",
			 .heartbeat = "event: ping\ndata: {\"type\":\"ping\"}\n\n"},
    [FORMAT_COUNT_TOKENS] = {.id = FORMAT_COUNT_TOKENS,
			     .family = FAMILY_ANTHROPIC,
			     .with = FORMAT_MESSAGES,
			     .whole = FORMAT_COUNT_TOKENS,
			     .name = "",
			     .route = "count_tokens",
			     .path = "/messages/count_tokens",
			     .protocol = "anthropic",
			     .key_header = x_api,
			     .stop_status = 403,
			     .other_model = 403,
			     .says = "messages",
			     .ends = no_ends},
#define GEMINI                                                                                                        \
	.family = FAMILY_GEMINI, .with = FORMAT_GEMINI, .path = "/models/", .protocol = "gemini", .key_header = goog, \
	.stop_status = 403, .other_model = 404, .says = "contents", .two_spellings = true, .ends = no_ends
    /* Its clients take no comments, and it has no other event that says nothing: there is no heartbeat. */
    [FORMAT_GEMINI] = {GEMINI, .id = FORMAT_GEMINI, .whole = FORMAT_GEMINI, .name = "gemini", .route = "gemini",
		       .verb = ":generateContent", .cap = "maxOutputTokens", .caps = "generation_config"},
    [FORMAT_GEMINI_STREAM] = {GEMINI, .id = FORMAT_GEMINI_STREAM, .whole = FORMAT_GEMINI, .name = "",
			      .route = "gemini_stream", .verb = ":streamGenerateContent?alt=sse",
			      .cap = "maxOutputTokens", .caps = "generation_config", .always = true, .grows = "parts"},
    [FORMAT_GEMINI_COUNT] = {GEMINI, .id = FORMAT_GEMINI_COUNT, .whole = FORMAT_GEMINI_COUNT, .name = "",
			     .route = "gemini_count", .verb = ":countTokens"},
#undef GEMINI
};

const struct format *format_get(enum format_id id)
{
	return &formats[id];
}

const struct format *format_of_route(const char *route)
{
	for (size_t i = 0; i < FORMAT__COUNT; i++)
		if (strcmp(formats[i].route, route) == 0)
			return &formats[i];
	return NULL;
}

const struct format *format_of_protocol(const char *protocol)
{
	for (size_t i = 0; i < FORMAT__COUNT; i++)
		if (strcmp(formats[i].protocol, protocol) == 0)
			return &formats[i];
	return &formats[FORMAT_CHAT];
}

const struct format *format_named(const char *name)
{
	for (size_t i = 0; i < FORMAT__COUNT; i++)
		if (*name && strcmp(formats[i].name, name) == 0)
			return &formats[i];
	return NULL;
}

static bool number_of(const struct json *usage, const char *key, uint64_t *n)
{
	int64_t v = 0;

	if (!json_int(json_get(usage, key), 0, USAGE_MAX, &v))
		return false;
	*n = (uint64_t)v;
	return true;
}

/* Each event tells what there was so far, thoughts and what its tools read apart; what caches held is within. */
static void usage_of_gemini(const struct json *usage, uint64_t *in, uint64_t *out)
{
	uint64_t n = 0, tools = 0, said = 0, thought = 0;

	if (number_of(usage, "promptTokenCount", &n)) {
		number_of(usage, "toolUsePromptTokenCount", &tools);
		*in = n + tools;
	}
	number_of(usage, "candidatesTokenCount", &said);
	number_of(usage, "thoughtsTokenCount", &thought);
	if (said + thought > *out)
		*out = said + thought;
}

void format_usage(const struct format *f, const struct json *answer, uint64_t *in, uint64_t *out)
{
	/* A whole answer has it itself; events have it in the answer that they bring. */
	const struct json *usage = json_get(answer, "usage");
	uint64_t n = 0, cached = 0;

	if (!usage)
		usage = json_get(json_get(answer, "response"), "usage");
	if (!usage)
		usage = json_get(json_get(answer, "message"), "usage");
	if (f->family == FAMILY_GEMINI)
		usage_of_gemini(json_get(answer, "usageMetadata"), in, out);
	if (!usage || f->family == FAMILY_GEMINI)
		return;
	if (f->id == FORMAT_CHAT) {
		number_of(usage, "prompt_tokens", in);
		number_of(usage, "completion_tokens", out);
		return;
	}
	if (number_of(usage, "input_tokens", &n)) {
		*in = n;
		/* Messages count what their cache held apart, responses within. */
		if (f->family == FAMILY_ANTHROPIC && number_of(usage, "cache_creation_input_tokens", &cached))
			*in += cached;
		if (f->family == FAMILY_ANTHROPIC && number_of(usage, "cache_read_input_tokens", &cached))
			*in += cached;
	}
	number_of(usage, "output_tokens", out);
}

/* Ours that no repetition mends: whoever asks again only burns what is left. */
static bool final(enum err e)
{
	switch ((int)e) {
	case ERR_EXPIRED_RUN_TOKEN:
	case ERR_INACTIVE_RUN_TOKEN:
	case ERR_MODEL_REQUEST_BUDGET_EXHAUSTED:
	case ERR_MODEL_TOKEN_BUDGET_EXHAUSTED:
	case ERR_TENANT_REQUEST_QUOTA_EXHAUSTED:
	case ERR_TENANT_TOKEN_QUOTA_EXHAUSTED:
	case ERR_PROVIDER_NOT_CONFIGURED:
	case ERR_PROVIDER_KEY_REFUSED:
	case ERR_MODEL_REDIRECT_REFUSED:
	case ERR_MODEL_RESPONSE_TOO_LARGE:
	case ERR_MODEL_OUTPUT_EXCEEDED:
		return true;
	default:
		return false;
	}
}

struct refusal format_refusal(const struct format *f, enum err e, unsigned retry_after)
{
	const struct err_row *row = err_row(e);
	struct refusal r = {.status = row->status, .code = row->code, .message = row->sentence};

	if (final(e)) {
		r.status = f->stop_status;
		r.stop = true;
	} else if (e == ERR_MODEL_NOT_ALLOWED) {
		r.status = f->other_model;
		r.stop = true;
	} else if (row->status >= 500 || row->status == 429 || row->status == 408) {
		/* One status for all that passes: clients hammer on the others. */
		r.status = row->status == 429 ? 429 : 503;
		r.retry_after = retry_after > 0 ? retry_after : SOON;
	}
	return r;
}

bool format_upstream(const struct format *f, unsigned status, unsigned retry_after, struct refusal *r)
{
	*r = (struct refusal){.status = status};
	if (status == 401 || status == 403 || status == 407) {
		*r = format_refusal(f, ERR_PROVIDER_KEY_REFUSED, 0);
		return false;
	}
	if (status >= 500 || status == 408 || status == 409 || status == 425) {
		*r = format_refusal(f, ERR_MODEL_UNREACHABLE, retry_after);
		return false;
	}
	if (status == 429)
		r->retry_after = retry_after > 0 ? retry_after : SOON;
	else if (status == 402) {
		r->status = f->stop_status;
		r->stop = true;
	}
	return true;
}

static const char *text_of(const struct json *o, const char *key)
{
	const struct json *v = json_get(o, key);
	return v && v->type == JSON_STRING ? v->text : "";
}

bool format_key_refused(const struct format *f, unsigned status, const struct json *answer)
{
	const struct json *details = json_get(json_get(answer, "error"), "details");

	if (f->family != FAMILY_GEMINI || status != 400)
		return false;
	for (const struct json *d = details && details->type == JSON_ARRAY ? details->child : NULL; d; d = d->next)
		if (strncmp(text_of(d, "reason"), "API_KEY_", 8) == 0)
			return true;
	return false;
}

bool format_finished(const struct json *event)
{
	const struct json *all = json_get(event, "candidates");

	for (const struct json *c = all && all->type == JSON_ARRAY ? all->child : NULL; c; c = c->next) {
		const char *why = text_of(c, "finishReason");
		if (*why && strcmp(why, "FINISH_REASON_UNSPECIFIED") != 0)
			return true;
	}
	return *text_of(json_get(event, "promptFeedback"), "blockReason") != 0;
}

/* Two families have the same words for it. */
static const char *kind_of(unsigned status)
{
	static const struct {
		unsigned status;
		const char *kind;
	} kinds[] = {{401, "authentication_error"}, {403, "permission_error"}, {404, "not_found_error"},
		     {413, "request_too_large"},    {429, "rate_limit_error"}, {503, "overloaded_error"}};

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (kinds[i].status == status)
			return kinds[i].kind;
	return status >= 500 ? "api_error" : "invalid_request_error";
}

/* As google.rpc.Code has it. */
static const char *google_status(unsigned status)
{
	static const struct {
		unsigned status;
		const char *name;
	} names[] = {{401, "UNAUTHENTICATED"},    {403, "PERMISSION_DENIED"}, {404, "NOT_FOUND"},
		     {429, "RESOURCE_EXHAUSTED"}, {503, "UNAVAILABLE"},       {504, "DEADLINE_EXCEEDED"}};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].status == status)
			return names[i].name;
	return status >= 500 ? "INTERNAL" : "INVALID_ARGUMENT";
}

/* Its clients wait as long as the details say, and do not read Retry-After. */
static void put_google(struct jw *w, const struct refusal *r, const char *message, const char *request_id)
{
	char seconds[24];

	jw_kint(w, "code", r->status);
	jw_kstr(w, "message", message);
	jw_kstr(w, "status", google_status(r->status));
	jw_key(w, "details");
	jw_open(w, '[');
	jw_open(w, '{');
	jw_kstr(w, "@type", "type.googleapis.com/google.rpc.ErrorInfo");
	jw_kstr(w, "reason", r->code);
	jw_kstr(w, "domain", "pinfold");
	jw_close(w, '}');
	jw_open(w, '{');
	jw_kstr(w, "@type", "type.googleapis.com/google.rpc.RequestInfo");
	jw_kstr(w, "requestId", request_id);
	jw_close(w, '}');
	if (r->retry_after > 0) {
		snprintf(seconds, sizeof seconds, "%us", r->retry_after);
		jw_open(w, '{');
		jw_kstr(w, "@type", "type.googleapis.com/google.rpc.RetryInfo");
		jw_kstr(w, "retryDelay", seconds);
		jw_close(w, '}');
	}
	jw_close(w, ']');
}

void format_error(const struct format *f, const struct refusal *r, const char *field, const char *request_id,
		  struct buf *out)
{
	struct jw w;
	char message[900];

	snprintf(message, sizeof message, "%s%s%s%s", r->message, field && *field ? " (" : "", field ? field : "",
		 field && *field ? ")" : "");
	jw_init(&w, out);
	jw_open(&w, '{');
	if (f->family == FAMILY_ANTHROPIC)
		jw_kstr(&w, "type", "error");
	jw_key(&w, "error");
	jw_open(&w, '{');
	if (f->family == FAMILY_GEMINI) {
		put_google(&w, r, message, request_id);
		jw_close(&w, '}');
		jw_close(&w, '}');
		return;
	}
	jw_kstr(&w, "type", kind_of(r->status));
	jw_kstr(&w, "message", message);
	if (f->family == FAMILY_OPENAI) {
		jw_key(&w, "param");
		if (field && *field)
			jw_str(&w, field);
		else
			jw_null(&w);
	}
	jw_kstr(&w, "code", r->code);
	jw_close(&w, '}');
	jw_kstr(&w, "request_id", request_id);
	jw_close(&w, '}');
}

void format_version(const char *value, char out[FORMAT_VERSION_MAX])
{
	static const char shape[] = "0000-00-00", known[] = "2023-06-01";
	bool date = value && strlen(value) == sizeof shape - 1;

	for (size_t i = 0; date && i < sizeof shape - 1; i++)
		date = shape[i] == '-' ? value[i] == '-' : value[i] >= '0' && value[i] <= '9';
	snprintf(out, FORMAT_VERSION_MAX, "%s", date ? value : known);
}

/*
 * By name, whatever its date. Not among them: what fetches, executes or keeps something at the provider (web-fetch,
 * code-execution, files-api, mcp-client, skills, computer-use), what costs more (context-1m, fast-mode), and what says
 * who asks (oauth).
 */
static bool beta_plain(const char *s, size_t n)
{
	static const char *const names[] = {"claude-code",
					    "interleaved-thinking",
					    "adaptive-thinking",
					    "redact-thinking",
					    "context-management",
					    "fine-grained-tool-streaming",
					    "prompt-caching",
					    "prompt-caching-scope",
					    "extended-cache-ttl",
					    "token-efficient-tools",
					    "structured-outputs",
					    "effort",
					    "token-counting",
					    "tool-examples",
					    "output-128k",
					    "pdfs",
					    "mid-conversation-system"};
	static const char date[] = "-0000-00-00";
	size_t tail = sizeof date - 1;

	if (n <= tail)
		return false;
	for (size_t i = 0; i < tail; i++) {
		char c = s[n - tail + i];
		if (date[i] == '-' ? c != '-' : c < '0' || c > '9')
			return false;
	}
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strlen(names[i]) == n - tail && memcmp(names[i], s, n - tail) == 0)
			return true;
	return false;
}

void format_beta(const char *value, char out[FORMAT_BETA_MAX])
{
	static const char blanks[] = ", \t";
	size_t at = 0;

	out[0] = 0;
	for (const char *s = value ? value : ""; *(s += strspn(s, blanks)) != 0;) {
		size_t n = strcspn(s, blanks);
		if (beta_plain(s, n) && at + n + 2 < FORMAT_BETA_MAX) {
			at += (size_t)snprintf(out + at, FORMAT_BETA_MAX - at, "%s%.*s", at ? "," : "", (int)n, s);
		}
		s += n;
	}
}
