/*
 * Keys on the curve P-256, of Web Push: those of browsers, the fresh one of each message, and the service's own. Over
 * OpenSSL, which is included by key.c and seal.c alone.
 */
#ifndef PUSH_KEY_H
#define PUSH_KEY_H
#include "lib/p256.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { P256_SCALAR = 32, P256_SIGNATURE = 64 };

struct evp_pkey_st; /* OpenSSL's EVP_PKEY */

/* Of a point as it travels (0x04, x, y). NULL: not a point of the curve, or no memory. */
struct evp_pkey_st *p256_public(const uint8_t point[P256_POINT]);
/* Of a private scalar, big-endian; its point is computed. NULL: 0 or beyond the curve's order, or no memory. */
struct evp_pkey_st *p256_private(const uint8_t scalar[P256_SCALAR], uint8_t point[P256_POINT]);
/* A new one. NULL: no memory. */
struct evp_pkey_st *p256_fresh(uint8_t point[P256_POINT]);
/* Wipes what is private of it. NULL is nothing. */
void p256_free(struct evp_pkey_st **key);
#define own_p256 __attribute__((cleanup(p256_free)))
/* What both sides know (ECDH). The caller wipes it. */
bool p256_agree(struct evp_pkey_st *mine, struct evp_pkey_st *theirs, uint8_t out[P256_SCALAR]);
/* ES256 as JWT has it: r and s side by side (RFC 7518 section 3.4). */
bool p256_sign(struct evp_pkey_st *key, const void *p, size_t n, uint8_t out[P256_SIGNATURE]);
#endif
