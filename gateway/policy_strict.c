/*
 * Policy "strict": what a model request may say. Every key at every level is named here;
 * anything else is refused, so nothing can steer where the call goes or what it costs. The JSON schema in
 * tools[].function.parameters is the one free place: it is data for the model.
 */
#include "gateway/policy.h"
#include "gen/limits.h"
#include "gen/schema.h"
#include "lib/lack.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	MAX_PARTS = 64,
	MAX_CALLS = 64,
	MODEL_MAX_TOKENS = LIMIT_MODEL_MAX_TOKENS,
	KEY_SHOWN = 64,
	REQUEST_MAX = 1100000
};

struct check {
	enum err e; /* of this part of the body */
	char place[100];
	char *field; /* SCHEMA_FIELD bytes */
};

/* A key of an object: what it may be. */
struct key_rule {
	const char *key;
	bool required;
	bool (*ok)(struct check *c, const struct json *v);
};

/* A key may be the caller's own: it is cut, at a whole character. */
static enum err fault(struct check *c, enum err e, const char *key)
{
	snprintf(c->field, SCHEMA_FIELD, "%s%s%.*s", c->place, *key ? "." : "",
		 (int)utf8_fit(key, strlen(key), KEY_SHOWN), key);
	return e;
}

static bool is_string(struct check *c, const struct json *v)
{
	(void)c;
	return v->type == JSON_STRING && strlen(v->text) == v->len;
}

static bool is_bool(struct check *c, const struct json *v)
{
	(void)c;
	return v->type == JSON_BOOL;
}

static bool is_object(struct check *c, const struct json *v)
{
	(void)c;
	return v->type == JSON_OBJECT;
}

static bool is_array(struct check *c, const struct json *v)
{
	(void)c;
	return v->type == JSON_ARRAY && v->count <= MAX_CALLS;
}

static bool is_text(struct check *c, const struct json *v)
{
	return is_string(c, v) && strcmp(v->text, "text") == 0;
}

static bool is_function(struct check *c, const struct json *v)
{
	return is_string(c, v) && strcmp(v->text, "function") == 0;
}

static bool is_content(struct check *c, const struct json *v)
{
	return v->type == JSON_NULL || is_string(c, v) || (v->type == JSON_ARRAY && v->count <= MAX_PARTS);
}

static const struct key_rule message_keys[] = {{"role", true, is_string},          {"content", false, is_content},
					       {"name", false, is_string},         {"tool_calls", false, is_array},
					       {"tool_call_id", false, is_string}, {NULL, false, NULL}};
static const struct key_rule part_keys[] = {{"type", true, is_text}, {"text", true, is_string}, {NULL, false, NULL}};
static const struct key_rule call_keys[] = {
    {"id", true, is_string}, {"type", true, is_function}, {"function", true, is_object}, {NULL, false, NULL}};
static const struct key_rule called_keys[] = {
    {"name", true, is_string}, {"arguments", true, is_string}, {NULL, false, NULL}};
static const struct key_rule tool_keys[] = {
    {"type", true, is_function}, {"function", true, is_object}, {NULL, false, NULL}};
static const struct key_rule function_keys[] = {{"name", true, is_string},
						{"description", false, is_string},
						{"parameters", false, is_object},
						{"strict", false, is_bool},
						{NULL, false, NULL}};

static enum err check_object(struct check *c, const struct json *o, const struct key_rule *rules)
{
	if (o->type != JSON_OBJECT)
		return fault(c, c->e, "");
	for (const struct json *m = o->child; m; m = m->next) {
		const struct key_rule *r = rules;
		while (r->key && strcmp(r->key, m->key) != 0)
			r++;
		if (!r->key)
			return fault(c, ERR_UNKNOWN_FIELD, m->key);
		if (!r->ok(c, m))
			return fault(c, c->e, m->key);
	}
	for (const struct key_rule *r = rules; r->key; r++)
		if (r->required && !json_get(o, r->key))
			return fault(c, c->e, r->key);
	return ERR_OK;
}

