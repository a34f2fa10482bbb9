/*
 * Writes header lines. Every value comes from a table of ours or from checked text (paths, ids, methods);
 * a value with a control byte would end the line early, so it is refused here once more.
 */
#include "fcgi/reply.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { HEAD_BYTES = 4096, ROOM = 32768 }; /* a fresh socket takes so much at once, and more */

static const char *phrase(unsigned status)
{
	static const struct {
		unsigned status;
		const char *phrase;
	} rows[] = {
	    {200, "OK"},
	    {201, "Created"},
	    {202, "Accepted"},
	    {204, "No Content"},
	    {304, "Not Modified"},
	    {400, "Bad Request"},
	    {401, "Unauthorized"},
	    {403, "Forbidden"},
	    {404, "Not Found"},
	    {405, "Method Not Allowed"},
	    {408, "Request Timeout"},
	    {409, "Conflict"},
	    {413, "Content Too Large"},
	    {415, "Unsupported Media Type"},
	    {429, "Too Many Requests"},
	    {500, "Internal Server Error"},
	    {502, "Bad Gateway"},
	    {503, "Service Unavailable"},
	    {504, "Gateway Timeout"},
	    {507, "Insufficient Storage"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].status == status)
			return rows[i].phrase;
	return "Error";
}

static bool plain(const char *s)
{
	for (; *s != '\0'; s++)
		if ((unsigned char)*s < 0x20 || (unsigned char)*s >= 0x7f)
			return false;
	return true;
}

static void line(struct buf *b, const char *name, const char *value, const char *quote)
{
	if (value == NULL)
		return;
	if (!plain(value))
		buf_fail(b, EINVAL);
	buf_addf(b, "%s: %s%s%s\r\n", name, quote, value, quote);
}

static bool put(struct reply_fcgi *r, const void *p, size_t n)
{
	const char *s = p;
	r->written += n;
	if (r->written > ROOM)
		r->waits(r->ctx);
	while (n > 0) {
		int part = n > 1 << 20 ? 1 << 20 : (int)n;
		if (FCGX_PutStr(s, part, r->out) != part)
			return false;
		s += part;
		n -= (size_t)part;
	}
	return true;
}

static bool put_head(void *ctx, const struct reply_head *h)
{
	own_buf struct buf b;
	buf_init(&b, HEAD_BYTES);
	buf_addf(&b, "Status: %u %s\r\n", h->status, phrase(h->status));
	line(&b, "Content-Type", h->type, "");
	if (h->length >= 0)
		buf_addf(&b, "Content-Length: %" PRId64 "\r\n", h->length);
	line(&b, "Cache-Control", "no-store", "");
	line(&b, "X-Content-Type-Options", "nosniff", "");
	line(&b, "X-Request-Id", h->request_id, "");
	line(&b, "Location", h->location, "");
	line(&b, "Allow", h->allow, "");
	line(&b, "Set-Cookie", h->cookie, "");
	line(&b, "ETag", h->etag, "\"");
	if (h->filename != NULL && plain(h->filename))
		buf_addf(&b, "Content-Disposition: attachment; filename=\"%s\"\r\n", h->filename);
	if (h->status == 401)
		line(&b, "WWW-Authenticate", "Bearer", "");
	if (h->retry_after > 0)
		buf_addf(&b, "Retry-After: %u\r\n", h->retry_after);
	/* nginx's own word; the others are told by their configuration. */
	line(&b, "X-Accel-Buffering", h->unbuffered ? "no" : NULL, "");
	buf_adds(&b, "\r\n");
	return !buf_failed(&b) && put(ctx, b.p, b.n);
}

static bool put_body(void *ctx, const void *p, size_t n)
{
	return put(ctx, p, n);
}

static bool flush(void *ctx)
{
	struct reply_fcgi *r = ctx;
	return FCGX_FFlush(r->out) == 0;
}

struct reply_out reply_fcgi(struct reply_fcgi *r)
{
	return (struct reply_out){.head = put_head, .body = put_body, .ctx = r, .flush = flush};
}
