/*
 * libFuzzer target: any bytes as the body of POST .../events. An input that is no JSON object is also taken as
 * the text of one line. What goes to the store is strict JSON, an object with agent_sequence, each string and
 * key without anything that cleaning takes out, and a type that an agent may use.
 */
#include "gateway/agent_events.c"
#include "lib/text.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the whole gateway has; no test input comes this far. */
void gate_fail(struct gate_call *call, enum err e, const char *field)
{
	(void)call, (void)e, (void)field;
	abort();
}

enum err gate_alive(struct gate_call *call)
{
	(void)call;
	abort();
}

/* A run whose agent has no real keys. */
size_t keys_hide(const struct gate_call *call, void *p, size_t n)
{
	(void)call, (void)p;
	return n;
}

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void check_text(const char *s, size_t n, enum text_kind kind)
{
	own_buf struct buf b;
	buf_init(&b, 1 << 20);
	must(!text_clean(&b, s, n, kind, TEXT_CAP_TEXT));
}

/* Of a question: nothing that looks like a secret is left in what people are shown. */
static void check_masked(const struct json *v)
{
	own_buf struct buf b;
	buf_init(&b, 1 << 20);
	bool id = v->key != NULL && strcmp(v->key, "request_id") == 0;
	must(v->type != JSON_STRING || id || !text_mask(&b, v->text, v->len));
	for (const struct json *e = v->child; e != NULL; e = e->next)
		check_masked(e);
}

static void check_value(const struct json *v)
{
	if (v->key != NULL)
		check_text(v->key, strlen(v->key), TEXT_LINE);
	if (v->type == JSON_STRING)
		check_text(v->text, v->len, TEXT_BODY);
	for (const struct json *e = v->child; e != NULL; e = e->next)
		check_value(e);
}

static void check_line(const struct batch *b, const struct line *line)
{
	own_arena struct arena a;
	int64_t sequence;
	arena_init(&a, GATE_ARENA);
	const struct json *data = json_parse(&a, b->text.p + line->at, line->n, JSON_DEPTH, GATE_NODES, NULL);
	must(data != NULL && data->type == JSON_OBJECT && line->n <= DATA_MAX);
	if (line->ask)
		check_masked(data);
	must(json_int(json_get(data, "agent_sequence"), 0, INT64_MAX, &sequence));
	/* Only we say what was shortened, and only of questions; a link that is kept may be offered. */
	const struct json *marks = json_get(data, "text_shortened"), *url = json_get(data, "url");
	must(marks == NULL || (line->ask && marks->type == JSON_ARRAY && marks->count > 0));
	own_buf struct buf again;
	buf_init(&again, 1 << 20);
	must(!line->link || line->dropped || text_link(&again, NULL, url->text, url->len));
	check_value(data);
	must(type_valid(line->type, strlen(line->type)));
	must(line->ask == (strcmp(line->type, "approval.requested") == 0));
	must(strncmp(line->type, "run.", 4) != 0 && strncmp(line->type, "check.", 6) != 0 &&
	     strncmp(line->type, "model.", 6) != 0 && strncmp(line->type, "events.", 7) != 0);
	must(line->ask || strncmp(line->type, "approval.", 9) != 0);
	must(!line->ask || line->dropped || id_valid(line->request));
}

static void take(const uint8_t *p, size_t n)
{
	struct gate_call call = {.claims = {.run = "r"}, .body = {.p = (uint8_t *)(uintptr_t)p, .n = n}};
	struct batch *b = calloc(1, sizeof *b);
	char field[SCHEMA_FIELD] = "";
	must(b != NULL);
	buf_init(&b->text, DATA_TOTAL);
	enum err e = take_batch(&call, b, field);
	must(utf8_valid(field, strlen(field), NULL) && b->n <= LINES_MAX);
	for (unsigned i = 0; e == ERR_OK && i < b->n; i++)
		check_line(b, &b->lines[i]);
	buf_free(&b->text);
	free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	take(data, size);
	if (size == 0 || size > 60000 || !utf8_valid(data, size, NULL))
		return 0;
	own_buf struct buf body, line;
	struct jw w;
	buf_init(&body, 1 << 20);
	buf_init(&line, 1 << 20);
	buf_add(&line, data, size);
	buf_addc(&line, '\n');
	jw_init(&w, &body);
	jw_open(&w, '{');
	jw_key(&w, "lines");
	jw_open(&w, '[');
	jw_strn(&w, (const char *)line.p, line.n);
	jw_close(&w, ']');
	jw_close(&w, '}');
	must(!buf_failed(&body));
	take(body.p, body.n);
	return 0;
}
