/*
 * Codex CLI's app-server, which asks before it does anything: JSON-RPC, a line each way. Its course: initialize,
 * initialized, thread/start, turn/start; turn/completed is the end. Between them it says what it does (item/started,
 * item/completed) and asks (item/commandExecution/requestApproval, item/fileChange/requestApproval). Found by its own
 * "app-server generate-json-schema" and by running it; AGENT_VERSION: of etc/agents/codex.lock.
 *
 * A question about files names an item and does not say what would be changed: what counts is what item/started said of
 * that item. "For the rest of the session" is never answered, nor are the rules that it proposes.
 */
#include "bridge/rpc.h"
#include "bridge/show.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INITIALIZE, THREAD_START, TURN_START, TURN_INTERRUPT, REQUESTS };

struct codex {
	char thread[RPC_ID], turn[RPC_ID];
	struct calls items; /* changes of files that have begun, and are not done */
	bool stopping;
};

static bool keep(char to[RPC_ID], const char *id)
{
	return *id != '\0' && (size_t)snprintf(to, RPC_ID, "%s", id) < RPC_ID;
}

static bool codex_begin(struct bridge *b)
{
	struct rpc_line l;
	struct codex *c;

	if ((b->own = calloc(1, sizeof *c)) == NULL)
		return false;
	c = b->own;
	for (unsigned i = 0; i < CALLS; i++)
		call_drop(&c->items.all[i]);
	rpc_open(&l, INITIALIZE, "initialize");
	jw_key(&l.w, "clientInfo");
	jw_open(&l.w, '{');
	jw_kstr(&l.w, "name", "pinfold");
	jw_kstr(&l.w, "version", "1");
	jw_close(&l.w, '}');
	return rpc_send(b, &l);
}

static bool ask_thread(struct bridge *b)
{
	struct rpc_line l;

	rpc_open(&l, -1, "initialized");
	if (!rpc_send(b, &l))
		return true;
	rpc_open(&l, THREAD_START, "thread/start");
	jw_kstr(&l.w, "model", b->task.model);
	jw_kstr(&l.w, "cwd", "/workspace/source");
	jw_kstr(&l.w, "approvalPolicy", "untrusted");
	/* The box is the boundary: its own would need namespaces. */
	jw_kstr(&l.w, "sandbox", "danger-full-access");
	jw_kbool(&l.w, "ephemeral", true);
	rpc_send(b, &l);
	return true;
}

static void ask_turn(struct bridge *b)
{
	const struct codex *c = b->own;
	struct rpc_line l;

	rpc_open(&l, TURN_START, "turn/start");
	jw_kstr(&l.w, "threadId", c->thread);
	jw_key(&l.w, "input");
	jw_open(&l.w, '[');
	jw_open(&l.w, '{');
	jw_kstr(&l.w, "type", "text");
	jw_kstr(&l.w, "text", b->task.instruction);
	jw_close(&l.w, '}');
	jw_close(&l.w, ']');
	rpc_send(b, &l);
}

static void interrupt(struct bridge *b)
{
	const struct codex *c = b->own;
	struct rpc_line l;

	rpc_open(&l, TURN_INTERRUPT, "turn/interrupt");
	jw_kstr(&l.w, "threadId", c->thread);
	jw_kstr(&l.w, "turnId", c->turn);
	rpc_send(b, &l);
}

static void codex_stop(struct bridge *b)
{
	struct codex *c = b->own;

	if (c == NULL || c->stopping)
		return;
	c->stopping = true;
	if (c->turn[0] != '\0')
		interrupt(b);
}

static bool answered(struct bridge *b, int64_t id, const struct json *result, const struct json *error)
{
	struct codex *c = b->own;

	if (error != NULL && id != TURN_INTERRUPT) {
		const char *why = text_of(error, "message");
		say_end(b, false, *why != '\0' ? why : "the agent refused");
	} else if (id == INITIALIZE) {
		return ask_thread(b);
	} else if (id == THREAD_START) {
		if (!keep(c->thread, text_of(inner(result, "thread"), "id")))
			return false;
		if (c->stopping)
			say_end(b, false, "interrupted");
		else
			ask_turn(b);
	} else if (id == TURN_START) {
		if (!keep(c->turn, text_of(inner(result, "turn"), "id")))
			return false;
		if (c->stopping)
			interrupt(b);
	}
	return true;
}

