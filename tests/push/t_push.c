/* Web Push: the published numbers of RFC 8291 and 8292, what holds for any message, and what an answer means. */
#include "lib/contact.h"
#include "lib/digest.h"
#include "lib/num.h"
#include "push/outcome.h"
#include "push/payload.h"
#include "push/seal.h"
#include "push/vapid.h"
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* RFC 8291, section 5 and appendix A. */
static const char text[] = "When I grow up, I want to be a watermelon";
static const char as_public[] =
    "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8";
static const char as_private[] = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw";
static const char ua_public[] =
    "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
static const char ua_private[] = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94";
static const char salt_text[] = "DGv6ra1nlYgDCS1FRnbzlw";
static const char auth_text[] = "BTBZMqHH6r4Tts7J_aSIgg";
static const char cek[] = "oIhVW04MRdy2XN9CiKLxTg";
static const char nonce[] = "4h_95klXJ5E_qnoN";
static const char shared_text[] = "kyrL1jIIOHEzg3sM2ZWRHDRB62YACZhhSlknJ672kSs";
static const char body_text[] = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIg"
				"Dll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVB"
				"St2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN";

static void from64(const char *s, void *out, size_t n)
{
	assert_int_equal(b64url_decode(s, strlen(s), out, n), (long)n);
}

static void t_vectors(void **state)
{
	(void)state;
	uint8_t d[P256_SCALAR], point[P256_POINT], want[P256_POINT], salt[SEAL_SALT], sum[P256_SCALAR],
	    shared[P256_SCALAR];
	uint8_t out[256], body[144], key[16], iv[12];
	struct seal_to to;
	struct seal_keys keys;

	from64(as_private, d, sizeof d);
	from64(as_public, want, sizeof want);
	own_p256 struct evp_pkey_st *mine = p256_private(d, point);
	assert_non_null(mine);
	assert_memory_equal(point, want, sizeof want);
	from64(ua_public, to.point, sizeof to.point);
	from64(auth_text, to.auth, sizeof to.auth);
	from64(salt_text, salt, sizeof salt);
	own_p256 struct evp_pkey_st *theirs = p256_public(to.point);
	assert_non_null(theirs);
	assert_true(p256_agree(mine, theirs, shared));
	from64(shared_text, sum, sizeof sum);
	assert_memory_equal(shared, sum, sizeof sum);
	/* The browser comes to the same. */
	uint8_t ua[P256_POINT];
	from64(ua_private, d, sizeof d);
	own_p256 struct evp_pkey_st *browser = p256_private(d, ua);
	assert_memory_equal(ua, to.point, sizeof ua);
	own_p256 struct evp_pkey_st *us = p256_public(point);
	assert_true(p256_agree(browser, us, shared));
	assert_memory_equal(shared, sum, sizeof sum);

	assert_true(seal_derive(mine, point, &to, salt, &keys));
	from64(cek, key, sizeof key);
	from64(nonce, iv, sizeof iv);
	assert_memory_equal(keys.key, key, sizeof key);
	assert_memory_equal(keys.nonce, iv, sizeof iv);
	size_t padded = sizeof text - 1 + 1; /* the RFC's has no padding */
	assert_true(seal_write(&keys, point, salt, text, sizeof text - 1, padded, out));
	from64(body_text, body, sizeof body);
	assert_int_equal(SEAL_HEADER + padded + SEAL_TAG, sizeof body);
	assert_memory_equal(out, body, sizeof body);
}

