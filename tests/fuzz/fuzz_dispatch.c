#include "tests/fuzz/fuzz_dispatch.h"
#include <stdlib.h>
#include <string.h>

struct call {
	uint8_t *again; /* the message, written again by the called function */
	size_t cap, n;
	unsigned times;
	uint16_t number;
	uint64_t op;
};

static void must(bool ok)
{
	if (!ok)
		abort();
}

struct fuzz_room fuzz_room(void *from)
{
	struct call *c = from;
	return (struct fuzz_room){c->again, c->cap};
}

void fuzz_called(void *from, uint16_t number, uint64_t op, size_t n)
{
	struct call *c = from;
	c->times++;
	c->number = number;
	c->op = op;
	c->n = n;
}

/* The table's own words, read without the code under test. NULL: nothing of this kind may be called. */
static const struct wire_msg *permitted(const struct fuzz_protocol *p, const struct wire_conn *c, const bool *seen,
					const uint8_t *frame, size_t len, int nfds)
{
	if (len < WIRE_HEADER || frame[2] != p->version || frame[3] != nfds)
		return NULL;
	const struct wire_msg *row = p->msgs;
	while (row->number != 0 && row->number != (frame[0] << 8 | frame[1]))
		row++;
	if (row->number == 0 || row->nfds != nfds || (row->once && seen[row - p->msgs]))
		return NULL;
	return (row->roles >> c->role & 1) != 0 && (row->states >> c->state & 1) != 0 ? row : NULL;
}

static bool one(const struct fuzz_protocol *p, struct wire_conn *c, bool *seen, const uint8_t *frame, size_t len,
		int nfds)
{
	int fds[WIRE_MAX_FDS] = {-1, -1, -1, -1};
	struct call call = {.again = malloc(len + 1), .cap = len + 1};
	uint8_t *copy = malloc(len > 0 ? len : 1); /* exactly as long: a read past the end is seen */
	must(call.again != NULL && copy != NULL);
	if (len > 0)
		memcpy(copy, frame, len);
	const struct wire_msg *row = permitted(p, c, seen, frame, len, nfds);
	struct wire_conn before = *c;
	bool taken = p->dispatch(c, &call, copy, len, fds, nfds) == NULL;
	must(call.times == (taken ? 1 : 0));
	if (taken) {
		must(row != NULL && call.number == row->number && c->state == row->next && c->role == before.role);
		must(call.n == len && memcmp(call.again, frame, len) == 0);
		seen[row - p->msgs] = true;
	} else {
		/* Byte for byte: also what no member names stays.
		 * NOLINTNEXTLINE(*-memory-comparison,*-exp42-c,*-flp37-c) */
		must(memcmp(c, &before, sizeof before) == 0);
	}
	free(copy);
	free(call.again);
	return taken;
}

void fuzz_script(const struct fuzz_protocol *p, const uint8_t *data, size_t size)
{
	bool seen[256] = {false};
	if (size < 1)
		return;
	struct wire_conn c = {.role = (uint8_t)(data[0] % p->roles)};
	data++, size--;
	while (size >= 3) {
		int nfds = data[0] % (WIRE_MAX_FDS + 1);
		size_t len = (size_t)(data[1] << 8 | data[2]);
		data += 3, size -= 3;
		len = len < size ? len : size;
		if (!one(p, &c, seen, data, len, nfds))
			return; /* the connection is closed */
		data += len, size -= len;
	}
}
