/* See vapid.h. */
#include "push/vapid.h"
#include "lib/buf.h"
#include "lib/digest.h"
#include "lib/json.h"
#include <stdio.h>
#include <string.h>

const char *vapid_open(struct vapid *v, const struct secret *secret, const char *contact)
{
	uint8_t scalar[P256_SCALAR];
	memset(v, 0, sizeof *v);
	if (!contact_valid(contact))
		return "push_contact is neither mailto: nor https:";
	if (secret == NULL || secret->n == 0)
		return "there is no secret";
	if (b64url_decode((const char *)secret->p, secret->n, scalar, sizeof scalar) == P256_SCALAR)
		v->key = p256_private(scalar, v->point);
	wipe(scalar, sizeof scalar);
	if (v->key == NULL)
		return "the secret is no private key: 32 bytes as base64url, as \"pinfold setup\" makes it";
	(void)snprintf(v->contact, sizeof v->contact, "%s", contact);
	return NULL;
}

void vapid_close(struct vapid *v)
{
	p256_free(&v->key);
	wipe(v, sizeof *v);
}

/* Signed over exactly what stands in the header: header.claims. */
static bool sign(const struct vapid *v, const char *origin, uint64_t expires, char *out, size_t cap)
{
	static const char head[] = "{\"typ\":\"JWT\",\"alg\":\"ES256\"}";
	own_buf struct buf claims, jwt;
	struct jw w;
	char part[2 * (VAPID_ORIGIN_MAX + CONTACT_MAX)];
	uint8_t signature[P256_SIGNATURE];

	buf_init(&claims, VAPID_ORIGIN_MAX + CONTACT_MAX + 100);
	buf_init(&jwt, VAPID_HEADER_MAX);
	jw_init(&w, &claims);
	jw_open(&w, '{');
	jw_kstr(&w, "aud", origin);
	jw_kint(&w, "exp", (int64_t)expires);
	jw_kstr(&w, "sub", v->contact);
	jw_close(&w, '}');
	if (buf_failed(&claims) || b64url_encode(head, sizeof head - 1, part, sizeof part) == 0)
		return false;
	buf_addf(&jwt, "%s.", part);
	if (b64url_encode(claims.p, claims.n, part, sizeof part) == 0)
		return false;
	buf_adds(&jwt, part);
	if (buf_failed(&jwt) || !p256_sign(v->key, jwt.p, jwt.n, signature) ||
	    b64url_encode(signature, sizeof signature, part, sizeof part) == 0)
		return false;
	buf_addf(&jwt, ".%s", part);
	if (b64url_encode(v->point, sizeof v->point, part, sizeof part) == 0 || buf_cstr(&jwt) == NULL)
		return false;
	int n = snprintf(out, cap, "vapid t=%s, k=%s", buf_cstr(&jwt), part);
	return n > 0 && (size_t)n < cap;
}

const char *vapid_header(struct vapid *v, const char *origin, uint64_t now)
{
	size_t at = 0;
	if (v->key == NULL || strlen(origin) > VAPID_ORIGIN_MAX)
		return NULL;
	for (size_t i = 0; i < VAPID_ORIGINS; i++) {
		if (strcmp(v->kept[i].origin, origin) == 0) {
			at = i;
			break;
		}
		if (v->kept[i].used < v->kept[at].used)
			at = i;
	}
	v->kept[at].used = ++v->uses;
	/* A clock that was set back makes a new one as well: its end would be too far away. */
	if (strcmp(v->kept[at].origin, origin) == 0 && now >= v->kept[at].made &&
	    now + VAPID_RENEW_S <= v->kept[at].expires)
		return v->kept[at].header;
	v->kept[at].origin[0] = '\0';
	v->kept[at].made = now;
	v->kept[at].expires = now + VAPID_LIFE_S;
	if (!sign(v, origin, v->kept[at].expires, v->kept[at].header, sizeof v->kept[at].header))
		return NULL;
	(void)snprintf(v->kept[at].origin, sizeof v->kept[at].origin, "%s", origin);
	return v->kept[at].header;
}
