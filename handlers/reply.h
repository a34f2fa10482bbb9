/*
 * What a handler answers, without knowing how it is carried: FastCGI (fcgi/reply.c, the only writer of
 * HTTP) or a test's buffer. One head, then the body; the first failure to write is latched.
 */
#ifndef HANDLERS_REPLY_H
#define HANDLERS_REPLY_H
#include "gen/errors.h"
#include "lib/buf.h"
#include "lib/json.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reply_head {
	unsigned status;
	const char *type;     /* content type */
	const char *location; /* NULL or a path of ours */
	const char *allow;    /* NULL or the methods */
	const char *filename; /* NULL, or sent as an attachment of this name */
	const char *etag;     /* NULL, or hexadecimal text */
	const char *cookie;   /* NULL, or what to set: it holds a secret */
	const char *request_id;
	unsigned retry_after; /* seconds; 0: none */
	bool unbuffered;      /* whoever passes it on shall not wait for more of it */
	int64_t length;       /* -1: not known beforehand */
};

struct reply_out {
	bool (*head)(void *ctx, const struct reply_head *head);
	bool (*body)(void *ctx, const void *p, size_t n);
	void *ctx;
	bool (*flush)(void *ctx); /* what was written leaves now; NULL: there is nothing that holds it */
};

struct reply {
	struct reply_out out;
	/* Not NULL: who asks is only guessed. Called once, before anything is said; false: it has said something else.
	 */
	bool (*prove)(void *ctx, struct reply *rp);
	void *prove_ctx;
	bool replaced; /* by what prove said */
	const char *request_id;
	unsigned status; /* 0: nothing was sent yet */
	enum err error;
	const struct route *route; /* NULL: no row of the API fits */
	bool failed;               /* the peer is gone */
	bool lacked;               /* an answer could not be composed; error says why */
};

void reply_init(struct reply *rp, struct reply_out out, const char *request_id);
/* Sends the head; at most once. request_id is filled in here. */
void reply_head(struct reply *rp, struct reply_head head);
void reply_body(struct reply *rp, const void *p, size_t n);
/* What was written so far leaves now, not when there is more of it. */
void reply_flush(struct reply *rp);
/* A whole JSON answer. A buf that failed becomes the error that its errno is told as. */
void reply_json(struct reply *rp, unsigned status, struct buf *json);
/* The same with Retry-After, for answers that say "later". */
void reply_json_retry(struct reply *rp, unsigned status, struct buf *json);
/* A whole JSON answer with a Location, or with an ETag (either may be NULL). */
void reply_json_cookie(struct reply *rp, unsigned status, const char *cookie, struct buf *json);
void reply_json_at(struct reply *rp, unsigned status, const char *location, const char *etag, struct buf *json);
/* The same with a strong ETag of it: 304 without it where if_none_match (may be NULL) names that. */
void reply_json_tagged(struct reply *rp, const char *if_none_match, struct buf *json);
/* Memory for what an operation that does something is answered with, up to json's cap, taken before it: afterwards it
 * must not fail for want of memory, or what was done would be told as not done. False: answered with that, and nothing
 * may be done. */
bool reply_ready(struct reply *rp, struct buf *json);
/* The error's status and sentence; field may be NULL or "". say, if not NULL, replaces the sentence. */
void reply_error(struct reply *rp, enum err e, const char *field, const char *say);
/* The same with further members behind the usual ones, which more writes. */
void reply_error_with(struct reply *rp, enum err e, void (*more)(struct jw *w, const void *with), const void *with);
/* The same, with the seconds to wait. */
void reply_error_after(struct reply *rp, enum err e, unsigned seconds);
void reply_not_allowed(struct reply *rp, const char *allow);
/* The store's refusal, with the field it named. */
struct ask;
void reply_store_error(struct reply *rp, enum err e, struct ask *a);
#endif
