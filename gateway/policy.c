/*
 * The engine of the policies agent and passthrough: walks a parsed request along spec/fields.tab and writes what is
 * sent. Each object is of a known place, each of its fields has a rule; whatever has none is left out or looked
 * through. Trusts nothing of the request but that it is parsed: depth is the parser's.
 */
#include "gateway/policy.h"
#include "gateway/denied.h"
#include "gateway/policy_words.h"
#include "gen/fields.h"
#include "lib/digest.h"
#include "lib/lack.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { REQUEST_MAX = 64000000, BUDGET_LEAST = 1024, MEMBERS_MAX = 200 };

struct walk {
	const struct policy_rules *rules;
	struct model_request *out;
	struct jw w;
	char *field; /* SCHEMA_FIELD bytes: the place of what is looked at */
	size_t at;   /* its length */
	bool caps;   /* the object that comes is where the output cap stands */
	bool capped; /* and is written */
};

void model_request_free(struct model_request *rq)
{
	buf_free(&rq->body);
}

/* Goes down one step in the place that is told; the length to go back to. Keys are the caller's own: cut. */
static size_t down(struct walk *k, const char *key)
{
	size_t was = k->at;
	int n = snprintf(k->field + was, SCHEMA_FIELD - was, "%s%.*s", was ? "." : "",
			 (int)utf8_fit(key, strlen(key), KEY_SHOWN), key);
	k->at = n < 0 || (size_t)n >= SCHEMA_FIELD - was ? was : was + (size_t)n;
	k->field[k->at] = 0;
	return was;
}

static size_t down_to(struct walk *k, size_t i)
{
	size_t was = k->at;
	int n = snprintf(k->field + was, SCHEMA_FIELD - was, "[%zu]", i);
	k->at = n < 0 || (size_t)n >= SCHEMA_FIELD - was ? was : was + (size_t)n;
	k->field[k->at] = 0;
	return was;
}

static void up(struct walk *k, size_t was)
{
	k->at = was;
	k->field[was] = 0;
}

/* How it is sent: the one way, whatever the client spelt. */
static void put_key(struct walk *k, const char *key)
{
	char one[KEY_SHOWN];

	jw_key(&k->w, k->out->format->two_spellings ? spelling(key, one) : key);
}

/* The member of an object that a field of the table means; NULL: none. */
static const struct json *member(const struct walk *k, const struct json *o, const char *field)
{
	const struct json *m = o && o->type == JSON_OBJECT ? o->child : NULL;

	while (m && !spells(k->out->format->two_spellings, field, m->key))
		m = m->next;
	return m;
}

/* Is it there once more, in any other spelling? */
static bool twin(const struct walk *k, const struct json *o, const struct json *m)
{
	char key[KEY_SHOWN], other[KEY_SHOWN];

	if (!k->out->format->two_spellings || !key_plain(m->key, key))
		return false;
	for (const struct json *x = o->child; x; x = x->next)
		if (x != m && key_plain(x->key, other) && strcmp(key, other) == 0)
			return true;
	return false;
}

static bool among(const char *words, const char *s, size_t n)
{
	if (memchr(s, '|', n))
		return false;
	for (const char *at = words; *at && at[1]; at = strchr(at + 1, '|'))
		if (strncmp(at + 1, s, n) == 0 && at[1 + n] == '|')
			return true;
	return false;
}

static void drift(struct walk *k)
{
	struct model_request *rq = k->out;
	char place[POLICY_DRIFT_NAME];
	size_t n = 0;

	/* Without the numbers in brackets: one line for all of a list. */
	for (const char *s = k->field; *s && n + 1 < sizeof place; s++) {
		if (*s == '[') {
			s += strcspn(s, "]");
			if (!*s)
				break;
		} else
			place[n++] = *s;
	}
	place[utf8_fit(place, n, n)] = 0;
	for (unsigned i = 0; i < rq->ndrift; i++)
		if (strcmp(rq->drift[i], place) == 0)
			return;
	if (rq->ndrift == POLICY_DRIFT)
		rq->more_drift++;
	else
		memcpy(rq->drift[rq->ndrift++], place, sizeof place);
}

static enum err put_object(struct walk *k, const struct json *o, int place);

static enum err put_list(struct walk *k, const struct json *v, int place)
{
	size_t i = 0;

	jw_open(&k->w, '[');
	for (const struct json *m = v->child; m; m = m->next, i++) {
		size_t was = down_to(k, i);
		enum err e = put_object(k, m, place);
		if (e != ERR_OK)
			return e;
		up(k, was);
	}
	jw_close(&k->w, ']');
	return ERR_OK;
}

