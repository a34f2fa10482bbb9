/*
 * The engine of model requests: tests/vectors/policy.jsonl case by case (what is sent, or what is refused and where),
 * then the same bodies with hostile members at random places and in random order, held against
 * tests/unit/model_oracle.c: under no policy and from no place does anything of it go on. And that strict is what it
 * was.
 */
#include "tests/unit/model_oracle.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LINE_MAX_BYTES = 1 << 16, TIMES = 20, ROWS = 2000 };

static uint8_t key_bytes[] = "0123456789abcdef0123456789abcdef";
static const struct secret key = {key_bytes, 32};

static bool same(const struct json *a, const struct json *b)
{
	if (!a || !b || a->type != b->type || a->count != b->count || a->truth != b->truth || a->len != b->len ||
	    (a->text && memcmp(a->text, b->text, a->len) != 0))
		return false;
	const struct json *y = b->child;
	for (const struct json *x = a->child; x; x = x->next, y = y->next)
		if (!same(x, a->type == JSON_OBJECT ? json_get(b, x->key) : y))
			return false;
	return true;
}

static int64_t number(const struct json *o, const char *name, int64_t absent)
{
	int64_t n = absent;
	json_int(json_get(o, name), 0, INT64_MAX, &n);
	return n;
}

static struct policy_rules rules_of(const struct json *row)
{
	const struct json *more = json_get(row, "rules"), *cap = json_get(more, "chat_cap");
	const struct json *stream = json_get(more, "stream"), *buffered = json_get(more, "buffered");
	struct policy_rules r = {.formats = (unsigned)number(more, "formats", POLICY_FORMATS),
				 .stream = !stream || stream->truth,
				 .buffered = buffered && buffered->truth,
				 .max_output_tokens = (uint32_t)number(more, "max_output_tokens", 1000),
				 .effort = EFFORT_MEDIUM,
				 .model = "alias",
				 .upstream_model = "real",
				 .chat_cap = cap ? cap->text : NULL,
				 .tenant = "acme",
				 .cache_key = &key};
	assert_true(policy_kind_named(json_get(row, "policy")->text, &r.kind));
	return r;
}

static const struct format *format_of(const struct json *row)
{
	const char *name = json_get(row, "format")->text;
	const struct format *f = format_named(name);
	return f ? f : format_of_route(name); /* what comes with another */
}

static struct buf text_of(const struct json *v)
{
	struct buf b;
	buf_init(&b, 1 << 20);
	json_write(&b, v);
	return b;
}

static void row_is(struct arena *a, const struct json *row)
{
	const char *name = json_get(row, "name")->text;
	const struct json *error = json_get(row, "error"), *want = json_get(row, "field"),
			  *drift = json_get(row, "drift");
	struct policy_rules rules = rules_of(row);
	struct model_request rq;
	char field[SCHEMA_FIELD];
	enum err e = policy_apply(&rules, format_of(row), json_get(row, "body"), &rq, field);
	own_buf struct buf body = text_of(json_get(row, "body"));

	if (error) {
		if (e == ERR_OK || strcmp(err_code(e), error->text) != 0)
			fail_msg("%s: %s instead of %s: %s", name, err_code(e), error->text, buf_cstr(&body));
		if (want && strcmp(field, want->text) != 0)
			fail_msg("%s: at %s instead of %s", name, field, want->text);
	} else {
		if (e != ERR_OK)
			fail_msg("%s: %s at %s: %s", name, err_code(e), field, buf_cstr(&body));
		const struct json *sent = json_parse(a, rq.body.p, rq.body.n, JSON_DEPTH_MODEL, 100000, NULL);
		if (!same(sent, json_get(row, "sent")))
			fail_msg("%s: sent is %.*s", name, (int)rq.body.n, (const char *)rq.body.p);
		const char *why = oracle(&rules, &rq, sent);
		if (why)
			fail_msg("%s: %s", name, why);
		if (drift)
			assert_int_equal(drift->count, rq.ndrift);
		for (unsigned i = 0; drift && i < rq.ndrift; i++) {
			const struct json *d = drift->child;
			while (d && strcmp(d->text, rq.drift[i]) != 0)
				d = d->next;
			if (!d)
				fail_msg("%s: %s was left out", name, rq.drift[i]);
		}
	}
	model_request_free(&rq);
}

