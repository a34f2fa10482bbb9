/*
 * libFuzzer target: any lines as those of an agent behind pinfold-bridge. The first byte is the dialect, the second
 * says how people answer, the third which tools nobody is asked about. What is kept here in words of its own: nobody is
 * asked by nothing, what is allowed was asked for and is what was shown, nothing is allowed for longer, and all that
 * the agent hears is a line of JSON.
 */
#include "bridge/bridge.h"
#include "lib/die.h"
#include "lib/own.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ITEMS = 256, HEARD = 64 << 20 };

static const struct dialect *const dialects[] = {&dialect_acp,      &dialect_codex_ask, &dialect_claude_ask,
						 &dialect_codex,    &dialect_claude,    &dialect_pi,
						 &dialect_opencode, &dialect_copilot};

static struct bridge b;
static struct {
	unsigned answers, turn, asked; /* by bits, in turn; asked: in this line */
	enum approved last;
	const struct json *line; /* what the agent says now */
	char thread[200];
	struct {
		char id[200], shown[2000];
		unsigned open; /* begun and not done; two are two for ever */
	} items[ITEMS];
	size_t items_n;
} f;

static void must(bool ok)
{
	if (!ok)
		abort();
}

/* --- in place of the control plane ----------------------------------------------------------------------------------
 */

bool event_line(struct buf *line, const struct task *t, int64_t sequence, const char *type, const char *data)
{
	return line != NULL && t != NULL && sequence >= 0 && type != NULL && data != NULL;
}

bool event_post(struct events *e, const char *type, const char *data)
{
	return e != NULL && type != NULL && data != NULL;
}

static void text(const char *p)
{
	must(utf8_valid(p, strlen(p), NULL));
}

void event_text(struct events *e, const char *p)
{
	must(e != NULL);
	text(p);
}

void event_call(struct events *e, const char *call_id, const char *tool, const char *arguments)
{
	must(e != NULL);
	text(call_id);
	text(tool);
	text(arguments);
}

void event_output(struct events *e, const char *call_id, const char *tool, bool ok, const char *p, size_t n)
{
	(void)ok;
	must(e != NULL && utf8_valid(p, n, NULL));
	text(call_id);
	text(tool);
}

static bool holds(const struct json *v, const char *path, const char *word)
{
	const struct json *at = v != NULL ? inner(v, path) : NULL;

	return at != NULL && at->type == JSON_STRING && strcmp(at->text, word) == 0;
}

static unsigned open_of(const char *id, const char *preview)
{
	for (size_t i = 0; i < f.items_n; i++)
		if (strcmp(f.items[i].id, id) == 0) {
			must(f.items[i].open != 1 || strstr(preview, f.items[i].shown) != NULL);
			return f.items[i].open;
		}
	return 0;
}

enum approved approve_ask(struct approve *a, const struct approve_what *what, uint64_t *waited_ms)
{
	must(a == &b.approve && *what->preview != '\0' && !b.mended);
	text(what->preview);
	text(what->reason);
	text(what->action);
	*waited_ms = 0;
	f.asked++;
	f.last = (enum approved)((f.answers >> 2 * (f.turn++ % 4)) % 4);
	if (holds(f.line, "method", "item/fileChange/requestApproval"))
		must(open_of(text_of(inner(f.line, "params"), "itemId"), what->preview) == 1);
	return f.last;
}

/* --- what the agent says, as this target understands it
 * --------------------------------------------------------------- */

/* A path that must be seen by who is asked about this item, or its change as JSON. */
static void shown_of(const struct json *changes, char shown[2000])
{
	const struct json *first = changes != NULL && changes->type == JSON_ARRAY ? changes->child : NULL;
	const char *path = first != NULL ? text_of(first, "path") : "";

	shown[0] = '\0';
	if (strlen(path) < 2000 && strpbrk(path, "\n\r\"\\\t\b\f") == NULL)
		memcpy(shown, path, strlen(path) + 1);
	for (char *p = shown; *p != '\0'; p++)
		if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
			*p = '\0'; /* as JSON it may be spelt otherwise */
}

static void follow(const struct json *root)
{
	const struct json *params = inner(root, "params"), *item = inner(root, "params.item"), *id = inner(root, "id"),
			  *error = inner(root, "error");
	const char *name = item != NULL ? text_of(item, "id") : "", *method = text_of(root, "method");
	size_t i = 0;
	int64_t number;

	if (*method == '\0' && id != NULL && json_int(id, 1, 1, &number) &&
	    (error == NULL || error->type != JSON_OBJECT)) {
		const char *thread = text_of(inner(root, "result.thread"), "id");
		if (strlen(thread) < sizeof f.thread)
			memcpy(f.thread, thread, strlen(thread) + 1);
	}
	if (f.thread[0] == '\0' || id != NULL || params == NULL || !holds(params, "threadId", f.thread) ||
	    !holds(item, "type", "fileChange") || *name == '\0' || strlen(name) >= sizeof f.items[0].id)
		return;
	while (i < f.items_n && strcmp(f.items[i].id, name) != 0)
		i++;
	if (i == ITEMS)
		return;
	if (strcmp(method, "item/started") == 0) {
		memcpy(f.items[i].id, name, strlen(name) + 1);
		if (i == f.items_n)
			f.items[f.items_n++].open = 0;
		f.items[i].open += f.items[i].open < 2;
		shown_of(inner(item, "changes"), f.items[i].shown);
	} else if (strcmp(method, "item/completed") == 0 && i < f.items_n && f.items[i].open == 1)
		f.items[i].open = 0;
}

/* --- what it hears
 * ---------------------------------------------------------------------------------------------------- */