static enum err put_cache_name(struct walk *k, const struct json *v)
{
	static const char use[] = "pinfold prompt_cache_key";
	struct buf b own_buf = {0};
	uint8_t mac[SHA256_SIZE];
	char text[48];

	if (v->type != JSON_STRING)
		return ERR_MODEL_FIELD_REFUSED;
	buf_init(&b, v->len + 512);
	buf_add(&b, use, sizeof use); /* with its NUL */
	buf_add(&b, k->rules->tenant, strlen(k->rules->tenant) + 1);
	buf_add(&b, v->text, v->len);
	if (buf_failed(&b) || !hmac_sha256(k->rules->cache_key->p, k->rules->cache_key->n, b.p, b.n, mac) ||
	    b64url_encode(mac, sizeof mac, text, sizeof text) == 0)
		return lack_error();
	jw_kstr(&k->w, v->key, text);
	return ERR_OK;
}

static enum err put_kept(struct walk *k, const struct json *v, const char *words)
{
	if (v->type != JSON_ARRAY)
		return ERR_MODEL_FIELD_REFUSED;
	put_key(k, v->key);
	jw_open(&k->w, '[');
	for (const struct json *m = v->child; m; m = m->next)
		if (m->type == JSON_STRING && among(words, m->text, m->len))
			jw_strn(&k->w, m->text, m->len);
	jw_close(&k->w, ']');
	return ERR_OK;
}

/* One of the words, a number as it was spelt, true or false; or a list of such. */
static bool only(const struct json *v, const char *words)
{
	if (v->type == JSON_BOOL)
		return among(words, v->truth ? "true" : "false", v->truth ? 4 : 5);
	return (v->type == JSON_STRING || v->type == JSON_NUMBER) && among(words, v->text, v->len);
}

/* Gemini's tokens to think with: 0 is none, -1 as many as it likes, which the output cap bounds; else less than that.
 */
static enum err put_gemini_budget(struct walk *k, const struct json *v)
{
	int64_t n;

	if (!json_int(v, -1, INT64_MAX, &n))
		return ERR_MODEL_FIELD_REFUSED;
	put_key(k, v->key);
	jw_int(&k->w, n < k->out->cap ? n : (int64_t)k->out->cap - 1);
	return ERR_OK;
}

static enum err put_effort(struct walk *k, const struct json *v)
{
	bool gemini = k->out->format->family == FAMILY_GEMINI;
	enum effort want = k->rules->effort;

	if (v->type != JSON_STRING || !(gemini ? level_named : effort_named)(v->text, v->len, &want))
		return ERR_MODEL_FIELD_REFUSED;
	want = want < k->rules->effort ? want : k->rules->effort;
	put_key(k, v->key);
	jw_str(&k->w, (gemini ? level_name : effort_name)(want));
	return ERR_OK;
}

/* Tokens to think with, which providers want to be fewer than the output cap and at least 1,024. False: there are none.
 */
static bool budget(const struct walk *k, const struct json *v, int64_t *tokens)
{
	int64_t most = (int64_t)(k->out->cap > 0 ? k->out->cap : k->rules->max_output_tokens) - 1;

	if (!json_int(v, 0, INT64_MAX, tokens))
		return false;
	if (*tokens > most)
		*tokens = most;
	return *tokens >= BUDGET_LEAST;
}

static enum err put_thinking(struct walk *k, const struct json *v, int place)
{
	const struct json *type = json_get(v, "type"), *tokens = json_get(v, "budget_tokens");
	int64_t n;

	jw_key(&k->w, v->key);
	if (type && type->type == JSON_STRING && strcmp(type->text, "enabled") == 0) {
		if (tokens && !json_int(tokens, 0, INT64_MAX, &n))
			return ERR_MODEL_FIELD_REFUSED;
		if (tokens && !budget(k, tokens, &n)) {
			jw_open(&k->w, '{');
			jw_kstr(&k->w, "type", "disabled");
			jw_close(&k->w, '}');
			return ERR_OK;
		}
	}
	return put_object(k, v, place);
}

static enum err typed(struct walk *k, const struct json *v, enum json_type type)
{
	if (v->type != type && v->type != JSON_NULL)
		return ERR_MODEL_FIELD_REFUSED;
	put_key(k, v->key);
	jw_json(&k->w, v);
	return ERR_OK;
}

