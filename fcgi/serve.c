/*
 * One request on one worker: gate, libfcgi, ingress, dispatch, drain, end. Trusts no byte before the gate has
 * seen the whole parameter set. Never leaves unread input behind on a kept connection, never waits for the
 * peer to close (libfcgi's own close does, up to 2 s a request).
 */
#include "fcgi/gate.h"
#include "fcgi/ingress.h"
#include "fcgi/pool.h"
#include "fcgi/reply.h"
#include "fcgi/streams.h"
#include "handlers/counts.h"
#include "handlers/dispatch.h"
#include "lib/ask.h"
#include "lib/chan.h"
#include "lib/die.h"
#include "lib/num.h"
#include "lib/own.h"
#include <errno.h>
#include <fcgiapp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

enum { DRAIN_MAX = 8 << 20, ASK_PATIENCE_MS = 10000, PEEKS = 7, LINGER_MS = 300 };

struct worker {
	struct pool *pool;
	struct conn *conn; /* that it serves */
	bool listens;      /* holds the listener */
	struct ask *ask;
	struct stream *stream; /* that this request has begun */
	struct gate gate;
	struct ingress ingress;
	uint8_t peek[GATE_PEEK];
};

/* It is about to wait: others shall be served meanwhile. */
static void let_go(void *ctx)
{
	struct worker *w = ctx;
	if (w->listens)
		pool_listen(w->pool);
	w->listens = false;
}

bool worker_listens(const struct worker *w)
{
	return w->listens;
}

void worker_hold(struct worker *w, bool listens)
{
	w->listens = listens;
}

struct worker *worker_new(struct pool *p)
{
	struct worker *w = malloc(sizeof *w); /* not zeroed: pages that no request needs are never touched */
	if (w == NULL)
		return NULL;
	w->pool = p;
	w->listens = false;
	w->stream = NULL;
	w->ask = ask_new(p->store_path, ASK_PATIENCE_MS);
	if (w->ask == NULL) {
		free(w);
		return NULL;
	}
	ask_on_wait(w->ask, let_go, w);
	return w;
}

void worker_free(struct worker *w)
{
	if (w == NULL)
		return;
	ask_free(w->ask);
	free(w);
}

/* Writing may have to wait for the peer: no longer than this at a time. An accepted socket does not inherit it from the
 * listener, and the most answers are too small to need it. */
static void write_bounded(void *ctx)
{
	struct worker *w = ctx;
	const struct timeval patience = {.tv_sec = POOL_IO_SECONDS};
	let_go(w);
	if (!w->conn->bounded)
		setsockopt(w->conn->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	w->conn->bounded = true;
}

struct body_ctx {
	FCGX_Stream *in;
	struct worker *worker;
};

static long read_body(void *ctx, void *p, size_t n)
{
	struct body_ctx *b = ctx;
	if (!b->worker->gate.complete)
		let_go(b->worker);
	int got = FCGX_GetStr(p, (int)n, b->in);
	if (got > 0)
		return got;
	int e = FCGX_GetError(b->in);
	if (e == 0)
		return 0;
	return e == EAGAIN || e == EWOULDBLOCK || atomic_load(&b->worker->conn->overdue) != 0 ? BODY_LATE : BODY_BROKEN;
}

static void more_time(void *ctx, unsigned ms)
{
	const struct body_ctx *b = ctx;
	pool_more_time(b->worker->pool, b->worker->conn, ms);
}

static bool peer_of(void *ctx, uid_t *uid, pid_t *pid)
{
	const struct body_ctx *b = ctx;
	return chan_peer(b->worker->conn->fd, uid, pid);
}

/* Reads what is left of the input, as long as it keeps coming. False: there is more than is worth reading, or it
 * broke off or stood still: nginx sends no more of a body once it has passed an answer on. */
static bool drain(struct worker *w, struct conn *c, FCGX_Stream *in)
{
	char waste[16384];
	size_t total = 0;
	const struct timeval linger = {.tv_usec = LINGER_MS * 1000};
	if (!w->gate.complete) {
		let_go(w);
		setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &linger, sizeof linger);
		c->patient = false;
	}
	for (int n; (n = FCGX_GetStr(waste, sizeof waste, in)) > 0;)
		if ((total += (size_t)n) > DRAIN_MAX)
			return false;
	return FCGX_GetError(in) == 0;
}

