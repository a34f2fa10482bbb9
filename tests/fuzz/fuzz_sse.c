/*
 * libFuzzer target: any bytes as a stream of server-sent events. However it is cut, it is read the same, and as the
 * rules of the standard read it here a second time, from the whole text at once.
 */
#include "cli/sse.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void note(void *user, const struct sse_event *e)
{
	must(e->data[e->n] == '\0' && strlen(e->id) <= SSE_ID_MAX && strlen(e->type) <= SSE_TYPE_MAX);
	buf_addf(user, "%s|%s|", e->type, e->id);
	buf_add(user, e->data, e->n);
	buf_addc(user, ';');
}

/* The standard's words, line after line of the whole. */
static void read_whole(const char *p, size_t n, struct buf *told)
{
	char id[SSE_ID_MAX + 1] = "", type[SSE_TYPE_MAX + 1] = "";
	own_buf struct buf text;
	bool any = false;
	size_t at = n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

	buf_init(&text, 1 << 20);
	while (at < n) {
		size_t end = at;
		while (end < n && p[end] != '\r' && p[end] != '\n')
			end++;
		if (end == n)
			return; /* a line without its end */
		const char *line = p + at;
		size_t len = end - at, name = 0;
		at = end + (p[end] == '\r' && end + 1 < n && p[end + 1] == '\n' ? 2 : 1);
		if (len == 0) {
			if (any) {
				buf_addf(told, "%s|%s|", type[0] ? type : "message", id);
				buf_add(told, text.p, text.n - 1);
				buf_addc(told, ';');
			}
			buf_reset(&text);
			any = false;
			type[0] = '\0';
			continue;
		}
		while (name < len && line[name] != ':')
			name++;
		size_t value = name < len ? name + 1 : len;
		value += value < len && line[value] == ' ';
		const char *v = line + value;
		size_t vn = len - value;
		if (name == 4 && memcmp(line, "data", 4) == 0) {
			buf_add(&text, v, vn);
			buf_addc(&text, '\n');
			any = true;
		} else if (name == 5 && memcmp(line, "event", 5) == 0) {
			memcpy(type, v, vn > SSE_TYPE_MAX ? 0 : vn);
			type[vn > SSE_TYPE_MAX ? 0 : vn] = '\0';
		} else if (name == 2 && memcmp(line, "id", 2) == 0 && vn <= SSE_ID_MAX && !memchr(v, 0, vn)) {
			memcpy(id, v, vn);
			id[vn] = '\0';
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sse s = {0};
	own_buf struct buf want = {0}, told = {0};

	if (size > 60000)
		return 0;
	buf_init(&want, 1 << 20);
	buf_init(&told, 1 << 20);
	read_whole((const char *)data, size, &want);
	for (size_t step = 1; step <= size + 1; step = step < 4 ? step + 1 : step * 3) {
		buf_reset(&told);
		s.id[0] = '\0';
		sse_begin(&s);
		for (size_t i = 0; i < size; i += step) {
			size_t n = size - i < step ? size - i : step;
			uint8_t *piece = malloc(n); /* of its own, so that a read past it is seen */
			must(piece != NULL);
			memcpy(piece, data + i, n);
			must(sse_feed(&s, piece, n, note, &told));
			free(piece);
		}
		must(!buf_failed(&told) && told.n == want.n && (want.n == 0 || memcmp(told.p, want.p, want.n) == 0));
	}
	sse_free(&s);
	return 0;
}
