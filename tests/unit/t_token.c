/*
 * Run tokens: one spelling, one audience, one lifetime. Most cases are signed with the right key, since
 * a wrong MAC would hide what lies behind it.
 */
#include "lib/digest.h"
#include "lib/token.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { NOW = 1700000000 };
static const char key_text[] = "0123456789abcdef0123456789abcdef";
static struct secret key, other;
static char kid[9];

static int setup(void **state)
{
	(void)state;
	if (!secret_set(&key, key_text, 32) || !secret_set(&other, "another key of thirty-two bytes!", 32))
		return -1;
	token_kid(&key, kid);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	secret_wipe(&key);
	secret_wipe(&other);
	return 0;
}

static enum err verify(const char *token, size_t n, enum token_audience want, int64_t now)
{
	/* A heap copy of exactly n bytes: reading on is seen by the sanitizer build. */
	struct token_claims c;
	char *copy = malloc(n ? n : 1);
	assert_non_null(copy);
	memcpy(copy, token, n);
	enum err e = token_verify(&key, NULL, copy, n, want, now, &c);
	free(copy);
	return e;
}

/* A payload of any shape with a valid MAC. */
static enum err signed_payload(const char *payload, size_t n)
{
	char token[4096];
	uint8_t mac[32];
	size_t at = b64url_encode(payload, n, token, sizeof token);
	assert_true(hmac_sha256(key.p, key.n, token, at, mac));
	token[at++] = '.';
	at += b64url_encode(mac, 32, token + at, sizeof token - at);
	return verify(token, at, TOKEN_MODEL, NOW);
}