/* All rows of the file, in the arena. */
static size_t rows(struct arena *a, const struct json *out[ROWS])
{
	static char line[LINE_MAX_BYTES];
	char path[500];
	size_t n = 0;
	const char *top = getenv("srcdir");
	snprintf(path, sizeof path, "%s/tests/vectors/policy.jsonl", top ? top : ".");
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f) != NULL && n < ROWS) {
		out[n] = json_parse(a, line, strlen(line), JSON_DEPTH_MODEL + 2, 100000, NULL);
		assert_non_null(out[n++]);
	}
	fclose(f);
	return n;
}

static void t_vectors(void **state)
{
	(void)state;
	own_arena struct arena a;
	const struct json *row[ROWS];
	arena_init(&a, 64000000);
	size_t n = rows(&a, row);
	assert_true(n > 500);
	for (size_t i = 0; i < n; i++)
		row_is(&a, row[i]);
}

static uint32_t seed = 1;

static uint32_t rnd(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

static const char *const members[] = {
    "\"file_id\":\"f\"",
    "\"type\":\"web_search\"",
    "\"type\":\"web_search_20250305\"",
    "\"type\":\"url\",\"url\":\"https://x\"",
    "\"image_url\":\"https://x\"",
    "\"image_url\":{\"url\":\"https://x\"}",
    "\"source\":{\"type\":\"url\",\"url\":\"https://x\"}",
    "\"tools\":[{\"type\":\"mcp\",\"server_url\":\"https://x\"}]",
    "\"tools\":[{\"type\":\"namespace\",\"name\":\"n\",\"tools\":[{\"type\":\"code_interpreter\",\"container\":\"c\"}]}"
    "]",
    "\"mcp_servers\":[{\"type\":\"url\",\"url\":\"https://x\"}]",
    "\"n\":50",
    "\"best_of\":9",
    "\"store\":true",
    "\"background\":true",
    "\"previous_response_id\":\"r\"",
    "\"service_tier\":\"priority\"",
    "\"user\":\"u\"",
    "\"metadata\":{\"user_id\":\"u\"}",
    "\"max_tokens\":100000",
    "\"max_completion_tokens\":100000",
    "\"max_output_tokens\":100000",
    "\"model\":\"other\"",
    "\"stream\":true",
    "\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":50000}",
    "\"tool_choice\":{\"type\":\"web_search\"}",
    "\"Tools\":[{\"type\":\"web_search\"}]",
    "\"fileId\":\"f\"",
    "\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":\"https://x\"}}]",
    "\"content\":[{\"type\":\"document\",\"source\":{\"type\":\"file\",\"file_id\":\"f\"}}]",
    "\"something\":{\"deep\":[{\"type\":\"file_search\",\"vector_store_ids\":[\"v\"]}]}",
    "\"something\":\"harmless\"",
    "\"tools\":[{\"googleSearch\":{}}]",
    "\"tools\":[{\"functionDeclarations\":[],\"new_search\":{}}]",
    "\"url_context\":{}",
    "\"parts\":[{\"file_data\":{\"file_uri\":\"https://x\"}}]",
    "\"fileData\":{\"mimeType\":\"image/png\",\"fileUri\":\"https://x\"}",
    "\"cachedContent\":\"cachedContents/c\"",
    "\"max_output_tokens\":90000",
    "\"maxOutputTokens\":90000",
    "\"generation_config\":{\"maxOutputTokens\":90000,\"candidateCount\":9}",
    "\"generationConfig\":{\"max_output_tokens\":90000}",
    "\"candidate_count\":9",
    "\"thinkingConfig\":{\"thinking_budget\":90000}",
    "\"responseModalities\":[\"IMAGE\"]",
    "\"labels\":{\"a\":\"b\"}",
    "\"something\":{\"deep\":[{\"codeExecution\":{},\"mcp_servers\":[]}]}",
};
static const char *const elements[] = {"{\"googleSearch\":{}}",
				       "{\"fileData\":{\"fileUri\":\"https://x\"}}",
				       "{\"parts\":[{\"executableCode\":{}}]}",
				       "{\"type\":\"web_search\"}",
				       "{\"type\":\"additional_tools\",\"tools\":[{\"type\":\"web_search\"}]}",
				       "{\"type\":\"item_reference\",\"id\":\"i\"}",
				       "{\"type\":\"input_image\",\"image_url\":\"https://x\"}",
				       "{\"type\":\"image_url\",\"image_url\":{\"url\":\"https://x\"}}",
				       "{\"type\":\"image\",\"source\":{\"type\":\"url\",\"url\":\"https://x\"}}",
				       "{\"type\":\"mcp\",\"server_url\":\"https://x\"}",
				       "{\"role\":\"user\",\"content\":[{\"type\":\"input_file\",\"file_id\":\"f\"}]}"};
