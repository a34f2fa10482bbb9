/*
 * A cookie goes with whatever a browser sends, whoever made it send that. So it counts only where the request is our
 * own page's, at an address that the administrator named, or that only this machine can have: anything else, and
 * anything missing, is refused.
 */
#include "handlers/cookie.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char name[] = "pinfold_device=";

bool cookie_find(const struct arrival *in, char token[PRINCIPAL_TOKEN_LEN + 1])
{
	unsigned found = 0;
	for (const char *p = in->cookie; p != NULL && *p != '\0';) {
		p += strspn(p, " \t");
		size_t n = strcspn(p, ";");
		if (strncmp(p, name, sizeof name - 1) == 0 && found++ == 0) {
			if (n != sizeof name - 1 + PRINCIPAL_TOKEN_LEN)
				return false;
			memcpy(token, p + sizeof name - 1, PRINCIPAL_TOKEN_LEN);
			token[PRINCIPAL_TOKEN_LEN] = '\0';
		}
		p += n + (p[n] == ';');
	}
	return found == 1;
}

bool cookie_set(const struct arrival *in, const char *token, uint64_t seconds, char out[COOKIE_BYTES])
{
	int n = snprintf(out, COOKIE_BYTES, "%s%s; Path=%s; Max-Age=%llu; HttpOnly; Secure; SameSite=Strict", name,
			 token, in->mount[0] != '\0' ? in->mount : "/", (unsigned long long)seconds);
	return n > 0 && n < COOKIE_BYTES;
}

/* A name that a browser takes for this machine itself, with or without a port. */
static bool loopback(const char *host)
{
	static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		size_t n = strlen(names[i]);
		if (strncasecmp(host, names[i], n) != 0)
			continue;
		if (host[n] == '\0' || (host[n] == ':' && host[n + 1] != '\0' &&
					strspn(host + n + 1, "0123456789") == strlen(host + n + 1)))
			return true;
	}
	return false;
}

static bool origin_is(const struct arrival *in, const char *url)
{
	char own[300];
	if (*url != '\0')
		return strcasecmp(in->origin, url) == 0;
	(void)snprintf(own, sizeof own, "http://%s", in->host);
	if (strcasecmp(in->origin, own) == 0)
		return true;
	(void)snprintf(own, sizeof own, "https://%s", in->host);
	return strcasecmp(in->origin, own) == 0;
}

bool origin_ours(const struct conf *conf, const struct arrival *in)
{
	const char *url = conf->global.public_url, *host = strstr(url, "://");
	bool reads = strcmp(in->method, "GET") == 0;
	if (in->host == NULL || strlen(in->host) > 255)
		return false;
	if (host != NULL ? strcasecmp(in->host, host + 3) != 0 : !loopback(in->host))
		return false;
	if (in->origin != NULL ? !origin_is(in, url) : !reads)
		return false;
	/* "none" is a person's own doing: an address that was typed. */
	return in->fetch_site == NULL || strcmp(in->fetch_site, "same-origin") == 0 ||
	       (reads && strcmp(in->fetch_site, "none") == 0);
}
