/* See key.h. Trusts no point: each is asked whether it is on the curve. */
#include "push/key.h"
#include "lib/secret.h"
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

/* In the form that travels: 0x04 first. */
static EVP_PKEY *make(int selection, const uint8_t point[P256_POINT], const BIGNUM *scalar)
{
	OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
	OSSL_PARAM *params = NULL;
	EVP_PKEY *key = NULL;
	bool ok = build != NULL && ctx != NULL && point[0] == POINT_CONVERSION_UNCOMPRESSED &&
		  OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) == 1 &&
		  OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point, P256_POINT) == 1 &&
		  (scalar == NULL || OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_PRIV_KEY, scalar) == 1);
	if (ok)
		params = OSSL_PARAM_BLD_to_param(build);
	if (params == NULL || EVP_PKEY_fromdata_init(ctx) != 1 || EVP_PKEY_fromdata(ctx, &key, selection, params) != 1)
		key = NULL;
	OSSL_PARAM_free(params); /* wipes what came from a BIGNUM of secure memory */
	OSSL_PARAM_BLD_free(build);
	EVP_PKEY_CTX_free(ctx);
	return key;
}

struct evp_pkey_st *p256_public(const uint8_t point[P256_POINT])
{
	own_p256 EVP_PKEY *key = make(EVP_PKEY_PUBLIC_KEY, point, NULL);
	EVP_PKEY_CTX *ctx = key != NULL ? EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL) : NULL;
	EVP_PKEY *good = NULL;
	if (ctx != NULL && EVP_PKEY_public_check(ctx) == 1) {
		good = key;
		key = NULL;
	}
	EVP_PKEY_CTX_free(ctx);
	return good;
}

static bool point_of(const EC_GROUP *g, const BIGNUM *d, uint8_t point[P256_POINT])
{
	EC_POINT *p = EC_POINT_new(g);
	bool ok = p != NULL && EC_POINT_mul(g, p, d, NULL, NULL, NULL) == 1 &&
		  EC_POINT_point2oct(g, p, POINT_CONVERSION_UNCOMPRESSED, point, P256_POINT, NULL) == P256_POINT;
	EC_POINT_clear_free(p);
	return ok;
}

struct evp_pkey_st *p256_private(const uint8_t scalar[P256_SCALAR], uint8_t point[P256_POINT])
{
	EC_GROUP *g = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
	BIGNUM *d = BN_secure_new();
	EVP_PKEY *key = NULL;
	if (g != NULL && d != NULL && BN_bin2bn(scalar, P256_SCALAR, d) != NULL && !BN_is_zero(d) &&
	    BN_cmp(d, EC_GROUP_get0_order(g)) < 0) {
		BN_set_flags(d, BN_FLG_CONSTTIME);
		if (point_of(g, d, point))
			key = make(EVP_PKEY_KEYPAIR, point, d);
	}
	BN_clear_free(d);
	EC_GROUP_free(g);
	return key;
}

struct evp_pkey_st *p256_fresh(uint8_t point[P256_POINT])
{
	own_p256 EVP_PKEY *key = EVP_EC_gen("P-256");
	EVP_PKEY *good = NULL;
	size_t n = 0;
	if (key != NULL &&
	    EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY, point, P256_POINT, &n) == 1 &&
	    n == P256_POINT && point[0] == POINT_CONVERSION_UNCOMPRESSED) {
		good = key;
		key = NULL;
	}
	return good;
}

void p256_free(struct evp_pkey_st **key)
{
	EVP_PKEY_free(*key); /* clears the private part */
	*key = NULL;
}

bool p256_agree(struct evp_pkey_st *mine, struct evp_pkey_st *theirs, uint8_t out[P256_SCALAR])
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(NULL, mine, NULL);
	size_t n = P256_SCALAR;
	bool ok = ctx != NULL && EVP_PKEY_derive_init(ctx) == 1 && EVP_PKEY_derive_set_peer(ctx, theirs) == 1 &&
		  EVP_PKEY_derive(ctx, out, &n) == 1 && n == P256_SCALAR;
	EVP_PKEY_CTX_free(ctx);
	return ok;
}

/* r and s in whole widths. */
static bool flat(const uint8_t *der, size_t n, uint8_t out[P256_SIGNATURE])
{
	ECDSA_SIG *sig = d2i_ECDSA_SIG(NULL, &der, (long)n);
	const BIGNUM *r, *s;
	if (sig == NULL)
		return false;
	ECDSA_SIG_get0(sig, &r, &s);
	bool ok = BN_bn2binpad(r, out, P256_SCALAR) == P256_SCALAR &&
		  BN_bn2binpad(s, out + P256_SCALAR, P256_SCALAR) == P256_SCALAR;
	ECDSA_SIG_free(sig);
	return ok;
}

bool p256_sign(struct evp_pkey_st *key, const void *p, size_t n, uint8_t out[P256_SIGNATURE])
{
	uint8_t der[128];
	size_t len = sizeof der;
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool ok = ctx != NULL && EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, key) == 1 &&
		  EVP_DigestSign(ctx, der, &len, p, n) == 1 && flat(der, len, out);
	EVP_MD_CTX_free(ctx);
	return ok;
}
