/* Digests and their spellings. A failure of OpenSSL is reported, never ignored. */
#include "lib/digest.h"
#include "lib/num.h"
#include <errno.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <unistd.h>

/* The one reason that OpenSSL has for failing at any of this. */
static bool no_memory(void)
{
	errno = ENOMEM;
	return false;
}

bool sha256(const void *p, size_t n, uint8_t out[SHA256_SIZE])
{
	unsigned len = 0;
	if (EVP_Digest(p, n, out, &len, EVP_sha256(), NULL) == 1 && len == SHA256_SIZE)
		return true;
	return no_memory();
}

static bool digest_fd(EVP_MD_CTX *ctx, int fd, uint64_t *size)
{
	uint8_t block[65536];
	*size = 0;
	for (;;) {
		ssize_t got = pread(fd, block, sizeof block, (off_t)*size);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got == 0;
		if (EVP_DigestUpdate(ctx, block, (size_t)got) != 1)
			return no_memory();
		*size += (uint64_t)got;
	}
}

bool sha256_fd(int fd, uint8_t out[SHA256_SIZE], uint64_t *size)
{
	uint64_t read_size;
	unsigned len = 0;
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool ok = (ctx != NULL && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1) || no_memory();
	ok = ok && digest_fd(ctx, fd, &read_size);
	ok = ok && ((EVP_DigestFinal_ex(ctx, out, &len) == 1 && len == SHA256_SIZE) || no_memory());
	int why = errno;
	EVP_MD_CTX_free(ctx);
	errno = why;
	if (ok && size != NULL)
		*size = read_size;
	return ok;
}

/* The struct itself is never there: it is OpenSSL's. */
struct sha256_run *sha256_begin(void)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	if (ctx != NULL && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1)
		return (struct sha256_run *)ctx;
	EVP_MD_CTX_free(ctx);
	(void)no_memory();
	return NULL;
}

bool sha256_add(struct sha256_run *r, const void *p, size_t n)
{
	return EVP_DigestUpdate((EVP_MD_CTX *)r, p, n) == 1 || no_memory();
}

bool sha256_end(struct sha256_run *r, uint8_t out[SHA256_SIZE])
{
	unsigned len = 0;
	return (EVP_DigestFinal_ex((EVP_MD_CTX *)r, out, &len) == 1 && len == SHA256_SIZE) || no_memory();
}

void sha256_free(struct sha256_run *r)
{
	EVP_MD_CTX_free((EVP_MD_CTX *)r);
}

bool hmac_sha256(const void *key, size_t keylen, const void *p, size_t n, uint8_t out[SHA256_SIZE])
{
	unsigned len = 0;
	if (keylen > INT32_MAX)
		return false;
	return (HMAC(EVP_sha256(), key, (int)keylen, p, n, out, &len) != NULL && len == SHA256_SIZE) || no_memory();
}

bool digest_start(void)
{
	uint8_t sum[SHA256_SIZE];
	return sha256("", 0, sum) && hmac_sha256("", 0, "", 0, sum);
}

void hex(const uint8_t *p, size_t n, char *out)
{
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < n; i++) {
		*out++ = digits[p[i] >> 4];
		*out++ = digits[p[i] & 15];
	}
	*out = 0;
}

bool unhex(const char *s, size_t len, uint8_t *out, size_t n)
{
	if (len != 2 * n)
		return false;
	for (size_t i = 0; i < n; i++) {
		int high = num_hex(s[2 * i]), low = num_hex(s[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		out[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

size_t b64url_encode(const void *p, size_t n, char *out, size_t cap)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	const uint8_t *s = p;
	if (n > SIZE_MAX / 2 || cap == 0)
		return 0;
	size_t need = n / 3 * 4 + (n % 3 == 0 ? 0 : n % 3 + 1);
	if (need >= cap) {
		out[0] = 0;
		return 0;
	}
	uint32_t bits = 0;
	unsigned have = 0;
	size_t at = 0;
	for (size_t i = 0; i < n; i++) {
		bits = (bits << 8 | s[i]) & 0xffffffu;
		have += 8;
		while (have >= 6) {
			have -= 6;
			out[at++] = alphabet[bits >> have & 63];
		}
	}
	if (have > 0)
		out[at++] = alphabet[bits << (6 - have) & 63];
	out[at] = 0;
	return at;
}

static int sextet(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '-' ? 62 : c == '_' ? 63 : -1;
}

long b64url_decode(const char *s, size_t n, uint8_t *out, size_t cap)
{
	size_t need = n / 4 * 3 + (n % 4 == 0 ? 0 : n % 4 - 1);
	if (n % 4 == 1 || need > cap || need > INT32_MAX)
		return -1;
	uint32_t bits = 0;
	unsigned have = 0;
	size_t at = 0;
	for (size_t i = 0; i < n; i++) {
		int v = sextet(s[i]);
		if (v < 0)
			return -1;
		bits = (bits << 6 | (uint32_t)v) & 0xffffffu;
		have += 6;
		if (have >= 8) {
			have -= 8;
			out[at++] = (uint8_t)(bits >> have);
		}
	}
	/* Spare bits that are not zero would be a second spelling of the same bytes. */
	return (bits & ((1u << have) - 1)) == 0 ? (long)at : -1;
}
