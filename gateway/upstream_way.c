/*
 * How a provider is gone to, whoever goes: address, TLS, headers, and the key among them. Redirects are not followed,
 * and proxies, the environment and other files are not looked at.
 */
#include "gateway/upstream_way.h"
#include <stdio.h>
#include <string.h>

bool upstream_way(CURL *h, const struct upstream_target *target, const char *url, long connect_ms)
{
	bool plain = strncmp(url, "http:", 5) == 0;
	CURLcode c = CURLE_OK;
#define SET(option, value) c = c != CURLE_OK ? c : curl_easy_setopt(h, option, value)
	SET(CURLOPT_URL, url);
	SET(CURLOPT_PROTOCOLS_STR, plain ? "http" : "https");
	SET(CURLOPT_REDIR_PROTOCOLS_STR, "https");
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_PROXY, "");
	SET(CURLOPT_NOPROXY, "*");
	SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_TCP_NODELAY, 1L);
	SET(CURLOPT_ACCEPT_ENCODING, NULL);
	SET(CURLOPT_SSL_VERIFYPEER, 1L);
	SET(CURLOPT_SSL_VERIFYHOST, 2L);
	SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	/* The compiled-in directory would disable libcurl's cache of parsed authorities. */
	SET(CURLOPT_CAPATH, NULL);
	if (*target->ca_file)
		SET(CURLOPT_CAINFO, target->ca_file);
	SET(CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
#undef SET
	return c == CURLE_OK;
}

static bool add_header(struct curl_slist **list, const char *line)
{
	struct curl_slist *more = curl_slist_append(*list, line);
	if (more)
		*list = more;
	return more != NULL;
}

struct curl_slist *upstream_headers(const struct upstream_target *target, const struct model_request *rq)
{
	struct curl_slist *list = NULL;
	bool ok = add_header(&list, "Content-Type: application/json") &&
		  add_header(&list, rq->stream_up ? "Accept: text/event-stream" : "Accept: application/json") &&
		  add_header(&list, "Accept-Encoding: identity") && add_header(&list, "Expect:") &&
		  add_header(&list, "User-Agent: pinfold");
	if (ok && rq->format->family == FAMILY_ANTHROPIC) {
		char line[FORMAT_BETA_MAX + 32];
		snprintf(line, sizeof line, "anthropic-version: %s", rq->version);
		ok = add_header(&list, line);
		snprintf(line, sizeof line, "anthropic-beta: %s", rq->beta);
		ok = ok && (!*rq->beta || add_header(&list, line));
	}
	if (ok && target->key) {
		struct buf line own_buf = {0};
		buf_init(&line, SECRET_MAX + 64);
		buf_adds(&line, rq->format->key_header);
		buf_add(&line, target->key->p, target->key->n);
		const char *text = buf_cstr(&line);
		ok = text && add_header(&list, text);
	}
	if (ok)
		return list;
	upstream_headers_free(list);
	return NULL;
}

void upstream_headers_free(struct curl_slist *list)
{
	for (struct curl_slist *s = list; s; s = s->next)
		wipe(s->data, strlen(s->data));
	curl_slist_free_all(list);
}
