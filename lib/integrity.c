/* See integrity.h. Over OpenSSL; trusts neither the file nor the text. */
#include "lib/integrity.h"
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { DIGEST = 64, DIGITS = 88, BLOCK = 65536 };
static const char algorithm[] = "sha512-";

static bool decode(const char *text, uint8_t out[DIGEST])
{
	uint8_t raw[DIGITS / 4 * 3]; /* with what the padding stands for */

	if (strncmp(text, algorithm, sizeof algorithm - 1) != 0 || strlen(text) != sizeof algorithm - 1 + DIGITS)
		return false;
	if (EVP_DecodeBlock(raw, (const unsigned char *)text + sizeof algorithm - 1, DIGITS) != (int)sizeof raw ||
	    strcmp(text + strlen(text) - 2, "==") != 0)
		return false;
	memcpy(out, raw, DIGEST);
	return true;
}

bool integrity_valid(const char *text)
{
	uint8_t digest[DIGEST];

	return decode(text, digest);
}

static bool digest_of(EVP_MD_CTX *ctx, int fd, uint8_t out[DIGEST])
{
	uint8_t block[BLOCK];
	off_t at = 0;
	unsigned n = 0;

	if (ctx == NULL || EVP_DigestInit_ex(ctx, EVP_sha512(), NULL) != 1) {
		errno = ENOMEM;
		return false;
	}
	for (ssize_t got; (got = pread(fd, block, sizeof block, at)) != 0;) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return false;
		if (EVP_DigestUpdate(ctx, block, (size_t)got) != 1) {
			errno = ENOMEM;
			return false;
		}
		at += got;
	}
	errno = ENOMEM;
	return EVP_DigestFinal_ex(ctx, out, &n) == 1 && n == DIGEST;
}

bool integrity_matches(int fd, const char *text)
{
	uint8_t wanted[DIGEST], found[DIGEST];

	errno = EINVAL;
	if (!decode(text, wanted))
		return false;
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool ok = digest_of(ctx, fd, found);
	int why = errno;
	EVP_MD_CTX_free(ctx);
	errno = ok ? 0 : why;
	return ok && CRYPTO_memcmp(wanted, found, DIGEST) == 0;
}
