/* Requests to the gateway, the only address there is. Sole includer of curl. */
#ifndef AGENT_HTTP_H
#define AGENT_HTTP_H
#include "lib/buf.h"
#include "lib/secret.h"

struct http;

/* base is kept by pointer. NULL: no memory. */
struct http *http_new(const char *base);
void http_free(struct http *h);
/*
 * POSTs json, or GETs where json is NULL, to base and path, waiting at most timeout_ms. The answer goes
 * to body (whose cap bounds it). Returns the status, or 0 when no whole answer came.
 */
int http_send(struct http *h, const char *path, const struct secret *token, const void *json, size_t n,
	      uint64_t timeout_ms, struct buf *body);
#endif
