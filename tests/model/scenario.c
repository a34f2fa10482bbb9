/*
 * Scenarios: which canned answer a request gets. A scenario is one JSON object:
 *
 *   {"model": "scripted-1",
 *    "rules": [{"when": {...}, "answer": {...}}, ...]}
 *
 * The first rule whose conditions all hold is used. Conditions (all optional):
 *   marker     a text that a user or system message of the request contains
 *   last       a text that the last message of the request contains
 *   turn       number of assistant messages in the request (0 for the first call of a conversation)
 *   turn_from  the same, or more
 *   results    number of results of tools in the request
 *   lacks      a tool that the request does not offer, though it offers others
 *   nth        number of this chat request since the start of the program, from 1
 *   nth_from   the same, or more
 * An answer is a message ("content", "tools": [{"name", "arguments"}], "usage": {"prompt", "completion"},
 * "finish_reason"), a command for the agent's own shell tool ("shell", "content": shell.c), or a lie on the wire: see
 * answer.c. "arguments" that is a string is sent as it is, anything else as JSON text. A request that no rule matches
 * is answered by 500.
 */
#include "lib/die.h"
#include "lib/num.h"
#include "lib/own.h"
#include "tests/model/model.h"
#include <string.h>

/* Repairs examples/calc: look, read, see the check fail, edit, see it pass, finish. An agent that has other tools than
 * the built-in one gets the repair as a command; not by sed -i, which some take for an edit of a file they never read.
 */
const char scenario_repair[] =
    "{\"model\":\"scripted-1\",\"rules\":["
    "{\"when\":{\"lacks\":\"list_files\",\"results\":0},\"answer\":{\"content\":\"add subtracts; it has to add.\","
    "\"shell\":\"python3 -c \\\"p = 'calc.py'; s = open(p).read(); "
    "open(p, 'w').write(s.replace('return a - b', 'return a + b'))\\\"\"}},"
    "{\"when\":{\"lacks\":\"list_files\"},\"answer\":{\"content\":"
    "\"These are canned answers, no AI: they repair the sample program, calc.py, and nothing else.\"}},"
    "{\"when\":{\"turn\":0},\"answer\":{\"content\":\"I look at the project first.\","
    "\"tools\":[{\"name\":\"list_files\",\"arguments\":{}}]}},"
    "{\"when\":{\"turn\":1},\"answer\":{\"tools\":[{\"name\":\"read_file\",\"arguments\":{\"path\":\"calc.py\"}}]}},"
    "{\"when\":{\"turn\":2},\"answer\":{\"tools\":[{\"name\":\"run_check\",\"arguments\":{\"name\":\"check-1\"}}]}},"
    "{\"when\":{\"turn\":3},\"answer\":{\"content\":\"add subtracts; it has to "
    "add.\",\"tools\":[{\"name\":\"edit_file\","
    "\"arguments\":{\"path\":\"calc.py\",\"old\":\"return a - b\",\"new\":\"return a + b\"}}]}},"
    "{\"when\":{\"turn\":4},\"answer\":{\"tools\":[{\"name\":\"run_check\",\"arguments\":{\"name\":\"check-1\"}}]}},"
    "{\"answer\":{\"tools\":[{\"name\":\"finish\",\"arguments\":{\"summary\":"
    "\"add() subtracted its arguments; it adds them now and the tests pass.\",\"success\":true}}]}}]}";

/* For "pinfold agent test": whoever has a tool for commands runs what the sample brings for it (cli/agent_test.c), by a
 * command that no agent has a reason to refuse. */
const char scenario_agent[] = "{\"model\":\"scripted-1\",\"rules\":["
			      "{\"when\":{\"results\":0},\"answer\":{\"content\":\"The sum subtracts; it has to "
			      "add.\",\"shell\":\"sh mend.sh\"}},"
			      "{\"answer\":{\"content\":\"Mended: it adds now.\",\"by_size\":true}}]}";

static const struct {
	const char *name, *text;
} built_in[] = {{"repair", scenario_repair}, {"agent", scenario_agent}};

