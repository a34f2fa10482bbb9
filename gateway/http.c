/*
 * HTTP towards the boxes: one libmicrohttpd daemon a box, so that the daemon's closure, and nothing that a caller
 * sends, says which run a connection belongs to. The daemons have no thread: each is run by the loop when something of
 * it is ready. A connection whose call is somewhere else is suspended; nobody looks at it then but http_watch.
 */
#include "gateway/gateway.h"
#include "gen/routes.h"
#include "lib/die.h"
#include "lib/lack.h"
#include <fcntl.h>
#include <malloc.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Of a connection: the head of a request, for which all of it is, a part of its body, of a stream a chunk. */
enum { MEMORY_PER_CONNECTION = 20480, SWALLOW = 1000000, PASSES = 8, TICK_MS = 1000, MANY = 128 };

struct listeners {
	struct app *app;
	struct box *due;
	unsigned closing;     /* of boxes */
	unsigned calls, most; /* that are there; and were, since memory was given back */
	uint64_t next_tick;
};

static enum MHD_Result send_reply(struct gate_call *call)
{
	if (buf_failed(&call->reply)) {
		enum err e = lack_error();
		buf_free(&call->reply);
		buf_init(&call->reply, GATE_REPLY_MAX);
		gate_fail(call, e, NULL);
	}
	/* It lives as long as the call. */
	struct MHD_Response *r = MHD_create_response_from_buffer(call->reply.n, call->reply.p, MHD_RESPMEM_PERSISTENT);
	if (!r)
		return MHD_NO;
	MHD_add_response_header(r, "Content-Type", "application/json");
	MHD_add_response_header(r, "Cache-Control", "no-store");
	MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(r, "X-Request-Id", call->request_id);
	if (call->status == 405)
		MHD_add_response_header(r, "Allow", call->found.allow);
	if (call->stop)
		MHD_add_response_header(r, "x-should-retry", "false");
	if (call->retry) {
		char seconds[16];
		snprintf(seconds, sizeof seconds, "%u", call->retry_after > 0 ? call->retry_after : 5);
		MHD_add_response_header(r, "Retry-After", seconds);
	}
	if (call->close)
		MHD_add_response_header(r, "Connection", "close");
	enum MHD_Result sent = MHD_queue_response(call->connection, call->status, r);
	MHD_destroy_response(r);
	return sent;
}

static void box_due(struct box *box)
{
	struct listeners *h = box->app->listeners;

	if (box->due)
		return;
	box->due = true;
	box->next_due = h->due;
	h->due = box;
}

void http_suspend(struct gate_call *call)
{
	MHD_suspend_connection(call->connection);
	call->suspended = true;
	call->box->away++;
}

void http_resume(struct gate_call *call)
{
	if (!call->suspended)
		return;
	MHD_resume_connection(call->connection);
	call->suspended = false;
	call->box->away--;
	box_due(call->box);
}

static void free_call(struct gate_call *call)
{
	buf_free(&call->body);
	buf_free(&call->reply);
	model_request_free(&call->request);
	buf_free(&call->answer.body);
	relay_free(call);
	terms_done(call->terms);
	terms_done(call->before);
	bodies_keep(call, 0);
	call->app->listeners->calls--;
	free(call);
}

void http_done(struct gate_call *call)
{
	if (call->connection)
		http_resume(call);
	else {
		box_due(call->box); /* which may have waited for it */
		free_call(call);
	}
}

static void on_client(void *arg, uint32_t events)
{
	struct gate_call *call = arg;

	(void)events;
	http_unwatch(call);
	flight_stop(&call->flight, FLIGHT_CLIENT_LEFT);
	call_event(call, CALL_EV_ENDED);
}