/* --- what it says ------------------------------------------------------------------------------------------------- */

/* One changed file. What is not of the usual form is shown as it is. */
static void show_one(struct buf *out, const struct json *change)
{
	const struct json *kind = inner(change, "kind"), *diff = inner(change, "diff");
	const char *path = text_of(change, "path"), *text = text_of(change, "diff");
	bool plain = kind != NULL && diff != NULL && diff->type == JSON_STRING && change->count == 3;

	if (plain && kind->count == 1 && is(kind, "type", "add") && show_change(out, "add", path, NULL, text))
		return;
	if (plain && kind->count == 1 && is(kind, "type", "delete") && show_change(out, "delete", path, text, NULL))
		return;
	if (plain && is(kind, "type", "update") && kind->count == 1 + (inner(kind, "move_path") != NULL) &&
	    is_null(inner(kind, "move_path")) && show_diff(out, "update", path, text))
		return;
	json_write(out, change);
	buf_addc(out, '\n');
}

static void show_changes(struct buf *out, const struct json *changes)
{
	buf_init(out, SHOWN);
	for (const struct json *c = changes != NULL && changes->type == JSON_ARRAY ? changes->child : NULL; c != NULL;
	     c = c->next)
		show_one(out, c);
}

/* An id is the model's own, and may come twice: then nothing tells which of the two a question is about. */
static void begun(struct bridge *b, const struct json *item)
{
	struct codex *c = b->own;
	const char *id = text_of(item, "id");
	struct call *call = call_find(&c->items, id);

	if (call != NULL)
		call->doubtful = true;
	else if ((call = call_new(&c->items, id, false)) != NULL) {
		buf_free(&call->shown);
		show_changes(&call->shown, inner(item, "changes"));
		call->doubtful = b->mended;
	}
}

static void changed(struct codex *c, const struct json *params)
{
	struct call *call = call_find(&c->items, text_of(params, "itemId"));
	own_buf struct buf now;

	show_changes(&now, inner(params, "changes"));
	if (call != NULL &&
	    (buf_failed(&now) || now.n != call->shown.n || now.n == 0 || memcmp(now.p, call->shown.p, now.n) != 0))
		call->doubtful = true;
}

static void done(struct codex *c, const struct json *item)
{
	struct call *call = call_find(&c->items, text_of(item, "id"));

	if (call != NULL && !call->doubtful)
		call_drop(call);
}

static void item_started(struct bridge *b, const struct json *item)
{
	if (is(item, "type", "commandExecution"))
		say_call(b, text_of(item, "id"), "command", inner(item, "command"));
	else if (is(item, "type", "mcpToolCall"))
		say_call(b, text_of(item, "id"), text_of(item, "tool"), inner(item, "arguments"));
	else if (is(item, "type", "fileChange")) {
		say_call(b, text_of(item, "id"), "edit", inner(item, "changes"));
		begun(b, item);
	}
}

static void item_completed(struct bridge *b, const struct json *item)
{
	const struct json *code = inner(item, "exitCode");
	bool well = is(item, "status", "completed");
	int64_t zero;

	if (is(item, "type", "agentMessage"))
		say_text(b, text_of(item, "text"));
	else if (is(item, "type", "commandExecution"))
		say_output(b, text_of(item, "id"), "command", well && code != NULL && json_int(code, 0, 0, &zero),
			   is_null(inner(item, "aggregatedOutput")) ? NULL : inner(item, "aggregatedOutput"));
	else if (is(item, "type", "mcpToolCall"))
		say_output(b, text_of(item, "id"), text_of(item, "tool"), well, inner(item, "result"));
	else if (is(item, "type", "fileChange")) {
		say_output(b, text_of(item, "id"), "edit", well, inner(item, "changes"));
		done(b->own, item);
	}
}