#define COUNT(list) ((uint32_t)(sizeof(list) / sizeof *(list)))

static void write_changed(struct buf *b, const struct json *v, uint32_t one_in)
{
	const struct json *order[64];
	size_t n = 0;
	const char *extra = NULL;
	bool first = true;

	if (v->type != JSON_OBJECT && v->type != JSON_ARRAY) {
		json_write(b, v);
		return;
	}
	bool object = v->type == JSON_OBJECT;
	for (const struct json *m = v->child; m && n < 64; m = m->next)
		order[n++] = m;
	for (size_t i = n; object && i > 1; i--) {
		size_t k = rnd((uint32_t)i);
		const struct json *was = order[i - 1];
		order[i - 1] = order[k];
		order[k] = was;
	}
	if (rnd(one_in) == 0)
		extra = object ? members[rnd(COUNT(members))] : elements[rnd(COUNT(elements))];
	size_t where = rnd((uint32_t)n + 1);
	buf_addc(b, object ? '{' : '[');
	for (size_t i = 0; i <= n; i++) {
		if (i == where && extra) {
			buf_adds(b, first ? "" : ",");
			buf_adds(b, extra);
			first = false;
		}
		if (i == n)
			break;
		char name[100];
		snprintf(name, sizeof name, "\"%s\":", object ? order[i]->key : "");
		if (object && extra && strstr(extra, name) == extra)
			continue; /* the same key twice is refused before */
		buf_adds(b, first ? "" : ",");
		first = false;
		if (object)
			buf_adds(b, name);
		write_changed(b, order[i], one_in);
	}
	buf_addc(b, object ? '}' : ']');
}

static void t_random(void **state)
{
	(void)state;
	own_arena struct arena a;
	const struct json *row[ROWS];
	unsigned passed = 0, refused = 0;
	arena_init(&a, 64000000);
	size_t n = rows(&a, row);
	for (size_t i = 0; i < TIMES * n; i++) {
		const struct json *from = row[i % n];
		own_buf struct buf text;
		own_arena struct arena here;
		struct model_request rq;
		char field[SCHEMA_FIELD];
		struct policy_rules rules = rules_of(from);
		rules.kind = rnd(2) ? POLICY_AGENT : POLICY_PASSTHROUGH;
		buf_init(&text, 1 << 20);
		arena_init(&here, 64000000);
		write_changed(&text, json_get(from, "body"), 2 + rnd(20));
		const struct json *body = json_parse(&here, text.p, text.n, JSON_DEPTH_MODEL, 100000, NULL);
		if (!body)
			continue;
		if (policy_apply(&rules, format_of(from), body, &rq, field) == ERR_OK) {
			const char *why = oracle(
			    &rules, &rq, json_parse(&here, rq.body.p, rq.body.n, JSON_DEPTH_MODEL, 100000, NULL));
			if (why)
				fail_msg("%s: %s\nsent %s", why, buf_cstr(&text), buf_cstr(&rq.body));
			passed++;
		} else
			refused++;
		model_request_free(&rq);
	}
	assert_true(passed > 1000 && refused > 1000);
}

