/*
 * Dialects of agents that only speak: what each says on its standard output, a JSON object a line, and how it says that
 * it failed. Found by running them; a line that is none of these is left to the transcript. AGENT_VERSION: the versions
 * of etc/agents.
 */
#include "bridge/bridge.h"
#include <string.h>

/* Codex CLI, exec --json: thread.started, turn.started, item.started, item.completed, turn.completed, turn.failed,
 * error. */
static void codex_line(struct bridge *b, const struct json *root)
{
	const struct json *item = inner(root, "item"), *code;
	int64_t exit_code = 0;

	if (is(root, "type", "item.started") && is(item, "type", "command_execution"))
		say_call(b, text_of(item, "id"), "command", inner(item, "command"));
	else if (is(root, "type", "item.completed") && is(item, "type", "agent_message"))
		say_text(b, text_of(item, "text"));
	else if (is(root, "type", "item.completed") && is(item, "type", "command_execution"))
		say_output(b, text_of(item, "id"), "command",
			   (code = inner(item, "exit_code")) != NULL && json_int(code, 0, 0, &exit_code),
			   inner(item, "aggregated_output"));
	else if (is(root, "type", "item.completed") && is(item, "type", "file_change"))
		say_output(b, text_of(item, "id"), "edit", is(item, "status", "completed"), inner(item, "changes"));
	else if (is(root, "type", "turn.completed"))
		say_end(b, true, "");
	else if (is(root, "type", "turn.failed"))
		say_end(b, false, text_of(inner(root, "error"), "message"));
}

/* Claude Code's stream-json, which Qwen Code speaks, too: system, assistant, user, result. A failure of the API is a
 * result with subtype "success" and is_error true. */
static void claude_parts(struct bridge *b, const struct json *parts)
{
	for (const struct json *p = parts != NULL && parts->type == JSON_ARRAY ? parts->child : NULL; p != NULL;
	     p = p->next) {
		const struct json *wrong = inner(p, "is_error");
		if (is(p, "type", "text"))
			say_text(b, text_of(p, "text"));
		else if (is(p, "type", "tool_use"))
			say_call(b, text_of(p, "id"), text_of(p, "name"), inner(p, "input"));
		else if (is(p, "type", "tool_result"))
			say_output(b, text_of(p, "tool_use_id"), "",
				   !(wrong != NULL && wrong->type == JSON_BOOL && wrong->truth), inner(p, "content"));
	}
}

void claude_line(struct bridge *b, const struct json *root)
{
	const struct json *wrong = inner(root, "is_error");
	const char *why = text_of(root, "result");

	if (is(root, "type", "assistant"))
		claude_parts(b, inner(root, "message.content"));
	else if (is(root, "type", "user") && inner(root, "message.content") != NULL &&
		 inner(root, "message.content")->type == JSON_ARRAY)
		claude_parts(b, inner(root, "message.content"));
	else if (is(root, "type", "result"))
		say_end(b, wrong != NULL && wrong->type == JSON_BOOL && !wrong->truth,
			*why != '\0' ? why : text_of(root, "subtype"));
}

/* pi --mode json: message_end, tool_execution_start, tool_execution_end, agent_end. */
static void pi_line(struct bridge *b, const struct json *root)
{
	const struct json *message = inner(root, "message"), *parts = inner(message, "content"), *wrong;

	if (is(root, "type", "message_end") && is(message, "role", "assistant")) {
		for (const struct json *p = parts != NULL && parts->type == JSON_ARRAY ? parts->child : NULL; p != NULL;
		     p = p->next)
			if (is(p, "type", "text"))
				say_text(b, text_of(p, "text"));
		if (is(message, "stopReason", "error") || is(message, "stopReason", "aborted"))
			say_end(b, false, text_of(message, "errorMessage"));
	} else if (is(root, "type", "tool_execution_start"))
		say_call(b, text_of(root, "toolCallId"), text_of(root, "toolName"), inner(root, "args"));
	else if (is(root, "type", "tool_execution_end"))
		say_output(b, text_of(root, "toolCallId"), text_of(root, "toolName"),
			   !((wrong = inner(root, "isError")) != NULL && wrong->type == JSON_BOOL && wrong->truth),
			   inner(root, "result"));
	else if (is(root, "type", "agent_end"))
		say_end(b, true, "");
}

/* opencode run --format json: text, tool_use, step_finish, error. It has no line for a good end. */
static void opencode_line(struct bridge *b, const struct json *root)
{
	const struct json *part = inner(root, "part"), *state = inner(part, "state"), *message;

	if (is(root, "type", "text"))
		say_text(b, text_of(part, "text"));
	else if (is(root, "type", "tool_use")) {
		say_call(b, text_of(part, "callID"), text_of(part, "tool"), inner(state, "input"));
		say_output(b, text_of(part, "callID"), text_of(part, "tool"), is(state, "status", "completed"),
			   inner(state, "output") != NULL ? inner(state, "output") : inner(state, "error"));
	} else if (is(root, "type", "error")) {
		message = inner(root, "error.data.message");
		say_end(b, false,
			message != NULL && message->type == JSON_STRING ? message->text
									: text_of(inner(root, "error"), "name"));
	}
}

/* Copilot CLI, --output-format json: dotted names with their data, then result. */
static void copilot_line(struct bridge *b, const struct json *root)
{
	const struct json *data = inner(root, "data"), *code = inner(root, "exitCode"), *good = inner(data, "success");
	int64_t zero;

	if (is(root, "type", "assistant.message"))
		say_text(b, text_of(data, "content"));
	else if (is(root, "type", "tool.execution_start"))
		say_call(b, text_of(data, "toolCallId"), text_of(data, "toolName"), inner(data, "arguments"));
	else if (is(root, "type", "tool.execution_complete"))
		say_output(b, text_of(data, "toolCallId"), "", good != NULL && good->type == JSON_BOOL && good->truth,
			   inner(data, "result"));
	else if (is(root, "type", "result"))
		say_end(b, code == NULL || json_int(code, 0, 0, &zero), "its exit code is not 0");
}

/* Gemini CLI, --output-format stream-json: init, message, tool_use, tool_result, error, result. What it says comes in
 * pieces; its exit status is the provider's, modulo 256. */
static void gemini_line(struct bridge *b, const struct json *root)
{
	const struct json *output = inner(root, "output");

	if (is(root, "type", "message") && is(root, "role", "assistant"))
		say_chunk(b, text_of(root, "content"));
	else if (is(root, "type", "tool_use"))
		say_call(b, text_of(root, "tool_id"), text_of(root, "tool_name"), inner(root, "parameters"));
	else if (is(root, "type", "tool_result"))
		say_output(b, text_of(root, "tool_id"), "", is(root, "status", "success"),
			   output != NULL ? output : inner(root, "error.message"));
	else if (is(root, "type", "result"))
		say_end(b, is(root, "status", "success"), text_of(inner(root, "error"), "message"));
}

const struct dialect dialect_codex = {.name = "codex", .line = codex_line};
const struct dialect dialect_claude = {.name = "claude", .line = claude_line};
const struct dialect dialect_pi = {.name = "pi", .line = pi_line};
const struct dialect dialect_opencode = {.name = "opencode", .line = opencode_line};
const struct dialect dialect_copilot = {.name = "copilot", .line = copilot_line};
const struct dialect dialect_gemini = {.name = "gemini", .line = gemini_line};
