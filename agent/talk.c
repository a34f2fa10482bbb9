/*
 * Keeps every message as the text that will be sent. What the model said is written again from its parts,
 * never passed through. A turn is dropped as a whole: a result without its call is refused by providers.
 */
#include "agent/talk.h"
#include "lib/json.h"
#include "lib/own.h"
#include <string.h>

struct talk_part {
	char *json; /* a whole message, or of a result all before its text */
	char *text; /* of a result, else NULL */
	size_t text_n;
	struct talk_part *next;
};

struct talk_turn {
	struct talk_part *first, *last;
	size_t parts;
	struct talk_turn *next;
};

static char *keep(struct buf *b)
{
	const char *s = buf_cstr(b);
	return s != NULL ? strdup(s) : NULL;
}

static char *message(const char *role, const char *text)
{
	own_buf struct buf b;
	struct jw w;
	buf_init(&b, 4 * TALK_BODY);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "role", role);
	jw_kstr(&w, "content", text);
	jw_close(&w, '}');
	return keep(&b);
}

bool talk_init(struct talk *t, const struct task *task)
{
	own_buf struct buf b;
	*t = (struct talk){.messages = 2};
	buf_init(&b, TALK_BODY);
	buf_adds(&b,
		 "You are a careful programmer who repairs a small project with the tools you are given. There is no "
		 "shell and no network. Look before you change, make the smallest change that does what is asked, "
		 "run the checks, and then call finish with a short summary. Paths are relative to the project.\n"
		 "You may write only to: ");
	for (size_t i = 0; i < task->allowed_n; i++)
		buf_addf(&b, "%s%s", i ? ", " : "", task->allowed[i]);
	buf_adds(&b, ".\nChecks for run_check: ");
	for (size_t i = 0; i < task->checks_n; i++) {
		buf_addf(&b, "%s%s (", i ? ", " : "", task->checks[i].name);
		for (size_t k = 0; task->checks[i].argv[k] != NULL; k++)
			buf_addf(&b, "%s%s", k ? " " : "", task->checks[i].argv[k]);
		buf_adds(&b, ")");
	}
	buf_adds(&b, task->checks_n ? ".\nSuccess can only be claimed when every check passes." : "none.");
	if (buf_cstr(&b) == NULL)
		return false;
	t->system = message("system", buf_cstr(&b));
	t->user = message("user", task->instruction);
	return t->system != NULL && t->user != NULL;
}

static void turn_free(struct talk_turn *turn)
{
	for (struct talk_part *p = turn->first; p != NULL;) {
		struct talk_part *next = p->next;
		free(p->json);
		free(p->text);
		free(p);
		p = next;
	}
	free(turn);
}

static void drop_first(struct talk *t)
{
	struct talk_turn *turn = t->first;
	t->first = turn->next;
	if (t->first == NULL)
		t->last = NULL;
	t->messages -= turn->parts;
	turn_free(turn);
}

void talk_free(struct talk *t)
{
	while (t->first != NULL)
		drop_first(t);
	free(t->system);
	free(t->user);
	*t = (struct talk){0};
}

/* Adds a message to the last turn; json and text are taken. */
static bool add(struct talk *t, char *json, char *text, size_t n)
{
	struct talk_part *p = json != NULL && t->last != NULL ? calloc(1, sizeof *p) : NULL;
	if (p == NULL) {
		free(json);
		free(text);
		return false;
	}
	*p = (struct talk_part){.json = json, .text = text, .text_n = n};
	if (t->last->last != NULL)
		t->last->last->next = p;
	else
		t->last->first = p;
	t->last->last = p;
	t->last->parts++;
	t->messages++;
	return true;
}

bool talk_answer(struct talk *t, const char *content, const struct talk_call *calls, size_t n)
{
	own_buf struct buf b;
	struct jw w;
	buf_init(&b, 8 * TALK_BODY);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "role", "assistant");
	jw_kstr(&w, "content", content != NULL ? content : "");
	if (n > 0) {
		jw_key(&w, "tool_calls");
		jw_open(&w, '[');
		for (size_t i = 0; i < n; i++) {
			jw_open(&w, '{');
			jw_kstr(&w, "id", calls[i].id);
			jw_kstr(&w, "type", "function");
			jw_key(&w, "function");
			jw_open(&w, '{');
			jw_kstr(&w, "name", calls[i].name);
			jw_kstr(&w, "arguments", calls[i].arguments);
			jw_close(&w, '}');
			jw_close(&w, '}');
		}
		jw_close(&w, ']');
	}
	jw_close(&w, '}');
	struct talk_turn *turn = calloc(1, sizeof *turn);
	if (turn == NULL)
		return false;
	if (t->last != NULL)
		t->last->next = turn;
	else
		t->first = turn;
	t->last = turn;
	return add(t, keep(&b), NULL, 0);
}

bool talk_result(struct talk *t, const char *call_id, const void *text, size_t n)
{
	own_buf struct buf b;
	struct jw w;
	buf_init(&b, TALK_BODY);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "role", "tool");
	jw_kstr(&w, "tool_call_id", call_id);
	jw_key(&w, "content");
	char *copy = malloc(n + 1);
	if (copy == NULL)
		return false;
	memcpy(copy, text, n);
	/* The one byte that no request may hold, even escaped. */
	for (char *p = copy; (p = memchr(p, 0, n - (size_t)(p - copy))) != NULL;)
		*p = '?';
	return add(t, keep(&b), copy, n);
}

bool talk_say(struct talk *t, const char *text)
{
	return add(t, message("user", text), NULL, 0);
}

/* The escaped text of a result, cut to `most` bytes before a byte that begins a character. */
static void put_result(struct buf *body, const struct talk_part *p, size_t most)
{
	static const char cut[] = "\n[the rest was left out]";
	struct jw w;
	size_t n = utf8_fit(p->text, p->text_n, most);
	own_buf struct buf b;
	buf_init(&b, 2 * TALK_BODY);
	buf_add(&b, p->text, n);
	if (n < p->text_n)
		buf_adds(&b, cut);
	jw_init(&w, body);
	const char *s = buf_cstr(&b);
	jw_strn(&w, s != NULL ? s : "", s != NULL ? b.n : 0);
	buf_addc(body, '}');
}

/* One try; false: larger than a request may be. */
static bool write_body(const struct talk *t, const struct task *task, const char *tools, size_t most, struct buf *body)
{
	struct jw w;
	buf_reset(body);
	jw_init(&w, body);
	jw_open(&w, '{');
	jw_kstr(&w, "model", task->model);
	buf_addf(body, ",\"messages\":[%s,%s", t->system, t->user);
	for (const struct talk_turn *turn = t->first; turn != NULL; turn = turn->next)
		for (const struct talk_part *p = turn->first; p != NULL; p = p->next) {
			buf_addc(body, ',');
			buf_adds(body, p->json);
			if (p->text != NULL)
				put_result(body, p, turn == t->last ? most : TALK_RESULT);
		}
	buf_addf(body, "],\"tools\":%s}", tools);
	return !buf_failed(body) && body->n <= TALK_BODY;
}

bool talk_body(struct talk *t, const struct task *task, const char *tools, struct buf *body)
{
	while (t->messages > TALK_MESSAGES && t->first != t->last)
		drop_first(t);
	if (t->messages > TALK_MESSAGES)
		return false;
	for (;;) {
		if (write_body(t, task, tools, TALK_RESULT, body))
			return true;
		if (t->first == t->last)
			return write_body(t, task, tools, TALK_SHORT, body);
		drop_first(t);
	}
}
