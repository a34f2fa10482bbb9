/*
 * One curl handle, one request at a time. Plain http, no proxy, no redirect, no other protocol: the
 * connection itself tells the gateway whose it is. A token is never left in memory that is not wiped.
 */
#include "agent/http.h"
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct http {
	CURL *curl;
	const char *base;
};

struct http *http_new(const char *base)
{
	struct http *h = calloc(1, sizeof *h);
	if (h == NULL)
		return NULL;
	h->base = base;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
		h->curl = curl_easy_init();
	if (h->curl == NULL) {
		free(h);
		return NULL;
	}
	return h;
}

void http_free(struct http *h)
{
	if (h == NULL)
		return;
	curl_easy_cleanup(h->curl);
	free(h);
	curl_global_cleanup();
}

static size_t take(char *p, size_t one, size_t n, void *arg)
{
	struct buf *body = arg;
	(void)one;
	buf_add(body, p, n);
	return buf_failed(body) ? 0 : n;
}

int http_send(struct http *h, const char *path, const struct secret *token, const void *json, size_t n,
	      uint64_t timeout_ms, struct buf *body)
{
	own_buf struct buf url, bearer;
	buf_init(&url, 4096);
	buf_init(&bearer, SECRET_MAX + 64);
	buf_adds(&url, h->base);
	buf_adds(&url, path);
	buf_adds(&bearer, "Authorization: Bearer ");
	buf_add(&bearer, token->p, token->n);
	if (buf_cstr(&url) == NULL || buf_cstr(&bearer) == NULL)
		return 0;

	CURL *c = h->curl;
	curl_easy_reset(c); /* keeps the connection */
	struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
	struct curl_slist *more = curl_slist_append(headers, "Expect:");
	if (headers != NULL && more != NULL && token->n > 0)
		more = curl_slist_append(headers, buf_cstr(&bearer));
	int status = 0;
	if (headers != NULL && more != NULL) {
		curl_easy_setopt(c, CURLOPT_URL, buf_cstr(&url));
		curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http");
		curl_easy_setopt(c, CURLOPT_PROXY, "");
		curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
		curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
		curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, 5000L);
		curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)(timeout_ms < 1 ? 1 : timeout_ms));
		curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
		curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take);
		curl_easy_setopt(c, CURLOPT_WRITEDATA, body);
		if (json != NULL) {
			curl_easy_setopt(c, CURLOPT_POSTFIELDS, json);
			curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)n);
		}
		long code = 0;
		if (curl_easy_perform(c) == CURLE_OK && curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &code) == CURLE_OK)
			status = (int)code;
	}
	for (struct curl_slist *s = headers; s != NULL; s = s->next)
		wipe(s->data, strlen(s->data));
	curl_slist_free_all(headers);
	return status;
}
