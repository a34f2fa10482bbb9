/*
 * libFuzzer target: any bytes as a provider's event stream, in the format that the first byte names, at once and in
 * pieces. What goes on is the same either way; it and the end are lines "event: NAME", "data: JSON" and empty ones with
 * strict JSON objects, without the key; a stream has ended only by its format's own last event.
 */
#include "gateway/stream_in.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

/* One event as it is written; how long it is. */
static size_t check_event(const struct format *f, const char *p, size_t n, bool last)
{
	const char *gap = memmem(p, n, "\n\n", 2), *name = NULL;
	size_t name_n = 0;

	must(gap != NULL);
	size_t whole = (size_t)(gap - p) + 2;
	if (n > 7 && memcmp(p, "event: ", 7) == 0) {
		const char *nl = memchr(p, '\n', n);
		name = p + 7;
		name_n = (size_t)(nl - name);
		p = nl + 1;
	}
	must(gap - p > 6 && memcmp(p, "data: ", 6) == 0 && (name != NULL) == f->typed_events);
	p += 6;
	must(memchr(p, '\n', (size_t)(gap - p)) == NULL && memmem(p, (size_t)(gap - p), "CANARY", 6) == NULL);
	if (last && f->id == FORMAT_CHAT) {
		must(gap - p == 6 && memcmp(p, "[DONE]", 6) == 0);
		return whole;
	}
	struct arena arena own_arena = {0};
	arena_init(&arena, 1 << 26);
	const struct json *v = json_parse(&arena, p, (size_t)(gap - p), JSON_DEPTH_MODEL, 1 << 20, NULL);
	must(v != NULL && v->type == JSON_OBJECT);
	bool end = false;
	for (const char *const *e = f->ends; name && *e; e++)
		end = end || (strlen(*e) == name_n && memcmp(*e, name, name_n) == 0);
	/* What is there of Gemini's before the end says no reason to finish, and the end begins with one. */
	if (f->family == FAMILY_GEMINI && !last)
		must(memmem(p, (size_t)(gap - p), "\"finishReason\":\"STOP\"", 21) == NULL ||
		     json_get(v, "candidates") == NULL || json_get(v, "candidates")->type != JSON_ARRAY ||
		     json_get(json_get(v, "candidates")->child, "finishReason") == NULL);
	must(!name || (end == last && !(name_n == 5 && memcmp(name, "error", 5) == 0)));
	return whole;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum format_id formats[] = {FORMAT_CHAT, FORMAT_RESPONSES, FORMAT_MESSAGES, FORMAT_GEMINI_STREAM};
	static struct secret key;
	struct stream_in s, t;
	struct buf a own_buf = {0}, b own_buf = {0};

	if (size < 2)
		return 0;
	if (key.n == 0)
		secret_set(&key, "CANARY", 6);
	const struct format *f = format_get(formats[data[0] % (sizeof formats / sizeof *formats)]);
	size_t piece = data[1] ? data[1] : 1;
	data += 2;
	size -= 2;
	buf_init(&a, 1 << 24);
	buf_init(&b, 1 << 24);
	stream_in_init(&s, f, &key, 1 << 22);
	stream_in_init(&t, f, &key, 1 << 22);
	bool ok = stream_in_take(&s, data, size, &a), pieces = true;
	for (size_t at = 0; at < size && pieces; at += piece)
		pieces = stream_in_take(&t, data + at, size - at < piece ? size - at : piece, &b);
	must(ok == pieces && s.fault == t.fault && s.ended == t.ended && a.n == b.n &&
	     (a.n == 0 || memcmp(a.p, b.p, a.n) == 0));
	must(s.prompt_tokens == t.prompt_tokens && s.completion_tokens == t.completion_tokens);
	for (size_t at = 0; at < a.n;)
		at += check_event(f, (const char *)a.p + at, a.n - at, false);
	if (s.ended)
		for (size_t at = 0; at < s.end.n;)
			at += check_event(f, (const char *)s.end.p + at, s.end.n - at, true);
	stream_in_free(&s);
	stream_in_free(&t);
	return 0;
}
