/*
 * Run tokens: base64url(JSON) "." base64url(HMAC-SHA256(secret, first part as text)).
 * Claims exactly v aud runId tenant model iat exp kid, in that order, in one canonical spelling:
 * anything else is ERR_INVALID_RUN_TOKEN (R-40...R-48, D-19).
 */
#ifndef LIB_TOKEN_H
#define LIB_TOKEN_H
#include "gen/errors.h"
#include "gen/limits.h"
#include "lib/secret.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TOKEN_MAX = 1024,
	TOKEN_LIFE_SECONDS = LIMIT_RUN_TOKEN_LIFE_SECONDS,
	TOKEN_SKEW_SECONDS = LIMIT_RUN_TOKEN_SKEW_SECONDS,
	TOKEN_SECRET_MIN = 32
};

enum token_audience { TOKEN_MODEL, TOKEN_EVENTS, TOKEN_APPROVALS, TOKEN_AUDIENCE__COUNT };

struct token_claims {
	enum token_audience audience;
	char run[129], tenant[129], model[129], kid[33];
	int64_t iat, exp; /* seconds since the epoch */
};

/* The path the audience names in `aud`, such as "/internal/v1/chat/completions". */
const char *token_audience_name(enum token_audience a);
/* kid of a secret: the first 8 hex digits of its SHA-256 under a fixed label. out: 9 bytes. False with errno. */
bool token_kid(const struct secret *key, char out[9]);
/* Writes a NUL-terminated token for [now, now + 300]. False: secret under 32 bytes, a value too long, no memory. */
bool token_mint(const struct secret *key, enum token_audience aud, const char *run, const char *tenant,
		const char *model, int64_t now, char out[TOKEN_MAX + 1]);
/*
 * Verifies in the order of R-42 against key, then next (may be NULL), for the wanted audience.
 * ERR_OK, ERR_INVALID_RUN_TOKEN or ERR_EXPIRED_RUN_TOKEN; claims are set with ERR_OK, and with
 * ERR_EXPIRED_RUN_TOKEN where its time is over and nothing else is wrong. ERR_RESOURCES_EXHAUSTED: there was no memory
 * to find out.
 */
enum err token_verify(const struct secret *key, const struct secret *next, const char *token, size_t n,
		      enum token_audience want, int64_t now, struct token_claims *claims);

/*
 * Principal tokens: "pfa_" or "pfd_", 16 characters of public id, "_", 43 characters of base64url (32 bytes).
 * Only their SHA-256 is ever kept.
 */
enum { PRINCIPAL_TOKEN_LEN = 64, PRINCIPAL_ID_LEN = 16 };
enum principal_kind { PRINCIPAL_API = 1, PRINCIPAL_DEVICE = 2 };
enum { RIGHT_APPROVE = 1, RIGHT_METRICS = 2 };
void principal_mint(enum principal_kind kind, char out[PRINCIPAL_TOKEN_LEN + 1]);
/* Another secret for a principal that there is. False: id has not the form of one. */
bool principal_renew(enum principal_kind kind, const char *id, char out[PRINCIPAL_TOKEN_LEN + 1]);
/* Splits without looking at the secret part beyond its alphabet. ERR_UNAUTHORIZED: not of the form;
 * ERR_RESOURCES_EXHAUSTED: the hash could not be made. */
enum err principal_parse(const char *s, size_t n, enum principal_kind *kind, char id[PRINCIPAL_ID_LEN + 1],
			 uint8_t hash[32]);
#endif
