/*
 * libFuzzer target: any bytes as a model's answer to the built-in agent, and as the result of each tool that it called.
 * What the agent asks next is within its bounds and acceptable to the gateway's strict policy; no answer of a model may
 * end a run by making the agent's own request wrong.
 */
#include "agent/model.h"
#include "agent/tools.h"
#include "gateway/gateway.h"
#include "lib/own.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct task task = {.id = "r",
			   .instruction = "repair",
			   .model = "m",
			   .allowed = {"a.py"},
			   .allowed_n = 1,
			   .checks = {{"check-1", {"true", NULL}}},
			   .checks_n = 1,
			   .max_steps = 3,
			   .wall_seconds = 100};

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void next_request(struct talk *talk)
{
	own_buf struct buf body, sent;
	own_arena struct arena a;
	char field[SCHEMA_FIELD];
	buf_init(&body, 8 * TALK_BODY);
	buf_init(&sent, GATE_REPLY_MAX);
	arena_init(&a, GATE_ARENA);
	if (!talk_body(talk, &task, tools_described, &body))
		return;
	must(body.n <= TALK_BODY);
	const struct json *v = json_parse(&a, body.p, body.n, JSON_DEPTH_MODEL, GATE_NODES, NULL);
	must(v != NULL && policy_strict(v, "m", &sent, field) == ERR_OK);
}

/* A file's bytes, such as a tool reads them: any at all, while the answer itself must be JSON. */
static void result(struct talk *talk, const char *id, const uint8_t *data, size_t size)
{
	static const uint8_t masks[] = {0, 0, 0x20, 0, 0x80, 0, 0, 0x7b};
	own_free uint8_t *text = malloc(size + 1);
	must(text != NULL);
	for (size_t i = 0; i < size; i++)
		text[i] = data[i] ^ masks[i % sizeof masks];
	must(talk_result(talk, id, text, size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct talk talk = {0};
	must(talk_init(&talk, &task));
	for (int turn = 0; turn < 2; turn++) {
		struct model_answer answer = {0};
		arena_init(&answer.arena, 8 << 20);
		if (model_parse(&answer, data, size) == NULL) {
			must(answer.calls_n <= TALK_CALLS && answer.prompt_tokens >= 0);
			must(talk_answer(&talk, answer.content, answer.calls, answer.calls_n));
			for (size_t i = 0; i < answer.calls_n; i++) {
				own_arena struct arena a;
				enum tool tool = tool_find(answer.calls[i].name);
				arena_init(&a, 1 << 20);
				const struct json *args =
				    json_parse(&a, answer.calls[i].arguments, strlen(answer.calls[i].arguments),
					       JSON_DEPTH, 1000, NULL);
				if (args != NULL && tool != TOOL__COUNT)
					(void)tool_arguments(tool, args);
				result(&talk, answer.calls[i].id, data, size);
			}
			if (answer.calls_n == 0)
				must(talk_say(&talk, "Call a tool."));
			next_request(&talk);
		}
		arena_free(&answer.arena);
	}
	talk_free(&talk);
	return 0;
}