/* What a browser does, by OpenSSL alone. The length of the text, or -1. */
static int open_body(struct evp_pkey_st *mine, const uint8_t my_point[P256_POINT], const uint8_t auth[SEAL_AUTH],
		     const uint8_t body[SEAL_BODY], uint8_t out[SEAL_PADDED])
{
	static const char label[] = "WebPush: info";
	uint8_t info[sizeof label + 2 * P256_POINT + 1], shared[32], prk[32], ikm[32], key[32], iv[32];
	char what[64];
	const uint8_t *their_point = body + 21;
	own_p256 struct evp_pkey_st *theirs = p256_public(their_point);
	int n = 0, last = 0;
	if (theirs == NULL || body[20] != P256_POINT || !p256_agree(mine, theirs, shared))
		return -1;
	memcpy(info, label, sizeof label);
	memcpy(info + sizeof label, my_point, P256_POINT);
	memcpy(info + sizeof label + P256_POINT, their_point, P256_POINT);
	info[sizeof info - 1] = 1;
	assert_true(hmac_sha256(auth, SEAL_AUTH, shared, 32, prk) && hmac_sha256(prk, 32, info, sizeof info, ikm) &&
		    hmac_sha256(body, SEAL_SALT, ikm, 32, prk));
	size_t len = (size_t)snprintf(what, sizeof what, "Content-Encoding: aes128gcm%c%c", 0, 1);
	assert_true(hmac_sha256(prk, 32, what, len, key));
	len = (size_t)snprintf(what, sizeof what, "Content-Encoding: nonce%c%c", 0, 1);
	assert_true(hmac_sha256(prk, 32, what, len, iv));
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	bool ok = EVP_DecryptInit_ex(ctx, EVP_aes_128_gcm(), NULL, key, iv) == 1 &&
		  EVP_DecryptUpdate(ctx, out, &n, body + SEAL_HEADER, SEAL_PADDED) == 1 &&
		  EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, SEAL_TAG,
				      (void *)(uintptr_t)(body + SEAL_HEADER + SEAL_PADDED)) == 1 &&
		  EVP_DecryptFinal_ex(ctx, out + n, &last) == 1;
	EVP_CIPHER_CTX_free(ctx);
	if (!ok)
		return -1;
	n += last;
	while (n > 0 && out[n - 1] == 0)
		n--;
	return n > 0 && out[n - 1] == 2 ? n - 1 : -1;
}

static void t_any_message(void **state)
{
	(void)state;
	uint8_t said[SEAL_TEXT_MAX + 1], heard[SEAL_PADDED], body[SEAL_BODY], before[SEAL_BODY] = {0};
	struct seal_to to;
	own_p256 struct evp_pkey_st *mine = p256_fresh(to.point), *other = p256_fresh(heard);
	random_bytes(to.auth, sizeof to.auth);
	random_bytes(said, sizeof said);
	static const size_t sizes[] = {0, 1, 2, 15, 16, 17, 100, 400, SEAL_TEXT_MAX - 1, SEAL_TEXT_MAX};
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		memset(said, i % 2 == 0 ? 0 : 2, sizes[i] / 2); /* what padding and delimiter look like */
		assert_true(seal(&to, said, sizes[i], body));
		assert_int_equal(open_body(mine, to.point, to.auth, body, heard), sizes[i]);
		assert_memory_equal(heard, said, sizes[i]);
		/* Neither key nor salt is ever the same. */
		assert_memory_not_equal(body, before, SEAL_SALT);
		assert_memory_not_equal(body + 21, before + 21, P256_POINT);
		memcpy(before, body, sizeof body);
		/* Nobody else opens it, and no bit of it may be another. */
		assert_int_equal(open_body(other, to.point, to.auth, body, heard), -1);
		to.auth[i] ^= 1;
		assert_int_equal(open_body(mine, to.point, to.auth, body, heard), -1);
		to.auth[i] ^= 1;
		size_t at = SEAL_HEADER + (i * 97) % (SEAL_PADDED + SEAL_TAG);
		body[at] ^= (uint8_t)(1 << i % 8);
		assert_int_equal(open_body(mine, to.point, to.auth, body, heard), -1);
	}
	assert_false(seal(&to, said, SEAL_TEXT_MAX + 1, body));
	assert_true(body[16] == 0 && body[17] == 0 && body[18] == 0x10 && body[19] == 0);
}

static void t_points(void **state)
{
	(void)state;
	uint8_t point[P256_POINT], body[SEAL_BODY], d[P256_SCALAR] = {0};
	struct seal_to to;
	memset(&to, 0, sizeof to);
	assert_null(p256_public(to.point));
	own_p256 struct evp_pkey_st *one = p256_fresh(point);
	for (unsigned i = 0; i < P256_POINT * 8; i++) {
		memcpy(to.point, point, sizeof point);
		to.point[i / 8] ^= (uint8_t)(1 << i % 8);
		assert_null(p256_public(to.point));
		assert_false(seal(&to, "x", 1, body));
	}
	assert_null(p256_private(d, point)); /* 0 */
	/* The order, and below it. */
	from64("_____wAAAAD__________7zm-q2nF56E87nKwvxjJVE", d, sizeof d);
	assert_null(p256_private(d, point));
	d[31]--;
	own_p256 struct evp_pkey_st *most = p256_private(d, point);
	assert_non_null(most);
	memset(d, 0xff, sizeof d);
	assert_null(p256_private(d, point));
}

