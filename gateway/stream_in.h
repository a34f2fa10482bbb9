/*
 * A provider's event stream as it comes in, checked and written again, without input or output: bytes in, whole events
 * out. What goes on is never the provider's bytes: each event's data is parsed strictly and serialised anew, comments
 * and whatever else a stream may say is left out. The stream has ended only with its format's own last event, which is
 * held back, so that it is passed on when everything else about the call is settled; any other end is none.
 */
#ifndef GATEWAY_STREAM_IN_H
#define GATEWAY_STREAM_IN_H
#include "gateway/format.h"
#include "gateway/stream_watch.h"
#include "lib/buf.h"
#include "lib/secret.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	STREAM_EVENT_MAX = 1000000, /* bytes of one event */
	STREAM_NAME_MAX = 64,
	STREAM_EVENTS_MAX = 500000,
	STREAM_HELD_MAX = 65536 /* bytes of events that wait for whether the key goes on */
};

enum stream_fault {
	STREAM_FINE,
	STREAM_LACK,      /* no memory; nothing is wrong with the stream */
	STREAM_TOO_LARGE, /* more bytes or events than may be */
	STREAM_BROKEN,    /* no strict JSON, a wrong name, or something behind the end */
	STREAM_ERROR,     /* it says itself that it failed */
	STREAM_KEY,       /* it says the provider's key, in one event or by and by */
	STREAM_SPENT      /* it says more than was reserved for it */
};

struct stream_in {
	const struct format *format;
	const struct secret *key; /* NULL: there is none */
	size_t left;              /* bytes that may still come */
	uint32_t events;
	struct buf line, data; /* of the event that is under way */
	char name[STREAM_NAME_MAX];
	bool has_data, after_cr, finished /* chat: somebody's finish_reason was there */;
	bool ended;
	enum stream_fault fault;
	uint64_t prompt_tokens,
	    completion_tokens; /* as far as they were told; by STREAM_SPENT, at least what was said */
	uint64_t tokens_most;  /* of both; 0: there is no limit. The owner's to set. */
	struct stream_watch watch;
	struct buf held; /* events that are good, but for what may come */
	struct buf end;  /* the last event, held back */
};

/* At most `most` bytes are taken. The format must have ends. */
void stream_in_init(struct stream_in *s, const struct format *f, const struct secret *key, size_t most);
void stream_in_free(struct stream_in *s);
/* Appends the events that are whole now to out, but for the last one of all, and for those behind what may be the
 * beginning of the key. False: s->fault, and nothing that comes
 * is looked at any more; what was appended before is good. */
bool stream_in_take(struct stream_in *s, const void *p, size_t n, struct buf *out);
#endif
