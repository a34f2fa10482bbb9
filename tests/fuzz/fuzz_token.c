/*
 * Any bytes as a token: refused, or minted by us. So that the fuzzer gets past the MAC, the input is also
 * taken as a payload and signed; what verifies must be what token_mint writes for those claims.
 */
#include "lib/digest.h"
#include "lib/token.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NOW = 1700000000 };

/* There is one spelling: what is decoded is encoded to the same text. */
static void check_b64url(const char *s, size_t n)
{
	uint8_t bytes[TOKEN_MAX];
	char again[2 * TOKEN_MAX];
	long got = b64url_decode(s, n, bytes, sizeof bytes);
	if (got > 0 && (b64url_encode(bytes, (size_t)got, again, sizeof again) != n || memcmp(again, s, n) != 0))
		abort();
	if (got == 0 && n != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct secret key;
	struct token_claims c;
	char token[2 * TOKEN_MAX], again[TOKEN_MAX + 1];
	uint8_t mac[SHA256_SIZE];
	if (key.p == NULL && !secret_set(&key, "0123456789abcdef0123456789abcdef", 32))
		abort();
	if (token_verify(&key, NULL, (const char *)data, size, TOKEN_MODEL, NOW, &c) == ERR_OK)
		abort();
	enum principal_kind kind;
	char id[PRINCIPAL_ID_LEN + 1];
	(void)principal_parse((const char *)data, size, &kind, id, mac);
	check_b64url((const char *)data, size);
	size_t n = b64url_encode(data, size, token, TOKEN_MAX);
	if (n == 0 || !hmac_sha256(key.p, key.n, token, n, mac))
		return 0;
	token[n] = '.';
	n += 1 + b64url_encode(mac, sizeof mac, token + n + 1, sizeof token - n - 1);
	if (token_verify(&key, NULL, token, n, TOKEN_MODEL, NOW, &c) != ERR_OK)
		return 0;
	if (!token_mint(&key, c.audience, c.run, c.tenant, c.model, c.iat, again) || strlen(again) != n ||
	    memcmp(again, token, n) != 0)
		abort();
	return 0;
}
