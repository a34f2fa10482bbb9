/* See keymask.h. What is looked at may be anything; what is looked for is never printed. */
#include "lib/keymask.h"
#include <string.h>

/* PLAIN is matched as it is or escaped; BASE64 with '-' for '+' and '_' for '/'; HEX in either case. The last two may
 * be wrapped into lines. */
enum form { PLAIN, BASE64, HEX };

static const char mark[] = "[masked]";
static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static uint8_t folded(enum form f, uint8_t c)
{
	if (f == BASE64)
		return c == '-' ? '+' : c == '_' ? '/' : c;
	return f == HEX && c >= 'A' && c <= 'F' ? (uint8_t)(c - 'A' + 'a') : c;
}

static bool add(struct keymask *k, const void *text, size_t n, enum form f)
{
	if (k->n == sizeof k->v / sizeof k->v[0] || !secret_set(&k->v[k->n].text, text, n))
		return false;
	k->v[k->n++].form = (unsigned char)f;
	for (unsigned c = 0; c < 256; c++)
		k->begins[c] = k->begins[c] || folded(f, (uint8_t)c) == *(const uint8_t *)text ||
			       (f == PLAIN && (c == '\\' || c == '%'));
	return true;
}

/* What base64 makes of the value behind `before` other bytes, less the characters that those, or others behind it,
 * have a part in. */
static size_t base64_of(const uint8_t *v, size_t n, size_t before, uint8_t *out)
{
	size_t first = (8 * before + 5) / 6, end = 8 * (before + n) / 6, got = 0;
	for (size_t at = first; at < end; at++) {
		unsigned six = 0;
		for (size_t bit = 6 * at; bit < 6 * at + 6; bit++)
			six = six << 1 | ((unsigned)v[bit / 8 - before] >> (7 - bit % 8) & 1u);
		out[got++] = (uint8_t)alphabet[six];
	}
	return got;
}

bool keymask_add(struct keymask *k, const void *value, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	uint8_t text[2 * KEYMASK_MOST];
	const uint8_t *v = value;
	if (n < KEYMASK_LEAST || n > KEYMASK_MOST)
		return false;
	bool ok = add(k, value, n, PLAIN);
	for (size_t before = 0; before < 3 && ok; before++)
		ok = add(k, text, base64_of(v, n, before, text), BASE64);
	for (size_t i = 0; i < n; i++) {
		text[2 * i] = (uint8_t)digits[v[i] >> 4];
		text[2 * i + 1] = (uint8_t)digits[v[i] & 15];
	}
	ok = ok && add(k, text, 2 * n, HEX);
	wipe(text, sizeof text);
	return ok;
}

static int digit(uint8_t c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* The byte that two hex digits at p stand for; -1. */
static int two(const uint8_t *p, size_t n)
{
	return n < 2 || digit(p[0]) < 0 || digit(p[1]) < 0 ? -1 : digit(p[0]) << 4 | digit(p[1]);
}

/* How many bytes at p are an escape that stands for c; 0: it is none. */
static size_t escape(const uint8_t *p, size_t n, uint8_t c)
{
	static const char from[] = "nrtbf\\\"/'", to[] = "\n\r\t\b\f\\\"/'";
	if (p[0] == '%')
		return two(p + 1, n - 1) == c ? 3 : 0;
	if (p[0] != '\\' || n < 2)
		return 0;
	if (p[1] == 'u')
		return n >= 6 && p[2] == '0' && p[3] == '0' && two(p + 4, n - 4) == c ? 6 : 0;
	if (p[1] == 'x')
		return two(p + 2, n - 2) == c ? 4 : 0;
	const char *at = p[1] != '\0' ? strchr(from, p[1]) : NULL;
	return at != NULL && (uint8_t)to[at - from] == c ? 2 : 0;
}

static size_t line_end(const uint8_t *p, size_t n)
{
	if (n > 0 && (p[0] == '\n' || p[0] == '\r'))
		return 1;
	return n > 1 && p[0] == '\\' && (p[1] == 'n' || p[1] == 'r') ? 2 : 0;
}

/* How many bytes at p spell this text; 0: they do not. */
static size_t spelt(const struct secret *text, enum form f, const uint8_t *p, size_t n)
{
	size_t at = 0;
	if (f == PLAIN && n >= text->n && memcmp(p, text->p, text->n) == 0)
		return text->n;
	for (size_t i = 0; i < text->n; i++) {
		for (size_t skip = 1; f != PLAIN && i > 0 && skip > 0; at += skip)
			skip = line_end(p + at, n - at);
		size_t step = at < n && f == PLAIN ? escape(p + at, n - at, text->p[i]) : 0;
		if (step == 0)
			step = at < n && folded(f, p[at]) == text->p[i];
		if (step == 0)
			return 0;
		at += step;
	}
	return at;
}

static size_t found_at(const struct keymask *k, const uint8_t *p, size_t n)
{
	size_t most = 0;
	for (size_t i = 0; i < k->n && k->begins[*p]; i++) {
		size_t len = spelt(&k->v[i].text, (enum form)k->v[i].form, p, n);
		most = len > most ? len : most;
	}
	return most;
}

size_t keymask_hide(const struct keymask *k, void *bytes, size_t n)
{
	uint8_t *p = bytes;
	size_t out = 0;
	for (size_t at = 0; at < n;) {
		size_t len = k->n > 0 ? found_at(k, p + at, n - at) : 0;
		if (len > 0) {
			memcpy(p + out, mark, sizeof mark - 1); /* shorter than any form */
			out += sizeof mark - 1;
			at += len;
		} else {
			p[out++] = p[at++];
		}
	}
	return out;
}

bool keymask_holds(const struct keymask *k, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	for (size_t at = 0; at < n && k->n > 0; at++)
		if (found_at(k, p + at, n - at) > 0)
			return true;
	return false;
}

void keymask_wipe(struct keymask *k)
{
	for (size_t i = 0; i < k->n; i++)
		secret_wipe(&k->v[i].text);
	k->n = 0;
}