static bool same(const struct json *x, const struct json *y)
{
	own_buf struct buf one, two;

	buf_init(&one, HEARD);
	buf_init(&two, HEARD);
	json_write(&one, x);
	json_write(&two, y);
	return !buf_failed(&one) && !buf_failed(&two) && one.n == two.n && memcmp(one.p, two.p, one.n) == 0;
}

static void allowed(void)
{
	must(f.asked == 1 ? f.last == APPROVED : b.permissions != NULL);
}

static void hears(const struct json *said)
{
	const struct json *decision = inner(said, "result.decision"),
			  *behavior = inner(said, "response.response.behavior"),
			  *chosen = inner(said, "result.outcome.optionId");

	if (decision != NULL) {
		must(holds(said, "result.decision", "accept") || holds(said, "result.decision", "decline") ||
		     holds(said, "result.decision", "cancel"));
		if (holds(said, "result.decision", "accept"))
			allowed();
		must(inner(said, "result")->count == 1 && same(inner(said, "id"), inner(f.line, "id")));
	}
	if (behavior != NULL) {
		const struct json *response = inner(said, "response.response");
		must(inner(response, "updatedPermissions") == NULL &&
		     holds(said, "response.request_id", text_of(f.line, "request_id")));
		if (holds(response, "behavior", "allow")) {
			allowed();
			must(response->count == 2 && !b.mended &&
			     same(inner(response, "updatedInput"), inner(f.line, "request.input")));
		} else
			must(holds(response, "behavior", "deny") && inner(response, "updatedInput") == NULL);
	}
	if (chosen != NULL) {
		bool yes = false, no = false;
		for (const struct json *o = inner(f.line, "params.options")->child; o != NULL; o = o->next)
			if (holds(o, "optionId", chosen->text)) {
				yes = yes || holds(o, "kind", "allow_once");
				no = no || holds(o, "kind", "reject_once");
			}
		must(yes || no);
		if (!no)
			allowed();
	}
}

static void heard(void)
{
	off_t n = lseek(b.to, 0, SEEK_CUR);
	own_free char *p = malloc((size_t)n + 1);

	must(p != NULL && pread(b.to, p, (size_t)n, 0) == n && ftruncate(b.to, 0) == 0 &&
	     lseek(b.to, 0, SEEK_SET) == 0);
	for (char *at = p, *end; at < p + n; at = end + 1) {
		own_arena struct arena arena;
		arena_init(&arena, HEARD);
		end = memchr(at, '\n', (size_t)(p + n - at));
		must(end != NULL);
		const struct json *said =
		    json_parse(&arena, at, (size_t)(end - at), JSON_DEPTH_MODEL + 8, BRIDGE_NODES, NULL);
		must(said != NULL && said->type == JSON_OBJECT);
		hears(said);
	}
}

static void says(const uint8_t *data, size_t size)
{
	own_arena struct arena arena;
	own_free char *line = malloc(size + 1), *again = malloc(size + 1);

	must(line != NULL && again != NULL);
	memcpy(line, data, size);
	line[size] = '\0';
	memcpy(again, line, size + 1);
	arena_init(&arena, BRIDGE_ARENA);
	f.line = json_parse(&arena, again, size, JSON_DEPTH_MODEL, BRIDGE_NODES, NULL);
	if (f.line == NULL && line_mend(again, size)) {
		must(utf8_valid(again, size, NULL));
		f.line = json_parse(&arena, again, size, JSON_DEPTH_MODEL, BRIDGE_NODES, NULL);
		must(!line_mend(again, size));
	}
	f.asked = 0;
	if (f.line != NULL && f.line->type == JSON_OBJECT && b.course == GOING)
		follow(f.line);
	line_take(&b, line, size);
	must(f.asked <= 1);
	if (b.dialect->talks)
		heard();
}

static void quiet(const char *kind, const char *line, size_t n)
{
	must(kind != NULL && line != NULL && n > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int to = -1;
	static const char allow[] = "{\"edit\":\"allow\",\"execute\":\"deny\",\"other\":\"allow\"}";

	if (size < 3)
		return 0;
	if (to < 0) {
		int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
		must(nowhere >= 0 && dup2(nowhere, 1) == 1);
		to = memfd_create("to", MFD_CLOEXEC);
		log_sink = quiet;
	}
	memset(&b, 0, sizeof b);
	memset(&f, 0, sizeof f);
	b.task.instruction = "mend \"it\"";
	b.task.model = "m";
	b.dialect = dialects[data[0] % (sizeof dialects / sizeof *dialects)];
	b.to = to;
	buf_init(&b.chunk, 2 * EVENT_TEXT);
	f.answers = data[1];
	arena_init(&b.request, 100000);
	if (data[2] % 2 == 1)
		b.permissions = json_parse(&b.request, allow, sizeof allow - 1, JSON_DEPTH, 100, NULL);
	if (b.dialect->begin != NULL)
		must(b.dialect->begin(&b));
	for (size_t at = 3; at < size && b.course == GOING; at++) {
		const uint8_t *end = memchr(data + at, '\n', size - at);
		size_t n = end != NULL ? (size_t)(end - data) - at : size - at;
		if (n == 4 && memcmp(data + at, "stop", 4) == 0 && b.dialect->stop != NULL)
			b.dialect->stop(&b);
		says(data + at, n);
		at += n;
	}
	say_end(&b, false, "over");
	if (b.dialect->end != NULL)
		b.dialect->end(&b);
	buf_free(&b.chunk);
	arena_free(&b.request);
	must(ftruncate(to, 0) == 0 && lseek(to, 0, SEEK_SET) == 0);
	return 0;
}
