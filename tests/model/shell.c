/*
 * An answer that has an agent run a command: "shell" names the command, and the call is of the tool for it that this
 * very request offers, by the name and with the arguments that the agent knows. A request that offers none (agents ask
 * for titles, and whether their own commands are harmless) gets the content alone.
 */
#include "lib/own.h"
#include "tests/model/model.h"
#include <string.h>

enum form { FORM_CMD, FORM_COMMAND, FORM_WORDS, FORM_FOREGROUND };

static const struct {
	const char *tool;
	enum form form;
} shells[] = {{"exec_command", FORM_CMD},
	      {"bash", FORM_COMMAND},
	      {"Bash", FORM_COMMAND},
	      {"shell", FORM_WORDS},
	      {"run_shell_command", FORM_FOREGROUND}};

static int shell_named(const struct json *name)
{
	for (size_t i = 0; name && name->type == JSON_STRING && i < sizeof shells / sizeof *shells; i++)
		if (strcmp(name->text, shells[i].tool) == 0)
			return (int)i;
	return -1;
}

/* Of a list of tools, also within what some formats put around them. -1: none. */
static int shell_offered(const struct json *tools)
{
	int found = -1;

	for (const struct json *t = tools && tools->type == JSON_ARRAY ? tools->child : NULL; t && found < 0;
	     t = t->next) {
		found = shell_named(json_get(t, "name"));
		if (found < 0)
			found = shell_named(json_get(json_get(t, "function"), "name"));
		if (found < 0)
			found = shell_offered(json_get(t, "functionDeclarations"));
	}
	return found;
}

/* Does a list of tools hold one of this name? */
static bool tool_named(const struct json *tools, const char *name)
{
	bool found = false;

	for (const struct json *t = tools && tools->type == JSON_ARRAY ? tools->child : NULL; t && !found;
	     t = t->next) {
		const struct json *own = json_get(t, "name"), *inner = json_get(json_get(t, "function"), "name");
		found = (own && own->type == JSON_STRING && strcmp(own->text, name) == 0) ||
			(inner && inner->type == JSON_STRING && strcmp(inner->text, name) == 0) ||
			tool_named(json_get(t, "functionDeclarations"), name);
	}
	return found;
}

bool tools_lack(const struct json *body, const char *name)
{
	const struct json *tools = json_get(body, "tools");

	return tools && tools->type == JSON_ARRAY && tools->child && !tool_named(tools, name);
}

static void put_arguments(struct jw *w, enum form form, const char *command)
{
	const char *const words[] = {"bash", "-lc", command};

	jw_open(w, '{');
	if (form == FORM_WORDS)
		jw_kstrs(w, "command", words, 3);
	else
		jw_kstr(w, form == FORM_CMD ? "cmd" : "command", command);
	if (form == FORM_COMMAND || form == FORM_FOREGROUND)
		jw_kstr(w, "description", "mend the file");
	if (form == FORM_FOREGROUND)
		jw_kbool(w, "is_background", false);
	jw_close(w, '}');
}

const struct json *shell_answer(struct arena *a, const struct json *answer, const struct json *body, size_t size)
{
	const struct json *command = json_get(answer, "shell"), *content = json_get(answer, "content");
	int shell = command && command->type == JSON_STRING ? shell_offered(json_get(body, "tools")) : -1;
	struct buf b own_buf = {0};
	struct jw w;

	if (!command && !json_get(answer, "by_size"))
		return answer;
	buf_init(&b, BODY_MAX);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "content", content && content->type == JSON_STRING ? content->text : "Well.");
	if (shell >= 0) {
		jw_key(&w, "tools");
		jw_open(&w, '[');
		jw_open(&w, '{');
		jw_kstr(&w, "name", shells[shell].tool);
		jw_key(&w, "arguments");
		put_arguments(&w, shells[shell].form, command->text);
		jw_close(&w, '}');
		jw_close(&w, ']');
	}
	jw_key(&w, "usage");
	jw_open(&w, '{');
	jw_kint(&w, "prompt", (int64_t)(size / 4));
	jw_kint(&w, "completion", 20);
	jw_close(&w, '}');
	jw_close(&w, '}');
	/* What is parsed is a copy of its own. */
	return buf_failed(&b) ? NULL : json_parse(a, b.p, b.n, JSON_DEPTH, 1000, NULL);
}
