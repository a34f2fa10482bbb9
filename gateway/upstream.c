/*
 * The way out: HTTP calls to providers through libcurl, all of them by the loop and over one pool of connections.
 * The address and the key are the operator's; the caller brings only the rebuilt body. TLS is verified,
 * redirects are not followed, proxies and environment are not looked at, nothing is repeated, nothing is
 * decoded, and what comes back is counted while it is read. The provider's headers end here.
 */
#include "gateway/upstream_way.h"
#include "gen/limits.h"
#include "lib/die.h"
#include "lib/lack.h"
#include "lib/own.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	BODY_CAP = LIMIT_MODEL_RESPONSE_BYTES,
	HEAD_CAP = 65536,
	CONNECT_MS = 10000,
	IDLE_SECONDS = 30,
	BUFFER = 16384,   /* of a call, for what is sent; libcurl takes no smaller one */
	BUFFER_IN = 4096, /* for what comes: most of it is a few events */
	KEPT_MOST = 512,  /* idle connections */
	HOST_MOST = 2048, /* connections of one provider */
	WAIT_MAX = 86400, /* seconds that a provider may ask for */
	HANDLES = 256,    /* that are kept for the next calls */
	STIR_MS = 500     /* how long a call of HTTP/2 may not know what became of it */
};

struct upstream {
	struct app *app;
	CURLM *multi;
	CURLSH *share; /* TLS sessions */
	CURL *handles[HANDLES];
	unsigned nhandles;
	uint64_t deadline; /* timer_ms at which libcurl wants to be called; 0: none */
	uint64_t stir;     /* timer_ms of the next time; 0: no connection is shared */
	int kept[KEPT_MOST];
	unsigned nkept;
	struct transfer *first;
};

/* One call's way out. */
struct transfer {
	struct upstream *up;
	struct gate_call *call;
	CURL *handle;
	struct curl_slist *headers;
	size_t sent, head;
	uint64_t began;
	bool too_large, streams, shared /* its connection may be, by HTTP/2 */;
	struct transfer *next, **back; /* of those that are under way */
};

static const char JSON_TYPE[] = "application/json", EVENTS_TYPE[] = "text/event-stream";

static size_t on_read(char *to, size_t size, size_t count, void *arg)
{
	struct transfer *t = arg;
	const struct buf *request = &t->call->request.body;
	size_t left = request->n - t->sent, n = size * count < left ? size * count : left;

	if (n > 0)
		memcpy(to, request->p + t->sent, n);
	t->sent += n;
	return n;
}

/* libcurl would send a request again when a kept connection turns out dead: a provider could be asked
 * twice for one unit. It cannot without rewinding the body. */
static int on_seek(void *arg, curl_off_t offset, int origin)
{
	(void)arg;
	(void)offset;
	(void)origin;
	return CURL_SEEKFUNC_FAIL;
}

static bool typed(CURL *h, const char *want)
{
	char *type = NULL;

	return curl_easy_getinfo(h, CURLINFO_CONTENT_TYPE, &type) == CURLE_OK && type &&
	       strncasecmp(type, want, strlen(want)) == 0;
}