/* Is it what this key signed? */
static bool verified(const uint8_t point[P256_POINT], const char *jwt)
{
	uint8_t sig[P256_SIGNATURE], der[128], *at = der;
	const char *dot = strrchr(jwt, '.');
	from64(dot + 1, sig, sizeof sig);
	ECDSA_SIG *s = ECDSA_SIG_new();
	ECDSA_SIG_set0(s, BN_bin2bn(sig, 32, NULL), BN_bin2bn(sig + 32, 32, NULL));
	int n = i2d_ECDSA_SIG(s, &at);
	ECDSA_SIG_free(s);
	own_p256 struct evp_pkey_st *key = p256_public(point);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool ok = EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, key) == 1 &&
		  EVP_DigestVerify(ctx, der, (size_t)n, (const uint8_t *)jwt, (size_t)(dot - jwt)) == 1;
	EVP_MD_CTX_free(ctx);
	return ok;
}

/* "vapid t=JWT, k=KEY": the JWT, and that the key is this one. */
static void parts(const char *header, char jwt[1400], const uint8_t point[P256_POINT])
{
	uint8_t k[P256_POINT];
	const char *comma = strstr(header, ", k=");
	assert_int_equal(strncmp(header, "vapid t=", 8), 0);
	assert_non_null(comma);
	snprintf(jwt, 1400, "%.*s", (int)(comma - header - 8), header + 8);
	from64(comma + 4, k, sizeof k);
	assert_memory_equal(k, point, sizeof k);
}

static void claims_are(const char *jwt, const char *want)
{
	char claims[600] = {0};
	const char *from = strchr(jwt, '.') + 1, *to = strrchr(jwt, '.');
	assert_true(b64url_decode(from, (size_t)(to - from), (uint8_t *)claims, sizeof claims - 1) > 0);
	assert_string_equal(claims, want);
}