static enum err check_message(struct check *c, const struct json *message, unsigned i)
{
	const struct json *content, *calls;
	enum err e;
	unsigned k = 0;

	snprintf(c->place, sizeof c->place, "messages[%u]", i);
	if ((e = check_object(c, message, message_keys)) != ERR_OK)
		return e;
	content = json_get(message, "content");
	for (const struct json *p = content && content->type == JSON_ARRAY ? content->child : NULL; p;
	     p = p->next, k++) {
		snprintf(c->place, sizeof c->place, "messages[%u].content[%u]", i, k);
		if ((e = check_object(c, p, part_keys)) != ERR_OK)
			return e;
	}
	calls = json_get(message, "tool_calls");
	k = 0;
	for (const struct json *t = calls ? calls->child : NULL; t; t = t->next, k++) {
		snprintf(c->place, sizeof c->place, "messages[%u].tool_calls[%u]", i, k);
		if ((e = check_object(c, t, call_keys)) != ERR_OK)
			return e;
		snprintf(c->place, sizeof c->place, "messages[%u].tool_calls[%u].function", i, k);
		if ((e = check_object(c, json_get(t, "function"), called_keys)) != ERR_OK)
			return e;
	}
	return ERR_OK;
}

static enum err check_tool(struct check *c, const struct json *tool, unsigned i)
{
	enum err e;

	snprintf(c->place, sizeof c->place, "tools[%u]", i);
	if ((e = check_object(c, tool, tool_keys)) != ERR_OK)
		return e;
	snprintf(c->place, sizeof c->place, "tools[%u].function", i);
	return check_object(c, json_get(tool, "function"), function_keys);
}

enum err policy_strict(const struct json *body, const char *model, struct buf *out, char field[SCHEMA_FIELD])
{
	const struct json *messages, *tools;
	struct check c = {.e = ERR_INVALID_MESSAGES, .field = field};
	unsigned i = 0;
	struct jw w;
	enum err e = schema_check(&schema_chat, body, field);

	if (e == ERR_INVALID_JSON_OBJECT)
		return ERR_INVALID_MODEL_REQUEST;
	if (e != ERR_OK)
		return e;
	if (strcmp(json_get(body, "model")->text, model) != 0) {
		snprintf(field, SCHEMA_FIELD, "model");
		return ERR_MODEL_NOT_ALLOWED;
	}
	messages = json_get(body, "messages");
	tools = json_get(body, "tools");
	for (const struct json *m = messages->child; m; m = m->next, i++)
		if ((e = check_message(&c, m, i)) != ERR_OK)
			return e;
	c.e = ERR_INVALID_TOOLS;
	i = 0;
	for (const struct json *t = tools ? tools->child : NULL; t; t = t->next, i++)
		if ((e = check_tool(&c, t, i)) != ERR_OK)
			return e;
	*field = 0;
	jw_init(&w, out);
	jw_open(&w, '{');
	jw_kstr(&w, "model", model);
	jw_key(&w, "messages");
	struct buf part own_buf = {0};
	buf_init(&part, REQUEST_MAX);
	json_write(&part, messages);
	jw_raw(&w, part.p, part.n);
	if (tools && tools->count > 0) {
		struct buf list own_buf = {0};
		buf_init(&list, REQUEST_MAX);
		json_write(&list, tools);
		jw_key(&w, "tools");
		jw_raw(&w, list.p, list.n);
		if (buf_failed(&list))
			buf_fail(out, errno);
	}
	jw_kbool(&w, "stream", false);
	jw_kint(&w, "max_tokens", MODEL_MAX_TOKENS);
	jw_close(&w, '}');
	return buf_failed(out) || buf_failed(&part) ? lack_or(ERR_REQUEST_TOO_LARGE) : ERR_OK;
}
