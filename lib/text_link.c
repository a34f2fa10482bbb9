/*
 * Addresses that a person may be offered to open (C-69, D-60). Everything that makes two readers see two hosts in one
 * address is refused: user names, backslashes, percent signs in the host, what does not show. What is left comes back
 * with its host as the network spells it. Nothing is looked up, nothing is fetched.
 */
#include "lib/json.h"
#include "lib/own.h"
#include "lib/text.h"
#include <idn2.h>
#include <string.h>
#include <strings.h>

/* Only what shows, no white space of any script, and not more characters than the table has. */
static bool shows(const char *s, size_t n)
{
	own_buf struct buf clean;
	buf_init(&clean, n + 1);
	if (n > 4 * text_row(TEXT_F_URL)->cap || !utf8_valid(s, n, NULL) ||
	    utf8_count(s, n) > text_row(TEXT_F_URL)->cap)
		return false;
	if (text_clean(&clean, s, n, TEXT_LINE, n) || buf_failed(&clean))
		return false;
	for (size_t i = 0; i < n;) {
		uint32_t c;
		size_t len = utf8_next(s + i, n - i, &c);
		if (!text_words(s + i, len))
			return false;
		i += len;
	}
	return true;
}

/* Labels of letters, digits, hyphens and underscores between dots, one dot at the end allowed; so no "@", "%" or "\\".
 * How long they may be libidn2 has looked at. */
static bool host_valid(const char *host)
{
	size_t n = strlen(host), label = 0;
	if (n > 0 && host[n - 1] == '.')
		n--;
	for (size_t i = 0; i < n; i++) {
		if (host[i] != '.' && strchr("abcdefghijklmnopqrstuvwxyz0123456789-_", host[i]) == NULL)
			return false;
		label = host[i] == '.' ? 0 : label + 1;
		if (label == 0 && (i == 0 || host[i - 1] == '.'))
			return false;
	}
	return label > 0;
}

/* Six is a literal address of version 6, in brackets. */
static bool six_valid(const char *s, size_t n)
{
	return n > 4 && s[0] == '[' && s[n - 1] == ']' && memchr(s, ':', n) != NULL &&
	       strspn(s + 1, "0123456789abcdefABCDEF:.") >= n - 2;
}

static bool put_host(struct buf *out, const char *s, size_t n)
{
	own_buf struct buf copy;
	buf_init(&copy, n + 1);
	buf_add(&copy, s, n);
	const char *host = buf_cstr(&copy);
	char *ascii = NULL;
	if (host == NULL)
		return false;
	if (six_valid(host, n)) {
		buf_adds(out, host);
		return true;
	}
	if (idn2_to_ascii_8z(host, &ascii, IDN2_NONTRANSITIONAL) != IDN2_OK)
		return false;
	for (char *c = ascii; *c != '\0'; c++)
		*c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
	bool ok = host_valid(ascii);
	if (ok)
		buf_adds(out, ascii);
	idn2_free(ascii);
	return ok;
}

static bool port_valid(const char *s, size_t n)
{
	unsigned port = 0;
	for (size_t i = 1; i < n && port <= 65535; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		port = port * 10 + (unsigned)(s[i] - '0');
	}
	return n == 0 || (s[0] == ':' && port > 0 && port <= 65535);
}

bool text_link(struct buf *out, struct buf *host, const char *s, size_t n)
{
	static const char scheme[] = "https://";
	size_t from = sizeof scheme - 1, end = from;
	if (n <= from || strncasecmp(s, scheme, from) != 0 || !shows(s, n))
		return false;
	while (end < n && strchr("/?#", s[end]) == NULL)
		end++;
	const char *close = memchr(s + from, ']', end - from);
	size_t at = close != NULL ? (size_t)(close - s) + 1 : from;
	while (at < end && s[at] != ':')
		at++;
	own_buf struct buf name;
	buf_init(&name, n * 4 + 64);
	if (!put_host(&name, s + from, at - from) || buf_failed(&name) || !port_valid(s + at, end - at))
		return false;
	buf_adds(out, scheme);
	buf_add(out, name.p, name.n);
	buf_add(out, s + at, n - at);
	if (host != NULL)
		buf_add(host, name.p, name.n);
	return true;
}
