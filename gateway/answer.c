/* What a provider says, looked at as a whole: strict JSON, and no trace of the key. */
#include "gateway/gateway.h"
#include "gateway/stream_out.h"
#include "gen/limits.h"
#include "lib/lack.h"
#include <string.h>

enum { BODY_CAP = LIMIT_MODEL_RESPONSE_BYTES };

static bool holds(const void *p, size_t n, const struct secret *key)
{
	return memmem(p, n, key->p, key->n) != NULL;
}

/* The key as it would be read, however it is spelt: a provider may escape what it quotes. Depth is the parser's. */
static bool says_key(const struct json *v, const struct secret *key)
{
	if ((v->key && holds(v->key, strlen(v->key), key)) || (v->text && holds(v->text, v->len, key)))
		return true;
	for (const struct json *e = v->child; e; e = e->next)
		if (says_key(e, key))
			return true;
	return false;
}

enum err answer_judge(const struct upstream_target *target, const struct format *f, struct upstream_answer *answer,
		      bool usage, struct buf *frames)
{
	static const char refused[] =
	    "{\"error\":{\"message\":\"The model provider refused the call.\",\"type\":\"provider_refused\"}}";
	struct arena arena own_arena = {0};

	if (!answer->json)
		return ERR_INVALID_MODEL_RESPONSE;
	arena_init(&arena, 16 * BODY_CAP);
	const struct json *body =
	    json_parse(&arena, answer->body.p, answer->body.n, JSON_DEPTH_MODEL, BODY_CAP / 10, NULL);
	if (!body)
		return lack_or(ERR_INVALID_MODEL_RESPONSE);
	if (answer->status < 200)
		return ERR_INVALID_MODEL_RESPONSE;
	format_usage(f, body, &answer->prompt_tokens, &answer->completion_tokens);
	/* Providers quote (parts of) the key they refuse. */
	if (format_key_refused(f, answer->status, body))
		answer->status = 401;
	if (answer->status == 401 || answer->status == 403) {
		buf_reset(&answer->body);
		buf_adds(&answer->body, refused);
	} else if (target->key && (holds(answer->body.p, answer->body.n, target->key) || says_key(body, target->key))) {
		answer->says_key = true;
		return ERR_INVALID_MODEL_RESPONSE;
	}
	if (frames && answer->status < 300)
		return stream_out(f, body, usage, frames);
	return ERR_OK;
}
