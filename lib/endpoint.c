/* See endpoint.h. What is not understood is refused: nothing is corrected, decoded or looked up. */
#include "lib/endpoint.h"
#include <string.h>

static const char scheme[] = "https://", digits[] = "0123456789";
static const char lower[] = "abcdefghijklmnopqrstuvwxyz0123456789-";

/*
 * Labels of a-z 0-9 and "-", none empty (so no dot at the end), and not one alone. Whatever reads numbers as an address
 * does so where the last label begins with a digit: 127.1, 0x7f.1, 2130706433. No top-level domain does.
 */
static bool name_plain(const char *s, size_t n)
{
	static const char *const here[] = {"localhost", "local", "internal", "arpa"};
	size_t last = 0, labels = 1;
	if (n == 0 || n >= ENDPOINT_HOST)
		return false;
	for (size_t i = 0; i <= n; i++) {
		if (i < n && s[i] != '.') {
			if (memchr(lower, s[i], sizeof lower - 1) == NULL)
				return false;
			continue;
		}
		size_t len = i - last;
		if (len == 0 || len > 63 || s[last] == '-' || s[i - 1] == '-')
			return false;
		if (i == n)
			break;
		labels++;
		last = i + 1;
	}
	if (labels < 2 || memchr(digits, s[last], sizeof digits - 1) != NULL)
		return false;
	for (size_t i = 0; i < sizeof here / sizeof *here; i++)
		if (n - last == strlen(here[i]) && memcmp(s + last, here[i], n - last) == 0)
			return false;
	return true;
}

/* What RFC 3986 has in a path and a query; a browser escapes everything else. */
static bool rest_plain(const char *s)
{
	static const char extra[] = "-._~!$&'()*+,;=:@/?%";
	if (*s != '/')
		return false;
	for (; *s != '\0'; s++) {
		bool alnum = (*s >= 'A' && *s <= 'Z') || (*s >= 'a' && *s <= 'z') || (*s >= '0' && *s <= '9');
		if (!alnum && strchr(extra, *s) == NULL)
			return false;
	}
	return true;
}

bool endpoint_host(const char *endpoint, char host[ENDPOINT_HOST])
{
	host[0] = '\0';
	if (strnlen(endpoint, ENDPOINT_MAX + 1) > ENDPOINT_MAX || strncmp(endpoint, scheme, sizeof scheme - 1) != 0)
		return false;
	const char *name = endpoint + sizeof scheme - 1, *rest;
	size_t n = strcspn(name, ":/?#@\\[]");
	rest = name + n;
	if (strncmp(rest, ":443/", 5) == 0)
		rest += 4;
	if (!name_plain(name, n) || !rest_plain(rest))
		return false;
	memcpy(host, name, n);
	host[n] = '\0';
	return true;
}

bool endpoint_allowed(const char *host, const char *const *hosts, uint32_t n)
{
	size_t len = strlen(host);
	for (uint32_t i = 0; i < n; i++) {
		const char *p = hosts[i];
		if (strcmp(p, "*") == 0 || strcmp(p, host) == 0)
			return true;
		size_t end = strlen(p) - 1; /* with the dot that "*" stands before */
		if (p[0] == '*' && p[1] == '.' && len > end && strcmp(host + len - end, p + 1) == 0)
			return true;
	}
	return false;
}

bool endpoint_pattern(const char *pattern)
{
	const char *name = strncmp(pattern, "*.", 2) == 0 ? pattern + 2 : pattern;
	return strcmp(pattern, "*") == 0 || name_plain(name, strlen(name));
}
