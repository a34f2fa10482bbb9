/*
 * Run tokens and principal tokens. A run token is accepted only in the one spelling that token_mint
 * produces: the claims are read, written again, and compared with what was sent. Trusts nothing before
 * the MAC; never logs, never says which step refused.
 */
#include "lib/token.h"
#include "lib/digest.h"
#include "lib/json.h"
#include "lib/lack.h"
#include "lib/num.h"
#include <stdio.h>
#include <string.h>

enum { MAC_TEXT = 43, PAYLOAD_MAX = TOKEN_MAX, PAYLOAD_NODES = 16 };
static const int64_t latest = INT64_C(253402300799); /* end of the year 9999 */
static const char kid_label[] = "pinfold run token kid";

const char *token_audience_name(enum token_audience a)
{
	static const char *const names[TOKEN_AUDIENCE__COUNT] = {
	    [TOKEN_MODEL] = "/internal/v1/chat/completions",
	    [TOKEN_EVENTS] = "/internal/v1/runs/events",
	    [TOKEN_APPROVALS] = "/internal/v1/runs/approvals",
	};
	return (unsigned)a < TOKEN_AUDIENCE__COUNT ? names[a] : "";
}

bool token_kid(const struct secret *key, char out[9])
{
	uint8_t text[sizeof kid_label + SECRET_MAX], digest[SHA256_SIZE] = {0};
	char digits[SHA256_HEX];
	memcpy(text, kid_label, sizeof kid_label);
	if (key->n > 0)
		memcpy(text + sizeof kid_label, key->p, key->n);
	bool ok = sha256(text, sizeof kid_label + key->n, digest);
	int why = errno;
	wipe(text, sizeof text);
	hex(digest, sizeof digest, digits);
	memcpy(out, digits, 8);
	out[8] = 0;
	errno = why;
	return ok;
}

/* The one spelling of these claims. */
static void write_claims(struct buf *b, const struct token_claims *c)
{
	struct jw w;
	jw_init(&w, b);
	jw_open(&w, '{');
	jw_kint(&w, "v", 1);
	jw_kstr(&w, "aud", token_audience_name(c->audience));
	jw_kstr(&w, "runId", c->run);
	jw_kstr(&w, "tenant", c->tenant);
	jw_kstr(&w, "model", c->model);
	jw_kint(&w, "iat", c->iat);
	jw_kint(&w, "exp", c->exp);
	jw_kstr(&w, "kid", c->kid);
	jw_close(&w, '}');
}

static bool copy_text(char *out, size_t room, const char *s)
{
	size_t n = strnlen(s, room);
	if (n == 0 || n == room)
		return false;
	memcpy(out, s, n + 1);
	return true;
}

bool token_mint(const struct secret *key, enum token_audience aud, const char *run, const char *tenant,
		const char *model, int64_t now, char out[TOKEN_MAX + 1])
{
	struct token_claims c = {.audience = aud, .iat = now, .exp = now + TOKEN_LIFE_SECONDS};
	uint8_t mac[SHA256_SIZE];
	out[0] = 0;
	if (key->n < TOKEN_SECRET_MIN || key->n > SECRET_MAX || (unsigned)aud >= TOKEN_AUDIENCE__COUNT || now < 0 ||
	    now > latest || !id_valid(run) || !id_valid(tenant) || !copy_text(c.run, sizeof c.run, run) ||
	    !copy_text(c.tenant, sizeof c.tenant, tenant) || !copy_text(c.model, sizeof c.model, model) ||
	    !utf8_valid(model, strlen(model), NULL))
		return false;
	if (!token_kid(key, c.kid))
		return false;
	own_buf struct buf b;
	buf_init(&b, PAYLOAD_MAX);
	write_claims(&b, &c);
	if (buf_failed(&b))
		return false;
	size_t n = b64url_encode(b.p, b.n, out, TOKEN_MAX + 1);
	if (n == 0 || n + 1 + MAC_TEXT > TOKEN_MAX || !hmac_sha256(key->p, key->n, out, n, mac)) {
		out[0] = 0;
		return false;
	}
	out[n] = '.';
	b64url_encode(mac, sizeof mac, out + n + 1, TOKEN_MAX - n);
	wipe(mac, sizeof mac);
	return true;
}

