/*
 * A whole answer as the event stream that its format's clients expect (model_stream = buffered), without input or
 * output. Each thing that an answer holds is in one event: what a client puts together from them is the answer.
 */
#ifndef GATEWAY_STREAM_OUT_H
#define GATEWAY_STREAM_OUT_H
#include "gateway/format.h"
#include "lib/buf.h"
#include "lib/json.h"
#include <stdbool.h>
#include <stddef.h>

enum { STREAM_OUT_MAX = 12000000 }; /* bytes: a text of responses is said five times */

/* Appends all events, the last one as well. usage: a chat's client wants to know what it cost. ERR_OK, what lacks
 * (lib/lack.h), or ERR_INVALID_MODEL_RESPONSE: it is no whole answer of its format, and what was appended is none. */
enum err stream_out(const struct format *f, const struct json *answer, bool usage, struct buf *out);

/*
 * What a client that waits for a stream, and has been told that there is one, is told of an error: the format's own
 * event for it. reply is the error as JSON, as it would be told otherwise. stop: asking again helps nobody. The
 * connection is to be broken off behind it.
 */
void stream_out_error(const struct format *f, const struct buf *reply, bool stop, unsigned retry_after,
		      const char *request_id, struct buf *out);

/* The rest is for the files of the formats. */
struct frames {
	const struct json *answer;
	bool usage;
	struct buf *out;
	struct jw w;
	int64_t sequence; /* of the next event; below 0: they have no numbers */
};
/* Instead of a member's own value; raw is JSON. The last one has no key. */
struct frame_swap {
	const char *key, *raw;
};

/* name is also the "type" (NULL: it has none). */
void frame_open(struct frames *fr, const char *name);
void frame_close(struct frames *fr);
/* The members of an object, or the whole of it, with other values where swaps has them: no member, where raw is NULL.
 */
void frame_members(struct frames *fr, const struct json *object, const struct frame_swap *swaps);
void frame_object(struct frames *fr, const struct json *object, const struct frame_swap *swaps);
void frame_value(struct frames *fr, const char *key, const struct json *v);
/* A member that is a string (an object, a list), or NULL. */
const struct json *member_of(const struct json *object, const char *key, enum json_type type);
bool member_is(const struct json *object, const char *key, const char *text);

/* False: it is no whole answer. */
bool stream_out_chat(struct frames *fr);
bool stream_out_responses(struct frames *fr);
bool stream_out_messages(struct frames *fr);
#endif
