/*
 * Agents' events: a batch is taken whole or not at all. Each line is parsed, checked, cleaned (agent_text.c)
 * and written again; no byte of it goes further as it came. What an agent may not say by itself (reserved types)
 * is stored as agent.TYPE; approval.requested becomes a question to people. Never spends model budget.
 */
#include "gateway/gateway.h"
#include "gen/limits.h"
#include "gen/routes.h"
#include "gen/schema.h"
#include "gen/store_msg.h"
#include "lib/die.h"
#include "lib/digest.h"
#include "lib/lack.h"
#include "lib/names.h"
#include "lib/own.h"
#include "lib/question.h"
#include "lib/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LINES_MAX = 128,
	TYPE_MAX = 64,
	DATA_MAX = 64000,
	LIST_MAX = 180000,
	DATA_TOTAL = 1000000,
	EVENT_FIXED = 64, /* what an event takes beside its texts */
	QUESTION_MAX = ST_MAX_AGENT_EVENT - DATA_MAX - TYPE_MAX - EVENT_FIXED
};

struct line {
	char type[TYPE_MAX + 1];
	char request[129]; /* of approval.requested */
	uint8_t digest[SHA256_SIZE];
	bool ask, link, dropped;
	size_t at, n; /* its data in the batch's text */
};

struct batch {
	struct line lines[LINES_MAX];
	unsigned n, questions;
	uint8_t masks; /* MASK_QUESTIONS and so on */
	struct buf text;
	uint32_t accepted;
	uint64_t last;
	/* on its way to the store */
	struct wire_list list;
};

static bool filled(const struct json *v)
{
	return v && v->type == JSON_STRING && v->len > 0 && strlen(v->text) == v->len;
}

static bool type_valid(const char *s, size_t n)
{
	if (n < 1 || n > TYPE_MAX || s[0] < 'a' || s[0] > 'z')
		return false;
	return strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_.") == n;
}

/* approval.requested needs an id to be answered under; without one there is nothing to ask. */
static void take_request(struct line *line, const struct json *data)
{
	const struct json *id = data ? json_get(data, "request_id") : NULL;

	line->ask = true;
	line->dropped = !id || id->type != JSON_STRING || !id_valid_n(id->text, id->len);
	if (!line->dropped)
		snprintf(line->request, sizeof line->request, "%s", id->text);
}

/* Before it is cleaned for a person: the agent shall find in the answer what it meant. */
static bool bind_request(struct line *line, const struct json *data)
{
	const struct json *effect = json_get(data, "effect"), *preview = json_get(data, "preview");
	bool e = effect && effect->type == JSON_STRING, p = preview && preview->type == JSON_STRING;
	return question_digest(e ? effect->text : "", e ? effect->len : 0, p ? preview->text : "", p ? preview->len : 0,
			       line->digest);
}

/* Cleaning may have put together what was apart. False: what is left then is no JSON object any more. */
static bool hide_again(const struct gate_call *call, struct batch *b, const struct line *line)
{
	struct arena arena own_arena = {0};
	size_t n = b->text.n - line->at, left = keys_hide(call, b->text.p + line->at, n);

	arena_init(&arena, GATE_ARENA);
	b->text.n = line->at + left;
	return left == n || json_parse(&arena, b->text.p + line->at, left, JSON_DEPTH, GATE_NODES, NULL) != NULL;
}