static struct model_request apply(const char *text, enum policy_kind kind, const struct format *f, enum err *e,
				  char field[SCHEMA_FIELD])
{
	own_arena struct arena a;
	struct model_request rq;
	struct policy_rules rules = {.kind = kind,
				     .formats = POLICY_FORMATS,
				     .max_output_tokens = 4096,
				     .model = "m",
				     .upstream_model = "m",
				     .tenant = "t",
				     .cache_key = &key};
	arena_init(&a, 64000000);
	const struct json *body = json_parse(&a, text, strlen(text), JSON_DEPTH_MODEL, 100000, NULL);
	assert_non_null(body);
	*e = policy_apply(&rules, f, body, &rq, field);
	return rq;
}

/* What is sent is written anew, and each number is spelt as it was. */
static void t_exact(void **state)
{
	(void)state;
	static const char in[] =
	    " { \"model\" :\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"\\u0061\\u2028\"}],"
	    "\"temperature\":0.10,\"seed\":12345678901234567890123,\"top_p\":1e-400,"
	    "\"logit_bias\":{\"50256\":-100.0,\"a\":-0}}";
	static const char out[] = "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"a\\u2028\"}],"
				  "\"temperature\":0.10,\"seed\":12345678901234567890123,\"top_p\":1e-400,"
				  "\"logit_bias\":{\"50256\":-100.0,\"a\":-0},\"max_tokens\":4096,\"stream\":false}";
	char field[SCHEMA_FIELD];
	enum err e;
	struct model_request rq = apply(in, POLICY_AGENT, format_get(FORMAT_CHAT), &e, field);
	assert_int_equal(e, ERR_OK);
	assert_string_equal(buf_cstr(&rq.body), out);
	model_request_free(&rq);
}

/* Policy strict knows nothing of all this. */
static void t_strict(void **state)
{
	(void)state;
	static const char fine[] = "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}";
	static const char more[] = "{\"model\":\"m\",\"messages\":[{\"role\":\"user\"}],\"max_tokens\":5}";
	char field[SCHEMA_FIELD];
	enum err e;
	struct model_request rq = apply(fine, POLICY_STRICT, format_get(FORMAT_CHAT), &e, field);
	assert_int_equal(e, ERR_OK);
	assert_string_equal(buf_cstr(&rq.body), "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],"
						"\"stream\":false,\"max_tokens\":4096}");
	assert_int_equal(rq.cap, 4096);
	model_request_free(&rq);
	rq = apply(more, POLICY_STRICT, format_get(FORMAT_CHAT), &e, field);
	assert_int_equal(e, ERR_UNKNOWN_FIELD);
	assert_string_equal(field, "max_tokens");
	model_request_free(&rq);
}

/* Fields that nobody knows: a few are named, the rest counted. */
static void t_drift(void **state)
{
	(void)state;
	own_buf struct buf b;
	char field[SCHEMA_FIELD];
	enum err e;
	buf_init(&b, 100000);
	buf_adds(&b, "{\"model\":\"m\",\"messages\":[]");
	for (int i = 0; i < 30; i++)
		buf_addf(&b, ",\"%0*d\":1", i == 0 ? 300 : 1, i);
	buf_adds(&b, "}");
	struct model_request rq = apply(buf_cstr(&b), POLICY_AGENT, format_get(FORMAT_CHAT), &e, field);
	assert_int_equal(e, ERR_OK);
	assert_int_equal(rq.ndrift, POLICY_DRIFT);
	assert_int_equal(rq.more_drift, 30 - POLICY_DRIFT);
	model_request_free(&rq);
}

static void beta_is(const char *in, const char *out)
{
	char got[FORMAT_BETA_MAX];
	format_beta(in, got);
	assert_string_equal(got, out);
}