static enum err payload_f(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static enum err payload_f(const char *fmt, ...)
{
	char text[2048];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return signed_payload(text, (size_t)n);
}

static void t_diagonal(void **state)
{
	(void)state;
	char token[TOKEN_MAX + 1];
	struct token_claims c;
	for (int have = 0; have < TOKEN_AUDIENCE__COUNT; have++) {
		assert_true(token_mint(&key, (enum token_audience)have, "run-1", "acme", "gpt/4.1", NOW, token));
		for (int want = 0; want < TOKEN_AUDIENCE__COUNT; want++)
			assert_int_equal(verify(token, strlen(token), (enum token_audience)want, NOW),
					 have == want ? ERR_OK : ERR_INVALID_RUN_TOKEN);
		assert_int_equal(token_verify(&key, NULL, token, strlen(token), (enum token_audience)have, NOW, &c),
				 ERR_OK);
		assert_string_equal(c.run, "run-1");
		assert_string_equal(c.tenant, "acme");
		assert_string_equal(c.model, "gpt/4.1");
		assert_string_equal(c.kid, kid);
		assert_int_equal(c.exp, NOW + 300);
		/* The next key is accepted, an unknown one is not, a short one never. */
		own_secret struct secret shorter = {0};
		assert_true(secret_set(&shorter, key_text, 31));
		assert_int_equal(token_verify(&other, &key, token, strlen(token), (enum token_audience)have, NOW, &c),
				 ERR_OK);
		assert_int_equal(token_verify(&other, NULL, token, strlen(token), (enum token_audience)have, NOW, &c),
				 ERR_INVALID_RUN_TOKEN);
		assert_int_equal(token_verify(&shorter, NULL, token, strlen(token), (enum token_audience)have, NOW, &c),
				 ERR_INVALID_RUN_TOKEN);
		assert_false(token_mint(&shorter, TOKEN_MODEL, "r", "t", "m", NOW, token));
	}
}

static void t_times(void **state)
{
	(void)state;
	char token[TOKEN_MAX + 1];
	static const struct {
		int64_t now;
		enum err want;
	} at[] = {{NOW, ERR_OK},
		  {NOW - 5, ERR_OK},
		  {NOW - 6, ERR_EXPIRED_RUN_TOKEN},
		  {NOW + 299, ERR_OK},
		  {NOW + 300, ERR_EXPIRED_RUN_TOKEN},
		  {NOW + 100000, ERR_EXPIRED_RUN_TOKEN},
		  {0, ERR_EXPIRED_RUN_TOKEN}};
	assert_true(token_mint(&key, TOKEN_MODEL, "r", "t", "m", NOW, token));
	for (size_t i = 0; i < sizeof at / sizeof at[0]; i++)
		assert_int_equal(verify(token, strlen(token), TOKEN_MODEL, at[i].now), at[i].want);
}

static void t_mutations(void **state)
{
	(void)state;
	char token[TOKEN_MAX + 1], bad[TOKEN_MAX + 64];
	assert_true(token_mint(&key, TOKEN_MODEL, "r", "t", "m", NOW, token));
	size_t n = strlen(token);
	/* Every byte in every other value: among them the spare bits of both parts. */
	for (size_t i = 0; i < n; i++)
		for (int v = 0; v < 256; v++) {
			memcpy(bad, token, n);
			if ((char)v == token[i])
				continue;
			bad[i] = (char)v;
			if (verify(bad, n, TOKEN_MODEL, NOW) != ERR_INVALID_RUN_TOKEN)
				fail_msg("byte %zu as %d was accepted", i, v);
		}
	for (size_t i = 0; i < n; i++)
		assert_int_equal(verify(token, i, TOKEN_MODEL, NOW), ERR_INVALID_RUN_TOKEN);
	static const char *const tails[] = {"=", "==", "\n", " ", ".", ".x", "A", ""};
	for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
		snprintf(bad, sizeof bad, "%s%s", token, tails[i]);
		/* the last one is the NUL behind the token */
		size_t len = tails[i][0] == 0 ? n + 1 : strlen(bad);
		assert_int_equal(verify(bad, len, TOKEN_MODEL, NOW), ERR_INVALID_RUN_TOKEN);
	}
	snprintf(bad, sizeof bad, " %s", token);
	assert_int_equal(verify(bad, n + 1, TOKEN_MODEL, NOW), ERR_INVALID_RUN_TOKEN);
	/* No MAC, a MAC of 31 and of 33 bytes, a megabyte. */
	size_t dot = (size_t)(strchr(token, '.') - token);
	assert_int_equal(verify(token, dot + 1, TOKEN_MODEL, NOW), ERR_INVALID_RUN_TOKEN);
	assert_int_equal(verify(token, dot, TOKEN_MODEL, NOW), ERR_INVALID_RUN_TOKEN);
	snprintf(bad, sizeof bad, "%.*s.%042d", (int)dot, token, 0);
	assert_int_equal(verify(bad, strlen(bad), TOKEN_MODEL, NOW), ERR_INVALID_RUN_TOKEN);
	snprintf(bad, sizeof bad, "%.*s.%044d", (int)dot, token, 0);
	assert_int_equal(verify(bad, strlen(bad), TOKEN_MODEL, NOW), ERR_INVALID_RUN_TOKEN);
	char *huge = malloc(1 << 20);
	assert_non_null(huge);
	memset(huge, 'A', 1 << 20);
	assert_int_equal(verify(huge, 1 << 20, TOKEN_MODEL, NOW), ERR_INVALID_RUN_TOKEN);
	memset(huge, '.', 1 << 20);
	assert_int_equal(verify(huge, 600, TOKEN_MODEL, NOW), ERR_INVALID_RUN_TOKEN);
	free(huge);
	assert_int_equal(verify("", 0, TOKEN_MODEL, NOW), ERR_INVALID_RUN_TOKEN);
}

#define AUD "\"aud\":\"/internal/v1/chat/completions\""
#define WHO "\"runId\":\"r\",\"tenant\":\"t\",\"model\":\"m\""
#define TIMES "\"iat\":1700000000,\"exp\":1700000300"

