/*
 * POST /v1/pair: a code against a credential. Anybody may call it, so it counts who does. Code and credential exist
 * here only until they are answered; the store gets their hashes.
 */
#include "gen/limits.h"
#include "gen/routes.h"
#include "gen/schema.h"
#include "gen/store_msg.h"
#include "handlers/caller.h"
#include "handlers/cookie.h"
#include "handlers/denied.h"
#include "handlers/query.h"
#include "handlers/source.h"
#include "lib/ask.h"
#include "lib/label.h"
#include "lib/lack.h"
#include "lib/num.h"
#include "lib/pairing.h"
#include "lib/secret.h"
#include "lib/text.h"
#include <pthread.h>
#include <string.h>

enum { SOURCES = 1024, TRIES = LIMIT_PAIRING_ATTEMPTS_PER_MINUTE, MINUTE_MS = 60000, COOKIE_SECONDS = 400 * 86400 };

struct source {
	uint8_t address[SOURCE_KEY];
	uint64_t at[TRIES]; /* timer_ms of the last tries, at[next] the oldest; 0: none */
	unsigned next;
	uint64_t last;
};

/* Of the whole process, since the caller is nobody: hence static. The one who was seen longest ago makes room. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct source sources[SOURCES];

static bool may_try(const char *address, uint64_t now)
{
	uint8_t want[SOURCE_KEY];
	source_key(address, want);
	(void)pthread_mutex_lock(&lock);
	struct source *s = NULL, *oldest = sources;
	for (size_t i = 0; i < SOURCES && s == NULL; i++) {
		if (sources[i].last != 0 && memcmp(sources[i].address, want, sizeof want) == 0)
			s = &sources[i];
		else if (sources[i].last < oldest->last)
			oldest = &sources[i];
	}
	if (s == NULL) {
		s = oldest;
		*s = (struct source){0};
		memcpy(s->address, want, sizeof want);
	}
	bool yes = s->at[s->next] == 0 || now - s->at[s->next] >= MINUTE_MS;
	if (yes) {
		s->at[s->next] = s->last = now;
		s->next = (s->next + 1) % TRIES;
	}
	(void)pthread_mutex_unlock(&lock);
	return yes;
}

static void refuse(struct request *rq, struct reply *rp, enum err e)
{
	struct principal nobody = {0};
	denied_note(rq->ask, rq->in, &nobody, e);
	if (e == ERR_TOO_MANY_ATTEMPTS)
		reply_error_after(rp, e, MINUTE_MS / 1000);
	else
		reply_error(rp, e, e == ERR_INVALID_DEVICE_LABEL || e == ERR_DEVICE_EXISTS ? "label" : NULL, NULL);
}

/* Nothing in it is hidden, turns the line around or looks like nothing: a person shall know the device by it. False
 * with errno 0, or why it could not be found out. */
static bool shows(const char *label)
{
	size_t n = strlen(label);
	own_buf struct buf b;
	buf_init(&b, LABEL_BYTES + 16);
	bool changed = text_clean(&b, label, n, TEXT_LINE, LABEL_BYTES);
	return !buf_failed(&b) && !changed && text_words(label, n);
}

/* The answer in b, which is ready for it, and the only time that the credential is told. */
static void tell(struct request *rq, struct reply *rp, const char *label, const struct st_paired *done,
		 const char *token, bool as_cookie, struct buf *b)
{
	uint64_t now = clock_ms(), seconds = COOKIE_SECONDS;
	char cookie[COOKIE_BYTES];
	struct jw w;
	if (done->expires_at != 0 && done->expires_at < now + seconds * 1000)
		seconds = done->expires_at > now ? (done->expires_at - now) / 1000 : 0;
	if (as_cookie && !cookie_set(rq->in, token, seconds, cookie))
		buf_fail(b, EOVERFLOW);
	jw_init(&w, b);
	jw_open(&w, '{');
	jw_kstr(&w, "label", label);
	if (!as_cookie)
		jw_kstr(&w, "token", token);
	if (done->expires_at != 0)
		jw_kint(&w, "expiresAt", (int64_t)done->expires_at);
	jw_close(&w, '}');
	reply_json_cookie(rp, 201, as_cookie ? cookie : NULL, b);
	wipe(cookie, sizeof cookie);
}

void handle_pair(struct request *rq, struct reply *rp)
{
	char field[SCHEMA_FIELD], token[PRINCIPAL_TOKEN_LEN + 1], id[PRINCIPAL_ID_LEN + 1];
	uint8_t code_hash[32], token_hash[32];
	enum principal_kind kind;
	struct st_paired done;
	enum err e = query_none(rq, field);
	if (e == ERR_OK && !caller_known(rq, rp))
		return;
	if (e == ERR_OK)
		e = schema_check(&schema_pair, rq->json, field);
	if (e != ERR_OK) {
		reply_error(rp, e, field, NULL);
		return;
	}
	const struct json *asks = json_get(rq->json, "cookie");
	bool as_cookie = asks != NULL && asks->truth;
	const char *label = json_get(rq->json, "label")->text;
	if (as_cookie && !origin_ours(rq->conf, rq->in)) {
		refuse(rq, rp, ERR_CROSS_ORIGIN_REFUSED);
		return;
	}
	errno = 0;
	if (!label_valid(label) || !shows(label)) {
		refuse(rq, rp, lack_or(ERR_INVALID_DEVICE_LABEL));
		return;
	}
	if (!may_try(rq->in->source, timer_ms())) {
		refuse(rq, rp, ERR_TOO_MANY_ATTEMPTS);
		return;
	}
	const char *vhost = rq->in->vhost_tenant;
	/* To stored an empty name would mean any tenant. */
	if (vhost != NULL && !id_valid(vhost)) {
		refuse(rq, rp, ERR_INVALID_PAIRING_CODE);
		return;
	}
	own_buf struct buf b;
	buf_init(&b, 4096);
	if (!reply_ready(rp, &b))
		return;
	principal_mint(PRINCIPAL_DEVICE, token);
	if (principal_parse(token, PRINCIPAL_TOKEN_LEN, &kind, id, token_hash) != ERR_OK ||
	    !pairing_hash(json_get(rq->json, "code")->text, code_hash)) {
		reply_error(rp, lack_error(), NULL, NULL);
		return;
	}
	struct st_pair_claim m = {.hash = {code_hash, sizeof code_hash},
				  .tenant = vhost != NULL ? vhost : "",
				  .label = label,
				  .token_id = id,
				  .token_hash = {token_hash, sizeof token_hash},
				  .request_id = rq->in->id};
	e = st_call_pair_claim(rq->ask, &m, NULL, &done, NULL);
	if (e == ERR_OK)
		tell(rq, rp, label, &done, token, as_cookie, &b);
	else
		refuse(rq, rp, e);
	wipe(token, sizeof token);
	wipe(code_hash, sizeof code_hash);
}