static bool take_line(const struct gate_call *call, struct batch *b, const struct json *raw)
{
	struct arena arena own_arena = {0};
	const char *run = call->claims.run;
	int64_t sequence = 0;

	/* The schema's bound comes first; this one only keeps a larger one from writing past the end. */
	if (b->n == LINES_MAX || raw->text[raw->len - 1] != '\n' || memchr(raw->text, '\n', raw->len - 1))
		return false;
	struct line *line = &b->lines[b->n];
	arena_init(&arena, GATE_ARENA);
	char *text = arena_dup(&arena, raw->text, raw->len - 1);
	if (!text)
		return false;
	size_t n = keys_hide(call, text, raw->len - 1);
	const struct json *event = json_parse(&arena, text, n, JSON_DEPTH, GATE_NODES, NULL);
	if (!event || event->type != JSON_OBJECT)
		return false;
	const struct json *type = json_get(event, "event_type"), *task = json_get(event, "task_id");
	const struct json *data = json_get(event, "data"), *number = json_get(event, "sequence");
	if (!filled(type) || !type_valid(type->text, type->len) || !filled(json_get(event, "run_id")) ||
	    !filled(task) || strcmp(task->text, run) != 0)
		return false;
	if (!number || !json_int(number, 0, INT64_MAX, &sequence) || (data && data->type != JSON_OBJECT))
		return false;
	*line = (struct line){.at = b->text.n};
	if (strcmp(type->text, "approval.requested") == 0)
		take_request(line, data);
	if (line->ask && !line->dropped && (++b->questions > LIMIT_APPROVAL_BATCH || !bind_request(line, data)))
		return false;
	snprintf(line->type, sizeof line->type, "%s%s", event_reserved(type->text) && !line->ask ? "agent." : "",
		 type->text);
	line->link = strcmp(type->text, "link") == 0;
	bool mask = line->ask ? b->masks != MASK_NONE : b->masks == MASK_EVENTS;
	bool kept = agent_data(&b->text, data, sequence,
			       line->ask    ? AGENT_QUESTION
			       : line->link ? AGENT_LINK
					    : AGENT_EVENT,
			       mask, line->dropped ? NULL : line->request);
	if (!buf_failed(&b->text) && !hide_again(call, b, line))
		return false;
	line->dropped = line->dropped || !kept;
	line->n = b->text.n - line->at;
	b->n++;
	return !buf_failed(&b->text) && line->n <= DATA_MAX;
}

static const char *shown(const struct json *data, const char *key)
{
	const struct json *v = json_get(data, key);
	return v && v->type == JSON_STRING ? v->text : "";
}

/* Is a person's card the whole of it? Not where something else is said of what would be done (a folder, arguments), be
 * it in a member that is a text on the card and none here; nor where nothing of it can be read. */
static bool shown_whole(const struct json *data)
{
	static const struct {
		const char *key;
		enum json_type type;
	} card[] = {{"agent_sequence", JSON_NUMBER}, {"request_id", JSON_STRING}, {"action_id", JSON_STRING},
		    {"effect", JSON_STRING},         {"reason", JSON_STRING},     {"policy_reason", JSON_STRING},
		    {"preview", JSON_STRING},        {"truncated", JSON_BOOL}};
	const char *preview = shown(data, "preview");

	for (const struct json *m = data->child; m; m = m->next) {
		size_t i = 0;
		while (i < sizeof card / sizeof *card && strcmp(m->key, card[i].key) != 0)
			i++;
		if (i == sizeof card / sizeof *card || (m->type != card[i].type && m->type != JSON_NULL))
			return false;
	}
	return text_words(preview, strlen(preview));
}

/* What a person is shown is read from what was cleaned; its texts live in the arena. */
static enum err read_request(struct arena *arena, const struct batch *b, const struct line *line,
			     struct st_agent_event *m)
{
	const struct json *data = json_parse(arena, b->text.p + line->at, line->n, JSON_DEPTH, GATE_NODES, NULL);

	if (!data || data->type != JSON_OBJECT)
		return lack_error();
	m->request = line->request;
	m->digest = (struct wire_bytes){line->digest, sizeof line->digest};
	m->action_id = shown(data, "action_id");
	m->effect = shown(data, "effect");
	m->reason = shown(data, "reason");
	m->policy_reason = shown(data, "policy_reason");
	m->preview = shown(data, "preview");
	/* What cleaning changed is said in a member of its own. */
	m->shortened = !shown_whole(data);
	return ERR_OK;
}

/* Into the one message that the whole batch goes to the store in. */
static enum err put_line(struct batch *b, const struct line *line)
{
	struct arena arena own_arena = {0};
	struct st_agent_event m = {.type = line->type, .data = {b->text.p + line->at, (uint32_t)line->n}};
	enum err e = ERR_OK;

