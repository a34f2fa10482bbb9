/* See seal.h. Everything that could open a message is wiped before the function that made it returns. */
#include "push/seal.h"
#include "lib/digest.h"
#include "lib/secret.h"
#include <openssl/evp.h>
#include <string.h>

enum { KEY = 16, NONCE = 12, INFO_MAX = 160 };

/* HKDF-Expand (RFC 5869) for at most one block: n bytes of HMAC(prk, info | 0x01). */
static bool expand(const uint8_t prk[SHA256_SIZE], const void *info, size_t ninfo, uint8_t *out, size_t n)
{
	uint8_t text[INFO_MAX + 1], block[SHA256_SIZE];
	if (ninfo > INFO_MAX || n > sizeof block)
		return false;
	memcpy(text, info, ninfo);
	text[ninfo] = 1;
	bool ok = hmac_sha256(prk, SHA256_SIZE, text, ninfo + 1, block);
	memcpy(out, block, n);
	wipe(block, sizeof block);
	return ok;
}

bool seal_derive(struct evp_pkey_st *mine, const uint8_t my_point[P256_POINT], const struct seal_to *to,
		 const uint8_t salt[SEAL_SALT], struct seal_keys *out)
{
	/* With the NUL that ends each of them. */
	static const char label[] = "WebPush: info", key[] = "Content-Encoding: aes128gcm",
			  nonce[] = "Content-Encoding: nonce";
	uint8_t info[sizeof label + 2 * P256_POINT];
	uint8_t shared[P256_SCALAR], prk[SHA256_SIZE], ikm[SHA256_SIZE];
	own_p256 struct evp_pkey_st *theirs = p256_public(to->point);

	memcpy(info, label, sizeof label);
	memcpy(info + sizeof label, to->point, P256_POINT);
	memcpy(info + sizeof label + P256_POINT, my_point, P256_POINT);
	bool ok = theirs != NULL && p256_agree(mine, theirs, shared) &&
		  hmac_sha256(to->auth, SEAL_AUTH, shared, sizeof shared, prk) &&
		  expand(prk, info, sizeof info, ikm, sizeof ikm) &&
		  hmac_sha256(salt, SEAL_SALT, ikm, sizeof ikm, prk) && expand(prk, key, sizeof key, out->key, KEY) &&
		  expand(prk, nonce, sizeof nonce, out->nonce, NONCE);
	wipe(shared, sizeof shared);
	wipe(prk, sizeof prk);
	wipe(ikm, sizeof ikm);
	return ok;
}

static bool encrypt(const struct seal_keys *keys, const uint8_t *text, size_t n, uint8_t *out)
{
	int some = 0, last = 0;
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	bool ok = ctx != NULL && EVP_EncryptInit_ex(ctx, EVP_aes_128_gcm(), NULL, keys->key, keys->nonce) == 1 &&
		  EVP_EncryptUpdate(ctx, out, &some, text, (int)n) == 1 &&
		  EVP_EncryptFinal_ex(ctx, out + some, &last) == 1 && (size_t)some + (size_t)last == n &&
		  EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, SEAL_TAG, out + n) == 1;
	EVP_CIPHER_CTX_free(ctx);
	return ok;
}

bool seal_write(const struct seal_keys *keys, const uint8_t my_point[P256_POINT], const uint8_t salt[SEAL_SALT],
		const void *text, size_t n, size_t padded, uint8_t *out)
{
	enum { LAST_RECORD = 2 };
	uint8_t record[SEAL_RECORD_SIZE] = {0};
	if (n >= padded || padded + SEAL_TAG >= SEAL_RECORD_SIZE)
		return false;
	memcpy(out, salt, SEAL_SALT);
	out += SEAL_SALT;
	*out++ = 0, *out++ = 0, *out++ = SEAL_RECORD_SIZE >> 8, *out++ = SEAL_RECORD_SIZE & 0xff;
	*out++ = P256_POINT;
	memcpy(out, my_point, P256_POINT);
	if (n > 0)
		memcpy(record, text, n);
	record[n] = LAST_RECORD;
	return encrypt(keys, record, padded, out + P256_POINT);
}

bool seal(const struct seal_to *to, const void *text, size_t n, uint8_t out[SEAL_BODY])
{
	uint8_t salt[SEAL_SALT], point[P256_POINT];
	struct seal_keys keys;
	own_p256 struct evp_pkey_st *mine = p256_fresh(point);

	random_bytes(salt, sizeof salt);
	bool ok = mine != NULL && seal_derive(mine, point, to, salt, &keys) &&
		  seal_write(&keys, point, salt, text, n, SEAL_PADDED, out);
	wipe(&keys, sizeof keys);
	return ok;
}
