/*
 * The Agent Client Protocol (agentclientprotocol.com, version 1), as a client: JSON-RPC 2.0, a line each way. Its
 * course: initialize, session/new, perhaps session/set_mode, session/prompt, whose answer is the end. Between them the
 * agent says what it does (session/update) and asks (session/request_permission). It is offered neither files nor
 * terminals.
 */
#include "bridge/rpc.h"
#include "bridge/show.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INITIALIZE, SESSION_NEW, SET_MODE, PROMPT, REQUESTS };

struct acp {
	char session[RPC_ID];
	struct calls calls;
	bool stopping;
};

static bool acp_begin(struct bridge *b)
{
	struct rpc_line l;

	if ((b->own = calloc(1, sizeof(struct acp))) == NULL)
		return false;
	rpc_open(&l, INITIALIZE, "initialize");
	jw_kint(&l.w, "protocolVersion", 1);
	jw_key(&l.w, "clientCapabilities");
	jw_open(&l.w, '{');
	jw_key(&l.w, "fs");
	jw_open(&l.w, '{');
	jw_kbool(&l.w, "readTextFile", false);
	jw_kbool(&l.w, "writeTextFile", false);
	jw_close(&l.w, '}');
	jw_kbool(&l.w, "terminal", false);
	jw_close(&l.w, '}');
	return rpc_send(b, &l);
}

static bool ask_session(struct bridge *b)
{
	struct rpc_line l;

	rpc_open(&l, SESSION_NEW, "session/new");
	jw_kstr(&l.w, "cwd", "/workspace/source");
	jw_key(&l.w, "mcpServers");
	jw_open(&l.w, '[');
	jw_close(&l.w, ']');
	return rpc_send(b, &l);
}

/* An agent whose first mode judges its own commands is put into the one that asks. */
static bool ask_mode(struct bridge *b)
{
	const struct acp *a = b->own;
	struct rpc_line l;

	rpc_open(&l, SET_MODE, "session/set_mode");
	jw_kstr(&l.w, "sessionId", a->session);
	jw_kstr(&l.w, "modeId", "default");
	return rpc_send(b, &l);
}

static bool ask_prompt(struct bridge *b)
{
	const struct acp *a = b->own;
	struct rpc_line l;

	rpc_open(&l, PROMPT, "session/prompt");
	jw_kstr(&l.w, "sessionId", a->session);
	jw_key(&l.w, "prompt");
	jw_open(&l.w, '[');
	jw_open(&l.w, '{');
	jw_kstr(&l.w, "type", "text");
	jw_kstr(&l.w, "text", b->task.instruction);
	jw_close(&l.w, '}');
	jw_close(&l.w, ']');
	return rpc_send(b, &l);
}

static void acp_stop(struct bridge *b)
{
	struct acp *a = b->own;
	struct rpc_line l;

	if (a->stopping || a->session[0] == '\0')
		return;
	a->stopping = true;
	rpc_open(&l, -1, "session/cancel");
	jw_kstr(&l.w, "sessionId", a->session);
	rpc_send(b, &l);
}

/* --- what it answers -------------------------------------------------------------------------------------------- */

static bool has_default_mode(const struct json *result)
{
	const struct json *modes = inner(result, "modes.availableModes");

	if (modes == NULL || modes->type != JSON_ARRAY ||
	    strcmp(text_of(inner(result, "modes"), "currentModeId"), "default") == 0)
		return false;
	for (const struct json *m = modes->child; m != NULL; m = m->next)
		if (strcmp(text_of(m, "id"), "default") == 0)
			return true;
	return false;
}