static void refuse_role(int fd, uint16_t id)
{
	enum { END_REQUEST = 3, UNKNOWN_ROLE = 3 };
	const uint8_t end[16] = {1, END_REQUEST, (uint8_t)(id >> 8), (uint8_t)id, 0, 8, 0, 0, 0, 0, 0, 0, UNKNOWN_ROLE};
	(void)send(fd, end, sizeof end, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Takes n bytes that were seen to be there. */
static bool take(int fd, uint8_t *p, size_t n)
{
	while (n > 0) {
		ssize_t got = recv(fd, p, n, MSG_DONTWAIT);
		if (got <= 0)
			return false;
		p += got;
		n -= (size_t)got;
	}
	return true;
}

static bool hold(struct conn *c, const uint8_t *p, size_t n)
{
	uint8_t *more = realloc(c->held, c->held_n + n);
	if (more == NULL)
		return false;
	memcpy(more + c->held_n, p, n);
	c->held = more;
	c->held_n += n;
	return true;
}

/*
 * Looks until the parameters are whole, without taking a byte from the socket where they come in one piece, as
 * they nearly always do. A web server may write them in several, a few microseconds apart: hence the short
 * waits. What is still incomplete then is taken and held, and the connection goes back to where it waits.
 */
static enum gate_verdict look(struct worker *w, struct conn *c)
{
	struct timespec nap = {0, 50000};
	size_t had = c->held_n;
	if (had > 0)
		memcpy(w->peek, c->held, had);
	for (int i = 0;; i++) {
		ssize_t n = recv(c->fd, w->peek + had, sizeof w->peek - had, MSG_PEEK | MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return GATE_BAD;
		size_t fresh = n > 0 ? (size_t)n : 0;
		if (had + fresh == 0)
			return GATE_MORE; /* not begun */
		enum gate_verdict v = gate_read(&w->gate, w->peek, had + fresh);
		if (v == GATE_MORE && had + fresh == sizeof w->peek)
			return GATE_BAD;
		if (v == GATE_WHOLE && had > 0)
			return take(c->fd, w->peek + had, w->gate.used - had) ? v : GATE_BAD;
		if (v != GATE_MORE)
			return v;
		if (i == PEEKS)
			return take(c->fd, w->peek + had, fresh) && hold(c, w->peek + had, fresh) ? v : GATE_BAD;
		let_go(w);
		nanosleep(&nap, NULL);
		nap.tv_nsec *= 2;
	}
}

/* Lets libfcgi read the parameters from a file instead, since they were taken from the socket already; what
 * follows them it reads from the socket again. */
static int accept_held(struct worker *w, struct conn *c, FCGX_Request *fr)
{
	own_fd int fd = memfd_create("params", MFD_CLOEXEC);
	if (fd < 0 || !write_all(fd, w->peek, w->gate.used) || lseek(fd, 0, SEEK_SET) != 0)
		return -1;
	fr->ipcFd = fd;
	int e = FCGX_Accept_r(fr);
	if (e == 0)
		fr->ipcFd = c->fd;
	return e;
}

static void log_outcome(const struct arrival *in, const struct reply *rp)
{
	if (rp->status >= 500)
		log_warn("request %s: %s %s: %u %s", in->id, in->method, in->path, rp->status, err_code(rp->error));
}

static enum err open_stream(void *ctx, const struct stream_order *order)
{
	struct worker *w = ctx;
	return w->stream != NULL ? ERR_INTERNAL_ERROR : streams_reserve(w->pool->streams, order, &w->stream);
}

void serve_stream(struct worker *w, int fd)
{
	if (fd >= 0)
		streams_take(w->pool->streams, w->stream, fd, w->gate.id, w->gate.keep);
	else
		streams_cancel(w->pool->streams, w->stream);
	w->stream = NULL;
}

static bool answer(struct worker *w, struct conn *c, FCGX_Request *fr)
{
	struct body_ctx body = {fr->in, w};
	struct reply_fcgi out = {.out = fr->out, .waits = write_bounded, .ctx = w};
	struct arrival in;
	struct reply rp;
	ingress_read(&w->ingress, &w->gate, &in);
	in.body = (struct body_source){read_body, &body, more_time};
	in.peer = (struct peer_source){peer_of, &body};
	in.streams = (struct stream_source){open_stream, w};
	reply_init(&rp, reply_fcgi(&out), in.id);
	/* What it sent before may not have been read yet. */
	if (c->served > 0)
		write_bounded(w);
	dispatch(w->pool->app, w->ask, &in, &rp);
	log_outcome(&in, &rp);
	counts_answered(w->pool->app->counts, &rp);
	/* An answer that is no stream's beginning leaves no place taken. */
	if (w->stream != NULL && (rp.failed || rp.status != 200))
		serve_stream(w, -1);
	/* The answer goes out before what is left of the body is thrown away: a peer that still writes can read it.
	 * Where the connection ends it goes together with END_REQUEST, in one write. */
	return !rp.failed && (!w->gate.keep || FCGX_FFlush(fr->out) == 0);
}

/* END_REQUEST; an answer that broke off must not look whole and gets none. */
static bool end(FCGX_Request *fr, bool whole)
{
	if (!whole && fr->out->FCGI_errno != 0)
		return false;
	return FCGX_FClose(fr->err) == 0 && FCGX_FClose(fr->out) == 0;
}

/* The head and the first line are out: who goes on needs nothing of libfcgi, nor any byte that the peer sent for it. */
static enum serve_end hand_over(struct worker *w, struct conn *c, FCGX_Request *fr)
{
	bool clean = drain(w, c, fr->in);
	fr->ipcFd = -1;
	FCGX_Free(fr, 0);
	if (clean)
		return SERVE_STREAM;
	serve_stream(w, -1);
	return SERVE_CLOSE;
}

enum serve_end serve(struct worker *w, struct conn *c)
{
	w->conn = c;
	switch (look(w, c)) {
	case GATE_MORE:
		return SERVE_MORE;
	case GATE_BAD:
		return SERVE_CLOSE;
	case GATE_ROLE:
		refuse_role(c->fd, w->gate.id);
		return SERVE_CLOSE;
	case GATE_WHOLE:
		break;
	}
	if (!w->gate.complete && !c->patient) {
		const struct timeval patience = {.tv_sec = POOL_IO_SECONDS};
		setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
		c->patient = true;
	}
	FCGX_Request fr;
	/* Descriptor 0 is /dev/null: should libfcgi ever want to accept by itself, it fails at once. */
	if (FCGX_InitRequest(&fr, 0, FCGI_FAIL_ACCEPT_ON_INTR) != 0)
		return SERVE_CLOSE;
	fr.ipcFd = c->fd;
	fr.keepConnection = 1;
	if ((c->held_n > 0 ? accept_held(w, c, &fr) : FCGX_Accept_r(&fr)) != 0) {
		FCGX_Free(&fr, 0);
		return SERVE_CLOSE;
	}
	bool whole = answer(w, c, &fr);
	if (w->stream != NULL)
		return hand_over(w, c, &fr);
	/* A connection that stays must be empty before its peer may use it again; one that ends is drained only so that
	 * a peer that still writes can read the answer. */
	bool clean = w->gate.keep && drain(w, c, fr.in);
	bool ended = end(&fr, whole);
	if (!w->gate.keep)
		(void)drain(w, c, fr.in);
	FCGX_Free(&fr, 0);
	if (!whole || !clean || !ended || atomic_load(&c->overdue) != 0)
		return SERVE_CLOSE;
	return SERVE_KEEP;
}
