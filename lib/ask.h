/*
 * One caller's connection to stored (or to sandboxd's kind of answerer): a question, its answer,
 * matched by operation id. Not shared between threads. Reconnects by itself; a call that could not
 * be sent is retried for at most 10 s in all, then ERR_STORE_UNAVAILABLE.
 * A question that was sent but whose answer was lost is asked again under the same operation id, also by
 * another connection: stored knows the caller by its client number (HELLO) and does nothing twice.
 */
#ifndef LIB_ASK_H
#define LIB_ASK_H
#include "gen/errors.h"
#include "lib/wire.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ASK_BUFFER = 200000 };

struct ask;

struct ask_answer {
	const uint8_t *frame; /* inside the ask's buffer: valid until the next call */
	size_t len;
	int fds[WIRE_MAX_FDS];
	int nfds;
};

/* path is copied. Does not connect yet. patience_ms: how long one call may take, retries included. */
struct ask *ask_new(const char *path, unsigned patience_ms);
void ask_free(struct ask *a);
/* Called, possibly several times, before a call waits for the other side. */
void ask_on_wait(struct ask *a, void (*waits)(void *ctx), void *ctx);
/* Used by generated stubs. */
uint8_t *ask_buffer(struct ask *a);
uint64_t ask_op(struct ask *a);
/* Sends the n bytes in the buffer. ERR_OK: an answer that is not FAIL, with want_fds descriptors.
 * A FAIL answer gives its code; its field and detail stay readable by ask_field and ask_detail. */
enum err ask_call(struct ask *a, size_t n, const int *fds, int nfds, int want_fds, struct ask_answer *answer);
/* The next question is the last one once more, which got no answer: under its operation id. Nothing else may have been
 * asked on this connection in between. */
void ask_repeat(struct ask *a);
void ask_close_fds(struct ask_answer *answer);
/* The answer made no sense: closes its descriptors and the connection. */
void ask_drop(struct ask *a, struct ask_answer *answer);
const char *ask_field(const struct ask *a);
const char *ask_detail(const struct ask *a);
/* Of the same: seconds after which it would not be refused for this any more; 0: not known. */
uint32_t ask_retry_after(const struct ask *a);
/* The connected descriptor, for a subscriber's poll; -1 when not connected. */
int ask_fd(const struct ask *a);
/* Waits for a packet that the other side sends by itself (WOKEN). 1 got one, 0 timeout, -1 connection lost. */
int ask_wait(struct ask *a, int timeout_ms, struct ask_answer *answer);
#endif
