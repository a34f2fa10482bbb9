/*
 * Reads a body that was announced. Trusts no announced length: it is a promise that the bytes must
 * keep. Never reads before dispatch() has authenticated the caller.
 */
#include "handlers/body.h"
#include "handlers/archive.h"
#include "lib/lack.h"
#include "lib/num.h"
#include <string.h>
#include <strings.h>

enum { BODY_NODES = 20000, BODY_CHUNK = 16384 };

static const char *skip_blank(const char *s)
{
	return s + strspn(s, " \t");
}

/* Exactly application/json, and as parameters nothing but one charset=utf-8 (RFC 9110 section 8.3). */
static bool type_is_json(const char *s)
{
	static const char want[] = "application/json";
	if (s == NULL || strncasecmp(s, want, sizeof want - 1) != 0)
		return false;
	s = skip_blank(s + sizeof want - 1);
	if (*s == '\0')
		return true;
	if (*s++ != ';')
		return false;
	s = skip_blank(s);
	if (strncasecmp(s, "charset=", 8) != 0)
		return false;
	s += 8;
	bool quoted = *s == '"';
	s += quoted;
	if (strncasecmp(s, "utf-8", 5) != 0)
		return false;
	s += 5;
	if (quoted && *s++ != '"')
		return false;
	return *skip_blank(s) == '\0';
}

int64_t body_announced(const struct arrival *in)
{
	const char *s = in->content_length;
	if (s == NULL || *s == '\0')
		return -1;
	size_t n = strlen(s);
	if (strspn(s, "0123456789") != n)
		return -2;
	s += strspn(s, "0");
	uint64_t v = 0;
	if (*s == '\0')
		return 0;
	return num_u64(s, strlen(s), 0, UINT32_MAX, &v) ? (int64_t)v : (int64_t)UINT32_MAX;
}

enum err body_admit(const struct arrival *in, const struct route *route)
{
	if (route->body == BODY_JSON && !type_is_json(in->content_type))
		return ERR_JSON_REQUIRED;
	if (route->body == BODY_ARCHIVE && archive_type(in->content_type) == ARCHIVE_NONE)
		return ERR_ARCHIVE_REQUIRED;
	const char *enc = in->content_encoding;
	if (enc != NULL && *enc != '\0' && strcasecmp(enc, "identity") != 0)
		return ERR_UNSUPPORTED_ENCODING;
	int64_t n = body_announced(in);
	if (n == -2)
		return ERR_INVALID_REQUEST;
	if (n <= (int64_t)route->body_limit)
		return ERR_OK;
	return route->body == BODY_ARCHIVE ? ERR_SOURCE_ARCHIVE_TOO_LARGE : ERR_REQUEST_TOO_LARGE;
}

/* The end of the stream is marked, so a chunked body is whole without a length. Any other needs one. */
bool body_whole(const struct arrival *in, uint64_t came)
{
	int64_t want = body_announced(in);
	return (want < 0 && in->chunked) || (want < 0 ? 0 : (uint64_t)want) == came;
}

enum err body_broke(long got)
{
	return got == BODY_LATE ? ERR_REQUEST_TIMEOUT : ERR_LENGTH_MISMATCH;
}

enum err body_read(const struct arrival *in, const struct route *route, struct buf *out)
{
	for (;;) {
		uint8_t chunk[BODY_CHUNK];
		long got = in->body.read(in->body.ctx, chunk, sizeof chunk);
		if (got < 0)
			return body_broke(got);
		if (got == 0)
			break;
		if (out->n + (size_t)got > route->body_limit)
			return ERR_REQUEST_TOO_LARGE;
		buf_add(out, chunk, (size_t)got);
		if (buf_failed(out))
			return lack_error();
	}
	return body_whole(in, out->n) ? ERR_OK : ERR_LENGTH_MISMATCH;
}

enum err body_json(struct arena *a, const struct buf *body, const struct json **json, const char **why)
{
	struct json_fault fault = {0};
	*json = json_parse(a, body->p != NULL ? (const void *)body->p : "", body->n, JSON_DEPTH, BODY_NODES, &fault);
	*why = fault.why;
	if (*json == NULL)
		return lack_or(ERR_INVALID_JSON);
	return (*json)->type == JSON_OBJECT ? ERR_OK : ERR_INVALID_JSON_OBJECT;
}