static enum err put_any(struct walk *k, const struct json *v)
{
	if (!value_harmless(v))
		return ERR_MODEL_FIELD_REFUSED;
	put_key(k, v->key);
	jw_json(&k->w, v);
	return ERR_OK;
}

static bool base64_text(const struct json *v)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_";
	return v->type == JSON_STRING && strspn(v->text, letters) == v->len && strncmp(v->text, "//", 2) != 0;
}

/* By the shape that the rule wants the value to have. */
static enum err put_place(struct walk *k, const struct json *v, const struct field_rule *r)
{
	bool list = r->action == FIELD_LIST || r->action == FIELD_EITHER;

	if (v->type == JSON_NULL && r->action != FIELD_EITHER)
		return ERR_OK;
	if (r->action == FIELD_EITHER && v->type == JSON_NULL)
		return typed(k, v, JSON_NULL);
	if (v->type == JSON_STRING &&
	    (r->action == FIELD_EITHER || (r->action == FIELD_WORD && among(r->words, v->text, v->len))))
		return typed(k, v, JSON_STRING);
	if (v->type != (list ? JSON_ARRAY : JSON_OBJECT))
		return ERR_MODEL_FIELD_REFUSED;
	if (r->action == FIELD_THINKING)
		return put_thinking(k, v, r->place);
	put_key(k, v->key);
	k->caps = k->out->format->caps && strcmp(r->field, k->out->format->caps) == 0;
	return list ? put_list(k, v, r->place) : put_object(k, v, r->place);
}

/* By the value alone; null stands for nothing. */
static enum err put_value(struct walk *k, const struct json *v, const struct field_rule *r)
{
	int64_t n;

	if (v->type == JSON_NULL)
		return ERR_OK;
	switch ((enum field_action)r->action) {
	case FIELD_URL:
		return address_is_data(v) ? typed(k, v, JSON_STRING) : ERR_MODEL_FIELD_REFUSED;
	case FIELD_BLOB:
		return address_is_data(v) || base64_text(v) ? typed(k, v, JSON_STRING) : ERR_MODEL_FIELD_REFUSED;
	case FIELD_MODEL:
		jw_kstr(&k->w, v->key, k->rules->upstream_model);
		return ERR_OK;
	case FIELD_EFFORT:
		return put_effort(k, v);
	case FIELD_BUDGET:
		if (k->out->format->family == FAMILY_GEMINI)
			return put_gemini_budget(k, v);
		if (!json_int(v, 0, INT64_MAX, &n))
			return ERR_MODEL_FIELD_REFUSED;
		if (budget(k, v, &n))
			jw_kint(&k->w, v->key, n);
		return ERR_OK;
	case FIELD_CACHE:
		return put_cache_name(k, v);
	case FIELD_FORCE:
		put_key(k, v->key);
		jw_raw(&k->w, r->words, strlen(r->words));
		return ERR_OK;
	case FIELD_ONLY:
		return only(v, r->words) ? ERR_OK : ERR_MODEL_FIELD_REFUSED;
	case FIELD_AMONG:
		return v->type == JSON_STRING && among(r->words, v->text, v->len) ? typed(k, v, JSON_STRING)
										  : ERR_MODEL_FIELD_REFUSED;
	case FIELD_KEEP:
		return put_kept(k, v, r->words);
	case FIELD_STREAM: /* these are written at the end, also where they are absent */
	case FIELD_CAP:
	case FIELD_ALWAYS:
	case FIELD_STRIP:
		return ERR_OK;
	default:
		return ERR_MODEL_FIELD_REFUSED;
	}
}

static enum err put_known(struct walk *k, const struct json *v, const struct field_rule *r)
{
	switch ((enum field_action)r->action) {
	case FIELD_TEXT:
		return typed(k, v, JSON_STRING);
	case FIELD_NUMBER:
		return typed(k, v, JSON_NUMBER);
	case FIELD_BOOL:
		return typed(k, v, JSON_BOOL);
	case FIELD_ANY:
		return put_any(k, v);
	case FIELD_DATA:
		put_key(k, v->key);
		jw_json(&k->w, v);
		return ERR_OK;
	case FIELD_LIST:
	case FIELD_OBJECT:
	case FIELD_EITHER:
	case FIELD_WORD:
	case FIELD_THINKING:
		return put_place(k, v, r);
	default:
		return put_value(k, v, r);
	}
}

/* A field that this object has no rule for. */
static enum err put_unknown(struct walk *k, const struct json *v, const struct field_rule *rules)
{
	char key[KEY_SHOWN], other[KEY_SHOWN];
	bool clear = key_plain(v->key, key);
	const struct field_denied *d = clear ? key_denied(key) : NULL;

