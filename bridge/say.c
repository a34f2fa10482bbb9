/* What agents say, as events. It is bounded here and cleaned where it is taken. */
#include "bridge/bridge.h"
#include "lib/num.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NAME = 128, TEXT = 2 * EVENT_TEXT };

const char *text_of(const struct json *object, const char *key)
{
	const struct json *v = object != NULL && object->type == JSON_OBJECT ? json_get(object, key) : NULL;

	return v != NULL && v->type == JSON_STRING ? v->text : "";
}

bool is(const struct json *object, const char *key, const char *word)
{
	return strcmp(text_of(object, key), word) == 0;
}

bool is_text(const struct json *object, const char *key)
{
	const struct json *v = json_get(object, key);

	return v != NULL && v->type == JSON_STRING;
}

bool is_null(const struct json *v)
{
	return v == NULL || v->type == JSON_NULL;
}

const struct json *inner(const struct json *v, const char *path)
{
	char key[64];

	for (const char *dot; v != NULL && *path != '\0'; path = *dot == '.' ? dot + 1 : dot) {
		dot = strchrnul(path, '.');
		if (v->type != JSON_OBJECT ||
		    (size_t)snprintf(key, sizeof key, "%.*s", (int)(dot - path), path) >= sizeof key)
			return NULL;
		v = json_get(v, key);
	}
	return v;
}

void say_text(struct bridge *b, const char *text)
{
	if (*text == '\0')
		return;
	say_whole(b);
	snprintf(b->said, sizeof b->said, "%.*s", (int)utf8_fit(text, strlen(text), BRIDGE_SUMMARY), text);
	event_text(&b->events, text);
}

void say_chunk(struct bridge *b, const char *text)
{
	if (b->chunk.n < TEXT)
		buf_add(&b->chunk, text, utf8_fit(text, strlen(text), TEXT));
}

void say_whole(struct bridge *b)
{
	own_buf struct buf text = b->chunk;

	buf_init(&b->chunk, 2 * TEXT);
	if (text.n > 0 && buf_cstr(&text) != NULL)
		say_text(b, buf_cstr(&text));
}

/* Its text, or itself as JSON; what is too large is left out. */
static void put(struct buf *to, const struct json *v)
{
	buf_init(to, EVENT_LINE);
	if (v != NULL && v->type == JSON_STRING)
		buf_add(to, v->text, utf8_fit(v->text, v->len, TEXT));
	else if (v != NULL)
		json_write(to, v);
	if (buf_cstr(to) == NULL) {
		buf_free(to);
		buf_init(to, EVENT_LINE);
		buf_adds(to, "(more than is kept)");
	}
}

static const char *name_of(char out[NAME], const char *text)
{
	snprintf(out, NAME, "%.*s", (int)utf8_fit(text, strlen(text), NAME - 1), text);
	return out;
}

void say_call(struct bridge *b, const char *id, const char *tool, const struct json *arguments)
{
	own_buf struct buf text;
	char one[NAME], two[NAME];

	say_whole(b);
	put(&text, arguments);
	event_call(&b->events, name_of(one, id), name_of(two, tool), buf_cstr(&text) != NULL ? buf_cstr(&text) : "");
}

void say_output(struct bridge *b, const char *id, const char *tool, bool ok, const struct json *output)
{
	own_buf struct buf text;
	char one[NAME], two[NAME];

	say_whole(b);
	put(&text, output);
	event_output(&b->events, name_of(one, id), name_of(two, tool), ok, text.n > 0 ? (const char *)text.p : "",
		     text.n);
}

void say_end(struct bridge *b, bool well, const char *why)
{
	say_whole(b);
	if (b->course == GOING) {
		b->course = well ? ENDED_WELL : ENDED_BADLY;
		snprintf(b->why, sizeof b->why, "%.*s", (int)utf8_fit(why, strlen(why), sizeof b->why - 1), why);
	}
}

/* The agent may have so much to say first that neither could go on: it is read meanwhile, and heard later. */
static bool tell(struct bridge *b, const uint8_t *p, size_t n)
{
	while (n > 0) {
		ssize_t done = write(b->to, p, n);
		if (done >= 0) {
			p += done;
			n -= (size_t)done;
			continue;
		}
		bool room = !b->from.over && b->from.n < LINE_MAX_BYTES;
		struct pollfd f[2] = {{.fd = b->to, .events = POLLOUT},
				      {.fd = room ? b->from.fd : -1, .events = POLLIN}};
		if ((errno != EAGAIN && errno != EINTR) || (poll(f, 2, -1) < 0 && errno != EINTR))
			return false;
		if (room && f[1].revents != 0 && !lines_fill(&b->from))
			return false;
	}
	return true;
}

bool say_line(struct bridge *b, struct buf *text)
{
	buf_addc(text, '\n');
	/* Both sides of the conversation are the transcript. */
	return !buf_failed(text) && write_all(1, text->p, text->n) && tell(b, text->p, text->n);
}

bool line_lost(const struct bridge *b)
{
	return b->unread || b->from.skipped > 0;
}

void line_take(struct bridge *b, char *line, size_t n)
{
	own_arena struct arena arena;

	arena_init(&arena, BRIDGE_ARENA);
	const struct json *root = json_parse(&arena, line, n, JSON_DEPTH_MODEL, BRIDGE_NODES, NULL);
	b->mended = root == NULL && line_mend(line, n);
	if (b->mended)
		root = json_parse(&arena, line, n, JSON_DEPTH_MODEL, BRIDGE_NODES, NULL);
	/* What begins otherwise is no message of any protocol here. */
	if (root == NULL && line[strspn(line, " \t\r")] == '{')
		b->unread = true;
	if (root != NULL && root->type == JSON_OBJECT && b->course == GOING)
		b->dialect->line(b, root);
}
