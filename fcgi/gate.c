/*
 * Reads FastCGI records (version 1) up to the end of PARAMS. Trusts no length: each is compared with what
 * is left before it is used, and nothing is added up that could overflow. Never blocks, never allocates.
 */
#include "fcgi/gate.h"
#include <string.h>

enum { REC_BEGIN = 1, REC_PARAMS = 4, REC_STDIN = 5, HEADER = 8, BEGIN_BODY = 8, KEEP_CONN = 1, ROLES = 3 };

/* One length of a name-value pair: 7 bits, or 31 bits in four bytes. False: cut off. */
static bool take_length(const uint8_t **p, size_t *left, size_t *out)
{
	if (*left < 1)
		return false;
	if (((*p)[0] & 0x80) == 0) {
		*out = (*p)[0];
		*p += 1, *left -= 1;
		return true;
	}
	if (*left < 4)
		return false;
	*out = ((size_t)((*p)[0] & 0x7f) << 24) | ((size_t)(*p)[1] << 16) | ((size_t)(*p)[2] << 8) | (*p)[3];
	*p += 4, *left -= 4;
	return true;
}

static const char *keep_text(struct gate *g, size_t *used, const uint8_t *p, size_t n)
{
	char *to = g->text + *used;
	memcpy(to, p, n);
	to[n] = '\0';
	*used += n + 1;
	return to;
}

static bool read_pairs(struct gate *g, size_t n)
{
	const uint8_t *p = g->stream;
	size_t used = 0;
	while (n > 0) {
		size_t name, value;
		if (!take_length(&p, &n, &name) || !take_length(&p, &n, &value))
			return false;
		if (name > n || value > n - name)
			return false;
		g->many = g->nparams == GATE_NAMES;
		if (!g->many) {
			struct gate_param *q = &g->params[g->nparams++];
			q->name = keep_text(g, &used, p, name);
			q->value = keep_text(g, &used, p + name, value);
			q->name_n = name;
			q->value_n = value;
		}
		p += name + value;
		n -= name + value;
	}
	return true;
}

/* Is a whole STDIN stream there? Only for knowing whether reading it may block: libfcgi judges it. */
static bool holds_input(const struct gate *g, const uint8_t *p, size_t n)
{
	while (n >= HEADER) {
		size_t len = (size_t)(p[4] << 8 | p[5]), all = HEADER + len + p[6];
		if (p[1] != REC_STDIN || (uint16_t)(p[2] << 8 | p[3]) != g->id || n < all)
			return false;
		if (len == 0)
			return true;
		p += all, n -= all;
	}
	return false;
}

enum gate_verdict gate_read(struct gate *g, const uint8_t *p, size_t n)
{
	const uint8_t *start = p;
	size_t got = 0;
	bool begun = false;
	g->nparams = 0;
	g->many = false;
	while (n >= HEADER) {
		unsigned type = p[1];
		uint16_t id = (uint16_t)(p[2] << 8 | p[3]);
		size_t len = (size_t)(p[4] << 8 | p[5]), pad = p[6];
		if (p[0] != 1 || id == 0 || type != (begun ? REC_PARAMS : REC_BEGIN) || (begun && id != g->id))
			return GATE_BAD;
		if (type == REC_BEGIN && len != BEGIN_BODY)
			return GATE_BAD;
		if (got + len > GATE_PARAMS && type == REC_PARAMS)
			return GATE_BAD;
		p += HEADER, n -= HEADER;
		if (n < len + pad)
			return GATE_MORE;
		if (type == REC_BEGIN) {
			begun = true;
			g->id = id;
			g->role = (uint16_t)(p[0] << 8 | p[1]);
			g->keep = (p[2] & KEEP_CONN) != 0;
			if (g->role < 1 || g->role > ROLES)
				return GATE_ROLE;
		} else if (len == 0) {
			g->used = (size_t)(p - start) + pad;
			g->complete = holds_input(g, p + pad, n - pad);
			return read_pairs(g, got) ? GATE_WHOLE : GATE_BAD;
		} else {
			memcpy(g->stream + got, p, len);
			got += len;
		}
		p += len + pad, n -= len + pad;
	}
	return GATE_MORE;
}
