/*
 * libFuzzer target: any JSON as a model request of any format under the policies agent and passthrough. The first byte
 * chooses. What is sent holds what tests/unit/model_oracle.c asks for; what is refused names a place that is text.
 */
#include "tests/unit/model_oracle.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void one(const uint8_t *data, size_t size)
{
	static uint8_t bytes[] = "a key of thirty-two bytes or more";
	static const struct secret key = {bytes, sizeof bytes - 1};
	struct model_request rq;
	char field[SCHEMA_FIELD];
	struct policy_rules rules = {.kind = data[0] & 4 ? POLICY_AGENT : POLICY_PASSTHROUGH,
				     .formats = POLICY_FORMATS,
				     .stream = data[0] & 8,
				     .buffered = data[0] & 16,
				     .max_output_tokens = data[0] & 32 ? 5000 : 100,
				     .effort = data[0] & 64 ? EFFORT_LOW : EFFORT_MAX,
				     .model = "m",
				     .upstream_model = "up",
				     .chat_cap = data[0] & 16 ? "max_completion_tokens" : NULL,
				     .tenant = "t",
				     .cache_key = &key};
	int f = (data[0] & 3) + (data[0] & 128 ? 4 : 0);
	if (f >= FORMAT__COUNT)
		return;
	own_arena struct arena a;
	arena_init(&a, 40000000);
	const struct json *body = json_parse(&a, data + 1, size - 1, JSON_DEPTH_MODEL, 200000, NULL);
	if (body == NULL)
		return;
	memset(field, 'x', sizeof field);
	enum err e = policy_apply(&rules, format_get((enum format_id)f), body, &rq, field);
	size_t n = strnlen(field, sizeof field);
	must(n < sizeof field && utf8_valid(field, n, NULL));
	if (e == ERR_OK)
		must(oracle(&rules, &rq, json_parse(&a, rq.body.p, rq.body.n, JSON_DEPTH_MODEL, 200000, NULL)) == NULL);
	model_request_free(&rq);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 0)
		one(data, size);
	return 0;
}
