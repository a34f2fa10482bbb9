/*
 * A reader of a stream of server-sent events, whatever pieces it comes in: lines that end with CR, LF or CR LF,
 * comments, fields, and the rules of ids, as the HTML standard has them. It trusts nothing: a line and an event are
 * bounded, and what is cut off at the end of a stream is none.
 */
#ifndef CLI_SSE_H
#define CLI_SSE_H
#include <stdbool.h>
#include <stddef.h>

#include "lib/buf.h"

enum { SSE_EVENT_MAX = 1 << 20, SSE_ID_MAX = 64, SSE_TYPE_MAX = 64 };

struct sse_event {
	const char *type; /* "message" where none was given */
	const char *data; /* lines joined by \n, with a NUL behind */
	size_t n;
	const char *id; /* the last one that was given, in this event or before; "" if none */
};

struct sse {
	struct buf line, data;
	char type[SSE_TYPE_MAX + 1], id[SSE_ID_MAX + 1], next_id[SSE_ID_MAX + 1];
	unsigned retry;     /* milliseconds that the server asks to wait before the next try; 0: it has not said */
	bool begun, any;    /* past a mark of byte order; the event has a data field */
	bool after_cr;      /* a LF that comes now ends no line */
	bool type_too_long; /* such an event is told as "message" */
	bool failed;        /* too long, or no memory: nothing more is read */
};

/* At the start of each connection; what was said of id and retry before stays, as a reconnection needs it. */
void sse_begin(struct sse *s);
void sse_free(struct sse *s);
/* Calls take for each whole event. False: a line or an event is longer than SSE_EVENT_MAX, or there is no memory; then
 * nothing more is taken from this connection. */
bool sse_feed(struct sse *s, const void *bytes, size_t n, void (*take)(void *user, const struct sse_event *e),
	      void *user);
#endif
