/*
 * Encoding and decoding of frames. Trusts no length it reads; after the first error every get returns
 * nothing and every put does nothing, so that generated code needs one check, at the end.
 */
#include "lib/wire.h"
#include "lib/clock.h"
#include <string.h>

enum { WIRE_ID_MAX = 128 };

uint8_t *wire_room(struct wire_w *w, size_t n)
{
	if (w->bad || n > w->cap - w->n) {
		w->bad = true;
		return NULL;
	}
	uint8_t *p = w->p + w->n;
	w->n += n;
	return p;
}

static void put_be(struct wire_w *w, uint64_t v, unsigned bytes)
{
	uint8_t *p = wire_room(w, bytes);
	if (p == NULL)
		return;
	for (unsigned i = 0; i < bytes; i++)
		p[i] = (uint8_t)(v >> (8 * (bytes - 1 - i)));
}

static const uint8_t *get_room(struct wire_r *r, size_t n)
{
	if (r->bad || n > r->left) {
		r->bad = true;
		return NULL;
	}
	const uint8_t *p = r->p;
	r->p += n;
	r->left -= n;
	return p;
}

static uint64_t be(const uint8_t *p, unsigned bytes)
{
	uint64_t v = 0;
	for (unsigned i = 0; i < bytes; i++)
		v = v << 8 | p[i];
	return v;
}

static uint64_t get_be(struct wire_r *r, unsigned bytes)
{
	const uint8_t *p = get_room(r, bytes);
	return p == NULL ? 0 : be(p, bytes);
}

struct wire_w wire_begin(uint8_t *buf, size_t cap, uint16_t number, uint8_t version, uint8_t nfds, uint64_t op)
{
	struct wire_w w = wire_plain(buf, cap);
	wire_put_u16(&w, number);
	wire_put_u8(&w, version);
	wire_put_u8(&w, nfds);
	wire_put_u64(&w, op);
	return w;
}

size_t wire_end(struct wire_w *w)
{
	return w->bad ? 0 : w->n;
}

struct wire_r wire_open(const uint8_t *frame, size_t len, uint16_t number, uint8_t version, uint8_t nfds)
{
	struct wire_r r = wire_open_plain(frame, len);
	uint16_t got_number = wire_get_u16(&r);
	uint8_t got_version = wire_get_u8(&r);
	uint8_t got_nfds = wire_get_u8(&r);
	(void)wire_get_u64(&r);
	if (got_number != number || got_version != version || got_nfds != nfds)
		r.bad = true;
	return r;
}

bool wire_done(const struct wire_r *r)
{
	return !r->bad && r->left == 0;
}

struct wire_w wire_plain(uint8_t *buf, size_t cap)
{
	return (struct wire_w){.p = buf, .cap = cap};
}

struct wire_r wire_open_plain(const uint8_t *p, size_t len)
{
	return (struct wire_r){.p = p, .left = len};
}

void wire_put_u8(struct wire_w *w, uint8_t v)
{
	put_be(w, v, 1);
}

void wire_put_u16(struct wire_w *w, uint16_t v)
{
	put_be(w, v, 2);
}

void wire_put_u32(struct wire_w *w, uint32_t v)
{
	put_be(w, v, 4);
}

void wire_put_u64(struct wire_w *w, uint64_t v)
{
	put_be(w, v, 8);
}

void wire_put_i32(struct wire_w *w, int32_t v)
{
	put_be(w, (uint32_t)v, 4);
}

void wire_put_bool(struct wire_w *w, bool v)
{
	put_be(w, v ? 1 : 0, 1);
}

static void put_str_n(struct wire_w *w, const char *s, size_t n)
{
	wire_put_u32(w, (uint32_t)n);
	uint8_t *p = wire_room(w, n + 1);
	if (p == NULL)
		return;
	memcpy(p, s, n);
	p[n] = 0;
}

void wire_put_id(struct wire_w *w, const char *s)
{
	if (s == NULL || !id_valid(s))
		w->bad = true;
	else
		put_str_n(w, s, strlen(s));
}

