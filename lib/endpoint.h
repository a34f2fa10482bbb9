/*
 * Where a push may be sent to. A browser says the address, so it is a stranger's: what it may look like is decided
 * here, when it is given and again before each sending; to which machine it leads, only by the socket that was
 * connected.
 */
#ifndef LIB_ENDPOINT_H
#define LIB_ENDPOINT_H
#include <stdbool.h>
#include <stdint.h>

enum { ENDPOINT_MAX = 1024, ENDPOINT_HOST = 254 };

/*
 * https, a host name as browsers write it (lower case, two labels or more, no address of any spelling, nothing that
 * names this machine or its network), no user, no port but 443, a path, no fragment. host: its name. False: anything
 * else.
 */
bool endpoint_host(const char *endpoint, char host[ENDPOINT_HOST]);
/* Is it among them? "*" is any, "*.name" every name below that one. */
bool endpoint_allowed(const char *host, const char *const *hosts, uint32_t n);
/* Is it one that endpoint_allowed understands? */
bool endpoint_pattern(const char *pattern);
#endif