static void t_vapid(void **state)
{
	(void)state;
	/* RFC 8292, section 2.4. */
	static const char jwt_rfc[] = "eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9."
				      "eyJhdWQiOiJodHRwczovL3B1c2guZXhhbXBsZS5uZXQiLCJleHAiOjE0NTM1MjM3NjgsInN1"
				      "YiI6Im1haWx0bzpwdXNoQGV4YW1wbGUuY29tIn0.i3CYb7t4xfxCDquptFOepC9GAu_"
				      "HLGkMlMuCGSK2rpiUfnK9ojFwDXb1JrErtmysazNjj"
				      "vW2L9OkSSHzvoD1oA";
	uint8_t point[P256_POINT];
	from64("BA1Hxzyi1RUM1b5wjxsn7nGxAszw2u61m164i3MrAIxHF6YK5h4SDYic-dRuU_RCPCfA5aq9ojSwk5Y2EmClBPs", point,
	       sizeof point);
	assert_true(verified(point, jwt_rfc));

	static struct vapid v;
	struct secret key = {0};
	char jwt[1400], again[1400], first[VAPID_HEADER_MAX], head[40] = {0};
	assert_true(secret_set(&key, as_private, sizeof as_private - 1));
	assert_null(vapid_open(&v, &key, "mailto:push@example.com"));
	from64(as_public, point, sizeof point);
	assert_memory_equal(v.point, point, sizeof point);
	const uint64_t now = 1453523768 - VAPID_LIFE_S;
	snprintf(first, sizeof first, "%s", vapid_header(&v, "https://push.example.net", now));
	parts(first, jwt, v.point);
	/* All but the signature is the RFC's own. */
	assert_int_equal(strrchr(jwt, '.') - jwt, strrchr(jwt_rfc, '.') - jwt_rfc);
	assert_memory_equal(jwt, jwt_rfc, (size_t)(strrchr(jwt, '.') - jwt));
	assert_true(b64url_decode(jwt, (size_t)(strchr(jwt, '.') - jwt), (uint8_t *)head, sizeof head) > 0);
	assert_string_equal(head, "{\"typ\":\"JWT\",\"alg\":\"ES256\"}");
	assert_true(verified(v.point, jwt));
	jwt[30] ^= 1;
	assert_false(verified(v.point, jwt));

	/* Kept until an hour before its end, for its origin alone; not when the clock was set back. */
	const char *origin = "https://push.example.net";
	assert_string_equal(vapid_header(&v, origin, now + VAPID_LIFE_S - VAPID_RENEW_S), first);
	parts(vapid_header(&v, origin, now + VAPID_LIFE_S - VAPID_RENEW_S + 1), again, v.point);
	assert_true(verified(v.point, again));
	claims_are(again,
		   "{\"aud\":\"https://push.example.net\",\"exp\":1453563369,\"sub\":\"mailto:push@example.com\"}");
	parts(vapid_header(&v, origin, now - 10), again, v.point);
	claims_are(again,
		   "{\"aud\":\"https://push.example.net\",\"exp\":1453523758,\"sub\":\"mailto:push@example.com\"}");
	/* More origins than are kept. */
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 2 * VAPID_ORIGINS; i++) {
			char other[60], want[200];
			snprintf(other, sizeof other, "https://p%d.example", i);
			parts(vapid_header(&v, other, now), again, v.point);
			assert_true(verified(v.point, again));
			snprintf(want, sizeof want,
				 "{\"aud\":\"%s\",\"exp\":1453523768,\"sub\":\"mailto:push@example.com\"}", other);
			claims_are(again, want);
		}
	_Static_assert(VAPID_LIFE_S <= 24 * 3600, "RFC 8292");
	/* The longest there is. */
	char longest[VAPID_ORIGIN_MAX + 2], contact[CONTACT_MAX + 1];
	memset(longest, 'a', sizeof longest);
	longest[VAPID_ORIGIN_MAX] = '\0';
	vapid_close(&v);
	assert_null(vapid_header(&v, origin, now));
	memset(contact, 'a', sizeof contact);
	memcpy(contact, "mailto:a@", 9);
	contact[CONTACT_MAX] = '\0';
	assert_null(vapid_open(&v, &key, contact));
	assert_non_null(vapid_header(&v, longest, now));
	longest[VAPID_ORIGIN_MAX] = 'a', longest[VAPID_ORIGIN_MAX + 1] = '\0';
	assert_null(vapid_header(&v, longest, now));
	vapid_close(&v);

	/* What is no key. */
	static const char *const bad[] = {"",
					  "AAAA",
					  "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
					  "_____wAAAAD__________7zm-q2nF56E87nKwvxjJVE",
					  "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw=",
					  "yfWPiYE+n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw",
					  "-----BEGIN PRIVATE KEY-----"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_true(secret_set(&key, bad[i], strlen(bad[i])));
		assert_non_null(vapid_open(&v, &key, "mailto:push@example.com"));
		assert_null(vapid_header(&v, origin, now));
	}
	assert_non_null(vapid_open(&v, NULL, "mailto:push@example.com"));
	secret_wipe(&key);
}

static void t_contact(void **state)
{
	(void)state;
	static const char *const good[] = {"mailto:a@b", "https://a", "mailto:ops+push@example.org",
					   "https://example.org/contact?x=1"};
	static const char *const bad[] = {"",
					  "a@b",
					  "mailto:",
					  "mailto:a",
					  "mailto:@b",
					  "mailto:a@",
					  "https://",
					  "http://a",
					  "mailto:a b@c",
					  "mailto:a\"@b",
					  "mailto:a\\@b",
					  "mailto:a@b\n",
					  "mailto:\xc3\xa4@b",
					  "MAILTO:a@b"};
	char longest[CONTACT_MAX + 2];
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		assert_true(contact_valid(good[i]));
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_false(contact_valid(bad[i]));
	snprintf(longest, sizeof longest, "mailto:a@%0*d", CONTACT_MAX - 9, 0);
	assert_true(contact_valid(longest));
	snprintf(longest, sizeof longest, "mailto:a@%0*d", CONTACT_MAX - 8, 0);
	assert_false(contact_valid(longest));
}

