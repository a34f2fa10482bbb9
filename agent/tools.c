/*
 * The tools. Arguments come from a model and are not trusted: a path is checked by lib/path.h, a write
 * against the allowed paths, and the kernel keeps every opening below the source folder.
 */
#include "agent/tools.h"
#include "agent/check.h"
#include "agent/talk.h"
#include "agent/tree.h"
#include "lib/num.h"
#include "lib/path.h"
#include "lib/text.h"
#include <string.h>

enum { SEARCH_MATCHES = 200, SEARCH_LINE = 300, PARAMS = 3 };

/* One line a tool; the words are shown to the model. */
const char tools_described[] = "["
/* clang-format off */
#define STRING "{\"type\":\"string\"}"
#define TOOL(name, what, properties, required) "{\"type\":\"function\",\"function\":{\"name\":\"" name "\",\"description\":\"" what "\",\"parameters\":" \
	"{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{" properties "},\"required\":[" required "]}}}"
    TOOL("list_files", "Lists all files of the project with their sizes.", "", "") ","
    TOOL("read_file", "Returns a file's content.", "\"path\":" STRING, "\"path\"") ","
    TOOL("write_file", "Makes a file, or replaces its whole content.", "\"path\":" STRING ",\"content\":" STRING, "\"path\",\"content\"") ","
    TOOL("edit_file", "Replaces a text that occurs exactly once in a file: old becomes new.", "\"path\":" STRING ",\"old\":" STRING ",\"new\":" STRING, "\"path\",\"old\",\"new\"") ","
    TOOL("search", "Finds the lines of all files that hold a plain text.", "\"pattern\":" STRING, "\"pattern\"") ","
    TOOL("run_check", "Runs a check by its name and returns its output.", "\"name\":" STRING, "\"name\"") ","
    TOOL("finish", "Ends the work. success is only accepted when every check passes.", "\"summary\":" STRING ",\"success\":{\"type\":\"boolean\"}", "\"summary\",\"success\"")
#undef TOOL
#undef STRING
    /* clang-format on */
    "]";

static const struct param {
	const char *name;
	enum json_type type;
} params[TOOL__COUNT][PARAMS + 1] = {
    [TOOL_READ_FILE] = {{"path", JSON_STRING}},
    [TOOL_WRITE_FILE] = {{"path", JSON_STRING}, {"content", JSON_STRING}},
    [TOOL_EDIT_FILE] = {{"path", JSON_STRING}, {"old", JSON_STRING}, {"new", JSON_STRING}},
    [TOOL_SEARCH] = {{"pattern", JSON_STRING}},
    [TOOL_RUN_CHECK] = {{"name", JSON_STRING}},
    [TOOL_FINISH] = {{"summary", JSON_STRING}, {"success", JSON_BOOL}},
};

const char *tool_arguments(enum tool tool, const struct json *args)
{
	size_t n = 0;
	if (args == NULL || args->type != JSON_OBJECT)
		return "the arguments must be one JSON object";
	for (const struct param *p = params[tool]; p->name != NULL; p++, n++) {
		const struct json *v = json_get(args, p->name);
		if (v == NULL)
			return "an argument is missing";
		if (v->type != p->type)
			return "an argument has the wrong type";
	}
	if (args->count != n)
		return "there is an argument that this tool does not know";
	const struct json *path = json_get(args, "path");
	if (path != NULL && !path_valid(path->text, path->len))
		return "the path must be relative to the project, of A-Z a-z 0-9 . _ - and /, without . or .. parts";
	return NULL;
}

static const char *arg(const struct json *args, const char *name)
{
	return json_get(args, name)->text;
}

static void say(struct tool_answer *answer, bool ok, const char *text)
{
	answer->ok = ok;
	buf_adds(&answer->text, text);
}

static size_t output_cap(const struct tools *t)
{
	return t->task->max_output < TALK_RESULT ? t->task->max_output : TALK_RESULT;
}

/* --- looking --- */

struct listing {
	struct buf *out;
	size_t cap, files;
};

