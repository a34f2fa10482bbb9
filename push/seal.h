/*
 * What a browser alone can open: RFC 8291 (message encryption for Web Push), which is RFC 8188's aes128gcm with keys
 * from ECDH. One record. Whatever is in it, it has the same length.
 */
#ifndef PUSH_SEAL_H
#define PUSH_SEAL_H
#include "push/key.h"

enum {
	SEAL_AUTH = 16,
	SEAL_SALT = 16,
	SEAL_RECORD_SIZE = 4096, /* of RFC 8188's header: more than the one record has */
	SEAL_HEADER = SEAL_SALT + 4 + 1 + P256_POINT,
	SEAL_TAG = 16,
	SEAL_PADDED = 1024, /* text, its delimiter and padding */
	SEAL_TEXT_MAX = SEAL_PADDED - 1,
	SEAL_BODY = SEAL_HEADER + SEAL_PADDED + SEAL_TAG
};
_Static_assert(SEAL_BODY <= 4096, "push services refuse more (RFC 8030 section 7.2)");

/* The browser's side: its key and what it gave to prove that we are whom it subscribed to. */
struct seal_to {
	uint8_t point[P256_POINT], auth[SEAL_AUTH];
};

/* Makes a key and a salt for this one message and forgets them. False: the browser's point is none of the curve, n is
 * more than SEAL_TEXT_MAX, or no memory. */
bool seal(const struct seal_to *to, const void *text, size_t n, uint8_t out[SEAL_BODY]);

/* The parts, for tests with the RFC's own numbers. */
struct seal_keys {
	uint8_t key[16], nonce[12];
};
bool seal_derive(struct evp_pkey_st *mine, const uint8_t my_point[P256_POINT], const struct seal_to *to,
		 const uint8_t salt[SEAL_SALT], struct seal_keys *out);
/* The record behind the header: padded is how long text, delimiter and padding are together. out has SEAL_HEADER +
 * padded
 * + SEAL_TAG bytes. */
bool seal_write(const struct seal_keys *keys, const uint8_t my_point[P256_POINT], const uint8_t salt[SEAL_SALT],
		const void *text, size_t n, size_t padded, uint8_t *out);
#endif