static void t_spellings(void **state)
{
	(void)state;
	assert_int_equal(payload_f("{\"v\":1," AUD "," WHO "," TIMES ",\"kid\":\"%s\"}", kid), ERR_OK);
	static const char *const bad[] = {
	    "{\"v\":2," AUD "," WHO "," TIMES ",\"kid\":\"%s\"}",
	    "{\"v\":1.0," AUD "," WHO "," TIMES ",\"kid\":\"%s\"}",
	    "{\"v\":\"1\"," AUD "," WHO "," TIMES ",\"kid\":\"%s\"}",
	    "{" AUD ",\"v\":1," WHO "," TIMES ",\"kid\":\"%s\"}",
	    "{" AUD "," WHO "," TIMES ",\"kid\":\"%s\"}",
	    "{\"v\":1," AUD "," WHO "," TIMES ",\"kid\":\"%s\",\"x\":1}",
	    "{\"v\":1," AUD "," AUD "," WHO "," TIMES ",\"kid\":\"%s\"}",
	    "{\"v\":1, " AUD "," WHO "," TIMES ",\"kid\":\"%s\"}",
	    "{\"v\":1," AUD "," WHO "," TIMES ",\"kid\":\"%s\"} ",
	    "{\"v\":1," AUD "," WHO "," TIMES ",\"kid\":\"%s\"}{}",
	    "[{\"v\":1," AUD "," WHO "," TIMES ",\"kid\":\"%s\"}]",
	    "{\"v\":1,\"aud\":\"/internal/v1/chat/completions/\"," WHO "," TIMES ",\"kid\":\"%s\"}",
	    "{\"v\":1,\"aud\":\"/internal/v1/Chat/completions\"," WHO "," TIMES ",\"kid\":\"%s\"}",
	    "{\"v\":1,\"aud\":[\"/internal/v1/chat/completions\"]," WHO "," TIMES ",\"kid\":\"%s\"}",
	    "{\"v\":1,\"aud\":\"\\/internal/v1/chat/completions\"," WHO "," TIMES ",\"kid\":\"%s\"}",
	    "{\"v\":1,\"aud\":\"/internal/v1/runs/events\"," WHO "," TIMES ",\"kid\":\"%s\"}",
	    "{\"v\":1," AUD ",\"runId\":\"\\u0072\",\"tenant\":\"t\",\"model\":\"m\"," TIMES ",\"kid\":\"%s\"}",
	    "{\"v\":1," AUD ",\"runId\":\"r/..\",\"tenant\":\"t\",\"model\":\"m\"," TIMES ",\"kid\":\"%s\"}",
	    "{\"v\":1," AUD ",\"runId\":\"\",\"tenant\":\"t\",\"model\":\"m\"," TIMES ",\"kid\":\"%s\"}",
	    "{\"v\":1," AUD ",\"runId\":7,\"tenant\":\"t\",\"model\":\"m\"," TIMES ",\"kid\":\"%s\"}",
	    "{\"v\":1," AUD "," WHO ",\"iat\":1700000000,\"exp\":\"1700000300\",\"kid\":\"%s\"}",
	    "{\"v\":1," AUD "," WHO ",\"iat\":1700000000,\"exp\":1.7000003e9,\"kid\":\"%s\"}",
	    "{\"v\":1," AUD "," WHO ",\"iat\":1700000000,\"exp\":1e308,\"kid\":\"%s\"}",
	    "{\"v\":1," AUD "," WHO ",\"iat\":-1700000000,\"exp\":-1699999700,\"kid\":\"%s\"}",
	    "{\"v\":1," AUD "," WHO ",\"iat\":01700000000,\"exp\":1700000300,\"kid\":\"%s\"}",
	    "{\"v\":1," AUD "," WHO "," TIMES ",\"kid\":\"x%s\"}",
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		char text[1024];
		size_t n = 0;
		for (const char *p = bad[i]; *p != 0; p++)
			if (p[0] == '%' && p[1] == 's') {
				memcpy(text + n, kid, 8);
				n += 8;
				p++;
			} else {
				text[n++] = *p;
			}
		if (signed_payload(text, n) != ERR_INVALID_RUN_TOKEN)
			fail_msg("accepted: %s", bad[i]);
	}
	assert_int_equal(signed_payload("", 0), ERR_INVALID_RUN_TOKEN);
	assert_int_equal(payload_f("{\"v\":1," AUD "," WHO "," TIMES ",\"kid\":\"00000000\"}"), ERR_INVALID_RUN_TOKEN);
	/* Well formed, but of another lifetime. */
	static const char *const lives[] = {"\"iat\":1700000000,\"exp\":1700000301",
					    "\"iat\":1700000000,\"exp\":1700000299",
					    "\"iat\":1700000000,\"exp\":1700000000", "\"iat\":0,\"exp\":1700000300"};
	for (size_t i = 0; i < sizeof lives / sizeof lives[0]; i++)
		assert_int_equal(payload_f("{\"v\":1," AUD "," WHO ",%s,\"kid\":\"%s\"}", lives[i], kid),
				 ERR_EXPIRED_RUN_TOKEN);
}