static bool list_one(void *p, int folder, const char *name, const char *path, uint64_t size)
{
	struct listing *l = p;
	(void)folder;
	(void)name;
	if (l->out->n + strlen(path) + 32 > l->cap)
		return false;
	text_log(l->out, path, strlen(path), l->cap);
	buf_addf(l->out, " (%llu bytes)\n", (unsigned long long)size);
	l->files++;
	return true;
}

static void list_files(struct tools *t, const struct json *args, struct tool_answer *answer)
{
	struct listing l = {.out = &answer->text, .cap = output_cap(t)};
	(void)args;
	if (!tree_walk(t->root, list_one, &l))
		buf_adds(&answer->text, "[there are more files than can be listed]\n");
	else if (l.files == 0)
		buf_adds(&answer->text, "[there are no files]\n");
	answer->ok = true;
}

static void read_file(struct tools *t, const struct json *args, struct tool_answer *answer)
{
	own_buf struct buf text;
	buf_init(&text, TREE_FILE_MAX + 1);
	const char *why = tree_read(t->root, arg(args, "path"), &text);
	size_t cap = output_cap(t), n = text.n;
	if (why == NULL && n > 0 && (memchr(text.p, 0, n) != NULL || !utf8_valid(text.p, n, &(size_t){0})))
		why = "the file is not text";
	if (why != NULL) {
		say(answer, false, why);
		return;
	}
	n = utf8_fit((const char *)text.p, n, cap);
	if (n > 0)
		buf_add(&answer->text, text.p, n);
	if (n < text.n)
		buf_addf(&answer->text, "\n[%zu more bytes; use search]\n", text.n - n);
	answer->ok = true;
}

struct hunt {
	const char *pattern;
	struct buf *out;
	size_t cap, matches;
};

static bool search_file(struct hunt *h, const char *path, const char *text)
{
	size_t line = 0;
	for (const char *p = text; p != NULL && *p != 0; line++) {
		const char *end = strchrnul(p, '\n'), *hit = strstr(p, h->pattern);
		if (hit == NULL)
			return true;
		if (hit < end) {
			if (h->matches >= SEARCH_MATCHES || h->out->n + strlen(path) + 2 * SEARCH_LINE > h->cap)
				return false;
			size_t cut = utf8_fit(p, (size_t)(end - p), SEARCH_LINE);
			text_log(h->out, path, strlen(path), h->cap);
			buf_addf(h->out, ":%zu: %.*s\n", line + 1, (int)cut, p);
			h->matches++;
		}
		p = *end != 0 ? end + 1 : end;
	}
	return true;
}

struct hunt_walk {
	struct hunt hunt;
	int root;
};

static bool search_one(void *p, int folder, const char *name, const char *path, uint64_t size)
{
	struct hunt_walk *w = p;
	own_buf struct buf text;
	(void)folder;
	(void)name;
	buf_init(&text, TREE_FILE_MAX + 1);
	/* What is not text is passed over. */
	if (size == 0 || size > TREE_FILE_MAX || tree_read(w->root, path, &text) != NULL || text.n == 0)
		return true;
	if (memchr(text.p, 0, text.n) != NULL || !utf8_valid(text.p, text.n, &(size_t){0}))
		return true;
	const char *s = buf_cstr(&text);
	return s == NULL || search_file(&w->hunt, path, s);
}

static void search(struct tools *t, const struct json *args, struct tool_answer *answer)
{
	const char *pattern = arg(args, "pattern");
	if (pattern[0] == 0 || strchr(pattern, '\n') != NULL) {
		say(answer, false, "the pattern is one line of text, not empty");
		return;
	}
	struct hunt_walk w = {.hunt = {.pattern = pattern, .out = &answer->text, .cap = output_cap(t)},
			      .root = t->root};
	if (!tree_walk(t->root, search_one, &w))
		buf_adds(&answer->text, "[there is more]\n");
	else if (w.hunt.matches == 0)
		buf_adds(&answer->text, "[nothing was found]\n");
	answer->ok = true;
}

/* --- changing --- */

static void put(struct tools *t, const char *path, const void *p, size_t n, struct tool_answer *answer)
{
	if (!task_allows(t->task, path)) {
		say(answer, false, "this file may not be written: it is not among the allowed paths");
		return;
	}
	if (n > t->task->max_patch) {
		say(answer, false, "that is more than the patch of this run may hold");
		return;
	}
	/* Even a write that fails may have changed the file. */
	guards_wrote(t->guards);
	const char *why = tree_write(t->root, path, p, n);
	if (why == NULL)
		buf_addf(&answer->text, "written: %zu bytes", n);
	else
		buf_adds(&answer->text, why);
	answer->ok = why == NULL;
}

