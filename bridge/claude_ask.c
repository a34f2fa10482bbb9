/*
 * Claude Code's control protocol (--input-format stream-json --permission-prompt-tool stdio): its lines are those of
 * the dialect that asks nothing, and between them control requests go both ways, which are answered by their
 * request_id. We ask to initialize and to interrupt; it asks can_use_tool. Found by running it; AGENT_VERSION: of
 * etc/agents/claude-code.lock.
 *
 * A question has all that its tool was given. What is allowed is exactly this: the answer carries it back as it came.
 * The rules that it suggests (permission_suggestions) are never taken.
 */
#include "bridge/rpc.h"
#include "bridge/show.h"
#include <stdlib.h>
#include <string.h>

enum { FRAME = 32 << 20 };
#define BEGIN "begin"

struct claude {
	bool prompted, stopping;
};

static void send(struct bridge *b, struct buf *text)
{
	if (!say_line(b, text))
		say_end(b, false, "the agent does not listen");
	buf_free(text);
}

static void request(struct bridge *b, const char *id, const char *subtype)
{
	struct buf text;
	struct jw w;

	buf_init(&text, FRAME);
	jw_init(&w, &text);
	jw_open(&w, '{');
	jw_kstr(&w, "type", "control_request");
	jw_kstr(&w, "request_id", id);
	jw_key(&w, "request");
	jw_open(&w, '{');
	jw_kstr(&w, "subtype", subtype);
	jw_close(&w, '}');
	jw_close(&w, '}');
	send(b, &text);
}

static bool claude_begin(struct bridge *b)
{
	if ((b->own = calloc(1, sizeof(struct claude))) == NULL)
		return false;
	request(b, BEGIN, "initialize");
	return true;
}

static void claude_stop(struct bridge *b)
{
	struct claude *c = b->own;

	if (c == NULL || c->stopping)
		return;
	c->stopping = true;
	if (c->prompted)
		request(b, "stop", "interrupt");
}

static void prompt(struct bridge *b)
{
	struct claude *c = b->own;
	struct buf text;
	struct jw w;

	if (c->prompted)
		return;
	if (c->stopping) {
		say_end(b, false, "interrupted");
		return;
	}
	c->prompted = true;
	buf_init(&text, FRAME);
	jw_init(&w, &text);
	jw_open(&w, '{');
	jw_kstr(&w, "type", "user");
	jw_key(&w, "message");
	jw_open(&w, '{');
	jw_kstr(&w, "role", "user");
	jw_key(&w, "content");
	jw_open(&w, '[');
	jw_open(&w, '{');
	jw_kstr(&w, "type", "text");
	jw_kstr(&w, "text", b->task.instruction);
	jw_close(&w, '}');
	jw_close(&w, ']');
	jw_close(&w, '}');
	jw_key(&w, "parent_tool_use_id");
	jw_null(&w);
	jw_kstr(&w, "session_id", "");
	jw_close(&w, '}');
	send(b, &text);
}

/* --- what it asks ------------------------------------------------------------------------------------------------- */

static const char *kind_of(const char *tool)
{
	static const struct {
		const char *tool, *kind;
	} kinds[] = {{"Bash", "execute"},      {"Edit", "edit"},      {"Write", "edit"},
		     {"NotebookEdit", "edit"}, {"Read", "read"},      {"Glob", "search"},
		     {"Grep", "search"},       {"WebFetch", "fetch"}, {"WebSearch", "fetch"}};

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strcmp(kinds[i].tool, tool) == 0)
			return kinds[i].kind;
	return "other";
}

/* The command or the change first, then whatever else the tool was given (but a command's description, which are the
 * agent's own words); of other tools their names and all of it. */
