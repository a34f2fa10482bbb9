/*
 * The Agent Client Protocol (agentclientprotocol.com, version 1), as a client: JSON-RPC 2.0, a line each way. Its
 * course: initialize, session/new, perhaps session/set_mode, session/prompt, whose answer is the end. Between them the
 * agent says what it does (session/update) and asks (session/request_permission). It is offered neither files nor
 * terminals.
 */
#include "bridge/bridge.h"
#include "lib/die.h"
#include "lib/num.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INITIALIZE, SESSION_NEW, SET_MODE, PROMPT, REQUESTS };
enum { CALLS = BRIDGE_ASK_CALLS, ID = 128, PREVIEW = 200000, FRAME = 1 << 20, METHOD_NOT_FOUND = -32601 };

/* What was last said of a tool call: a question need not repeat it. */
struct call {
	char id[ID], kind[32];
	struct buf shown;
};

struct acp {
	char session[ID];
	struct call calls[CALLS];
	unsigned next;
	bool stopping;
};

static void begin(struct bridge *b, struct buf *out, struct jw *w, int id, const char *method)
{
	(void)b;
	buf_init(out, FRAME);
	jw_init(w, out);
	jw_open(w, '{');
	jw_kstr(w, "jsonrpc", "2.0");
	if (id >= 0)
		jw_kint(w, "id", id);
	jw_kstr(w, "method", method);
	jw_key(w, "params");
	jw_open(w, '{');
}

static bool send(struct bridge *b, struct buf *out, struct jw *w)
{
	jw_close(w, '}');
	jw_close(w, '}');
	bool ok = say_line(b, out);
	buf_free(out);
	return ok;
}

static bool acp_begin(struct bridge *b)
{
	struct buf out;
	struct jw w;

	if ((b->own = calloc(1, sizeof(struct acp))) == NULL)
		return false;
	begin(b, &out, &w, INITIALIZE, "initialize");
	jw_kint(&w, "protocolVersion", 1);
	jw_key(&w, "clientCapabilities");
	jw_open(&w, '{');
	jw_key(&w, "fs");
	jw_open(&w, '{');
	jw_kbool(&w, "readTextFile", false);
	jw_kbool(&w, "writeTextFile", false);
	jw_close(&w, '}');
	jw_kbool(&w, "terminal", false);
	jw_close(&w, '}');
	return send(b, &out, &w);
}

static bool ask_session(struct bridge *b)
{
	struct buf out;
	struct jw w;

	begin(b, &out, &w, SESSION_NEW, "session/new");
	jw_kstr(&w, "cwd", "/workspace/source");
	jw_key(&w, "mcpServers");
	jw_open(&w, '[');
	jw_close(&w, ']');
	return send(b, &out, &w);
}

/* An agent whose first mode judges its own commands is put into the one that asks. */
static bool ask_mode(struct bridge *b)
{
	const struct acp *a = b->own;
	struct buf out;
	struct jw w;

	begin(b, &out, &w, SET_MODE, "session/set_mode");
	jw_kstr(&w, "sessionId", a->session);
	jw_kstr(&w, "modeId", "default");
	return send(b, &out, &w);
}

static bool ask_prompt(struct bridge *b)
{
	const struct acp *a = b->own;
	struct buf out;
	struct jw w;

	begin(b, &out, &w, PROMPT, "session/prompt");
	jw_kstr(&w, "sessionId", a->session);
	jw_key(&w, "prompt");
	jw_open(&w, '[');
	jw_open(&w, '{');
	jw_kstr(&w, "type", "text");
	jw_kstr(&w, "text", b->task.instruction);
	jw_close(&w, '}');
	jw_close(&w, ']');
	return send(b, &out, &w);
}