static bool answered(struct bridge *b, int64_t id, const struct json *result, const struct json *error)
{
	struct acp *a = b->own;

	if (error != NULL && id != SET_MODE) {
		say_end(b, false,
			text_of(error, "message")[0] != '\0' ? text_of(error, "message") : "the agent refused");
	} else if (id == INITIALIZE) {
		return ask_session(b);
	} else if (id == SESSION_NEW) {
		return (size_t)snprintf(a->session, sizeof a->session, "%s", text_of(result, "sessionId")) <
			   sizeof a->session &&
		       a->session[0] != '\0' && (has_default_mode(result) ? ask_mode(b) : ask_prompt(b));
	} else if (id == SET_MODE) {
		return ask_prompt(b);
	} else if (id == PROMPT) {
		const char *why = text_of(result, "stopReason");
		say_end(b, strcmp(why, "end_turn") == 0, why);
	}
	return true;
}

/* --- what it says ------------------------------------------------------------------------------------------------- */

/* Everything on which it depends, in words that no title can stand for: the command, then all that it was given, then
 * what would be changed. What is not of the usual form is shown as it is. */
static void show(struct buf *out, const struct json *call, bool titles)
{
	const struct json *raw = inner(call, "rawInput"), *content = inner(call, "content");
	const char *command = text_of(raw, "command");
	bool object = raw != NULL && raw->type == JSON_OBJECT;

	if (*command != '\0')
		buf_addf(out, "%s\n", command);
	size_t named = object && *command != '\0' ? 1 : 0; /* is shown by itself */
	if (raw != NULL && raw->type != JSON_NULL && (!object || raw->count > named)) {
		json_write(out, raw);
		buf_addc(out, '\n');
	}
	/* Gemini CLI sends no input. It, and not its model, makes the title of a command of the command alone; where it
	 * runs, and the model's own words for it, are its content. */
	titles = titles && raw == NULL && strcmp(text_of(call, "kind"), "execute") == 0 &&
		 text_of(call, "title")[0] != '\0' && strcmp(text_of(call, "status"), "pending") == 0;
	if (titles)
		buf_addf(out, "%s\n", text_of(call, "title"));
	for (const struct json *c = content != NULL && content->type == JSON_ARRAY ? content->child : NULL; c != NULL;
	     c = c->next) {
		const struct json *words = titles ? inner(c, "content") : NULL;
		if (words != NULL) {
			json_write(out, words);
			buf_addc(out, '\n');
		}
		if (strcmp(text_of(c, "type"), "diff") != 0)
			continue;
		if (!is_text(c, "path") || (!is_null(inner(c, "oldText")) && !is_text(c, "oldText")) ||
		    !is_text(c, "newText") ||
		    !show_change(out, "file", text_of(c, "path"), text_of(c, "oldText"), text_of(c, "newText"))) {
			json_write(out, c);
			buf_addc(out, '\n');
		}
	}
}

static void remember(struct bridge *b, const struct json *call)
{
	struct acp *a = b->own;
	const char *id = text_of(call, "toolCallId");
	struct call *c = call_find(&a->calls, id);

	if (c == NULL && (c = call_new(&a->calls, id, true)) == NULL)
		return;
	if (text_of(call, "kind")[0] != '\0')
		snprintf(c->kind, sizeof c->kind, "%s", text_of(call, "kind"));
	struct buf now;
	buf_init(&now, SHOWN);
	show(&now, call, b->dialect->titles);
	/* What is too large to be shown, or not as it was said, must not leave what was said before in its place: then
	 * nothing is shown. */
	if (buf_failed(&now) || b->mended)
		buf_reset(&c->shown);
	if (now.n > 0 && !buf_failed(&now) && !b->mended) {
		buf_free(&c->shown);
		c->shown = now;
	} else
		buf_free(&now);
}

static void updated(struct bridge *b, const struct json *update)
{
	struct acp *a = b->own;
	const char *what = text_of(update, "sessionUpdate"), *status = text_of(update, "status");

	if (strcmp(what, "agent_message_chunk") == 0) {
		say_chunk(b, text_of(inner(update, "content"), "text"));
	} else if (strcmp(what, "tool_call") == 0 || strcmp(what, "tool_call_update") == 0) {
		remember(b, update);
		const struct call *c = call_find(&a->calls, text_of(update, "toolCallId"));
		const char *kind = c != NULL && c->kind[0] != '\0' ? c->kind : "other";
		if (strcmp(what, "tool_call") == 0)
			say_call(b, text_of(update, "toolCallId"), kind, inner(update, "rawInput"));
		if (strcmp(status, "completed") == 0 || strcmp(status, "failed") == 0)
			say_output(b, text_of(update, "toolCallId"), kind, strcmp(status, "completed") == 0,
				   inner(update, "content"));
	}
}

