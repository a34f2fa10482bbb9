/* From FastCGI parameters to an arrival: the only constructor of that stage. */
#ifndef FCGI_INGRESS_H
#define FCGI_INGRESS_H
#include "fcgi/gate.h"
#include "handlers/request.h"

enum { INGRESS_PATH = 2048, INGRESS_MOUNT = 256, INGRESS_LIST = 1024 };

enum uri_verdict { URI_OK, URI_MALFORMED, URI_UNKNOWN, URI_ODD };
/*
 * A raw request target in origin form. URI_OK: path (INGRESS_PATH bytes) is canonical, *query points behind
 * the '?' or is NULL. URI_ODD: the same, but it holds characters that only a label may have. URI_UNKNOWN:
 * well-formed, but no path of ours is written like that. URI_MALFORMED:
 * another form, bad or dangerous percent-encoding, empty or dot segments, control bytes, no UTF-8, fragment.
 */
enum uri_verdict uri_parse(const char *uri, char path[INGRESS_PATH], const char **query);
/* The origin form of a target in absolute form, which some web servers pass as it came: what follows the host
 * (which the web server has looked at; nothing here depends on it). Anything else is returned as it is. */
const char *uri_origin(const char *uri);

/* Room that an arrival's strings live in. */
struct ingress {
	char path[INGRESS_PATH], mount[INGRESS_MOUNT];
	char list[3][INGRESS_LIST]; /* headers that came in several lines */
};
/* Fills *out from g (whose strings must outlive it), with a fresh request id. Never fails: a malformed
 * request has refused set. */
void ingress_read(struct ingress *in, const struct gate *g, struct arrival *out);
#endif
