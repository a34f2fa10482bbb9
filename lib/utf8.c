/* Strict UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF. */
#include "lib/json.h"

size_t utf8_next(const char *p, size_t n, uint32_t *code)
{
	const uint8_t *s = (const uint8_t *)p;
	if (n == 0)
		return 0;
	uint32_t c = s[0];
	if (c < 0x80) {
		*code = c;
		return 1;
	}
	size_t len = c >= 0xc2 && c <= 0xdf ? 2 : c >= 0xe0 && c <= 0xef ? 3 : c >= 0xf0 && c <= 0xf4 ? 4 : 0;
	if (len == 0 || len > n)
		return 0;
	c &= 0xffu >> (len + 1);
	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3fu);
	}
	if ((len == 3 && (c < 0x800 || (c >= 0xd800 && c <= 0xdfff))) || (len == 4 && (c < 0x10000 || c > 0x10ffff)))
		return 0;
	*code = c;
	return len;
}

bool utf8_valid(const void *p, size_t n, size_t *at)
{
	const char *s = p;
	size_t i = 0;
	while (i < n) {
		uint32_t code;
		size_t len = utf8_next(s + i, n - i, &code);
		if (len == 0)
			break;
		i += len;
	}
	if (at != NULL)
		*at = i;
	return i == n;
}

size_t utf8_count(const char *p, size_t n)
{
	size_t count = 0;
	for (size_t i = 0; i < n; i++)
		if (((uint8_t)p[i] & 0xc0) != 0x80)
			count++;
	return count;
}

size_t utf8_fit(const char *p, size_t n, size_t most)
{
	if (n <= most)
		return n;
	while (most > 0 && ((uint8_t)p[most] & 0xc0) == 0x80)
		most--;
	return most;
}