	if (d)
		return d->action == FIELD_STRIP || v->type == JSON_NULL ? ERR_OK : ERR_MODEL_FIELD_REFUSED;
	/* An item whose kind is not known is no item without it. */
	for (const struct field_rule *r = rules; r->field; r++)
		if (strcmp(r->field, "*") == 0)
			return v->type == JSON_NULL ? ERR_OK : ERR_MODEL_FIELD_REFUSED;
	if (k->rules->kind == POLICY_AGENT) {
		drift(k);
		return ERR_OK;
	}
	/* What a reader might take for one that the table knows goes nowhere. */
	for (const struct field_rule *r = rules; clear && r->field; r++)
		clear = !key_plain(r->field, other) || strcmp(key, other) != 0;
	if (!clear || strcmp(key, "type") == 0 || (key_names_address(key) && value_fetched(v)))
		return ERR_MODEL_FIELD_REFUSED;
	return put_any(k, v);
}

/* The rules for an object of this place; NULL: it is of a type that is not known. */
static const struct field_rule *rules_of(const struct json *o, const struct field_place *p)
{
	const struct json *type = json_get(o, "type");
	const char *name = "";

	if (!p->typed)
		return p->objects->rules;
	if (type && type->type != JSON_STRING)
		return NULL;
	if (type)
		name = type->text;
	for (const struct field_object *t = p->objects; t->type; t++)
		if (strcmp(t->type, name) == 0 && (*name || !type))
			return t->rules;
	return NULL;
}

static enum err put_members(struct walk *k, const struct json *o, const struct field_place *p)
{
	const struct field_rule *rules = o->type == JSON_OBJECT ? rules_of(o, p) : NULL;

	if (k->out->format->two_spellings && o->count > MEMBERS_MAX)
		return ERR_MODEL_FIELD_REFUSED; /* they are compared with each other */
	if (!rules) {
		if (o->type == JSON_OBJECT)
			down(k, "type");
		return ERR_MODEL_FIELD_REFUSED;
	}
	for (const struct json *m = o->child; m; m = m->next) {
		const struct field_rule *r = rules;
		size_t was = down(k, m->key);
		enum err e = ERR_OK;
		while (r->field && !spells(k->out->format->two_spellings, r->field, m->key))
			r++;
		if (twin(k, o, m))
			e = ERR_MODEL_FIELD_REFUSED; /* one of them could be read, or the other */
		else if (r->field)
			e = put_known(k, m, r);
		else if (p->typed && strcmp(m->key, "type") == 0)
			e = typed(k, m, JSON_STRING);
		else
			e = put_unknown(k, m, rules);
		if (e != ERR_OK)
			return e;
		up(k, was);
	}
	return ERR_OK;
}

static void put_cap(struct walk *k)
{
	const struct format *f = k->out->format;
	bool named = f->id == FORMAT_CHAT && k->rules->chat_cap;

	jw_kint(&k->w, named ? k->rules->chat_cap : f->cap, k->out->cap);
	k->capped = true;
}

static enum err put_object(struct walk *k, const struct json *o, int place)
{
	bool caps = k->caps;

	k->caps = false;
	jw_open(&k->w, '{');
	enum err e = put_members(k, o, &field_places[place]);
	if (caps)
		put_cap(k);
	jw_close(&k->w, '}');
	return e;
}

/* The smallest of the caps that the client names, and ours. */
static enum err find_cap(struct walk *k, const struct json *body, const struct field_rule *rules)
{
	k->out->cap = k->out->format->cap ? k->rules->max_output_tokens : 0;
	if (k->out->format->caps) {
		const struct field_rule *r = rules;
		while (r->field && strcmp(r->field, k->out->format->caps) != 0)
			r++;
		body = member(k, body, k->out->format->caps);
		if (!r->field || !body)
			return ERR_OK;
		down(k, body->key);
		rules = field_places[r->place].objects->rules;
	}
	size_t top = k->at;
	for (const struct field_rule *r = rules; r->field; r++) {
		const struct json *v = r->action == FIELD_CAP ? member(k, body, r->field) : NULL;
		int64_t n;
		if (!v || v->type == JSON_NULL)
			continue;
		down(k, v->key);
		if (!json_int(v, 1, INT64_MAX, &n))
			return ERR_MODEL_FIELD_REFUSED;
		if (n < k->out->cap)
			k->out->cap = (uint32_t)n;
		up(k, top);
	}
	up(k, 0);
	return ERR_OK;
}

