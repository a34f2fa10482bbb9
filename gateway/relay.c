/*
 * A stream from a provider to a box: what was checked waits in a buffer until the box's connection takes it. When too
 * much waits, the provider's side is paused. The end that the box sees is the stream's own, and only after the call was
 * written down and its run may still have it; everything else breaks the connection off in the middle of a chunked
 * body.
 */
#include "gateway/gateway.h"
#include "gateway/stream_out.h"
#include "lib/die.h"
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

enum {
	PIECE = 1024, /* libmicrohttpd's buffer for answers of HTTP/1.0; a chunk has what is free of its connection's */
	HIGH = 262144, /* bytes that wait, from which on the provider waits */
	LOW = 65536
};

bool relay_new(struct gate_call *call)
{
	struct relay *r = calloc(1, sizeof *r);

	if (!r)
		return false;
	stream_in_init(&r->in, call->format, call->target->key, call->terms->model_stream_bytes);
	/* Written anew it may be a little longer; or it is an answer that came whole. */
	buf_init(&r->out, 2 * (size_t)call->terms->model_stream_bytes + STREAM_OUT_MAX);
	buf_init(&r->last, STREAM_OUT_MAX);
	call->relay = r;
	r->in.tokens_most = call->reserved;
	beat_begin(call);
	return true;
}

void relay_free(struct gate_call *call)
{
	struct relay *r = call->relay;

	if (!r)
		return;
	beat_end(r);
	stream_in_free(&r->in);
	buf_free(&r->out);
	buf_free(&r->last);
	free(r);
	call->relay = NULL;
}

/* The box may have what is there. */
static void send_on(struct gate_call *call, unsigned status)
{
	struct relay *r = call->relay;

	r->said = timer_ms();
	if (!r->begun) {
		r->begun = true;
		call->status = status;
		call_event(call, CALL_EV_FIRST);
	} else if (call->connection)
		http_resume(call);
}

void relay_say(struct gate_call *call, const char *text)
{
	buf_adds(&call->relay->out, text);
	send_on(call, 200);
}

bool relay_take(struct gate_call *call, const void *p, size_t n)
{
	struct relay *r = call->relay;
	bool good = stream_in_take(&r->in, p, n, &r->out);

	r->paused = good && r->out.n - r->sent > HIGH;
	if (r->out.n > r->sent) {
		r->streams = true;
		send_on(call, call->answer.status);
	}
	return good;
}

void relay_end(struct gate_call *call)
{
	struct relay *r = call->relay;

	if (!r || !r->begun)
		return;
	if (r->clean)
		buf_add(&r->out, r->in.end.p, r->in.end.n);
	buf_add(&r->out, r->last.p, r->last.n);
	r->clean = r->clean && !buf_failed(&r->out);
	r->over = true;
}

static ssize_t on_write(void *arg, uint64_t at, char *to, size_t most)
{
	struct gate_call *call = arg;
	struct relay *r = call->relay;
	size_t n = r->out.n - r->sent;

	(void)at;
	if (r->over && !r->clean && (n == 0 || r->drop))
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (n == 0 && r->over)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (n == 0) {
		http_suspend(call);
		return 0;
	}
	n = n < most ? n : most;
	memcpy(to, r->out.p + r->sent, n);
	r->sent += n;
	/* Of a reader that is slow all the time, too, only what waits is kept. */
	if (r->sent == r->out.n || r->sent > HIGH) {
		r->out.n -= r->sent;
		memmove(r->out.p, r->out.p + r->sent, r->out.n);
		r->sent = 0;
	}
	if (r->paused && r->out.n - r->sent < LOW) {
		r->paused = false;
		upstream_resume(call);
	}
	return (ssize_t)n;
}

bool relay_reply(struct gate_call *call)
{
	struct MHD_Response *r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, PIECE, on_write, call, NULL);

	if (!r)
		return false;
	MHD_add_response_header(r, "Content-Type", "text/event-stream");
	MHD_add_response_header(r, "Cache-Control", "no-store");
	MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(r, "X-Request-Id", call->request_id);
	bool sent = MHD_queue_response(call->connection, call->status, r) == MHD_YES;
	MHD_destroy_response(r);
	return sent;
}
