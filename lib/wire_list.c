/* Lists of encoded structs within a field; see wire.h. */
#include "lib/wire.h"

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
