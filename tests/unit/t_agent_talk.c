/* The agent's guards, its conversation and how it reads a model's answer. No clock, no network. */
#include "agent/events.h"
#include "agent/guards.h"
#include "agent/model.h"
#include "agent/tools.h"
#include "lib/json.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct task task = {.id = "run-1",
			   .instruction = "repair \"it\"",
			   .model = "m",
			   .allowed = {"a.py"},
			   .allowed_n = 1,
			   .checks = {{"check-1", {"true", NULL}}},
			   .checks_n = 1,
			   .max_steps = 3,
			   .wall_seconds = 100};

static void t_guards(void **state)
{
	static struct guards g;
	(void)state;
	guards_init(&g, &task, 1000);
	for (int i = 0; i < 3; i++)
		assert_null(guards_step(&g, 1000));
	assert_string_equal(guards_step(&g, 1000), "max_steps");
	assert_string_equal(guards_step(&g, 101000), "wall_time");
	assert_int_equal(guards_left_ms(&g, 1000), 98000); /* some is kept back for the response */
	guards_waited(&g, 5000);
	assert_int_equal(guards_left_ms(&g, 6000), 98000);
	g.deadline_ms -= 5000;
	assert_null(guards_answer(&g, 0));
	assert_null(guards_answer(&g, 0));
	assert_null(guards_answer(&g, 1));
	assert_null(guards_answer(&g, 0));
	assert_null(guards_answer(&g, 0));
	assert_string_equal(guards_answer(&g, 0), "no_tool_calls");
}

static void t_repetition(void **state)
{
	static struct guards g;
	(void)state;
	guards_init(&g, &task, 0);
	assert_null(guards_result(&g, "a", "{}", "x", 1));
	assert_null(guards_result(&g, "a", "{}", "y", 1)); /* another result */
	assert_null(guards_result(&g, "a", "{}x", "", 0)); /* divided otherwise */
	assert_null(guards_result(&g, "b", "{}", "x", 1));
	assert_null(guards_result(&g, "a", "{}", "x", 1));
	assert_string_equal(guards_result(&g, "a", "{}", "x", 1), "repetition");
	/* The table is bounded: the oldest give way. */
	guards_init(&g, &task, 0);
	for (int i = 0; i < 3 * GUARD_CALLS; i++) {
		char text[16];
		snprintf(text, sizeof text, "%d", i);
		assert_null(guards_result(&g, "a", text, "x", 1));
	}
}

static const struct json *body_of(struct arena *a, struct talk *t, struct buf *body)
{
	assert_true(talk_body(t, &task, tools_described, body));
	assert_true(body->n <= TALK_BODY);
	const struct json *root = json_parse(a, body->p, body->n, JSON_DEPTH_MODEL, 100000, NULL);
	assert_non_null(root);
	assert_int_equal(root->count, 3);
	assert_int_equal(json_get(root, "tools")->count, TOOL__COUNT);
	const struct json *messages = json_get(root, "messages");
	assert_true(messages->count >= 2 && messages->count <= TALK_MESSAGES);
	assert_string_equal(json_get(messages->child, "role")->text, "system");
	assert_string_equal(json_get(messages->child->next, "content")->text, task.instruction);
	return messages;
}

/* A result always stands behind the answer that called for it. */
static void well_formed(const struct json *messages)
{
	size_t calls = 0;
	for (const struct json *m = messages->child->next->next; m != NULL; m = m->next) {
		const char *role = json_get(m, "role")->text;
		if (strcmp(role, "assistant") == 0) {
			assert_int_equal(calls, 0);
			calls = json_get(m, "tool_calls")->count;
		} else {
			assert_string_equal(role, "tool");
			assert_true(calls-- > 0);
		}
	}
	assert_int_equal(calls, 0);
}

static void add_turn(struct talk *t, size_t calls, const char *text, size_t n)
{
	struct talk_call call[TALK_CALLS];
	for (size_t i = 0; i < calls; i++)
		call[i] = (struct talk_call){"id-1", "read_file", "{\"path\":\"a\\\"b\"}"};
	assert_true(talk_answer(t, NULL, call, calls));
	for (size_t i = 0; i < calls; i++)
		assert_true(talk_result(t, "id-1", text, n));
}