static void turn_completed(struct bridge *b, const struct json *turn)
{
	const char *why = text_of(inner(turn, "error"), "message");

	say_end(b, is(turn, "status", "completed"), *why != '\0' ? why : text_of(turn, "status"));
}

static void told(struct bridge *b, const char *method, const struct json *params)
{
	struct codex *c = b->own;

	/* What other threads do is not the run's course. */
	if (c->thread[0] == '\0' || !is(params, "threadId", c->thread))
		return;
	if (strcmp(method, "item/started") == 0)
		item_started(b, inner(params, "item"));
	else if (strcmp(method, "item/completed") == 0)
		item_completed(b, inner(params, "item"));
	else if (strcmp(method, "item/fileChange/patchUpdated") == 0)
		changed(c, params);
	else if (strcmp(method, "error") == 0)
		event_text(&b->events, text_of(inner(params, "error"), "message"));
	else if (strcmp(method, "turn/started") == 0 && c->turn[0] == '\0')
		(void)keep(c->turn, text_of(inner(params, "turn"), "id"));
	else if (strcmp(method, "turn/completed") == 0 &&
		 (c->turn[0] == '\0' || is(inner(params, "turn"), "id", c->turn)))
		turn_completed(b, inner(params, "turn"));
}

/* --- what it asks ------------------------------------------------------------------------------------------------- */

/* The command, then whatever else it depends on. */
static void show_command(struct buf *out, const struct json *params)
{
	/* Ids, times, the agent's own words, and answers that are never given. */
	static const char *const but[] = {"kind",
					  "threadId",
					  "turnId",
					  "itemId",
					  "approvalId",
					  "startedAtMs",
					  "environmentId",
					  "reason",
					  "command",
					  "commandActions",
					  "proposedExecpolicyAmendment",
					  "proposedNetworkPolicyAmendments",
					  "availableDecisions",
					  NULL};
	const char *command = text_of(params, "command");

	if (*command == '\0')
		return;
	buf_addf(out, "%s\n", command);
	show_rest(out, params, is(params, "kind", "command") ? but : but + 1);
}

static bool asked(struct bridge *b, const char *method, const struct json *id, const struct json *params)
{
	struct codex *c = b->own;
	bool command = strcmp(method, "item/commandExecution/requestApproval") == 0;
	const char *item = text_of(params, "itemId"), *decision = "decline";
	struct rpc_line l;

	if (!command && strcmp(method, "item/fileChange/requestApproval") != 0)
		return false;
	own_buf struct buf shown;
	buf_init(&shown, SHOWN);
	struct call *call = command ? NULL : call_find(&c->items, item);
	if (command)
		show_command(&shown, params);
	else if (call != NULL && !call->doubtful && !line_lost(b) && !buf_failed(&call->shown))
		buf_add(&shown, call->shown.p, call->shown.n);
	say_whole(b);
	enum permit said = PERMIT_NO;
	/* A folder for the rest of the session is not what anybody is asked about here. */
	if (c->stopping)
		said = PERMIT_STOP;
	else if (is_null(inner(params, "grantRoot")))
		said = permit(b, command ? "execute" : "edit", item, text_of(params, "reason"),
			      buf_cstr(&shown) != NULL ? buf_cstr(&shown) : "");
	if (said == PERMIT_YES)
		decision = "accept";
	else if (said == PERMIT_STOP)
		decision = "cancel";
	rpc_answer(&l, id);
	jw_kstr(&l.w, "decision", decision);
	rpc_send(b, &l);
	return true;
}

static void codex_line(struct bridge *b, const struct json *root)
{
	static const struct rpc rpc = {.answers = REQUESTS, .answered = answered, .told = told, .asked = asked};

	rpc_take(b, &rpc, root);
}

static void codex_end(struct bridge *b)
{
	struct codex *c = b->own;

	if (c != NULL)
		calls_free(&c->items);
	free(c);
	b->own = NULL;
}

const struct dialect dialect_codex_ask = {
    .name = "codex-ask", .talks = true, .begin = codex_begin, .line = codex_line, .stop = codex_stop, .end = codex_end};
