/*
 * Ask the model, do what it calls for, tell it the results, until it finishes or a guard ends it. It may
 * only claim success when every check has passed since the last write; what has not is run here first.
 */
#include "agent/loop.h"
#include "lib/die.h"
#include "lib/num.h"
#include <stdio.h>
#include <string.h>

static uint64_t left(const struct work *w)
{
	return guards_left_ms(&w->guards, timer_ms());
}

static const char *const effects[TOOL__COUNT] = {
    [TOOL_LIST_FILES] = "read", [TOOL_READ_FILE] = "read",    [TOOL_WRITE_FILE] = "modify", [TOOL_EDIT_FILE] = "modify",
    [TOOL_SEARCH] = "read",     [TOOL_RUN_CHECK] = "execute", [TOOL_FINISH] = "read",
};

static const char refused[] = "the use of this tool was refused";

/* May this tool be used now? NULL, or why not. */
static const char *forbidden(struct work *w, enum tool tool, const char *action, const char *reason,
			     const char *preview)
{
	if (w->task.permission[tool] == PERMIT_ALLOW)
		return NULL;
	if (w->task.permission[tool] != PERMIT_ASK)
		return refused;
	uint64_t waited = 0;
	const struct approve_what what = {effects[tool], tool_names[tool], action, reason, preview};
	enum approved said = approve_ask(&w->approve, &what, &waited);
	guards_waited(&w->guards, waited);
	switch (said) {
	case APPROVED:
		return NULL;
	case UNANSWERED:
		return "nobody was there to allow the use of this tool";
	case TOO_LARGE:
		return "this is too large to be shown to the person who would have to allow it; do it in smaller parts";
	case CALLED_OFF:
		w->called_off = true;
		return refused;
	case REFUSED:
	default:
		return refused;
	}
}

static void event_step(struct work *w)
{
	char data[96];
	snprintf(data, sizeof data, "{\"step\":%u,\"max_steps\":%u}", w->guards.steps, w->guards.max_steps);
	event_post(&w->events, "agent.step", data);
}

/* Runs what has not passed since the last write. True: nothing is open any more. */
static bool verified(struct work *w, const char *action, struct buf *text)
{
	for (size_t i; (i = guards_open_check(&w->guards, &w->task)) < w->task.checks_n;) {
		const char *name = w->task.checks[i].name;
		buf_reset(text);
		const char *why = forbidden(w, TOOL_RUN_CHECK, action, "final_verification", name);
		if (why != NULL) {
			buf_addf(text, "success cannot be claimed: %s has not passed and may not be run: %s", name,
				 why);
			return false;
		}
		bool ok = tool_check(&w->tools, i, text);
		event_output(&w->events, action, "run_check", ok, (const char *)text->p, text->n);
		if (!ok) {
			buf_addf(text, "\nsuccess cannot be claimed: %s does not pass", name);
			return false;
		}
	}
	return true;
}

static void use_tool(struct work *w, enum tool tool, const struct talk_call *call, struct tool_answer *answer)
{
	own_arena struct arena arena;
	arena_init(&arena, 8000000);
	const struct json *args = json_parse(&arena, call->arguments, strlen(call->arguments), JSON_DEPTH, 1000, NULL);
	const char *wrong = tool == TOOL__COUNT ? "there is no such tool" : tool_arguments(tool, args);
	if (wrong == NULL && tool != TOOL_FINISH)
		wrong = forbidden(w, tool, call->id, "model_tool", call->arguments);
	if (wrong != NULL)
		buf_adds(&answer->text, wrong);
	else
		tool_run(&w->tools, tool, args, answer);
}

/* One call. NULL, or the terminal reason. */
static const char *one_call(struct work *w, const struct talk_call *call)
{
	struct tool_answer answer = {0};
	const char *end = NULL;
	enum tool tool = tool_find(call->name);
	buf_init(&answer.text, 4 * TALK_RESULT);
	event_call(&w->events, call->id, call->name, call->arguments);
	use_tool(w, tool, call, &answer);
	if (tool == TOOL_FINISH && answer.ok) {
		if (answer.success && !verified(w, call->id, &answer.text)) {
			answer.ok = false;
		} else {
			w->success = answer.success;
			memcpy(w->summary, answer.summary, sizeof w->summary);
			end = "finished";
		}
	}
	const char *text = buf_cstr(&answer.text);
	size_t n = text != NULL ? answer.text.n : 0;
	if (end == NULL) {
		event_output(&w->events, call->id, call->name, answer.ok, text != NULL ? text : "", n);
		end = guards_result(&w->guards, call->name, call->arguments, text != NULL ? text : "", n);
		if (!talk_result(&w->talk, call->id, text != NULL ? text : "", n))
			end = "no_memory";
	}
	buf_free(&answer.text);
	return end == NULL && w->called_off ? "called_off" : end;
}

/* One step. NULL, or the terminal reason. */
static const char *one_step(struct work *w)
{
	struct model_answer answer;
	const char *end = guards_step(&w->guards, timer_ms());
	if (end != NULL)
		return end;
	event_step(w);
	end = model_ask(&w->model, &w->talk, left(w), &answer);
	if (end == NULL && !talk_answer(&w->talk, answer.content, answer.calls, answer.calls_n))
		end = "no_memory";
	if (end == NULL && answer.content != NULL)
		event_text(&w->events, answer.content);
	if (end == NULL)
		end = guards_answer(&w->guards, answer.calls_n);
	if (end == NULL && answer.calls_n == 0 &&
	    !talk_say(&w->talk, "Use a tool. When the work is done, or cannot be done, call finish."))
		end = "no_memory";
	for (size_t i = 0; end == NULL && i < answer.calls_n; i++)
		end = left(w) > 0 ? one_call(w, &answer.calls[i]) : "wall_time";
	arena_free(&answer.arena);
	return end;
}

void work_run(struct work *w)
{
	event_post(&w->events, "agent.started", NULL);
	do
		w->terminal_reason = one_step(w);
	while (w->terminal_reason == NULL);
	if (w->summary[0] == 0)
		snprintf(w->summary, sizeof w->summary, "The agent ended without finishing: %s%s%s.",
			 w->terminal_reason, w->model.code[0] ? ", " : "", w->model.code);
	own_buf struct buf response;
	buf_init(&response, 60000);
	work_response(w, &response);
	if (buf_cstr(&response) != NULL)
		event_post(&w->events, "agent.finished", buf_cstr(&response));
	log_info("ended: %s, %u steps", w->terminal_reason, w->guards.steps);
}

void work_response(const struct work *w, struct buf *out)
{
	struct jw j;
	jw_init(&j, out);
	jw_open(&j, '{');
	jw_kstr(&j, "status", w->success ? "completed" : "failed");
	jw_kstr(&j, "summary", w->summary);
	jw_kstr(&j, "terminal_reason", w->terminal_reason);
	jw_kint(&j, "steps", w->guards.steps);
	jw_key(&j, "usage");
	jw_open(&j, '{');
	jw_kint(&j, "model_requests", w->model.requests);
	jw_kint(&j, "prompt_tokens", w->model.prompt_tokens);
	jw_kint(&j, "completion_tokens", w->model.completion_tokens);
	jw_close(&j, '}');
	jw_close(&j, '}');
}