static void show(struct buf *out, const char *tool, const struct json *input)
{
	static const char *const command[] = {"command", "description", NULL},
				 *const edit[] = {"file_path", "old_string", "new_string", NULL},
				 *const whole[] = {"file_path", "content", NULL}, *const nothing[] = {NULL};

	if (strcmp(tool, "Bash") == 0 && text_of(input, "command")[0] != '\0') {
		buf_addf(out, "%s\n", text_of(input, "command"));
		show_rest(out, input, command);
	} else if (strcmp(tool, "Edit") == 0 && is_text(input, "old_string") && is_text(input, "new_string") &&
		   show_change(out, "edit", text_of(input, "file_path"), text_of(input, "old_string"),
			       text_of(input, "new_string"))) {
		show_rest(out, input, edit);
	} else if (strcmp(tool, "Write") == 0 && is_text(input, "content") &&
		   show_change(out, "write", text_of(input, "file_path"), NULL, text_of(input, "content"))) {
		show_rest(out, input, whole);
	} else {
		struct jw w;
		jw_init(&w, out);
		jw_str(&w, tool);
		buf_addc(out, '\n');
		show_rest(out, input, nothing);
	}
}

static void response(struct buf *text, struct jw *w, const char *subtype, const char *id)
{
	buf_init(text, FRAME);
	jw_init(w, text);
	jw_open(w, '{');
	jw_kstr(w, "type", "control_response");
	jw_key(w, "response");
	jw_open(w, '{');
	jw_kstr(w, "subtype", subtype);
	jw_kstr(w, "request_id", id);
}

static void answer(struct bridge *b, const char *id, enum permit said, const struct json *input)
{
	struct buf text;
	struct jw w;

	response(&text, &w, "success", id);
	jw_key(&w, "response");
	jw_open(&w, '{');
	jw_kstr(&w, "behavior", said == PERMIT_YES ? "allow" : "deny");
	if (said == PERMIT_YES) {
		jw_key(&w, "updatedInput");
		jw_json(&w, input);
	} else
		jw_kstr(&w, "message", "This was not allowed.");
	if (said == PERMIT_STOP)
		jw_kbool(&w, "interrupt", true);
	jw_close(&w, '}');
	jw_close(&w, '}');
	jw_close(&w, '}');
	send(b, &text);
}

static void refuse(struct bridge *b, const char *id)
{
	struct buf text;
	struct jw w;

	response(&text, &w, "error", id);
	jw_kstr(&w, "error", "this client does not have it");
	jw_close(&w, '}');
	jw_close(&w, '}');
	send(b, &text);
	if (++b->strange == RPC_STRANGE)
		say_end(b, false, "it asks again and again for what there is not");
}

static void asked(struct bridge *b, const char *id, const struct json *request)
{
	const struct claude *c = b->own;
	const struct json *input = inner(request, "input");
	const char *tool = text_of(request, "tool_name");
	enum permit said = PERMIT_NO;
	own_buf struct buf shown;

	buf_init(&shown, SHOWN);
	say_whole(b);
	if (c->stopping)
		said = PERMIT_STOP;
	/* What could not be read as it is would be given back as something else. A question to the user about the task
	 * is none that an answer of yes or no would do for. */
	else if (!b->mended && input != NULL && input->type == JSON_OBJECT && *tool != '\0' &&
		 strcmp(tool, "AskUserQuestion") != 0) {
		show(&shown, tool, input);
		said = permit(b, kind_of(tool), text_of(request, "tool_use_id"), text_of(request, "description"),
			      buf_cstr(&shown) != NULL ? buf_cstr(&shown) : "");
	}
	answer(b, id, said, input);
}

static void claude_ask_line(struct bridge *b, const struct json *root)
{
	const struct json *request = inner(root, "request"), *response = inner(root, "response");
	const char *id = text_of(root, "request_id");

	if (is(root, "type", "control_request")) {
		if (*id == '\0' || strlen(id) > RPC_ID)
			return;
		if (!is(request, "subtype", "can_use_tool")) {
			refuse(b, id);
			return;
		}
		b->strange = 0;
		asked(b, id, request);
	} else if (is(root, "type", "control_response")) {
		if (is(response, "request_id", BEGIN) && is(response, "subtype", "success"))
			prompt(b);
		else if (is(response, "request_id", BEGIN))
			say_end(b, false, text_of(response, "error"));
	} else
		claude_line(b, root);
}

static void claude_end(struct bridge *b)
{
	free(b->own);
	b->own = NULL;
}

const struct dialect dialect_claude_ask = {.name = "claude-ask",
					   .talks = true,
					   .begin = claude_begin,
					   .line = claude_ask_line,
					   .stop = claude_stop,
					   .end = claude_end};
