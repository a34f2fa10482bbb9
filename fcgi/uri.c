/*
 * The one canonicaliser of request targets. Works on REQUEST_URI, which all web servers pass untouched;
 * decodes once; never guesses.
 */
#include "fcgi/ingress.h"
#include "lib/json.h"
#include "lib/num.h"
#include <string.h>
#include <strings.h>

static bool unreserved(unsigned c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
	       c == '_' || c == '~';
}

/* Takes one character off *s. -1: malformed. *plain becomes false where no path of ours has it. */
static int take(const char **s, bool *plain)
{
	unsigned c = (unsigned char)*(*s)++;
	if (c == '%') {
		int hi = num_hex((*s)[0]), lo = hi >= 0 ? num_hex((*s)[1]) : -1;
		if (hi < 0 || lo < 0)
			return -1;
		*s += 2;
		c = (unsigned)(hi * 16 + lo);
		if (c < 0x20 || c == 0x7f || c == '/' || c == '\\')
			return -1;
		*plain = *plain && unreserved(c);
		return (int)c;
	}
	if (c <= 0x20 || c == 0x7f || c == '#' || c == '\\')
		return -1;
	*plain = *plain && c < 0x80;
	return (int)c;
}

static bool query_plain(const char *q)
{
	for (; *q != '\0'; q++)
		if ((unsigned char)*q <= 0x20 || (unsigned char)*q >= 0x7f || *q == '#')
			return false;
	return true;
}

const char *uri_origin(const char *uri)
{
	static const char host[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:[]";
	size_t scheme = strncasecmp(uri, "http://", 7) == 0 ? 7 : strncasecmp(uri, "https://", 8) == 0 ? 8 : 0;
	size_t n = scheme > 0 ? strspn(uri + scheme, host) : 0;
	if (n == 0)
		return uri;
	const char *rest = uri + scheme + n;
	return *rest == '/' ? rest : *rest == '\0' ? "/" : uri;
}

enum uri_verdict uri_parse(const char *uri, char path[INGRESS_PATH], const char **query)
{
	size_t n = 1;   /* bytes of path */
	size_t len = 0; /* characters in the current segment */
	bool plain = true, only_dots = true, fits = true;
	*query = NULL;
	path[0] = '/';
	path[1] = '\0';
	if (*uri++ != '/')
		return URI_MALFORMED;
	while (*uri != '\0' && *uri != '?') {
		bool slash = *uri == '/';
		int c = take(&uri, &plain);
		if (c < 0 || (slash && (len == 0 || (only_dots && len <= 2))))
			return URI_MALFORMED;
		len = slash ? 0 : len + 1;
		only_dots = slash || (only_dots && c == '.');
		/* A path that is too long is read to its end all the same: malformed comes before unknown. */
		if (n < INGRESS_PATH - 1)
			path[n++] = (char)c;
		else
			fits = false;
	}
	path[n] = '\0';
	if (len > 0 && only_dots && len <= 2)
		return URI_MALFORMED;
	if (*uri == '?') {
		*query = uri + 1;
		if (!query_plain(*query))
			return URI_MALFORMED;
	}
	if (fits && !utf8_valid(path, n, NULL))
		return URI_MALFORMED;
	/* A last slash names nothing of ours. */
	if (!fits || len == 0)
		return URI_UNKNOWN;
	return plain ? URI_OK : URI_ODD;
}