void http_watch(struct gate_call *call)
{
	const union MHD_ConnectionInfo *info =
	    MHD_get_connection_info(call->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	if (info)
		call->watch = loop_watch(call->app->loop, info->connect_fd, EPOLLRDHUP, on_client, call);
	if (!call->watch)
		log_warn("run %s: a client cannot be watched: %m", call->box->run);
}

void http_unwatch(struct gate_call *call)
{
	loop_unwatch(call->app->loop, call->watch);
	call->watch = 0;
}

/* Called with the raw target before anything else of the request is looked at. */
static void *on_uri(void *arg, const char *uri, struct MHD_Connection *c)
{
	struct gate_call *call = calloc(1, sizeof *call);

	if (!call)
		return NULL;
	call_start(call, arg);
	struct listeners *h = call->app->listeners;
	if (++h->calls > h->most)
		h->most = h->calls;
	call->terms = terms_now(call->app);
	call->before = terms_of_box(call->box);
	call->connection = c;
	call->started_ms = timer_ms();
	uuid4(call->request_id);
	buf_init(&call->body, 0); /* as much as its route takes, once that is known */
	buf_init(&call->reply, GATE_REPLY_MAX);
	/* Too long for any route: remembered as such. */
	if (snprintf(call->path, sizeof call->path, "%s", uri) >= (int)sizeof call->path)
		snprintf(call->path, sizeof call->path, "/.");
	return call;
}

static void on_completed(void *arg, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode why)
{
	struct gate_call *call = *state;

	(void)arg;
	(void)c;
	(void)why;
	*state = NULL;
	if (!call)
		return;
	call->connection = NULL;
	/* Only of a stream can the connection end before the call does. */
	if (call->state == CALL_RELAY || call->state == CALL_SETTLING) {
		http_unwatch(call);
		flight_stop(&call->flight, FLIGHT_CLIENT_LEFT);
		call_event(call, CALL_EV_ENDED);
	} else
		free_call(call);
}

static enum MHD_Result on_head(struct gate_call *call, const char *method)
{
	enum err e;

	call->close = true;
	switch (head_check(call, method, call->state == CALL_KNOWN, &e)) {
	case HEAD_ON:
		if (!bodies_take(call)) {
			call->retry_after = 1;
			gate_fail(call, ERR_RESOURCES_EXHAUSTED, NULL);
			call_event(call, CALL_EV_REFUSED);
			return send_reply(call);
		}
		call->close = false;
		buf_init(&call->body, gate_body_max(call));
		call_event(call, CALL_EV_PASSED);
		return MHD_YES;
	case HEAD_ASK:
		call_event(call, CALL_EV_ASK);
		return MHD_YES;
	case HEAD_TELL:
		gate_fail(call, e, NULL);
		call_event(call, CALL_EV_TELL);
		return MHD_YES;
	default:
		gate_fail(call, e, NULL);
		call_event(call, CALL_EV_REFUSED);
		return send_reply(call);
	}
}

/* False: the connection is to be dropped. An over-long body is read to a bound, so that the answer arrives. */
static bool take_body(struct gate_call *call, const char *data, size_t n)
{
	if (timer_ms() - call->started_ms > GATE_BODY_SECONDS * 1000)
		return false;
	if (call->too_large || n > gate_body_max(call) - call->body.n) {
		call->too_large = true;
		call->swallowed += n;
		return call->swallowed <= SWALLOW;
	}
	/* Once, and not by doubling what is there. */
	if (call->body.n == 0)
		(void)buf_room(&call->body, call->declared);
	buf_add(&call->body, data, n);
	return !buf_failed(&call->body);
}

static enum MHD_Result on_body(struct gate_call *call, const char *data, size_t *n)
{
	if (*n > 0) {
		bool ok = take_body(call, data, *n);
		*n = 0;
		return ok ? MHD_YES : MHD_NO;
	}
	if (call->box->closing)
		return MHD_NO;
	if (!call->too_large) {
		call_event(call, CALL_EV_WHOLE);
		return MHD_YES;
	}
	gate_fail(call, ERR_REQUEST_TOO_LARGE, NULL);
	call_event(call, CALL_EV_REFUSED);
	return send_reply(call);
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *c, const char *url, const char *method,
				  const char *version, const char *data, size_t *n, void **state)
{
	struct gate_call *call = *state;

	(void)arg;
	(void)c;
	(void)url;
	(void)version;
	if (!call)
		return MHD_NO;
	if (call->relay && call->relay->begun)
		return relay_reply(call) ? MHD_YES : MHD_NO;
	switch (call->state) {
	case CALL_HEAD:
	case CALL_KNOWN:
		return on_head(call, method);
	case CALL_BODY:
		return on_body(call, data, n);
	case CALL_DONE:
		return call->cut ? MHD_NO : send_reply(call);
	default:
		panic("a call that is away was called (%d)", (int)call->state);
	}
}

static void on_ready(void *arg, uint32_t events)
{
	(void)events;
	box_due(arg);
}

static void free_box(struct box *box)
{
	terms_done(box->opened_under);
	pthread_mutex_destroy(&box->lock);
	free(box);
}

struct box *box_open(struct app *app, const char *run, const char *tenant, int fd)
{
	struct box *box = calloc(1, sizeof *box);
	const union MHD_DaemonInfo *info = NULL;

	if (!box) {
		close(fd);
		return NULL;
	}
	box->app = app;
	box->opened_under = terms_now(app);
	pthread_mutex_init(&box->lock, NULL);
	snprintf(box->run, sizeof box->run, "%s", run);
	snprintf(box->tenant, sizeof box->tenant, "%s", tenant);
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	box->daemon = MHD_start_daemon(
	    MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, box, MHD_OPTION_LISTEN_SOCKET, fd,
	    MHD_OPTION_CONNECTION_LIMIT, (unsigned)GATE_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
	    (unsigned)GATE_IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_PER_CONNECTION,
	    MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_URI_LOG_CALLBACK, on_uri, box, MHD_OPTION_NOTIFY_COMPLETED,
	    on_completed, box, MHD_OPTION_END);
	if (box->daemon)
		info = MHD_get_daemon_info(box->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	if (info)
		box->watch = loop_watch(app->loop, info->epoll_fd, EPOLLIN, on_ready, box);
	if (!box->watch) {
		if (box->daemon)
			MHD_stop_daemon(box->daemon);
		else
			close(fd);
		free_box(box);
		return NULL;
	}
	box->next = app->boxes;
	app->boxes = box;
	box_due(box);
	return box;
}

void box_close(struct app *app, const char *run)
{
	for (struct box *box = app->boxes; box; box = box->next)
		if (!box->closing && strcmp(box->run, run) == 0) {
			box->closing = true;
			app->listeners->closing++;
			MHD_socket fd = MHD_quiesce_daemon(box->daemon);
			if (fd != MHD_INVALID_SOCKET)
				close(fd);
			flights_end_box(app->flights, box);
			box_due(box);
		}
}

static void run_box(struct box *box)
{
	MHD_UNSIGNED_LONG_LONG ms;

	for (int i = 0; i < PASSES; i++) {
		MHD_run(box->daemon);
		if (MHD_get_timeout(box->daemon, &ms) != MHD_YES || ms > 0)
			return;
	}
	box_due(box);
}

/* Those that are closing and whose last call is done. */
static void free_boxes(struct listeners *h)
{
	for (struct box **at = &h->app->boxes; *at;) {
		struct box *box = *at;
		if (!box->closing || box->away > 0 || box->busy > 0 || box->due) {
			at = &box->next;
			continue;
		}
		*at = box->next;
		h->closing--;
		loop_unwatch(h->app->loop, box->watch);
		MHD_stop_daemon(box->daemon);
		free_box(box);
	}
}

/* What many calls needed is the system's again when most of them are gone: malloc by itself gives back nothing that has
 * something behind it. */
static void give_back(struct listeners *h)
{
	if (h->most < MANY || h->calls > h->most / 4)
		return;
	h->most = h->calls;
	malloc_trim(0);
}

static int turn(void *arg)
{
	struct listeners *h = arg;
	uint64_t now = timer_ms();

	/* libmicrohttpd's limits of time are whole seconds. */
	if (now >= h->next_tick) {
		h->next_tick = now + TICK_MS;
		for (struct box *box = h->app->boxes; box; box = box->next)
			box_due(box);
		give_back(h);
	}
	struct box *due = h->due;
	h->due = NULL;
	for (struct box *box = due, *next; box; box = next) {
		next = box->next_due;
		box->due = false;
		run_box(box);
	}
	if (h->closing > 0)
		free_boxes(h);
	if (h->due)
		return 0;
	return h->app->boxes ? (int)(h->next_tick - now) : -1;
}

struct listeners *listeners_new(struct app *app)
{
	struct listeners *h = calloc(1, sizeof *h);

	if (!h)
		fatal("no memory");
	h->app = app;
	loop_each_turn(app->loop, turn, h);
	return h;
}