	arena_init(&arena, GATE_ARENA);
	if (line->ask)
		e = read_request(&arena, b, line, &m);
	if (e != ERR_OK)
		return e;
	size_t most = EVENT_FIXED + line->n + strlen(line->type) + (line->ask ? QUESTION_MAX : 0);
	uint8_t *room = wire_list_room(&b->list, most);
	if (!room)
		return ERR_REQUEST_TOO_LARGE; /* several questions at once say much twice */
	size_t n = st_put_agent_event(room, most, &m);
	if (n == 0)
		return ERR_INTERNAL_ERROR;
	wire_list_add(&b->list, n);
	return ERR_OK;
}

/* What breaks a rule is left out without a word to the agent; whoever runs the service reads of the first. */
static void tell_dropped(struct box *box, const struct line *line)
{
	if (line->link && !atomic_exchange(&box->link_told, true))
		log_warn("run %s: a link is left out, for its address is not one that may be offered; more of them are "
			 "not told of",
			 box->run);
	if (line->ask && !atomic_exchange(&box->id_told, true))
		log_warn("run %s: a question is left out, for it has no id that it could be answered under; more of "
			 "them are not told of",
			 box->run);
}

/* All of it or nothing: a batch that is refused may be sent again, and nothing is there twice. */
static enum err store_batch(struct gate_call *call, struct batch *b)
{
	struct st_events_append m = {.tenant = call->box->tenant, .run = call->box->run};
	struct st_events_taken taken;
	enum err e = ERR_OK;
	unsigned kept = 0;

	for (unsigned i = 0; i < b->n && e == ERR_OK; i++) {
		if (b->lines[i].dropped) {
			tell_dropped(call->box, &b->lines[i]);
			continue;
		}
		e = put_line(b, &b->lines[i]);
		kept++;
	}
	m.events = wire_list_done(&b->list);
	if (e != ERR_OK || !kept)
		return e;
	e = st_call_events_append(call->store, &m, NULL, &taken, NULL);
	if (e == ERR_OK) {
		b->accepted = taken.accepted;
		b->last = taken.last_sequence;
	}
	return e;
}

static enum err take_batch(struct gate_call *call, struct batch *b, char field[SCHEMA_FIELD])
{
	struct arena arena own_arena = {0};

	arena_init(&arena, GATE_ARENA);
	const struct json *body = json_parse(&arena, call->body.p, call->body.n, JSON_DEPTH, GATE_NODES, NULL);
	if (!body)
		return lack_or(ERR_INVALID_JSON);
	enum err e = schema_check(&schema_event_append, body, field);
	unsigned i = 0;
	for (const struct json *l = e == ERR_OK ? json_get(body, "lines")->child : NULL; l; l = l->next, i++) {
		errno = 0;
		if (take_line(call, b, l))
			continue;
		e = lack_or(ERR_INVALID_EVENT_APPEND);
		if (e == ERR_INVALID_EVENT_APPEND)
			snprintf(field, SCHEMA_FIELD, "lines[%u]", i);
		return e;
	}
	return e;
}

void gate_events(struct gate_call *call)
{
	own_free struct batch *b = calloc(1, sizeof *b);
	own_free uint8_t *list = malloc(LIST_MAX);
	char field[SCHEMA_FIELD] = "";
	enum err e = ERR_RESOURCES_EXHAUSTED;
	struct jw w;

	if (b && list) {
		b->list = (struct wire_list){.p = list, .cap = LIST_MAX};
		buf_init(&b->text, DATA_TOTAL);
		b->masks = call->terms->conf->global.mask_secrets;
		e = take_batch(call, b, field);
		if (e == ERR_OK)
			e = gate_alive(call);
		if (e == ERR_OK)
			e = store_batch(call, b);
		buf_free(&b->text);
	}
	if (e != ERR_OK) {
		gate_fail(call, e, field);
		return;
	}
	call->status = 202;
	jw_init(&w, &call->reply);
	jw_open(&w, '{');
	jw_kint(&w, "accepted", b->accepted);
	jw_kint(&w, "lastSequence", (int64_t)b->last);
	jw_close(&w, '}');
}
