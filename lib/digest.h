/* SHA-256, HMAC-SHA256, hexadecimal and base64url, over OpenSSL. */
#ifndef LIB_DIGEST_H
#define LIB_DIGEST_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHA256_SIZE = 32, SHA256_HEX = 65 };

/*
 * At a program's start. OpenSSL makes itself ready at its first use, and where that fails for want of memory it fails
 * for ever: every digest of a daemon that was hit there would. False with errno.
 */
bool digest_start(void);
/* False with errno, of all three. */
bool sha256(const void *p, size_t n, uint8_t out[SHA256_SIZE]);
bool sha256_fd(int fd, uint8_t out[SHA256_SIZE], uint64_t *size); /* by pread from offset 0 */
/* The same of what comes in parts. NULL or false with errno; end once, then only free. */
struct sha256_run;
struct sha256_run *sha256_begin(void);
bool sha256_add(struct sha256_run *r, const void *p, size_t n);
bool sha256_end(struct sha256_run *r, uint8_t out[SHA256_SIZE]);
void sha256_free(struct sha256_run *r);
bool hmac_sha256(const void *key, size_t keylen, const void *p, size_t n, uint8_t out[SHA256_SIZE]);
void hex(const uint8_t *p, size_t n, char *out); /* 2n + 1 bytes, lower case */
/* The n bytes that exactly len characters are, of either case. False: they are none. */
bool unhex(const char *s, size_t len, uint8_t *out, size_t n);

/* Canonical base64url without padding (RFC 4648 section 5). Encoded length, without the NUL it adds;
 * 0 if out is too small and n is not 0. */
size_t b64url_encode(const void *p, size_t n, char *out, size_t cap);
/* Refuses padding, other alphabets, white space, an impossible length and non-zero spare bits. -1 on error. */
long b64url_decode(const char *s, size_t n, uint8_t *out, size_t cap);
#endif