/* The status and how long it took, whatever came of it. */
static void note_answer(struct transfer *t)
{
	struct upstream_answer *answer = &t->call->answer;
	curl_off_t wait = 0;
	long status = 0;

	answer->duration_ms = (uint32_t)(timer_ms() - t->began);
	if (curl_easy_getinfo(t->handle, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK && status >= 100 && status <= 599)
		answer->status = (unsigned)status;
	if (curl_easy_getinfo(t->handle, CURLINFO_RETRY_AFTER, &wait) == CURLE_OK && wait > 0)
		answer->retry_after = wait < WAIT_MAX ? (unsigned)wait : WAIT_MAX;
}

/* A stream's bytes go on as they come; there are limits of its own for it from here on. */
static size_t on_stream(struct transfer *t, const char *from, size_t n)
{
	struct relay *r = t->call->relay;
	const struct terms *terms = t->call->terms;

	/* They come again once it goes on. */
	if (r->paused)
		return CURL_WRITEFUNC_PAUSE;
	if (!t->streams) {
		t->streams = true;
		(void)curl_easy_setopt(t->handle, CURLOPT_TIMEOUT_MS, 1000L * terms->model_stream_seconds);
		(void)curl_easy_setopt(t->handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
		(void)curl_easy_setopt(t->handle, CURLOPT_LOW_SPEED_TIME, (long)terms->model_idle_seconds);
		note_answer(t);
	}
	return relay_take(t->call, from, n) ? n : 0;
}

static size_t on_body(char *from, size_t size, size_t count, void *arg)
{
	struct transfer *t = arg;
	struct buf *body = &t->call->answer.body;
	long status = 0;

	if (t->call->request.stream_up && curl_easy_getinfo(t->handle, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK &&
	    status >= 200 && status < 300 && typed(t->handle, EVENTS_TYPE))
		return on_stream(t, from, size * count);
	/* Whoever answers like that is not spoken to twice over one connection. */
	if (body->n == 0 && !typed(t->handle, JSON_TYPE))
		(void)curl_easy_setopt(t->handle, CURLOPT_FORBID_REUSE, 1L);
	if (size * count > BODY_CAP - body->n) {
		t->too_large = true;
		return 0;
	}
	buf_add(body, from, size * count);
	return buf_failed(body) ? 0 : size * count;
}

static size_t on_head(char *from, size_t size, size_t count, void *arg)
{
	struct transfer *t = arg;

	(void)from;
	t->head += size * count;
	return t->head > HEAD_CAP ? 0 : size * count;
}

static void unkeep(struct upstream *up, int fd)
{
	for (unsigned i = 0; i < up->nkept; i++)
		if (up->kept[i] == fd) {
			up->kept[i] = up->kept[--up->nkept];
			return;
		}
}

static int on_close(void *arg, curl_socket_t fd)
{
	unkeep(arg, fd);
	return close(fd);
}

/* Bytes that nobody asked for, or the end: an answer read from such a connection could be another call's. libcurl finds
 * it at its end. */
static void drop_spoilt(struct upstream *up)
{
	struct pollfd p[KEPT_MOST];
	char trash[4096];

	for (unsigned i = 0; i < up->nkept; i++)
		p[i] = (struct pollfd){.fd = up->kept[i], .events = POLLIN | POLLRDHUP};
	unsigned n = up->nkept;
	if (n == 0 || poll(p, n, 0) <= 0)
		return;
	for (unsigned i = 0; i < n; i++) {
		if (p[i].revents == 0)
			continue;
		unkeep(up, p[i].fd);
		shutdown(p[i].fd, SHUT_RDWR);
		while (recv(p[i].fd, trash, sizeof trash, MSG_DONTWAIT) > 0)
			;
	}
}

static bool set_up(struct transfer *t)
{
	const struct upstream_target *target = t->call->target;
	const struct format *f = t->call->format;
	const char *url = target->url[t->call->request.stream_up ? f->id : f->whole];
	uint32_t timeout_ms = t->call->terms->model_timeout_ms;
	CURL *h = t->handle;
	bool plain = strncmp(url, "http:", 5) == 0;
	CURLcode c = upstream_way(h, target, url, (long)(timeout_ms < CONNECT_MS ? timeout_ms : CONNECT_MS))
			 ? CURLE_OK
			 : CURLE_OUT_OF_MEMORY;
#define SET(option, value) c = c != CURLE_OK ? c : curl_easy_setopt(h, option, value)
	/*
	 * HTTP/2 where it is offered: the handshake of a first call shows whether, and those behind it wait for that.
	 * A stream has a connection of its own: where several share one, libcurl 7.88 hears that one was reset only
	 * when another says something, and that one is left is not told the provider before that.
	 */
	t->shared = !plain && !t->call->request.stream_up;
	SET(CURLOPT_HTTP_VERSION, (long)(t->shared ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
	SET(CURLOPT_PIPEWAIT, t->shared ? 1L : 0L);
	SET(CURLOPT_SHARE, t->up->share);
	SET(CURLOPT_UPLOAD_BUFFERSIZE, (long)BUFFER);
	SET(CURLOPT_BUFFERSIZE, (long)BUFFER_IN);
	SET(CURLOPT_CLOSESOCKETFUNCTION, on_close);
	SET(CURLOPT_CLOSESOCKETDATA, t->up);
	SET(CURLOPT_PRIVATE, t);
	SET(CURLOPT_TIMEOUT_MS, (long)timeout_ms);
	SET(CURLOPT_MAXAGE_CONN, (long)IDLE_SECONDS);
	SET(CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)BODY_CAP);
	SET(CURLOPT_HTTPHEADER, t->headers);
	SET(CURLOPT_POST, 1L);
	SET(CURLOPT_POSTFIELDS, NULL);
	SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->call->request.body.n);
	SET(CURLOPT_READFUNCTION, on_read);
	SET(CURLOPT_READDATA, t);
	SET(CURLOPT_SEEKFUNCTION, on_seek);
	SET(CURLOPT_SEEKDATA, t);
	SET(CURLOPT_WRITEFUNCTION, on_body);
	SET(CURLOPT_WRITEDATA, t);
	SET(CURLOPT_HEADERFUNCTION, on_head);
	SET(CURLOPT_HEADERDATA, t);
	/* Do not wait for a name's answer once nobody wants the call's. */
	SET(CURLOPT_QUICK_EXIT, 1L);
#undef SET
	return c == CURLE_OK;
}

static enum err transfer_error(CURLcode c, const struct transfer *t)
{
	if (t->too_large)
		return ERR_MODEL_RESPONSE_TOO_LARGE;
	if (buf_failed(&t->call->answer.body))
		return lack_or(ERR_INVALID_MODEL_RESPONSE);
	switch ((int)c) {
	case CURLE_OK:
		return ERR_OK;
	case CURLE_FILESIZE_EXCEEDED:
		return ERR_MODEL_RESPONSE_TOO_LARGE;
	case CURLE_OPERATION_TIMEDOUT:
		return ERR_MODEL_TIMEOUT;
	case CURLE_OUT_OF_MEMORY:
		return ERR_RESOURCES_EXHAUSTED;
	case CURLE_PARTIAL_FILE:
	case CURLE_WRITE_ERROR:
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_UNSUPPORTED_PROTOCOL: /* HTTP/0.9: no status line */
	case CURLE_BAD_CONTENT_ENCODING:
		return ERR_INVALID_MODEL_RESPONSE;
	default:
		return ERR_MODEL_UNREACHABLE;
	}
}

/* A handle whose call went wrong in any way is not used again. */
static void let_go(struct transfer *t, bool clean)
{
	struct upstream *up = t->up;

	if (t->handle && clean && up->nhandles < HANDLES) {
		curl_easy_reset(t->handle); /* drops headers, body, pointers */
		up->handles[up->nhandles++] = t->handle;
	} else if (t->handle)
		curl_easy_cleanup(t->handle);
	upstream_headers_free(t->headers);
	t->call->transfer = NULL;
	if (t->back) {
		*t->back = t->next;
		if (t->next)
			t->next->back = t->back;
	}
	free(t);
}

/* By HTTP/1, one call a connection? */
static bool alone(const struct transfer *t)
{
	long version = 0;
	return curl_easy_getinfo(t->handle, CURLINFO_HTTP_VERSION, &version) == CURLE_OK &&
	       version <= CURL_HTTP_VERSION_1_1;
}

/* A connection of HTTP/1 that may be used again is looked at before it is. */
static void keep_in_mind(struct transfer *t)
{
	curl_socket_t fd = CURL_SOCKET_BAD;

	if (alone(t) && curl_easy_getinfo(t->handle, CURLINFO_ACTIVESOCKET, &fd) == CURLE_OK && fd != CURL_SOCKET_BAD &&
	    t->up->nkept < KEPT_MOST) {
		unkeep(t->up, fd);
		t->up->kept[t->up->nkept++] = fd;
	}
}

/* Where a stream was asked for: what came of it. */
static enum err stream_error(struct transfer *t, CURLcode c)
{
	struct upstream_answer *answer = &t->call->answer;
	const struct stream_in *in = &t->call->relay->in;

	answer->prompt_tokens = in->prompt_tokens;
	answer->completion_tokens = in->completion_tokens;
	answer->says_key = in->fault == STREAM_KEY;
	switch (in->fault) {
	case STREAM_FINE:
		break;
	case STREAM_LACK:
		return ERR_RESOURCES_EXHAUSTED;
	case STREAM_TOO_LARGE:
		return ERR_MODEL_RESPONSE_TOO_LARGE;
	case STREAM_SPENT:
		return ERR_MODEL_OUTPUT_EXCEEDED;
	default:
		return ERR_INVALID_MODEL_RESPONSE;
	}
	enum err e = transfer_error(c, t);
	bool fine = answer->status >= 200 && answer->status < 300;
	return e == ERR_OK && fine && !in->ended ? ERR_INVALID_MODEL_RESPONSE : e;
}

static void finish(struct transfer *t, CURLcode c)
{
	struct gate_call *call = t->call;
	struct upstream_answer *answer = &call->answer;

	note_answer(t);
	answer->e = transfer_error(c, t);
	if (call->request.stream_up)
		answer->e = stream_error(t, c);
	answer->json = typed(t->handle, JSON_TYPE);
	/* libcurl's fixed phrase for the code: no address, no header, no body. */
	if (c != CURLE_OK)
		log_warn("provider %s: %s", call->target->profile->provider, curl_easy_strerror(c));
	if (answer->status >= 300 && answer->status < 400)
		answer->e = ERR_MODEL_REDIRECT_REFUSED;
	if (c == CURLE_OK)
		keep_in_mind(t);
	curl_multi_remove_handle(t->up->multi, t->handle);
	/* A handle whose connection is others' as well keeps its buffer, which must not meet another size. */
	let_go(t, c == CURLE_OK && alone(t));
	/* One whose only event is its last. */
	if (answer->e == ERR_OK && call->relay && call->relay->in.ended)
		call->relay->streams = true;
	if (answer->e == ERR_OK && call->relay && call->relay->streams && !call->relay->begun) {
		call->relay->begun = true;
		call->status = answer->status;
		call_event(call, CALL_EV_FIRST);
	}
	call_event(call, CALL_EV_OVER);
}

static void look_for_ends(struct upstream *up)
{
	int left;

	for (const CURLMsg *msg; (msg = curl_multi_info_read(up->multi, &left)) != NULL;) {
		struct transfer *t = NULL;
		if (msg->msg == CURLMSG_DONE &&
		    curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, (char **)&t) == CURLE_OK && t)
			finish(t, msg->data.result);
	}
}

static void act(struct upstream *up, curl_socket_t fd, int what)
{
	int running;

	(void)curl_multi_socket_action(up->multi, fd, what, &running);
	look_for_ends(up);
}

/* A descriptor of libcurl's is ready. */
struct line {
	struct upstream *up;
	int fd;
	uint64_t watch;
};

static void on_line(void *arg, uint32_t events)
{
	const struct line *l = arg;
	int what = (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
		   (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) | (events & EPOLLERR ? CURL_CSELECT_ERR : 0);
	act(l->up, l->fd, what);
}

static int on_socket(CURL *h, curl_socket_t fd, int what, void *arg, void *of_socket)
{
	struct upstream *up = arg;
	struct line *l = of_socket;
	uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);

	(void)h;
	if (what == CURL_POLL_REMOVE) {
		if (l) {
			loop_unwatch(up->app->loop, l->watch);
			free(l);
		}
		curl_multi_assign(up->multi, fd, NULL);
		return 0;
	}
	unkeep(up, fd);
	if (l)
		return loop_rewatch(up->app->loop, l->watch, events) ? 0 : -1;
	l = calloc(1, sizeof *l);
	if (!l)
		return -1;
	*l = (struct line){.up = up, .fd = fd, .watch = loop_watch(up->app->loop, fd, events, on_line, l)};
	if (!l->watch || curl_multi_assign(up->multi, fd, l) != CURLM_OK) {
		loop_unwatch(up->app->loop, l->watch);
		free(l);
		return -1;
	}
	return 0;
}

static int on_timer(CURLM *multi, long ms, void *arg)
{
	struct upstream *up = arg;

	(void)multi;
	up->deadline = ms < 0 ? 0 : timer_ms() + (uint64_t)ms;
	if (ms == 0)
		loop_again(up->app->loop);
	return 0;
}

/*
 * Over a connection of HTTP/2, libcurl (7.88) tells a provider that a call was left, and a call that it was reset or
 * never sent, only when it has something to do for another one, or for that. A call that goes on after a pause has.
 * True: there are such calls.
 */
static bool stir(struct upstream *up)
{
	bool any = false;

	for (struct transfer *t = up->first; t; t = t->next)
		if (t->shared) {
			any = true;
			(void)curl_easy_pause(t->handle, CURLPAUSE_RECV);
			(void)curl_easy_pause(t->handle, CURLPAUSE_CONT);
		}
	return any;
}

static int turn(void *arg)
{
	struct upstream *up = arg;

	if (up->deadline && timer_ms() >= up->deadline) {
		up->deadline = 0;
		act(up, CURL_SOCKET_TIMEOUT, 0);
	}
	uint64_t now = timer_ms();
	if (up->stir && now >= up->stir)
		up->stir = stir(up) ? now + STIR_MS : 0;
	uint64_t due = up->deadline;
	if (up->stir && (!due || up->stir < due))
		due = up->stir;
	if (!due)
		return -1;
	return due > now ? (int)(due - now) : 0;
}

void upstream_begin(struct gate_call *call)
{
	struct upstream *up = call->app->upstream;
	struct transfer *t = calloc(1, sizeof *t);

	buf_init(&call->answer.body, GATE_REPLY_MAX);
	call->answer.e = ERR_RESOURCES_EXHAUSTED; /* the one reason for which these fail */
	if (t) {
		*t = (struct transfer){.up = up, .call = call, .began = timer_ms()};
		call->transfer = t;
		t->headers = upstream_headers(call->target, &call->request);
		t->handle = up->nhandles > 0 ? up->handles[--up->nhandles] : curl_easy_init();
		if (t->handle && t->headers && (!call->request.stream || relay_new(call)) && set_up(t)) {
			drop_spoilt(up);
			if (curl_multi_add_handle(up->multi, t->handle) == CURLM_OK) {
				t->next = up->first;
				t->back = &up->first;
				if (t->next)
					t->next->back = &t->next;
				up->first = t;
				if (t->shared && !up->stir)
					up->stir = timer_ms() + STIR_MS;
				return;
			}
		}
		let_go(t, false);
	}
	call_event(call, CALL_EV_OVER);
}

void upstream_resume(struct gate_call *call)
{
	if (call->transfer)
		(void)curl_easy_pause(call->transfer->handle, CURLPAUSE_CONT);
}

void upstream_cancel(struct gate_call *call)
{
	struct transfer *t = call->transfer;

	if (call->request.stream_up)
		(void)stream_error(t, CURLE_OK);

	note_answer(t);
	call->answer.e = ERR_MODEL_UNREACHABLE;
	struct upstream *up = t->up;
	bool shared = t->shared;
	/* A connection that is nobody else's ends with it. */
	if (shared)
		(void)curl_easy_setopt(t->handle, CURLOPT_FORBID_REUSE, 1L);
	curl_multi_remove_handle(up->multi, t->handle);
	let_go(t, false);
	if (shared)
		stir(up);
}

struct upstream *upstream_new(struct app *app)
{
	struct upstream *up = calloc(1, sizeof *up);

	if (!up || !upstream_memory_start())
		fatal("cannot start libcurl");
	up->app = app;
	up->multi = curl_multi_init();
	up->share = curl_share_init();
	if (!up->multi || !up->share ||
	    curl_share_setopt(up->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION) != CURLSHE_OK ||
	    curl_multi_setopt(up->multi, CURLMOPT_SOCKETFUNCTION, on_socket) != CURLM_OK ||
	    curl_multi_setopt(up->multi, CURLMOPT_SOCKETDATA, up) != CURLM_OK ||
	    curl_multi_setopt(up->multi, CURLMOPT_TIMERFUNCTION, on_timer) != CURLM_OK ||
	    curl_multi_setopt(up->multi, CURLMOPT_TIMERDATA, up) != CURLM_OK ||
	    curl_multi_setopt(up->multi, CURLMOPT_MAXCONNECTS, (long)KEPT_MOST) != CURLM_OK ||
	    curl_multi_setopt(up->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)HOST_MOST) != CURLM_OK)
		fatal("cannot start libcurl");
	loop_each_turn(app->loop, turn, up);
	return up;
}