static void t_headers(void **state)
{
	(void)state;
	char version[FORMAT_VERSION_MAX];
	beta_is(NULL, "");
	beta_is("claude-code-20250219,interleaved-thinking-2025-05-14", "interleaved-thinking-2025-05-14");
	beta_is("interleaved-thinking-2025-05-14, web-fetch-2025-09-10 ,files-api-2025-04-14,effort-2025-11-24",
		"interleaved-thinking-2025-05-14,effort-2025-11-24");
	beta_is("mcp-client-2025-04-04,code-execution-2025-08-25,context-1m-2025-08-07,oauth-2025-04-20", "");
	beta_is("effort-2025-11-24\r\nx-api-key:-2025-11-24", "");
	format_version("2023-06-01", version);
	assert_string_equal(version, "2023-06-01");
	format_version("2024-10-22", version);
	assert_string_equal(version, "2024-10-22");
	format_version("2024-10-22\r\nx", version);
	assert_string_equal(version, "2023-06-01");
	format_version(NULL, version);
	assert_string_equal(version, "2023-06-01");
}

static void usage_is(enum format_id f, const char *text, uint64_t in, uint64_t out)
{
	own_arena struct arena a;
	uint64_t got_in = 7, got_out = 8;
	arena_init(&a, 1000000);
	format_usage(format_get(f), json_parse(&a, text, strlen(text), 8, 100, NULL), &got_in, &got_out);
	assert_int_equal(got_in, in);
	assert_int_equal(got_out, out);
}

static void t_usage(void **state)
{
	(void)state;
	usage_is(FORMAT_CHAT, "{\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":6}}", 5, 6);
	usage_is(FORMAT_CHAT, "{\"usage\":null,\"choices\":[]}", 7, 8);
	usage_is(FORMAT_RESPONSES, "{\"usage\":{\"input_tokens\":5,\"output_tokens\":6,\"cache_read_input_tokens\":9}}",
		 5, 6);
	usage_is(FORMAT_RESPONSES,
		 "{\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":1,\"output_tokens\":2}}}",
		 1, 2);
	usage_is(FORMAT_MESSAGES,
		 "{\"usage\":{\"input_tokens\":5,\"cache_read_input_tokens\":10,\"cache_creation_input_tokens\":20,"
		 "\"output_tokens\":6}}",
		 35, 6);
	usage_is(FORMAT_MESSAGES,
		 "{\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}}", 5, 1);
	usage_is(FORMAT_MESSAGES, "{\"type\":\"message_delta\",\"usage\":{\"output_tokens\":60}}", 7, 60);
	usage_is(FORMAT_CHAT, "{\"usage\":{\"prompt_tokens\":-5,\"completion_tokens\":1e3}}", 7, 8);
	usage_is(FORMAT_CHAT, "[]", 7, 8);
	usage_is(FORMAT_GEMINI,
		 "{\"usageMetadata\":{\"promptTokenCount\":50,\"cachedContentTokenCount\":40,"
		 "\"toolUsePromptTokenCount\":5,\"candidatesTokenCount\":20,\"thoughtsTokenCount\":300,"
		 "\"totalTokenCount\":375}}",
		 55, 320);
	/* Each event of a stream tells what there was so far, and some not all of it. */
	usage_is(FORMAT_GEMINI_STREAM, "{\"usageMetadata\":{\"promptTokenCount\":5,\"thoughtsTokenCount\":3}}", 5, 8);
	usage_is(FORMAT_GEMINI, "{\"usage\":{\"prompt_tokens\":5,\"input_tokens\":6}}", 7, 8);
	usage_is(FORMAT_GEMINI, "{\"usageMetadata\":{\"promptTokenCount\":-5,\"candidatesTokenCount\":\"9\"}}", 7, 8);
}

