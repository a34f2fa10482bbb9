/*
 * libFuzzer target: any bytes as the address that a browser gives for its pushes, and as an administrator's pattern.
 * What is accepted is a name and no address of any spelling, and libcurl, which sends there, reads the same name out
 * of it; a pattern permits just what stands behind its "*".
 */
#include "lib/endpoint.h"
#include "lib/own.h"
#include <arpa/inet.h>
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static bool ends(const char *s, const char *with)
{
	size_t n = strlen(s), m = strlen(with);
	return n >= m && strcmp(s + n - m, with) == 0;
}

static void plain(const char *host)
{
	struct in_addr four;
	must(strlen(host) < ENDPOINT_HOST && strchr(host, '.') != NULL);
	must(strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789-.") == strlen(host));
	must(inet_aton(host, &four) == 0);
	must(strstr(host, "..") == NULL && host[0] != '.' && !ends(host, "."));
	must(!ends(host, ".localhost") && !ends(host, ".local") && !ends(host, ".internal") && !ends(host, ".arpa"));
}

static void part(CURLU *u, CURLUPart what, const char *want)
{
	char *is = NULL;
	CURLUcode rc = curl_url_get(u, what, &is, 0);
	must(want == NULL ? rc != CURLUE_OK : rc == CURLUE_OK && strcmp(is, want) == 0);
	curl_free(is);
}

static void as_curl_reads(const char *endpoint, const char *host)
{
	char *port = NULL;
	CURLU *u = curl_url();
	must(u != NULL && curl_url_set(u, CURLUPART_URL, endpoint, 0) == CURLUE_OK);
	part(u, CURLUPART_SCHEME, "https");
	part(u, CURLUPART_HOST, host);
	part(u, CURLUPART_USER, NULL);
	part(u, CURLUPART_PASSWORD, NULL);
	part(u, CURLUPART_FRAGMENT, NULL);
	must(curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK && strcmp(port, "443") == 0);
	curl_free(port);
	curl_url_cleanup(u);
}

static void patterns(const char *host)
{
	char wild[ENDPOINT_HOST + 2], other[ENDPOINT_HOST + 2];
	const char *one = host;
	must(endpoint_pattern(host) && endpoint_allowed(host, &one, 1) && !endpoint_allowed(host, NULL, 0));
	snprintf(wild, sizeof wild, "*%s", strchr(host, '.'));
	one = wild;
	must(endpoint_allowed(host, &one, 1));
	/* Neither the name itself is below it, nor one that only ends in the same letters. */
	snprintf(wild, sizeof wild, "*.%s", host);
	must(!endpoint_allowed(host, &one, 1));
	snprintf(other, sizeof other, "x%s", host);
	must(!endpoint_allowed(other, &one, 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char host[ENDPOINT_HOST], again[ENDPOINT_HOST], rebuilt[ENDPOINT_HOST + 16];
	own_free char *text = malloc(size + 1);
	must(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	if (endpoint_pattern(text) && strcmp(text, "*") != 0)
		plain(strncmp(text, "*.", 2) == 0 ? text + 2 : text);
	if (!endpoint_host(text, host)) {
		must(host[0] == '\0');
		return 0;
	}
	size_t n = strlen(host);
	must(strlen(text) <= ENDPOINT_MAX && strncmp(text, "https://", 8) == 0 && strncmp(text + 8, host, n) == 0);
	must(text[8 + n] == '/' || strncmp(text + 8 + n, ":443/", 5) == 0);
	for (const char *p = text; *p != '\0'; p++)
		must(*p > 0x20 && *p < 0x7f && strchr("#\\\"<>^`{|}", *p) == NULL);
	plain(host);
	as_curl_reads(text, host);
	patterns(host);
	snprintf(rebuilt, sizeof rebuilt, "https://%s/", host);
	must(endpoint_host(rebuilt, again) && strcmp(host, again) == 0);
	return 0;
}
