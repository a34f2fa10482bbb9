/*
 * Where a request comes from, as the web server saw it, and who has presented wrong credentials lately. Nothing rests
 * on an address being true but how often its wrong credentials are looked at.
 */
#ifndef HANDLERS_SOURCE_H
#define HANDLERS_SOURCE_H
#include <stdbool.h>
#include <stdint.h>

enum { SOURCE_KEY = 16, SOURCE_TEXT = 64, SOURCE_FAILURES = 60 /* a minute, where nothing is set */ };

/* What counts as one caller: an IPv4 address, the /64 of an IPv6 address, and together whatever is no address (NULL).
 */
void source_key(const char *address, uint8_t out[SOURCE_KEY]);
/* The same to be read: "192.0.2.1", "2001:db8::/64", or "an unknown address". */
void source_text(const char *address, char out[SOURCE_TEXT]);

struct sources;
struct source_verdict {
	bool over;        /* refuse without saying what was wrong, for so long */
	bool first;       /* the first of this burst that is refused so */
	unsigned seconds; /* 1 to 60 */
};
/* A table of fixed size, shared by threads. per_minute 0: SOURCE_FAILURES. NULL: no memory. */
struct sources *sources_new(uint32_t per_minute);
/* Another one from now on. */
void sources_most(struct sources *s, uint32_t per_minute);
/*
 * A credential was presented and is wrong. A minute begins with the first; behind per_minute of them all are over until
 * it ends. What is right is never asked here: it neither counts nor lets anything be forgotten. s may be NULL: nothing
 * is counted. now: timer_ms().
 */
struct source_verdict sources_failed(struct sources *s, const char *address, uint64_t now);
#endif
