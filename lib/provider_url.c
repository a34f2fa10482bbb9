/* See provider_url.h. What is not understood is refused: nothing is corrected or decoded. */
#include "lib/provider_url.h"
#include "lib/num.h"
#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

static bool made_of(const char *s, size_t n, const char *more)
{
	for (size_t i = 0; i < n; i++)
		if (strchr(letters, s[i]) == NULL && strchr(more, s[i]) == NULL)
			return false;
	return true;
}

static bool loopback(const char *host, size_t n)
{
	char text[64];
	struct in_addr four;

	if (n >= sizeof text)
		return false;
	memcpy(text, host, n);
	text[n] = '\0';
	return strcmp(text, "[::1]") == 0 ||
	       (inet_pton(AF_INET, text, &four) == 1 && (ntohl(four.s_addr) >> 24) == 127);
}

/* The length of the host at s, or 0 where there is none. */
static size_t host_at(const char *s)
{
	size_t n;

	if (*s == '[') {
		n = strcspn(s, "]");
		return s[n] == ']' && n > 2 && n < 50 && made_of(s + 1, n - 1, ":.") ? n + 1 : 0;
	}
	n = strcspn(s, ":/");
	return n < 254 && made_of(s, n, ".-_") && s[0] != '.' && s[0] != '-' ? n : 0;
}

static bool path_plain(const char *path)
{
	if (!made_of(path, strlen(path), "-._~!$&'()*+,;=:/") || strstr(path, "//") != NULL)
		return false;
	for (const char *s = path; s != NULL && *s != '\0'; s = strchr(s + 1, '/')) {
		size_t part = strcspn(s + 1, "/");
		if (part > 0 && strspn(s + 1, ".") == part)
			return false;
	}
	return true;
}

const char *provider_url_fault(const char *url, bool plain_loopback)
{
	static const char secure[] = "https://", plain[] = "http://";
	const char *s = strstr(url, "://");
	uint64_t port;

	if (s == NULL)
		return "is no URL with a host";
	s += 3;
	if (strchr(s, '@') != NULL)
		return "holds a user name";
	if (strpbrk(s, "?#") != NULL)
		return "holds a query or a fragment";
	size_t n = host_at(s);
	const char *rest = s + n;
	if (n > 0 && *rest == ':') {
		size_t digits = strcspn(rest + 1, "/");
		if (!num_u64(rest + 1, digits, 1, 65535, &port))
			n = 0;
		rest += 1 + digits;
	}
	if (n == 0 || (*rest != '\0' && *rest != '/'))
		return "is no URL with a host";
	if (!path_plain(rest))
		return "has a path that is not plain";
	bool https = strncmp(url, secure, sizeof secure - 1) == 0;
	bool http = strncmp(url, plain, sizeof plain - 1) == 0;
	if (!https && !(http && plain_loopback && loopback(s, host_at(s))))
		return "is not https: what agents send, and the key, would be readable on the way";
	return NULL;
}
