/* From FastCGI parameters to an arrival: the only constructor of that stage. */
#ifndef FCGI_INGRESS_H
#define FCGI_INGRESS_H
#include "fcgi/gate.h"
#include "handlers/request.h"

enum { INGRESS_PATH = 2048, INGRESS_MOUNT = 256 };

enum uri_verdict { URI_OK, URI_MALFORMED, URI_UNKNOWN };
/*
 * A raw request target in origin form. URI_OK: path (INGRESS_PATH bytes) is canonical, *query points behind
 * the '?' or is NULL. URI_UNKNOWN: well-formed, but no path of ours is written like that. URI_MALFORMED:
 * absolute form, bad or dangerous percent-encoding, empty or dot segments, control bytes, fragment.
 */
enum uri_verdict uri_parse(const char *uri, char path[INGRESS_PATH], const char **query);

/* Room that an arrival's strings live in. */
struct ingress {
	char path[INGRESS_PATH], mount[INGRESS_MOUNT];
};
/* Fills *out from g (whose strings must outlive it), with a fresh request id. Never fails: a malformed
 * request has refused set. */
void ingress_read(struct ingress *in, const struct gate *g, struct arrival *out);
#endif
