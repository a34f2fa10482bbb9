/*
 * libFuzzer target: any JSON as a model request under policy strict. What goes upstream has exactly the keys of
 * the policy, the pinned model, no stream and the ceiling of tokens, whatever came in.
 */
#include "gateway/gateway.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static bool among(const char *key, const char *const *keys)
{
	while (*keys != NULL && strcmp(*keys, key) != 0)
		keys++;
	return *keys != NULL;
}

static void only(const struct json *object, const char *const *keys)
{
	must(object->type == JSON_OBJECT);
	for (const struct json *v = object->child; v != NULL; v = v->next)
		must(among(v->key, keys));
}

static void check(const struct json *sent)
{
	static const char *const top[] = {"model", "messages", "tools", "stream", "max_tokens", NULL};
	static const char *const message[] = {"role", "content", "name", "tool_calls", "tool_call_id", NULL};
	static const char *const tool[] = {"type", "function", NULL};
	static const char *const function[] = {"name", "description", "parameters", "strict", NULL};
	int64_t tokens = 0;
	must(sent != NULL);
	only(sent, top);
	must(strcmp(json_get(sent, "model")->text, "m") == 0 && !json_get(sent, "stream")->truth);
	must(json_int(json_get(sent, "max_tokens"), 1, 4096, &tokens));
	must(json_get(sent, "messages")->count >= 1 && json_get(sent, "messages")->count <= 64);
	for (const struct json *m = json_get(sent, "messages")->child; m != NULL; m = m->next)
		only(m, message);
	const struct json *tools = json_get(sent, "tools");
	for (const struct json *t = tools != NULL ? tools->child : NULL; t != NULL; t = t->next) {
		only(t, tool);
		only(json_get(t, "function"), function);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	own_arena struct arena a;
	own_buf struct buf out;
	char field[SCHEMA_FIELD];
	arena_init(&a, GATE_ARENA);
	buf_init(&out, GATE_REPLY_MAX);
	const struct json *body = json_parse(&a, data, size, JSON_DEPTH_MODEL, GATE_NODES, NULL);
	if (body == NULL)
		return 0;
	memset(field, 'x', sizeof field);
	enum err e = policy_strict(body, "m", &out, field);
	size_t n = strnlen(field, sizeof field);
	must(n < sizeof field && utf8_valid(field, n, NULL));
	if (e == ERR_OK)
		check(json_parse(&a, out.p, out.n, JSON_DEPTH_MODEL, GATE_NODES, NULL));
	return 0;
}
