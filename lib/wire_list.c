/* Lists of encoded structs within a field, and what else the processes that are not root write; see wire.h. */
#include "lib/wire.h"
#include <string.h>

uint8_t *wire_list_room(struct wire_list *l, size_t most)
{
	if (l->full || l->cap - l->n < 4 || most > l->cap - l->n - 4) {
		l->full = true;
		return NULL;
	}
	return l->p + l->n + 4;
}

void wire_list_add(struct wire_list *l, size_t n)
{
	if (l->full || l->cap - l->n < 4 || n > l->cap - l->n - 4 || n > UINT32_MAX) {
		l->full = true;
		return;
	}
	struct wire_w w = wire_plain(l->p + l->n, 4);
	wire_put_u32(&w, (uint32_t)n);
	l->n += 4 + n;
}

struct wire_bytes wire_list_done(const struct wire_list *l)
{
	return (struct wire_bytes){.p = l->p, .n = (uint32_t)l->n};
}

bool wire_list_next(struct wire_bytes *rest, struct wire_bytes *part, bool *bad)
{
	if (rest->n == 0)
		return false;
	struct wire_r r = wire_open_plain(rest->p, rest->n);
	*part = wire_get_bytes(&r, rest->n);
	if (r.bad) {
		*bad = true;
		return false;
	}
	*rest = (struct wire_bytes){.p = r.p, .n = (uint32_t)r.left};
	return true;
}

size_t wire_end_plain(struct wire_w *w)
{
	return wire_end(w);
}

void wire_put_bytes(struct wire_w *w, struct wire_bytes b, size_t max)
{
	if (b.n > max) {
		w->bad = true;
		return;
	}
	wire_put_u32(w, b.n);
	uint8_t *p = wire_room(w, b.n);
	if (p != NULL && b.n > 0)
		memcpy(p, b.p, b.n);
}

void wire_put_key(struct wire_w *w, const char *s)
{
	size_t n = strlen(s) + 1;
	uint8_t *p = wire_room(w, n);
	if (p != NULL)
		memcpy(p, s, n);
}
