/* Cursors of lists: base64url of what the store needs for going on. */
#include "handlers/cursor.h"
#include "gen/limits.h"
#include "lib/digest.h"
#include "lib/num.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LIST_PARAMETERS = 4 };

void list_bad(struct reply *rp, const char *name)
{
	reply_error(rp, ERR_INVALID_QUERY, name, NULL);
}

bool list_asked(struct request *rq, struct reply *rp, struct query_pair *more, const char **after, uint16_t *limit)
{
	struct query_pair p[LIST_PARAMETERS + 1] = {{"after", NULL}, {"limit", NULL}};
	char field[65];
	size_t n = 2;
	uint64_t most = LIMIT_LIST_DEFAULT_RUNS;
	for (size_t i = 0; more != NULL && more[i].name != NULL && n < LIST_PARAMETERS; i++)
		p[n++] = more[i];
	enum err e = query_read(rq, p, field);
	if (e != ERR_OK) {
		reply_error(rp, e, field, NULL);
		return false;
	}
	for (size_t i = 2; i < n; i++)
		more[i - 2].value = p[i].value;
	*after = p[0].value;
	if (p[1].value != NULL && !num_u64(p[1].value, strlen(p[1].value), 1, LIMIT_LIST_MAX_RUNS, &most)) {
		list_bad(rp, "limit");
		return false;
	}
	*limit = (uint16_t)most;
	return true;
}

static bool read_parts(const char *text, unsigned ids, struct cursor *out)
{
	const char *p = strchr(text, ':');
	if (p == NULL || !num_u64(text, (size_t)(p - text), 1, INT64_MAX, &out->at))
		return false;
	for (unsigned i = 0; i < ids; i++) {
		const char *id = p + 1;
		size_t n = i + 1 < ids ? strcspn(id, ":") : strlen(id);
		if (!id_valid_n(id, n))
			return false;
		memcpy(out->id[i], id, n);
		out->id[i][n] = '\0';
		p = id + n;
	}
	return true;
}

bool cursor_text(struct reply *rp, const char *after, char out[LIST_TEXT])
{
	long n = after == NULL ? 0 : b64url_decode(after, strlen(after), (uint8_t *)out, LIST_TEXT - 1);
	if (after != NULL && (n <= 0 || memchr(out, '\0', (size_t)n) != NULL)) {
		list_bad(rp, "after");
		return false;
	}
	out[n] = '\0';
	return true;
}

bool cursor_read(struct reply *rp, const char *after, unsigned ids, struct cursor *out)
{
	char text[LIST_TEXT];
	*out = (struct cursor){0};
	if (!cursor_text(rp, after, text))
		return false;
	if (after == NULL || read_parts(text, ids, out))
		return true;
	list_bad(rp, "after");
	return false;
}

void cursor_put_text(struct jw *w, bool more, const char *text)
{
	char out[LIST_TEXT * 2];
	jw_key(w, "next");
	if (!more)
		jw_null(w);
	else if (b64url_encode(text, strlen(text), out, sizeof out) == 0)
		buf_fail(w->b, EINVAL);
	else
		jw_str(w, out);
}

void cursor_put(struct jw *w, bool more, const struct cursor *next, unsigned ids)
{
	char text[LIST_TEXT];
	(void)snprintf(text, sizeof text, "%" PRIu64 ":%s%s%s", next->at, next->id[0], ids > 1 ? ":" : "",
		       ids > 1 ? next->id[1] : "");
	cursor_put_text(w, more, text);
}