void wire_put_str(struct wire_w *w, const char *s, size_t max)
{
	if (s == NULL)
		s = "";
	size_t n = strnlen(s, max + 1);
	if (n > max || n > UINT32_MAX)
		w->bad = true;
	else
		put_str_n(w, s, n);
}

void wire_put_strs(struct wire_w *w, const char *const *v, uint32_t n, uint32_t maxn, size_t max)
{
	if (n > maxn) {
		w->bad = true;
		return;
	}
	wire_put_u32(w, n);
	for (uint32_t i = 0; i < n; i++)
		wire_put_str(w, v[i], max);
}

uint8_t wire_get_u8(struct wire_r *r)
{
	return (uint8_t)get_be(r, 1);
}

uint16_t wire_get_u16(struct wire_r *r)
{
	return (uint16_t)get_be(r, 2);
}

uint32_t wire_get_u32(struct wire_r *r)
{
	return (uint32_t)get_be(r, 4);
}

uint64_t wire_get_u64(struct wire_r *r)
{
	return get_be(r, 8);
}

int32_t wire_get_i32(struct wire_r *r)
{
	return (int32_t)(uint32_t)get_be(r, 4);
}

bool wire_get_bool(struct wire_r *r)
{
	uint8_t v = wire_get_u8(r);
	if (v > 1)
		r->bad = true;
	return v == 1;
}

const char *wire_get_str(struct wire_r *r, size_t max)
{
	uint32_t n = wire_get_u32(r);
	if (r->bad || n > max || n >= r->left) {
		r->bad = true;
		return "";
	}
	const uint8_t *p = get_room(r, (size_t)n + 1);
	if (p == NULL || memchr(p, 0, (size_t)n + 1) != p + n) {
		r->bad = true;
		return "";
	}
	return (const char *)p;
}

const char *wire_get_id(struct wire_r *r)
{
	const char *s = wire_get_str(r, WIRE_ID_MAX);
	if (!r->bad && id_valid(s))
		return s;
	r->bad = true;
	return "";
}

struct wire_bytes wire_get_bytes(struct wire_r *r, size_t max)
{
	uint32_t n = wire_get_u32(r);
	if (n > max)
		r->bad = true;
	const uint8_t *p = get_room(r, n);
	return p == NULL ? (struct wire_bytes){0} : (struct wire_bytes){.p = p, .n = n};
}

uint32_t wire_get_strs(struct wire_r *r, const char **v, uint32_t maxn, size_t max)
{
	uint32_t n = wire_get_u32(r);
	if (n > maxn)
		r->bad = true;
	for (uint32_t i = 0; i < n && !r->bad; i++)
		v[i] = wire_get_str(r, max);
	return r->bad ? 0 : n;
}

bool wire_peek(const uint8_t *frame, size_t len, uint16_t *number, uint64_t *op)
{
	if (len < WIRE_HEADER)
		return false;
	*number = (uint16_t)be(frame, 2);
	*op = be(frame + 4, 8);
	return true;
}

const char *wire_admit(const struct wire_msg *table, uint8_t version, const struct wire_conn *c, const uint8_t *frame,
		       size_t len, int nfds, const struct wire_msg **row, uint64_t *op)
{
	uint16_t number;
	if (!wire_peek(frame, len, &number, op))
		return "shorter than a header";
	if (frame[2] != version)
		return "other protocol version";
	const struct wire_msg *m = table;
	while (m->number != 0 && m->number != number)
		m++;
	if (number == 0 || m->number == 0)
		return "unknown message";
	if (m->roles == 0)
		return "message of the wrong direction";
	if (c->role >= 32 || (m->roles >> c->role & 1) == 0)
		return "message not permitted for this role";
	if (c->state >= 32 || (m->states >> c->state & 1) == 0)
		return "message not permitted in this state";
	if (m->once && (c->seen >> (number % 64) & 1) != 0)
		return "message permitted only once";
	if (frame[3] != m->nfds || nfds != m->nfds)
		return "wrong number of descriptors";
	*row = m;
	return NULL;
}

void wire_accept(struct wire_conn *c, const struct wire_msg *row)
{
	c->state = row->next;
	if (row->once)
		c->seen |= UINT64_C(1) << (row->number % 64);
}