static void t_outcomes(void **state)
{
	(void)state;
	for (unsigned s = 0; s < 700; s++) {
		enum push_outcome want = s >= 200 && s < 300    ? PUSH_SENT
					 : s == 404 || s == 410 ? PUSH_GONE
					 : s == 429             ? PUSH_TOO_MANY
					 : s == 408 || s == 425 ? PUSH_FAILED
					 : s >= 400 && s < 500  ? PUSH_REFUSED
								: PUSH_FAILED;
		assert_int_equal(outcome_of(s), want);
	}
}

static void t_retry_after(void **state)
{
	(void)state;
	const uint64_t now = 784111777; /* Sun, 06 Nov 1994 08:49:37 GMT */
	static const struct {
		const char *value;
		uint32_t seconds;
	} rows[] = {{"0", 0},
		    {"120", 120},
		    {" 120\r\n", 120},
		    {"\t7 ", 7},
		    {"007", 7},
		    {"86400", 86400},
		    {"86401", RETRY_AFTER_MOST},
		    {"99999999999999999999999999", RETRY_AFTER_MOST},
		    {"-1", 0},
		    {"+5", 0},
		    {"1.5", 0},
		    {"5s", 0},
		    {"5 6", 0},
		    {"", 0},
		    {"soon", 0},
		    {"Sun, 06 Nov 1994 08:49:37 GMT", 0},
		    {"Sun, 06 Nov 1994 08:49:38 GMT", 1},
		    {"Sunday, 06-Nov-94 08:50:37 GMT", 60},
		    {"Sun Nov  6 08:51:37 1994", 120},
		    {"Sun, 06 Nov 1994 08:49:36 GMT", 0},
		    {"Sun, 06 Nov 2094 08:49:37 GMT", RETRY_AFTER_MOST},
		    {"Sun, 06 Nov 1894 08:49:37 GMT", 0},
		    {"Sun, 06 Nov 1994 08:49:38 GMT and more", 0},
		    {"Sun, 36 Nov 1994 08:49:38 GMT", 0}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (retry_after(rows[i].value, strlen(rows[i].value), now) != rows[i].seconds)
			fail_msg("%s: %u", rows[i].value, retry_after(rows[i].value, strlen(rows[i].value), now));
	assert_int_equal(retry_after("12\0003", 4, now), 0);
	for (int i = 0; i < 100000; i++) {
		char any[80];
		random_bytes(any, sizeof any);
		assert_true(retry_after(any, (size_t)(uint8_t)any[0] % sizeof any, now) <= RETRY_AFTER_MOST);
	}
}

static void t_payload(void **state)
{
	(void)state;
	own_buf struct buf b, longest;
	char id[129];
	buf_init(&b, SEAL_TEXT_MAX);
	buf_init(&longest, SEAL_TEXT_MAX);
	struct st_push_is m = {.kind = PUSH_CARD, .run = "run-1", .request = "req.2", .topic = "dG9waWM", .count = 1};
	payload_write(&b, &m);
	assert_string_equal(buf_cstr(&b),
			    "{\"kind\":\"card\",\"runId\":\"run-1\",\"requestId\":\"req.2\",\"tag\":\"dG9waWM\","
			    "\"count\":1}");
	buf_reset(&b);
	m = (struct st_push_is){.kind = PUSH_SUMMARY, .run = "", .request = "", .topic = "c3Vt", .count = 4294967295u};
	payload_write(&b, &m);
	assert_string_equal(buf_cstr(&b), "{\"kind\":\"summary\",\"tag\":\"c3Vt\",\"count\":4294967295}");
	memset(id, 'a', sizeof id);
	id[128] = '\0';
	m.run = m.request = id;
	m.topic = id + 96;
	payload_write(&longest, &m);
	assert_false(buf_failed(&longest));
	assert_true(longest.n <= SEAL_TEXT_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_vectors),     cmocka_unit_test(t_any_message), cmocka_unit_test(t_points),
	    cmocka_unit_test(t_vapid),       cmocka_unit_test(t_contact),     cmocka_unit_test(t_outcomes),
	    cmocka_unit_test(t_retry_after), cmocka_unit_test(t_payload),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