void scenario_load(struct scenario *s, const char *file_or_name)
{
	own_free char *read = NULL;
	const char *text = NULL;
	size_t n = 0;

	for (size_t i = 0; i < sizeof built_in / sizeof built_in[0]; i++)
		if (strcmp(file_or_name, built_in[i].name) == 0)
			text = built_in[i].text;
	if (text)
		n = strlen(text);
	else if ((text = read = /* freed by own_free. NOLINT(clang-analyzer-deadcode.DeadStores) */
		  file_read(-100 /* AT_FDCWD */, file_or_name, 8000000, &n)) == NULL)
		fatal("scenario %s: %m", file_or_name);
	arena_init(&s->arena, 64000000);
	struct json_fault fault = {0};
	const struct json *top = json_parse(&s->arena, text, n, JSON_DEPTH, 200000, &fault);
	if (!top)
		fatal("scenario %s: byte %zu: %s", file_or_name, fault.at, fault.why);
	s->rules = json_get(top, "rules");
	if (top->type != JSON_OBJECT || !s->rules || s->rules->type != JSON_ARRAY)
		fatal("scenario %s: \"rules\" must be an array", file_or_name);
	const struct json *model = json_get(top, "model");
	s->model = model && model->type == JSON_STRING ? model->text : "scripted-1";
}

/* content (of what a tool gave, output) is a string or an array of {"type":"text","text":...}. */
static bool message_contains(const struct json *message, const char *text)
{
	const struct json *content = json_get(message, "content");
	if (!content)
		content = json_get(message, "output");
	if (!content)
		content = json_get(message, "parts");
	if (!content)
		return false;
	if (content->type == JSON_STRING)
		return strstr(content->text, text) != NULL;
	if (content->type != JSON_ARRAY)
		return false;
	for (const struct json *part = content->child; part; part = part->next) {
		const struct json *t = part->type == JSON_OBJECT ? json_get(part, "text") : NULL;
		if ((t && t->type == JSON_STRING && strstr(t->text, text)) ||
		    (part->type == JSON_OBJECT && json_get(part, "content") && message_contains(part, text)))
			return true;
	}
	return false;
}

static bool holds(const struct json *cond, const struct conversation *c)
{
	const struct json *messages = c->body ? json_get(c->body, dialect_says(c->dialect)) : NULL;
	int64_t n = 0;

	if (cond->type == JSON_STRING && strcmp(cond->key, "lacks") == 0)
		return c->body && tools_lack(c->body, cond->text);
	if (cond->type == JSON_STRING) {
		bool last_only = strcmp(cond->key, "last") == 0;
		if (!last_only && strcmp(cond->key, "marker") != 0)
			return false;
		if (messages && messages->type == JSON_STRING)
			return strstr(messages->text, cond->text) != NULL;
		if (!messages || messages->type != JSON_ARRAY)
			return false;
		for (const struct json *m = messages->child; m; m = m->next) {
			const struct json *role = m->type == JSON_OBJECT ? json_get(m, "role") : NULL;
			bool ours = role && role->type == JSON_STRING &&
				    (strcmp(role->text, "user") == 0 || strcmp(role->text, "system") == 0);
			if ((last_only ? m->next == NULL : ours) && message_contains(m, cond->text))
				return true;
		}
		return false;
	}
	if (!json_int(cond, 0, 1000000000, &n))
		return false;
	if (strcmp(cond->key, "turn") == 0)
		return c->turn == n;
	if (strcmp(cond->key, "results") == 0)
		return c->results == n;
	if (strcmp(cond->key, "turn_from") == 0)
		return c->turn >= n;
	if (strcmp(cond->key, "nth") == 0)
		return c->nth == n;
	if (strcmp(cond->key, "nth_from") == 0)
		return c->nth >= n;
	return false;
}

const struct json *scenario_choose(const struct scenario *s, const struct conversation *c)
{
	for (const struct json *rule = s->rules->child; rule; rule = rule->next) {
		const struct json *when = rule->type == JSON_OBJECT ? json_get(rule, "when") : NULL;
		bool all = rule->type == JSON_OBJECT;
		for (const struct json *cond = when ? when->child : NULL; cond && all; cond = cond->next)
			all = holds(cond, c);
		if (all)
			return json_get(rule, "answer");
	}
	return NULL;
}