static enum err find_stream(struct walk *k, const struct json *body)
{
	const struct format *f = k->out->format;
	const struct json *v = f->verb ? NULL : json_get(body, "stream");

	if (f->id == FORMAT_COUNT_TOKENS || (!f->always && (!v || v->type == JSON_NULL)))
		return ERR_OK;
	if (v)
		down(k, "stream");
	if (v && v->type != JSON_BOOL)
		return ERR_MODEL_FIELD_REFUSED;
	bool wanted = f->always || v->truth;
	if (wanted && !k->rules->stream)
		return ERR_MODEL_STREAM_NOT_SERVED;
	up(k, 0);
	k->out->stream = wanted;
	k->out->stream_up = wanted && !k->rules->buffered;
	v = json_get(json_get(body, "stream_options"), "include_usage");
	k->out->usage = v && v->type == JSON_BOOL && v->truth;
	return ERR_OK;
}

static enum err find_model(struct walk *k, const struct json *body)
{
	const struct json *v = json_get(body, "model"), *says = json_get(body, k->out->format->says);

	if (!says || says->type == JSON_NULL) {
		down(k, k->out->format->says);
		return ERR_INVALID_MODEL_REQUEST;
	}
	if (k->out->format->verb)
		return ERR_OK; /* its path said so */
	down(k, "model");
	if (!v || v->type != JSON_STRING)
		return ERR_INVALID_MODEL_REQUEST;
	if (strcmp(v->text, k->rules->model) != 0)
		return ERR_MODEL_NOT_ALLOWED;
	up(k, 0);
	return ERR_OK;
}

/* What is sent whether or not the client said it. */
static void put_ours(struct walk *k, const struct field_rule *rules)
{
	const struct format *f = k->out->format;
	bool chat = f->id == FORMAT_CHAT;

	for (const struct field_rule *r = rules; r->field; r++)
		if (r->action == FIELD_ALWAYS) {
			put_key(k, r->field);
			jw_raw(&k->w, r->words, strlen(r->words));
		}
	if (f->caps && !k->capped) {
		put_key(k, f->caps);
		jw_open(&k->w, '{');
		put_cap(k);
		jw_close(&k->w, '}');
	} else if (f->cap && !f->caps)
		put_cap(k);
	if (!f->verb && f->id != FORMAT_COUNT_TOKENS)
		jw_kbool(&k->w, "stream", k->out->stream_up);
	/* Without it a chat's stream says nothing of what it cost. */
	if (chat && k->out->stream_up) {
		jw_key(&k->w, "stream_options");
		jw_open(&k->w, '{');
		jw_kbool(&k->w, "include_usage", true);
		jw_close(&k->w, '}');
	}
}

static enum err by_table(struct walk *k, const struct json *body)
{
	static const int tops[FORMAT__COUNT] = {FIELDS_CHAT,        FIELDS_RESPONSES,    FIELDS_MESSAGES,
						FIELDS_GEMINI,      FIELDS_COUNT_TOKENS, FIELDS_GEMINI,
						FIELDS_GEMINI_COUNT};
	const struct field_place *top = &field_places[tops[k->out->format->id]];
	const struct field_rule *rules = top->objects->rules;
	enum err e = body->type == JSON_OBJECT ? ERR_OK : ERR_INVALID_MODEL_REQUEST;

	e = e != ERR_OK ? e : find_model(k, body);
	e = e != ERR_OK ? e : find_stream(k, body);
	e = e != ERR_OK ? e : find_cap(k, body, rules);
	if (e != ERR_OK)
		return e;
	jw_init(&k->w, &k->out->body);
	jw_open(&k->w, '{');
	if ((e = put_members(k, body, top)) != ERR_OK)
		return e;
	put_ours(k, rules);
	jw_close(&k->w, '}');
	return buf_failed(&k->out->body) ? lack_or(ERR_REQUEST_TOO_LARGE) : ERR_OK;
}

enum err policy_apply(const struct policy_rules *rules, const struct format *format, const struct json *body,
		      struct model_request *out, char field[SCHEMA_FIELD])
{
	struct walk k = {.rules = rules, .out = out, .field = field};

	*out = (struct model_request){.format = format};
	buf_init(&out->body, REQUEST_MAX);
	*field = 0;
	if (!(rules->formats & 1U << format->id))
		return ERR_MODEL_FORMAT_NOT_SERVED;
	if (rules->kind != POLICY_STRICT)
		return by_table(&k, body);
	out->cap = rules->max_output_tokens;
	return policy_strict(body, rules->model, &out->body, field);
}