static void t_mint_refuses(void **state)
{
	(void)state;
	char token[TOKEN_MAX + 1], longer[130];
	memset(longer, 'a', 129);
	longer[129] = 0;
	assert_false(token_mint(&key, TOKEN_MODEL, longer, "t", "m", NOW, token));
	assert_false(token_mint(&key, TOKEN_MODEL, "r", longer, "m", NOW, token));
	assert_false(token_mint(&key, TOKEN_MODEL, "r", "t", longer, NOW, token));
	assert_false(token_mint(&key, TOKEN_MODEL, "r", "t", "", NOW, token));
	assert_false(token_mint(&key, TOKEN_MODEL, "r", "", "m", NOW, token));
	assert_false(token_mint(&key, TOKEN_MODEL, "r", "t", "\xff", NOW, token));
	assert_false(token_mint(&key, TOKEN_AUDIENCE__COUNT, "r", "t", "m", NOW, token));
	assert_false(token_mint(&key, TOKEN_MODEL, "r", "t", "m", -1, token));
	assert_string_equal(token, "");
	/* The longest names fit, and a model's name may hold anything. */
	longer[128] = 0;
	assert_true(token_mint(&key, TOKEN_APPROVALS, longer, longer, longer, NOW, token));
	assert_int_equal(verify(token, strlen(token), TOKEN_APPROVALS, NOW), ERR_OK);
	assert_true(token_mint(&key, TOKEN_MODEL, "r", "t", "a\"\\\n\x7f\xe2\x80\xa8\xc3\xa9", NOW, token));
	assert_int_equal(verify(token, strlen(token), TOKEN_MODEL, NOW), ERR_OK);
}

static void t_principals(void **state)
{
	(void)state;
	char t[PRINCIPAL_TOKEN_LEN + 1], again[PRINCIPAL_TOKEN_LEN + 1], id[PRINCIPAL_ID_LEN + 1];
	uint8_t hash[32], want[32];
	enum principal_kind kind;
	for (int k = PRINCIPAL_API; k <= PRINCIPAL_DEVICE; k++) {
		principal_mint((enum principal_kind)k, t);
		principal_mint((enum principal_kind)k, again);
		assert_int_equal(strlen(t), PRINCIPAL_TOKEN_LEN);
		assert_string_not_equal(t, again);
		assert_int_equal(principal_parse(t, strlen(t), &kind, id, hash), ERR_OK);
		assert_int_equal(kind, k);
		assert_memory_equal(id, t + 4, 16);
		assert_true(sha256(t, strlen(t), want));
		assert_memory_equal(hash, want, 32);
		for (size_t i = 0; i < 64; i++) {
			memcpy(again, t, sizeof t);
			again[i] = '+';
			assert_int_equal(principal_parse(again, 64, &kind, id, hash), ERR_UNAUTHORIZED);
		}
		for (size_t i = 0; i < 64; i++)
			assert_int_equal(principal_parse(t, i, &kind, id, hash), ERR_UNAUTHORIZED);
	}
	assert_int_equal(principal_parse("pfx_", 4, &kind, id, hash), ERR_UNAUTHORIZED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_diagonal),     cmocka_unit_test(t_times),
					   cmocka_unit_test(t_mutations),    cmocka_unit_test(t_spellings),
					   cmocka_unit_test(t_mint_refuses), cmocka_unit_test(t_principals)};
	return cmocka_run_group_tests(tests, setup, teardown);
}
