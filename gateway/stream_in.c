/* See stream_in.h. Lines end with LF, CR or both, as the format of event streams has it; an event ends with an empty
 * one. */
#include "gateway/stream_in.h"
#include "lib/lack.h"
#include <errno.h>
#include <string.h>

enum { NODES = 50000, LINE_MAX_MORE = 64, ARENA = 16 * STREAM_EVENT_MAX };

void stream_in_init(struct stream_in *s, const struct format *f, const struct secret *key, size_t most)
{
	*s = (struct stream_in){.format = f, .key = key, .left = most, .watch = {.key = key}};
	buf_init(&s->line, STREAM_EVENT_MAX + LINE_MAX_MORE);
	buf_init(&s->data, STREAM_EVENT_MAX);
	buf_init(&s->end, 2 * STREAM_EVENT_MAX);
	buf_init(&s->held, STREAM_HELD_MAX + 2 * STREAM_EVENT_MAX);
}

void stream_in_free(struct stream_in *s)
{
	buf_free(&s->line);
	buf_free(&s->data);
	buf_free(&s->end);
	buf_free(&s->held);
	stream_watch_free(&s->watch);
}

static bool fail(struct stream_in *s, enum stream_fault why)
{
	if (s->fault == STREAM_FINE)
		s->fault = why;
	return false;
}

/* A buffer that failed: by its cap, or for want of memory. */
static bool fail_of(struct stream_in *s, const struct buf *b)
{
	return fail(s, buf_failed(b) && errno == EOVERFLOW ? STREAM_TOO_LARGE : STREAM_LACK);
}

static bool holds(const void *p, size_t n, const struct secret *key)
{
	return n >= key->n && memmem(p, n, key->p, key->n) != NULL;
}

static bool says(const struct json *v, const struct secret *key)
{
	if ((v->key && holds(v->key, strlen(v->key), key)) || (v->text && holds(v->text, v->len, key)))
		return true;
	for (const struct json *e = v->child; e; e = e->next)
		if (says(e, key))
			return true;
	return false;
}

static const char *text_of(const struct json *object, const char *key)
{
	const struct json *v = json_get(object, key);
	return v && v->type == JSON_STRING && strlen(v->text) == v->len ? v->text : NULL;
}

static bool is_end(const struct format *f, const char *what)
{
	for (const char *const *e = f->ends; what && *e; e++)
		if (strcmp(*e, what) == 0)
			return true;
	return false;
}

/* Of a chat: has any of the choices come to its end? */
static void look_finished(struct stream_in *s, const struct json *event)
{
	const struct json *choices = json_get(event, "choices");

	for (const struct json *c = choices && choices->type == JSON_ARRAY ? choices->child : NULL; c; c = c->next)
		if (c->type == JSON_OBJECT && text_of(c, "finish_reason"))
			s->finished = true;
}

static bool write_event(struct stream_in *s, struct buf *out, const char *name, const struct json *data)
{
	if (name)
		buf_addf(out, "event: %s\n", name);
	buf_adds(out, "data: ");
	json_write(out, data);
	buf_adds(out, "\n\n");
	return buf_failed(out) ? fail_of(s, out) : true;
}

/* What was held back is told: the key did not go on. */
static bool let_go(struct stream_in *s, struct buf *out)
{
	buf_add(out, s->held.p, s->held.n);
	buf_reset(&s->held);
	return buf_failed(out) ? fail_of(s, out) : true;
}

/* Did it cost more than may be, by what it says of it or by what was said? */
static bool spent(struct stream_in *s)
{
	uint64_t said = stream_watch_tokens(&s->watch);

	if (s->tokens_most == 0 ||
	    s->prompt_tokens + (said > s->completion_tokens ? said : s->completion_tokens) <= s->tokens_most)
		return false;
	if (said > s->completion_tokens)
		s->completion_tokens = said;
	return true;
}

static bool take_typed(struct stream_in *s, const struct json *event, struct buf *out)
{
	const char *type = text_of(event, "type");

	/* Two names for one event are none. */
	if (!type || !*type || strlen(type) >= STREAM_NAME_MAX || (*s->name && strcmp(s->name, type) != 0) ||
	    strspn(type, "abcdefghijklmnopqrstuvwxyz0123456789_.") != strlen(type))
		return fail(s, STREAM_BROKEN);
	if (strcmp(type, "error") == 0)
		return fail(s, STREAM_ERROR);
	s->ended = is_end(s->format, type);
	return write_event(s, s->ended ? &s->end : out, type, event);
}

/* Without names: the one that says why it is finished is held back, and what still counts what it cost. */
static bool take_unnamed(struct stream_in *s, const struct json *event, struct buf *out)
{
	bool end = format_finished(event);

	if (s->ended && (end || json_get(event, "candidates")))
		return fail(s, STREAM_BROKEN);
	s->ended = s->ended || end;
	return write_event(s, s->ended ? &s->end : out, NULL, event);
}