/* *e becomes an error where it could not be worked out: nobody is told then that the token is wrong. */
static bool mac_matches(const struct secret *key, const char *text, size_t n, const uint8_t mac[SHA256_SIZE],
			enum err *e)
{
	uint8_t right[SHA256_SIZE];
	if (key == NULL || key->n < TOKEN_SECRET_MIN || key->n > SECRET_MAX)
		return false;
	bool done = hmac_sha256(key->p, key->n, text, n, right);
	if (!done)
		*e = lack_error();
	bool ok = done && secret_equal(right, sizeof right, mac, SHA256_SIZE);
	wipe(right, sizeof right);
	return ok;
}

static bool claim_text(const struct json *o, const char *key, char *out, size_t room)
{
	const struct json *v = json_get(o, key);
	return v != NULL && v->type == JSON_STRING && v->len == strlen(v->text) && copy_text(out, room, v->text);
}

/* Claims of a payload that is spelt exactly as token_mint would spell them. */
static bool read_claims(const uint8_t *payload, size_t n, struct token_claims *c)
{
	own_arena struct arena a;
	own_buf struct buf again;
	char audience[64];
	arena_init(&a, 16384);
	buf_init(&again, PAYLOAD_MAX);
	const struct json *o = json_parse(&a, payload, n, 1, PAYLOAD_NODES, NULL);
	if (o == NULL || o->type != JSON_OBJECT || !claim_text(o, "aud", audience, sizeof audience) ||
	    !claim_text(o, "runId", c->run, sizeof c->run) || !claim_text(o, "tenant", c->tenant, sizeof c->tenant) ||
	    !claim_text(o, "model", c->model, sizeof c->model) || !claim_text(o, "kid", c->kid, sizeof c->kid) ||
	    !json_int(json_get(o, "iat"), 0, latest, &c->iat) ||
	    !json_int(json_get(o, "exp"), 0, latest + TOKEN_LIFE_SECONDS, &c->exp) || !id_valid(c->run) ||
	    !id_valid(c->tenant))
		return false;
	int aud = 0;
	while (aud < TOKEN_AUDIENCE__COUNT && strcmp(audience, token_audience_name((enum token_audience)aud)) != 0)
		aud++;
	if (aud == TOKEN_AUDIENCE__COUNT)
		return false;
	c->audience = (enum token_audience)aud;
	/* Order, version, unknown and repeated claims, blanks, escapes: all settled by one comparison. */
	write_claims(&again, c);
	return !buf_failed(&again) && again.n == n && memcmp(again.p, payload, n) == 0;
}

enum err token_verify(const struct secret *key, const struct secret *next, const char *token, size_t n,
		      enum token_audience want, int64_t now, struct token_claims *claims)
{
	uint8_t mac[SHA256_SIZE], payload[PAYLOAD_MAX];
	struct token_claims c = {0};
	char kid[9];
	if (n <= MAC_TEXT + 1 || n > TOKEN_MAX)
		return ERR_INVALID_RUN_TOKEN;
	const char *dot = memchr(token, '.', n);
	if (dot == NULL || dot == token)
		return ERR_INVALID_RUN_TOKEN;
	size_t head = (size_t)(dot - token);
	if (n - head - 1 != MAC_TEXT || b64url_decode(dot + 1, MAC_TEXT, mac, sizeof mac) != SHA256_SIZE)
		return ERR_INVALID_RUN_TOKEN;
	/* Both are always tried, so that time does not tell which of them it was. */
	enum err e = ERR_INVALID_RUN_TOKEN;
	bool by_key = mac_matches(key, token, head, mac, &e);
	bool by_next = mac_matches(next, token, head, mac, &e);
	if (!by_key && !by_next)
		return e;
	long len = b64url_decode(token, head, payload, sizeof payload);
	errno = 0;
	if (len <= 0 || !read_claims(payload, (size_t)len, &c))
		return lack_or(ERR_INVALID_RUN_TOKEN);
	if (!token_kid(by_key ? key : next, kid))
		return lack_error();
	if (strcmp(kid, c.kid) != 0 || c.audience != want)
		return ERR_INVALID_RUN_TOKEN;
	if (c.exp - c.iat != TOKEN_LIFE_SECONDS || c.iat > now + TOKEN_SKEW_SECONDS)
		return ERR_EXPIRED_RUN_TOKEN;
	*claims = c;
	return c.exp <= now ? ERR_EXPIRED_RUN_TOKEN : ERR_OK;
}

