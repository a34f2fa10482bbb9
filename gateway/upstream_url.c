/* The address of a provider, which is the operator's alone: what it may look like. */
#include "gateway/gateway.h"
#include "lib/die.h"
#include <arpa/inet.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool loopback_literal(const char *host)
{
	struct in_addr four;
	return strcmp(host, "[::1]") == 0 ||
	       (inet_pton(AF_INET, host, &four) == 1 && (ntohl(four.s_addr) >> 24) == 127);
}

static const char *url_fault(const struct cf_provider *p, CURLU *u, const char *url)
{
	char *scheme = NULL, *host = NULL, *path = NULL, *port = NULL, *extra = NULL;
	const char *why = NULL;

	if (curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_PATH, &path, 0) != CURLUE_OK)
		why = "is no URL with a host";
	else if (curl_url_get(u, CURLUPART_USER, &extra, 0) == CURLUE_OK ||
		 curl_url_get(u, CURLUPART_PASSWORD, &extra, 0) == CURLUE_OK || strchr(url, '@'))
		why = "must not hold a user name or password";
	else if (strpbrk(url, "?#"))
		why = "must have no query and no fragment";
	else if (strstr(path, "//") || strstr(path, "/../") || strpbrk(path, "%\\ "))
		why = "has a path that is not plain";
	else if (strcmp(scheme, "https") != 0 &&
		 !(strcmp(scheme, "http") == 0 && p->allow_plain_loopback && loopback_literal(host)))
		why = "must be https (http only to a loopback address, with allow_plain_loopback)";
	curl_free(scheme);
	curl_free(host);
	curl_free(path);
	curl_free(port);
	curl_free(extra);
	return why;
}

char *upstream_url(const struct cf_provider *p, const struct format *f)
{
	size_t n = strlen(p->base_url);
	char *url = NULL;
	const char *why = "is empty";

	if (strcmp(p->protocol, f->protocol) != 0)
		return NULL;
	while (n > 0 && p->base_url[n - 1] == '/')
		n--;
	if (n > 0 && asprintf(&url, "%.*s%s", (int)n, p->base_url, f->path) > 0) {
		CURLU *u = curl_url();
		why = u ? url_fault(p, u, url) : "cannot be parsed";
		curl_url_cleanup(u);
	}
	if (!why)
		return url;
	log_error("provider %s: base_url %s; its model calls are refused", p->name, why);
	free(url);
	return NULL;
}