/* Each tells what there was so far: what was once told is not taken back. */
static void count(struct stream_in *s, const struct json *event)
{
	uint64_t in = s->prompt_tokens, out = s->completion_tokens;

	format_usage(s->format, event, &in, &out);
	s->prompt_tokens = in > s->prompt_tokens ? in : s->prompt_tokens;
	s->completion_tokens = out > s->completion_tokens ? out : s->completion_tokens;
}

static bool take_json(struct stream_in *s, struct buf *out)
{
	struct arena arena own_arena = {0};

	arena_init(&arena, ARENA);
	errno = 0;
	const struct json *event = json_parse(&arena, s->data.p, s->data.n, JSON_DEPTH_MODEL, NODES, NULL);
	if (!event)
		return fail(s, lack() ? STREAM_LACK : STREAM_BROKEN);
	if (event->type != JSON_OBJECT)
		return fail(s, STREAM_BROKEN);
	if (s->key && says(event, s->key))
		return fail(s, STREAM_KEY);
	count(s, event);
	enum watch_said said = stream_watch_event(&s->watch, s->format, event);
	if (said == WATCH_KEY || said == WATCH_LACK)
		return fail(s, said == WATCH_KEY ? STREAM_KEY : STREAM_LACK);
	if (spent(s))
		return fail(s, STREAM_SPENT);
	/* One that begins with what ends as the key begins waits, and all behind it; but not for ever. */
	if (said == WATCH_BEGINS && s->held.n <= STREAM_HELD_MAX)
		out = &s->held;
	else if (!let_go(s, out))
		return false;
	if (s->format->typed_events)
		return take_typed(s, event, out);
	const struct json *error = json_get(event, "error");
	if (error && error->type != JSON_NULL)
		return fail(s, STREAM_ERROR);
	if (s->format->family == FAMILY_GEMINI)
		return take_unnamed(s, event, out);
	look_finished(s, event);
	return write_event(s, out, NULL, event);
}

/* A chat's end is no JSON, and one only where something was finished. */
static bool take_event(struct stream_in *s, struct buf *out)
{
	bool ok;

	if (s->ended && s->format->family != FAMILY_GEMINI)
		return fail(s, STREAM_BROKEN);
	if (++s->events > STREAM_EVENTS_MAX)
		return fail(s, STREAM_TOO_LARGE);
	const char *text = s->format->typed_events ? NULL : buf_cstr(&s->data);
	if (text && strlen(text) == s->data.n && is_end(s->format, text)) {
		s->ended = s->finished;
		buf_addf(&s->end, "data: %s\n\n", text);
		ok = !s->ended ? fail(s, STREAM_BROKEN) : buf_failed(&s->end) ? fail_of(s, &s->end) : true;
	} else if (buf_failed(&s->data))
		ok = fail_of(s, &s->data);
	else
		ok = take_json(s, out);
	if (ok && s->ended)
		ok = let_go(s, out);
	buf_reset(&s->data);
	s->has_data = false;
	s->name[0] = 0;
	return ok;
}

static bool take_line(struct stream_in *s, struct buf *out)
{
	const char *p = (const char *)s->line.p;
	size_t n = s->line.n;

	if (n == 0) {
		if (s->has_data)
			return take_event(s, out);
		s->name[0] = 0;
		return true;
	}
	const char *colon = memchr(p, ':', n);
	size_t field = colon ? (size_t)(colon - p) : n, at = colon ? field + 1 : n;
	if (at < n && p[at] == ' ')
		at++;
	if (field == 4 && memcmp(p, "data", 4) == 0) {
		if (s->has_data)
			buf_addc(&s->data, '\n');
		buf_add(&s->data, p + at, n - at);
		s->has_data = true;
		return buf_failed(&s->data) ? fail_of(s, &s->data) : true;
	}
	if (field == 5 && memcmp(p, "event", 5) == 0) {
		if (n - at >= sizeof s->name || memchr(p + at, 0, n - at))
			return fail(s, STREAM_BROKEN);
		memcpy(s->name, p + at, n - at);
		s->name[n - at] = 0;
	}
	return true; /* comments, id, retry and what nobody knows */
}

bool stream_in_take(struct stream_in *s, const void *from, size_t n, struct buf *out)
{
	const uint8_t *p = from, *end = p + n;

	if (s->fault != STREAM_FINE)
		return false;
	if (n > s->left)
		return fail(s, STREAM_TOO_LARGE);
	s->left -= n;
	while (p < end) {
		if (s->after_cr && *p == '\n')
			p++;
		s->after_cr = false;
		const uint8_t *stop = p;
		while (stop < end && *stop != '\n' && *stop != '\r')
			stop++;
		buf_add(&s->line, p, (size_t)(stop - p));
		if (buf_failed(&s->line))
			return fail_of(s, &s->line);
		if (stop == end)
			return true;
		s->after_cr = *stop == '\r';
		p = stop + 1;
		if (!take_line(s, out))
			return false;
		buf_reset(&s->line);
	}
	return true;
}
