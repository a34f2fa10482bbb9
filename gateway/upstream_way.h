/* How a provider is gone to; for upstream.c and probe.c, which alone include this (and libcurl). */
#ifndef GATEWAY_UPSTREAM_WAY_H
#define GATEWAY_UPSTREAM_WAY_H
#include "gateway/gateway.h"
#include <curl/curl.h>

/* What holds of every call: where to, with what TLS, and what is not looked at. False: no memory. */
bool upstream_way(CURL *h, const struct upstream_target *target, const char *url, long connect_ms);
/* The headers of a call, with the key; NULL: no memory. They are wiped when they are freed. */
struct curl_slist *upstream_headers(const struct upstream_target *target, const struct model_request *rq);
void upstream_headers_free(struct curl_slist *list);
#endif