/* --- what it asks --------------------------------------------------------------------------------------------------
 */

/* Its option of that kind. Where several are of one kind, one of them changes a mode as well: only a plain one will do.
 */
static const char *option(const struct json *options, const char *kind)
{
	static const char *const plain[] = {"proceed_once", "allow_once",  "allow-once", "once",  "allow",
					    "reject_once",  "reject-once", "reject",     "cancel"};
	const char *only = NULL;
	unsigned n = 0;

	for (const struct json *o = options != NULL && options->type == JSON_ARRAY ? options->child : NULL; o != NULL;
	     o = o->next) {
		const char *id = text_of(o, "optionId");
		if (strcmp(text_of(o, "kind"), kind) != 0 || *id == '\0')
			continue;
		for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
			if (strcmp(plain[i], id) == 0)
				return id;
		only = id;
		n++;
	}
	return n == 1 ? only : NULL;
}

static bool asked(struct bridge *b, const char *method, const struct json *id, const struct json *params)
{
	struct acp *a = b->own;
	const struct json *call = inner(params, "toolCall"), *options = inner(params, "options");
	enum permit said = PERMIT_NO;
	struct rpc_line l;

	if (strcmp(method, "session/request_permission") != 0)
		return false;
	if (call != NULL && call->type == JSON_OBJECT) {
		struct call *c = call_find(&a->calls, text_of(call, "toolCallId"));
		if (c != NULL && line_lost(b))
			call_drop(c);
		remember(b, call);
		c = call_find(&a->calls, text_of(call, "toolCallId"));
		const char *preview = c != NULL && buf_cstr(&c->shown) != NULL ? buf_cstr(&c->shown) : "";
		say_whole(b);
		if (!a->stopping)
			said = permit(b, c != NULL && c->kind[0] != '\0' ? c->kind : "other",
				      text_of(call, "toolCallId"), text_of(call, "title"), preview);
	}
	const char *chosen =
	    said == PERMIT_STOP ? NULL : option(options, said == PERMIT_YES ? "allow_once" : "reject_once");
	if (said == PERMIT_STOP)
		acp_stop(b);
	rpc_answer(&l, id);
	jw_key(&l.w, "outcome");
	jw_open(&l.w, '{');
	jw_kstr(&l.w, "outcome", chosen != NULL ? "selected" : "cancelled");
	if (chosen != NULL)
		jw_kstr(&l.w, "optionId", chosen);
	jw_close(&l.w, '}');
	rpc_send(b, &l);
	return true;
}

static void told(struct bridge *b, const char *method, const struct json *params)
{
	const struct json *update = inner(params, "update");

	if (strcmp(method, "session/update") == 0 && update != NULL && update->type == JSON_OBJECT)
		updated(b, update);
}

static void acp_line(struct bridge *b, const struct json *root)
{
	static const struct rpc rpc = {.answers = REQUESTS, .answered = answered, .told = told, .asked = asked};

	rpc_take(b, &rpc, root);
}

static void acp_end(struct bridge *b)
{
	struct acp *a = b->own;

	if (a != NULL)
		calls_free(&a->calls);
	free(a);
	b->own = NULL;
}

const struct dialect dialect_acp = {
    .name = "acp", .talks = true, .begin = acp_begin, .line = acp_line, .stop = acp_stop, .end = acp_end};
const struct dialect dialect_acp_gemini = {.name = "acp-gemini",
					   .talks = true,
					   .titles = true,
					   .begin = acp_begin,
					   .line = acp_line,
					   .stop = acp_stop,
					   .end = acp_end};
