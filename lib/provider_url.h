/*
 * Where a provider may be. The operator says it, and says it wrong at times: one set of rules for the gateway, which
 * sends keys there, and for whoever looks at the configuration before.
 */
#ifndef LIB_PROVIDER_URL_H
#define LIB_PROVIDER_URL_H
#include <stdbool.h>

/*
 * https, a host (a name, an IPv4 address, an IPv6 address in brackets), perhaps a port, a plain path; no user name, no
 * query, no fragment, no "//", no dot segments, nothing escaped. http only to a literal loopback address, and only
 * where plain_loopback says so. NULL: it may be used. Otherwise why not, behind "base_url".
 */
const char *provider_url_fault(const char *url, bool plain_loopback);
#endif
