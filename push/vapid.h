/*
 * Who we are to a push service: VAPID (RFC 8292), a signed statement of at most some hours for one origin. The private
 * key never leaves the struct; what is sent is a signature and the public key, which browsers were told when they
 * subscribed.
 */
#ifndef PUSH_VAPID_H
#define PUSH_VAPID_H
#include "lib/contact.h"
#include "lib/endpoint.h"
#include "lib/secret.h"
#include "push/key.h"

enum { VAPID_ORIGINS = 16, VAPID_ORIGIN_MAX = 8 + ENDPOINT_HOST, VAPID_HEADER_MAX = 1400 };
enum { VAPID_LIFE_S = 12 * 3600, VAPID_RENEW_S = 3600 }; /* the RFC permits 24 hours */

struct vapid {
	struct evp_pkey_st *key; /* NULL: not to be used */
	uint8_t point[P256_POINT];
	char contact[CONTACT_MAX + 1];
	struct {
		char origin[VAPID_ORIGIN_MAX + 1], header[VAPID_HEADER_MAX];
		uint64_t made, expires, used; /* seconds since the epoch; used: a count of uses */
	} kept[VAPID_ORIGINS];
	uint64_t uses;
};

/* secret: 43 characters of base64url, 32 bytes. NULL, or why it is none (a phrase without any of it). */
const char *vapid_open(struct vapid *v, const struct secret *secret, const char *contact);
void vapid_close(struct vapid *v);
/* "vapid t=..., k=..." for this origin ("https://host"), at now (seconds since the epoch); made when there is none that
 * has an hour left. It belongs to v and stays until the next call. NULL: no memory. */
const char *vapid_header(struct vapid *v, const char *origin, uint64_t now);
#endif