static void acp_stop(struct bridge *b)
{
	struct acp *a = b->own;
	struct buf out;
	struct jw w;

	if (a->stopping || a->session[0] == '\0')
		return;
	a->stopping = true;
	begin(b, &out, &w, -1, "session/cancel");
	jw_kstr(&w, "sessionId", a->session);
	send(b, &out, &w);
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

static void answered(struct bridge *b, int64_t id, const struct json *root)
{
	struct acp *a = b->own;
	const struct json *result = inner(root, "result"), *error = inner(root, "error");
	bool ok = true;

	if (error != NULL && id != SET_MODE) {
		say_end(b, false,
			text_of(error, "message")[0] != '\0' ? text_of(error, "message") : "the agent refused");
	} else if (id == INITIALIZE) {
		ok = ask_session(b);
	} else if (id == SESSION_NEW) {
		ok = (size_t)snprintf(a->session, sizeof a->session, "%s", text_of(result, "sessionId")) <
			 sizeof a->session &&
		     a->session[0] != '\0' && (has_default_mode(result) ? ask_mode(b) : ask_prompt(b));
	} else if (id == SET_MODE) {
		ok = ask_prompt(b);
	} else if (id == PROMPT) {
		const char *why = text_of(result, "stopReason");
		say_end(b, strcmp(why, "end_turn") == 0, why);
	}
	if (!ok)
		say_end(b, false, "the agent does not speak the protocol");
}

/* --- what it says ------------------------------------------------------------------------------------------------- */

static struct call *call_of(struct acp *a, const char *id, bool make)
{
	for (unsigned i = 0; i < CALLS; i++)
		if (a->calls[i].id[0] != '\0' && strcmp(a->calls[i].id, id) == 0)
			return &a->calls[i];
	if (!make || *id == '\0' || strlen(id) >= ID)
		return NULL;
	struct call *c = &a->calls[a->next++ % CALLS];
	buf_free(&c->shown);
	*c = (struct call){0};
	memcpy(c->id, id, strlen(id) + 1);
	buf_init(&c->shown, PREVIEW);
	return c;
}

static bool is_text(const struct json *object, const char *key, bool needed)
{
	const struct json *v = json_get(object, key);

	return v == NULL || v->type == JSON_NULL ? !needed : v->type == JSON_STRING;
}

/* Everything on which it depends, in words that no title can stand for: the command, then all that it was given, then
 * what would be changed. What is not of the usual form is shown as it is. */
static void show(struct buf *out, const struct json *call)
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
	for (const struct json *c = content != NULL && content->type == JSON_ARRAY ? content->child : NULL; c != NULL;
	     c = c->next) {
		if (strcmp(text_of(c, "type"), "diff") != 0)
			continue;
		if (!is_text(c, "path", true) || !is_text(c, "oldText", false) || !is_text(c, "newText", true)) {
			json_write(out, c);
			buf_addc(out, '\n');
		} else
			buf_addf(out, "file %s\n--- before\n%s\n--- after\n%s\n", text_of(c, "path"),
				 text_of(c, "oldText"), text_of(c, "newText"));
	}
}

static void remember(struct acp *a, const struct json *call)
{
	struct call *c = call_of(a, text_of(call, "toolCallId"), true);

	if (c == NULL)
		return;
	if (text_of(call, "kind")[0] != '\0')
		snprintf(c->kind, sizeof c->kind, "%s", text_of(call, "kind"));
	struct buf now;
	buf_init(&now, PREVIEW);
	show(&now, call);
	/* What is too large to be shown must not leave what was said before in its place: then nothing is shown. */
	if (buf_failed(&now))
		buf_reset(&c->shown);
	if (now.n > 0 && !buf_failed(&now)) {
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
		remember(a, update);
		const struct call *c = call_of(a, text_of(update, "toolCallId"), false);
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

static void reply(struct bridge *b, const struct json *id, const char *outcome, const char *chosen)
{
	own_buf struct buf out;
	struct jw w;

	buf_init(&out, FRAME);
	jw_init(&w, &out);
	jw_open(&w, '{');
	jw_kstr(&w, "jsonrpc", "2.0");
	jw_key(&w, "id");
	jw_json(&w, id);
	jw_key(&w, outcome != NULL ? "result" : "error");
	jw_open(&w, '{');
	if (outcome != NULL) {
		jw_key(&w, "outcome");
		jw_open(&w, '{');
		jw_kstr(&w, "outcome", outcome);
		if (chosen != NULL)
			jw_kstr(&w, "optionId", chosen);
		jw_close(&w, '}');
	} else {
		jw_kint(&w, "code", METHOD_NOT_FOUND);
		jw_kstr(&w, "message", "this client does not have it");
	}
	jw_close(&w, '}');
	jw_close(&w, '}');
	if (!say_line(b, &out))
		say_end(b, false, "the agent does not listen");
}

static void asked(struct bridge *b, const struct json *id, const struct json *params)
{
	struct acp *a = b->own;
	const struct json *call = inner(params, "toolCall"), *options = inner(params, "options");
	enum permit said = PERMIT_NO;

	if (call != NULL && call->type == JSON_OBJECT) {
		remember(a, call);
		struct call *c = call_of(a, text_of(call, "toolCallId"), false);
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
	reply(b, id, chosen != NULL ? "selected" : "cancelled", chosen);
}

static void acp_line(struct bridge *b, const struct json *root)
{
	const struct json *id = inner(root, "id"), *params = inner(root, "params");
	const char *method = text_of(root, "method");
	int64_t number;

	if (*method == '\0') {
		if (id != NULL && json_int(id, 0, REQUESTS - 1, &number))
			answered(b, number, root);
	} else if (id == NULL) {
		const struct json *update = inner(params, "update");
		if (strcmp(method, "session/update") == 0 && update != NULL && update->type == JSON_OBJECT)
			updated(b, update);
	} else if (strcmp(method, "session/request_permission") == 0 && params != NULL && params->type == JSON_OBJECT)
		asked(b, id, params);
	else
		reply(b, id, NULL, NULL);
}

const struct dialect dialect_acp = {
    .name = "acp", .talks = true, .begin = acp_begin, .line = acp_line, .stop = acp_stop};
