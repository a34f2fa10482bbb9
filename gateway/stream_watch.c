/* See stream_watch.h. */
#include "gateway/stream_watch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BEGINS = 8, TOKEN_FEW = 4, TOKEN_MANY = 16 };

/* At the top of an event, or in a list: which of the things it is about. */
static const char *const indexes[] = {"index", "output_index", "content_index", "summary_index"};

void stream_watch_free(struct stream_watch *w)
{
	for (size_t i = 0; w->texts && i < WATCH_TEXTS; i++)
		free(w->texts[i].tail);
	free(w->texts);
	w->texts = NULL;
}

static uint64_t step(uint64_t place, const void *p, size_t n)
{
	const uint8_t *b = p;

	for (size_t i = 0; i < n; i++)
		place = (place ^ b[i]) * 1099511628211U;
	return (place ^ 0x100) * 1099511628211U;
}

static uint64_t step_into(uint64_t place, const struct json *object)
{
	for (const struct json *m = object->type == JSON_OBJECT ? object->child : NULL; m; m = m->next)
		for (size_t i = 0; i < sizeof indexes / sizeof *indexes; i++)
			if (m->type == JSON_NUMBER && strcmp(m->key, indexes[i]) == 0)
				place = step(step(place, m->key, strlen(m->key)), m->text, m->len);
	return place;
}

/* How much of the key's beginning a text ends with. */
static size_t key_begun(const void *text, size_t n, const struct secret *key)
{
	const uint8_t *end = (const uint8_t *)text + n;

	for (size_t k = n < key->n ? n : key->n - 1; k > 0; k--)
		if (memcmp(end - k, key->p, k) == 0)
			return k;
	return 0;
}

/* The text that stands there, or NULL; *room is where one may be put instead of another. */
static struct watched *text_at(struct stream_watch *w, uint64_t place, struct watched **room)
{
	*room = w->texts;
	for (struct watched *t = w->texts; t < w->texts + WATCH_TEXTS; t++) {
		if (t->used > 0 && t->place == place)
			return t;
		if (t->used < (*room)->used)
			*room = t;
	}
	return NULL;
}

/* Is what is begun too much of the key to be told yet? */
static bool begins(size_t begun, const struct secret *key)
{
	return begun > 0 && begun >= (key->n >= 2 * BEGINS ? BEGINS : key->n / 2);
}

/* More of a text: the end of what was there and the beginning of this, and then the end of both. Only those that end
 * with a beginning of the key are kept, so that no number of others makes one of them forgotten. */
static enum watch_said more(struct stream_watch *w, uint64_t place, const char *text, size_t n)
{
	const size_t most = w->key->n - 1;
	struct watched *room, *t = text_at(w, place, &room);

	if (!t) {
		size_t begun = key_begun(text, n, w->key);
		if (begun == 0)
			return WATCH_FINE;
		if (!room->tail && !(room->tail = malloc(w->key->n)))
			return WATCH_LACK;
		memcpy(room->tail, text + n - begun, begun);
		room->place = place;
		room->used = w->events;
		room->n = begun;
		room->begins = begins(begun, w->key);
		return WATCH_FINE;
	}
	t->used = w->events;
	/* From where the key may begin, in what was there. */
	for (size_t at = 0; at < t->n; at++) {
		size_t here = t->n - at, rest = w->key->n - here;
		if (rest <= n && memcmp(t->tail + at, w->key->p, here) == 0 &&
		    memcmp(text, w->key->p + here, rest) == 0)
			return WATCH_KEY;
	}
	if (n >= most) {
		memcpy(t->tail, text + n - most, most);
		t->n = most;
	} else {
		size_t keep = t->n + n > most ? most - n : t->n;
		memmove(t->tail, t->tail + t->n - keep, keep);
		memcpy(t->tail + keep, text, n);
		t->n = keep + n;
	}
	size_t begun = key_begun(t->tail, t->n, w->key);
	t->begins = begins(begun, w->key);
	if (begun == 0)
		t->used = 0;
	return WATCH_FINE;
}

/* What stands where the model's words are, and is none of them. */
static bool no_words(const char *key)
{
	static const char *const keys[] = {
	    "role", "type", "id", "signature", "thoughtSignature", "data", "encrypted_content", "mimeType"};

	for (size_t i = 0; key && i < sizeof keys / sizeof *keys; i++)
		if (strcmp(keys[i], key) == 0)
			return true;
	return false;
}

static void count(struct stream_watch *w, const struct json *v)
{
	size_t said = 0;

	if (no_words(v->key))
		return;
	for (size_t i = 0; i < v->len; i++)
		said += !strchr(" \t\n\r", v->text[i]) || v->text[i] == 0;
	w->bytes += said;
	w->pieces += said > 0;
}

static enum watch_said walk(struct stream_watch *w, const struct format *f, const struct json *v, uint64_t place,
			    bool words)
{
	enum watch_said said = WATCH_FINE;
	char digits[24];
	size_t nth = 0;

	if (v->key)
		place = step(place, v->key, strlen(v->key));
	words = words || (v->key && f->grows && strcmp(v->key, f->grows) == 0);
	if (v->type == JSON_STRING && words)
		count(w, v);
	if (v->type == JSON_STRING && w->key)
		return more(w, place, v->text, v->len);
	for (const struct json *m = v->child; m && said == WATCH_FINE; m = m->next, nth++) {
		uint64_t in = v->type == JSON_OBJECT ? place : step_into(place, m);
		if (v->type == JSON_ARRAY && in == place) {
			/* As if it said where it stands. */
			int n = snprintf(digits, sizeof digits, "%zu", nth);
			in = step(step(place, "index", 5), digits, (size_t)n);
		}
		said = walk(w, f, m, in, words);
	}
	return said;
}

enum watch_said stream_watch_event(struct stream_watch *w, const struct format *f, const struct json *event)
{
	const struct json *type = json_get(event, "type");
	uint64_t place = 14695981039346656037U;

	if (w->key && !w->texts && !(w->texts = calloc(WATCH_TEXTS, sizeof *w->texts)))
		return WATCH_LACK;
	w->events++;
	if (type && type->type == JSON_STRING)
		place = step(place, type->text, type->len);
	enum watch_said said = walk(w, f, event, step_into(place, event), false);
	for (size_t i = 0; said == WATCH_FINE && w->texts && i < WATCH_TEXTS; i++)
		if (w->texts[i].used > 0 && w->texts[i].begins)
			said = WATCH_BEGINS;
	return said;
}

uint64_t stream_watch_tokens(const struct stream_watch *w)
{
	uint64_t least = w->bytes / TOKEN_MANY, most = w->bytes / TOKEN_FEW;
	uint64_t pieces = w->pieces < most ? w->pieces : most;

	return pieces > least ? pieces : least;
}
