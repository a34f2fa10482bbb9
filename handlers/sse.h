/* The frames of an event stream (text/event-stream). */
#ifndef HANDLERS_SSE_H
#define HANDLERS_SSE_H
#include "gen/store_msg.h"
#include "lib/buf.h"

/* What every stream begins with: how long a client waits before it comes back. */
#define SSE_START "retry: 2000\n\n"
/* Says nothing; a client ignores it. */
#define SSE_HEARTBEAT ": heartbeat\n\n"

/* Adds an event's frame: id, event and data, whatever the texts hold. line is room of the caller's, used again for
 * each. False: no memory, or the event is none. */
bool sse_event(struct buf *b, struct buf *line, const char *run, const struct st_event *ev);
/* Adds a field of n bytes of text; where that has an end of line, a further field of the name goes on behind it. */
void sse_field(struct buf *b, const char *name, const void *text, size_t n);
#endif