static void t_trim(void **state)
{
	(void)state;
	struct talk t;
	own_arena struct arena a;
	own_buf struct buf body;
	arena_init(&a, 100000000);
	buf_init(&body, 4 * TALK_BODY);
	assert_true(talk_init(&t, &task));
	assert_int_equal(body_of(&a, &t, &body)->count, 2);
	for (size_t i = 0; i < 100; i++) {
		add_turn(&t, 1 + i % TALK_CALLS, "short", 5);
		well_formed(body_of(&a, &t, &body));
	}
	/* By size: a few large results push the older ones out. */
	char *large = malloc(TALK_RESULT);
	assert_non_null(large);
	memset(large, 'x', TALK_RESULT);
	for (int i = 0; i < 10; i++)
		add_turn(&t, 1, large, TALK_RESULT);
	const struct json *messages = body_of(&a, &t, &body);
	well_formed(messages);
	assert_int_equal(messages->count, 2 + 2 * 3);
	/* One turn that is too large by itself has its results cut. */
	memset(large, '\n', TALK_RESULT);
	add_turn(&t, TALK_CALLS, large, TALK_RESULT);
	messages = body_of(&a, &t, &body);
	well_formed(messages);
	assert_non_null(strstr(buf_cstr(&body), "left out"));
	free(large);
	talk_free(&t);
}

static const char *parse(const char *json, struct model_answer *answer)
{
	*answer = (struct model_answer){0};
	arena_init(&answer->arena, 10000000);
	return model_parse(answer, json, strlen(json));
}

static void t_answers(void **state)
{
	struct model_answer a;
	(void)state;
	assert_null(
	    parse("{\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c1\","
		  "\"type\":\"function\",\"function\":{\"name\":\"finish\",\"arguments\":\"{}\"}}]}}],"
		  "\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":-1}}",
		  &a));
	assert_null(a.content);
	assert_int_equal(a.calls_n, 1);
	assert_string_equal(a.calls[0].name, "finish");
	assert_int_equal(a.prompt_tokens, 5);
	assert_int_equal(a.completion_tokens, 0);
	arena_free(&a.arena);
	assert_null(parse("{\"choices\":[{\"message\":{\"content\":\"hi\",\"tool_calls\":null}}]}", &a));
	assert_string_equal(a.content, "hi");
	arena_free(&a.arena);
	static const char *const bad[] = {
	    "",
	    "[]",
	    "{}",
	    "{\"choices\":{}}",
	    "{\"choices\":[]}",
	    "{\"choices\":[1]}",
	    "{\"choices\":[{\"message\":[]}]}",
	    "{\"choices\":[{\"message\":{\"tool_calls\":[1]}}]}",
	    "{\"choices\":[{\"message\":{\"tool_calls\":[{\"id\":\"\",\"function\":{\"name\":\"a\"}}]}}]}",
	    "{\"choices\":[{\"message\":{\"tool_calls\":[{\"id\":\"c\",\"function\":{\"name\":1}}]}}]}",
	    ("{\"choices\":[{\"message\":{\"tool_calls\":[{\"id\":\"c\",\"function\":{\"name\":\"a\",\"arguments\":{}}}"
	     "]"
	     "}}]}"),
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_string_equal(parse(bad[i], &a), "invalid_model_response");
		arena_free(&a.arena);
	}
}

static void t_event_line(void **state)
{
	(void)state;
	own_buf struct buf line;
	own_arena struct arena a;
	buf_init(&line, 200000);
	arena_init(&a, 1000000);
	assert_true(event_line(&line, &task, 7, "agent.step", "{\"step\":1}"));
	assert_int_equal(line.p[line.n - 1], '\n');
	const struct json *v = json_parse(&a, line.p, line.n - 1, JSON_DEPTH, 100, NULL);
	assert_non_null(v);
	assert_string_equal(json_get(v, "task_id")->text, "run-1");
	assert_string_equal(json_get(v, "sequence")->text, "7");
	assert_int_equal(v->count, 7);
	char *large = malloc(70000);
	assert_non_null(large);
	memset(large, ' ', 70000);
	memcpy(large, "{", 1);
	strcpy(large + 69998, "}");
	buf_reset(&line);
	assert_false(event_line(&line, &task, 8, "agent.step", large));
	free(large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_guards),  cmocka_unit_test(t_repetition), cmocka_unit_test(t_trim),
	    cmocka_unit_test(t_answers), cmocka_unit_test(t_event_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