/* Which status makes a client stop, and which one come again: for each error that a model's route answers. */
static void t_refusals(void **state)
{
	(void)state;
	static const enum err ends[] = {ERR_EXPIRED_RUN_TOKEN,
					ERR_INACTIVE_RUN_TOKEN,
					ERR_MODEL_REQUEST_BUDGET_EXHAUSTED,
					ERR_TENANT_REQUEST_QUOTA_EXHAUSTED,
					ERR_TENANT_TOKEN_QUOTA_EXHAUSTED,
					ERR_MODEL_TOKEN_BUDGET_EXHAUSTED,
					ERR_PROVIDER_NOT_CONFIGURED,
					ERR_PROVIDER_KEY_REFUSED,
					ERR_MODEL_REDIRECT_REFUSED,
					ERR_MODEL_RESPONSE_TOO_LARGE};
	static const enum err passes[] = {ERR_STORE_UNAVAILABLE, ERR_RESOURCES_EXHAUSTED,    ERR_MODEL_UNREACHABLE,
					  ERR_MODEL_TIMEOUT,     ERR_INVALID_MODEL_RESPONSE, ERR_INTERNAL_ERROR};
	for (int i = 0; i < FORMAT__COUNT; i++) {
		const struct format *f = format_get((enum format_id)i);
		unsigned stop = f->id == FORMAT_RESPONSES ? 400 : 403;
		for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
			struct refusal r = format_refusal(f, ends[k], 3600);
			assert_int_equal(r.status, stop);
			assert_true(r.stop && r.retry_after == 0);
		}
		for (size_t k = 0; k < sizeof passes / sizeof *passes; k++) {
			struct refusal r = format_refusal(f, passes[k], 0);
			assert_int_equal(r.status, 503);
			assert_true(!r.stop && r.retry_after == 5);
			assert_int_equal(format_refusal(f, passes[k], 9).retry_after, 9);
		}
		struct refusal soon = format_refusal(f, ERR_MODEL_CALL_RATE_EXCEEDED, 40);
		assert_true(soon.status == 429 && !soon.stop && soon.retry_after == 40);
		struct refusal other = format_refusal(f, ERR_MODEL_NOT_ALLOWED, 9);
		assert_int_equal(other.status, f->id == FORMAT_CHAT || f->family == FAMILY_GEMINI ? 404 : stop);
		assert_true(other.stop && other.retry_after == 0);
		assert_int_equal(format_refusal(f, ERR_INVALID_RUN_TOKEN, 0).status, 401);
		assert_int_equal(format_refusal(f, ERR_MODEL_FIELD_REFUSED, 0).status, 400);
		struct refusal r;
		for (unsigned status = 200; status < 600; status++) {
			bool through = format_upstream(f, status, 0, &r);
			assert_true(r.status != 401 && (r.status < 500 || (r.status == 503 && r.retry_after > 0)));
			assert_true(through || r.code);
			assert_int_equal(r.status == 429, status == 429);
			if (status < 400)
				assert_true(through && r.status == status);
		}
		assert_true(format_upstream(f, 429, 17, &r) && r.retry_after == 17);
		assert_true(!format_upstream(f, 401, 0, &r) && r.stop && r.status == stop);
		assert_true(!format_upstream(f, 403, 0, &r) && r.stop && r.status == stop);
	}
}