static const char principal_prefix[][5] = {[PRINCIPAL_API] = "pfa_", [PRINCIPAL_DEVICE] = "pfd_"};
enum { PREFIX_LEN = 4, PRINCIPAL_SECRET = 32 };

static bool alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

bool principal_renew(enum principal_kind kind, const char *id, char out[PRINCIPAL_TOKEN_LEN + 1])
{
	uint8_t bytes[PRINCIPAL_SECRET];
	size_t n = 0;
	while (n < PRINCIPAL_ID_LEN && alnum(id[n]))
		n++;
	if (n < PRINCIPAL_ID_LEN || id[n] != '\0')
		return false;
	memcpy(out, principal_prefix[kind], PREFIX_LEN);
	memcpy(out + PREFIX_LEN, id, PRINCIPAL_ID_LEN);
	out[PREFIX_LEN + PRINCIPAL_ID_LEN] = '_';
	random_bytes(bytes, sizeof bytes);
	b64url_encode(bytes, sizeof bytes, out + PREFIX_LEN + PRINCIPAL_ID_LEN + 1,
		      PRINCIPAL_TOKEN_LEN - PREFIX_LEN - PRINCIPAL_ID_LEN);
	wipe(bytes, sizeof bytes);
	return true;
}

void principal_mint(enum principal_kind kind, char out[PRINCIPAL_TOKEN_LEN + 1])
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	char id[PRINCIPAL_ID_LEN + 1] = "";
	for (size_t i = 0; i < PRINCIPAL_ID_LEN;) {
		uint8_t one;
		random_bytes(&one, 1);
		if (one < 248) /* 4 * 62: every character equally likely */
			id[i++] = alphabet[one % 62];
	}
	(void)principal_renew(kind, id, out);
}

enum err principal_parse(const char *s, size_t n, enum principal_kind *kind, char id[PRINCIPAL_ID_LEN + 1],
			 uint8_t hash[32])
{
	if (n != PRINCIPAL_TOKEN_LEN || s[PREFIX_LEN + PRINCIPAL_ID_LEN] != '_')
		return ERR_UNAUTHORIZED;
	enum principal_kind k = PRINCIPAL_API;
	while (memcmp(s, principal_prefix[k], PREFIX_LEN) != 0)
		if (++k > PRINCIPAL_DEVICE)
			return ERR_UNAUTHORIZED;
	for (size_t i = 0; i < PRINCIPAL_ID_LEN; i++)
		if (!alnum(s[PREFIX_LEN + i]))
			return ERR_UNAUTHORIZED;
	for (size_t i = PREFIX_LEN + PRINCIPAL_ID_LEN + 1; i < n; i++)
		if (!alnum(s[i]) && s[i] != '-' && s[i] != '_')
			return ERR_UNAUTHORIZED;
	if (!sha256(s, n, hash))
		return lack_error();
	memcpy(id, s + PREFIX_LEN, PRINCIPAL_ID_LEN);
	id[PRINCIPAL_ID_LEN] = 0;
	*kind = k;
	return ERR_OK;
}