static void write_file(struct tools *t, const struct json *args, struct tool_answer *answer)
{
	const struct json *content = json_get(args, "content");
	put(t, arg(args, "path"), content->text, content->len, answer);
}

static void edit_file(struct tools *t, const struct json *args, struct tool_answer *answer)
{
	const struct json *old = json_get(args, "old"), *new = json_get(args, "new");
	own_buf struct buf text, changed;
	buf_init(&text, TREE_FILE_MAX + 1);
	buf_init(&changed, 2 * TREE_FILE_MAX);
	const char *why = old->len == 0 ? "old may not be empty" : tree_read(t->root, arg(args, "path"), &text);
	uint8_t *first = NULL;
	if (why == NULL) {
		first = text.n > 0 ? memmem(text.p, text.n, old->text, old->len) : NULL;
		if (first == NULL)
			why = "old does not occur in the file; read it again";
		else if (memmem(first + 1, text.n - (size_t)(first - text.p) - 1, old->text, old->len) != NULL)
			why = "old occurs more than once; give more of the text around it";
	}
	if (why != NULL) {
		say(answer, false, why);
		return;
	}
	buf_add(&changed, text.p, (size_t)(first - text.p));
	buf_add(&changed, new->text, new->len);
	buf_add(&changed, first + old->len, text.n - (size_t)(first - text.p) - old->len);
	if (buf_failed(&changed))
		say(answer, false, "the file would be too large");
	else
		put(t, arg(args, "path"), changed.p != NULL ? (const void *)changed.p : "", changed.n, answer);
}

/* --- checking --- */

bool tool_check(struct tools *t, size_t i, struct buf *text)
{
	const struct task_check *check = &t->task->checks[i];
	uint64_t left = guards_left_ms(t->guards, timer_ms()), most = CHECK_SECONDS * 1000;
	struct check_end end = check_run(check, t->root, left < most ? left : most, output_cap(t) * 3 / 4, text);
	if (!end.started)
		buf_addf(text, "\n[%s could not be started]\n", check->name);
	else if (end.timed_out)
		buf_addf(text, "\n[%s ran out of time and was ended]\n", check->name);
	else if (end.status < 0)
		buf_addf(text, "\n[%s was ended by signal %d]\n", check->name, -end.status);
	else
		buf_addf(text, "\n[%s %s with exit code %d]\n", check->name, end.status ? "failed" : "passed",
			 end.status);
	bool ok = end.started && !end.timed_out && end.status == 0;
	guards_checked(t->guards, i, ok);
	return ok;
}

static void run_check(struct tools *t, const struct json *args, struct tool_answer *answer)
{
	for (size_t i = 0; i < t->task->checks_n; i++)
		if (strcmp(t->task->checks[i].name, arg(args, "name")) == 0) {
			answer->ok = tool_check(t, i, &answer->text);
			return;
		}
	say(answer, false, "there is no check of that name");
}

static void finish(struct tools *t, const struct json *args, struct tool_answer *answer)
{
	const struct json *summary = json_get(args, "summary");
	size_t n = utf8_fit(summary->text, summary->len, sizeof answer->summary - 1);
	(void)t;
	memcpy(answer->summary, summary->text, n);
	answer->summary[n] = 0;
	answer->success = json_get(args, "success")->truth;
	answer->ok = true;
}

void tool_run(struct tools *t, enum tool tool, const struct json *args, struct tool_answer *answer)
{
	static void (*const run[TOOL__COUNT])(struct tools *, const struct json *, struct tool_answer *) = {
	    [TOOL_LIST_FILES] = list_files, [TOOL_READ_FILE] = read_file, [TOOL_WRITE_FILE] = write_file,
	    [TOOL_EDIT_FILE] = edit_file,   [TOOL_SEARCH] = search,       [TOOL_RUN_CHECK] = run_check,
	    [TOOL_FINISH] = finish,
	};
	run[tool](t, args, answer);
}