static void t_error_bodies(void **state)
{
	(void)state;
	static const char openai[] = "{\"error\":{\"type\":\"permission_error\",\"message\":\"m (f)\",\"param\":\"f\","
				     "\"code\":\"c\"},\"request_id\":\"r\"}";
	static const char anthropic[] = "{\"type\":\"error\",\"error\":{\"type\":\"permission_error\",\"message\":\"m "
					"(f)\",\"code\":\"c\"},\"request_id\":\"r\"}";
#define GOOGLE(code, status, more)                                                                  \
	"{\"error\":{\"code\":" code ",\"message\":\"m (f)\",\"status\":\"" status                  \
	"\",\"details\":[{\"@type\":\"type.googleapis.com/google.rpc.ErrorInfo\",\"reason\":\"c\"," \
	"\"domain\":\"pinfold\"},{\"@type\":\"type.googleapis.com/google.rpc.RequestInfo\","        \
	"\"requestId\":\"r\"}" more "]}}"
	static const char google[] = GOOGLE("403", "PERMISSION_DENIED", "");
	static const char *const want[FORMAT__COUNT] = {openai, openai, anthropic, google, anthropic, google, google};
	static const struct {
		unsigned status;
		const char *body;
	} others[] = {{400, GOOGLE("400", "INVALID_ARGUMENT", "")},   {401, GOOGLE("401", "UNAUTHENTICATED", "")},
		      {404, GOOGLE("404", "NOT_FOUND", "")},          {413, GOOGLE("413", "INVALID_ARGUMENT", "")},
		      {429, GOOGLE("429", "RESOURCE_EXHAUSTED", "")}, {500, GOOGLE("500", "INTERNAL", "")},
		      {503, GOOGLE("503", "UNAVAILABLE", "")},        {504, GOOGLE("504", "DEADLINE_EXCEEDED", "")}};
	static const char later[] =
	    GOOGLE("429", "RESOURCE_EXHAUSTED",
		   ",{\"@type\":\"type.googleapis.com/google.rpc.RetryInfo\",\"retryDelay\":\"7s\"}");
	const struct refusal r = {.status = 403, .code = "c", .message = "m"};
	for (int i = 0; i < FORMAT__COUNT; i++) {
		own_buf struct buf b;
		buf_init(&b, 1000);
		format_error(format_get((enum format_id)i), &r, "f", "r", &b);
		assert_string_equal(buf_cstr(&b), want[i]);
	}
	for (size_t i = 0; i <= sizeof others / sizeof *others; i++) {
		own_buf struct buf b;
		bool last = i == sizeof others / sizeof *others;
		struct refusal o = {.status = last ? 429 : others[i].status, .code = "c", .message = "m"};
		o.retry_after = last ? 7 : 0;
		buf_init(&b, 1000);
		format_error(format_get(FORMAT_GEMINI), &o, "f", "r", &b);
		assert_string_equal(buf_cstr(&b), last ? later : others[i].body);
	}
#undef GOOGLE
}

/* Gemini says 400 where it means our key. */
static void t_key_refused(void **state)
{
	(void)state;
	static const char invalid[] = "{\"error\":{\"code\":400,\"status\":\"INVALID_ARGUMENT\",\"details\":[{\"x\":1},"
				      "{\"reason\":\"API_KEY_INVALID\",\"domain\":\"googleapis.com\"}]}}";
	static const char other[] = "{\"error\":{\"code\":400,\"details\":[{\"reason\":\"BAD\"},{\"reason\":5}]}}";
	own_arena struct arena a;
	arena_init(&a, 1000000);
	const struct json *yes = json_parse(&a, invalid, strlen(invalid), 8, 100, NULL);
	const struct json *no = json_parse(&a, other, strlen(other), 8, 100, NULL);
	assert_true(yes && no);
	assert_true(format_key_refused(format_get(FORMAT_GEMINI), 400, yes));
	assert_true(format_key_refused(format_get(FORMAT_GEMINI_STREAM), 400, yes));
	assert_false(format_key_refused(format_get(FORMAT_GEMINI), 200, yes));
	assert_false(format_key_refused(format_get(FORMAT_GEMINI), 400, no));
	assert_false(format_key_refused(format_get(FORMAT_GEMINI), 400, NULL));
	assert_false(format_key_refused(format_get(FORMAT_CHAT), 400, yes));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_vectors),      cmocka_unit_test(t_random),
					   cmocka_unit_test(t_exact),        cmocka_unit_test(t_strict),
					   cmocka_unit_test(t_drift),        cmocka_unit_test(t_headers),
					   cmocka_unit_test(t_usage),        cmocka_unit_test(t_refusals),
					   cmocka_unit_test(t_error_bodies), cmocka_unit_test(t_key_refused)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
