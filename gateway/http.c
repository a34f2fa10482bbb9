/*
 * HTTP towards the boxes: one libmicrohttpd daemon a box, so that the daemon's closure, and nothing that a
 * caller sends, says which run a connection belongs to. Trusts no byte of a request. Order of checks: form,
 * path, method, token, ids, content type, size; a body is read only after all of these.
 */
#include "gateway/gateway.h"
#include "gen/audit.h"
#include "gen/routes.h"
#include "lib/die.h"
#include "lib/lack.h"
#include "lib/own.h"
#include <fcntl.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

enum { MEMORY_PER_CONNECTION = 32768, STACK = 512 * 1024, SWALLOW = 1000000 };

static enum MHD_Result send_reply(struct gate_call *call, struct MHD_Connection *c, bool close)
{
	if (buf_failed(&call->reply)) {
		enum err e = lack_error();
		buf_free(&call->reply);
		buf_init(&call->reply, GATE_REPLY_MAX);
		gate_fail(call, e, NULL);
	}
	struct MHD_Response *r = MHD_create_response_from_buffer(call->reply.n, call->reply.p, MHD_RESPMEM_MUST_COPY);
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
	if (close)
		MHD_add_response_header(r, "Connection", "close");
	enum MHD_Result sent = MHD_queue_response(c, call->status, r);
	MHD_destroy_response(r);
	return sent;
}

/* Headers that decide something: each at most once. */
static const char *const single[] = {"host",
				     "authorization",
				     "content-length",
				     "content-type",
				     "content-encoding",
				     "transfer-encoding",
				     "x-api-key",
				     "anthropic-version",
				     "anthropic-beta",
				     "connection",
				     "expect"};
enum {
	HEADER_HOST,
	HEADER_AUTHORIZATION,
	HEADER_LENGTH,
	HEADER_TYPE,
	HEADER_CODING,
	HEADER_TRANSFER,
	HEADER_API_KEY,
	HEADER_VERSION,
	HEADER_BETA,
	HEADER__COUNT = sizeof single / sizeof single[0]
};

struct head {
	const char *value[HEADER__COUNT];
	size_t size[HEADER__COUNT];
	bool twice;
};

static enum MHD_Result on_header(void *arg, enum MHD_ValueKind kind, const char *key, size_t key_size,
				 const char *value, size_t value_size)
{
	struct head *h = arg;

	(void)kind;
	for (size_t i = 0; i < HEADER__COUNT; i++)
		if (key_size == strlen(single[i]) && strncasecmp(key, single[i], key_size) == 0) {
			h->twice = h->twice || h->value[i];
			h->value[i] = value ? value : "";
			h->size[i] = value ? value_size : 0;
		}
	return MHD_YES;
}

/* The raw target as it was sent: origin form, no percent-encoding, no empty or dot segment. */
static enum err take_path(const char *raw, char *path, size_t cap)
{
	size_t n = strcspn(raw, "?");

	if (raw[0] != '/')
		return ERR_INVALID_REQUEST;
	if (n >= cap)
		return ERR_NOT_FOUND;
	memcpy(path, raw, n);
	path[n] = 0;
	for (size_t i = 0; i < n; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/", path[i]))
			return ERR_NOT_FOUND;
	for (const char *s = path; s; s = strchr(s + 1, '/')) {
		size_t part = strcspn(s + 1, "/");
		if (part == 0 || strspn(s + 1, ".") == part)
			return ERR_NOT_FOUND;
	}
	return ERR_OK;
}

/* What is shown as a token: Bearer, or for models as x-api-key; both only where they are equal. */
static bool shown(const struct gate_call *call, const struct head *h, const char **value, size_t *n)
{
	static const char scheme[] = "Bearer ";
	bool model = call->found.route->audience == TOKEN_MODEL;
	const char *bearer = h->value[HEADER_AUTHORIZATION], *key = model ? h->value[HEADER_API_KEY] : NULL;

	*value = key;
	*n = h->size[HEADER_API_KEY];
	if (!bearer)
		return key != NULL;
	if (h->size[HEADER_AUTHORIZATION] < sizeof scheme || strncasecmp(bearer, scheme, sizeof scheme - 1) != 0)
		return false;
	*value = bearer + sizeof scheme - 1;
	*n = h->size[HEADER_AUTHORIZATION] - (sizeof scheme - 1);
	return !key || secret_equal(key, h->size[HEADER_API_KEY], *value, *n);
}

/* The token has to be of this route's audience and of this connection's run. */
static enum err by_token(struct gate_call *call, const struct head *h)
{
	const char *value;
	size_t n;

	if (!shown(call, h, &value, &n) || n > TOKEN_MAX)
		return ERR_INVALID_RUN_TOKEN;
	enum err e =
	    token_verify(call->terms->token_key, call->terms->token_next, value, n,
			 (enum token_audience)call->found.route->audience, (int64_t)(clock_ms() / 1000), &call->claims);
	bool old = e == ERR_EXPIRED_RUN_TOKEN && call->claims.exp != 0;
	if (e != ERR_OK && !old)
		return e;
	if (strcmp(call->claims.run, call->box->run) != 0 || strcmp(call->claims.tenant, call->box->tenant) != 0)
		return ERR_INVALID_RUN_TOKEN;
	/* A run that waited for a person may be older than its tokens, which its agent has read once and for all. */
	return old ? gate_renewed(call) : ERR_OK;
}

/*
 * Where no token enters the box, what the listener says is all there is to say: the connection is the run, whatever it
 * sends. Its capability is asked for with each call, as it is with a token.
 */
static bool by_wire(struct gate_call *call)
{
	struct token_claims *c = &call->claims;

	*c = (struct token_claims){.audience = (enum token_audience)call->found.route->audience};
	snprintf(c->run, sizeof c->run, "%s", call->box->run);
	snprintf(c->tenant, sizeof c->tenant, "%s", call->box->tenant);
	return gate_by_wire(call, c->model);
}

static enum err authenticate(struct gate_call *call, const struct head *h)
{
	enum err e = by_token(call, h);
	if (e != ERR_OK && !by_wire(call))
		return e;
	/* Routes with a run in their path name it first. */
	if (strstr(call->found.route->path, "{runId}") && strcmp(call->found.arg[0], call->claims.run) != 0)
		return ERR_INVALID_RUN_TOKEN;
	return ERR_OK;
}

/* A box that tries tokens is told to the audit log, but cannot fill it. */
static void note_denied(struct gate_call *call, const char *method, const char *path, enum err e)
{
	struct box *box = call->box;
	char subject[300];
	struct st_ok ok;
	struct st_audit_note m = {.event = AUDIT_AUTH_DENIED,
				  .tenant = box->tenant,
				  .run = box->run,
				  .actor = "sandbox",
				  .request_id = call->request_id,
				  .subject = subject,
				  .code = (uint16_t)e};

	pthread_mutex_lock(&box->lock);
	bool say = pace_take(&box->denied, pace_source, timer_ms(), &m.suppressed);
	pthread_mutex_unlock(&box->lock);
	struct ask *a = say ? store_take(call->app->store) : NULL;
	if (!a)
		return;
	snprintf(subject, sizeof subject, "%.16s %.270s", method, path);
	enum err told = st_call_audit_note(a, &m, NULL, &ok, NULL);
	store_give(call->app->store, a);
	if (told != ERR_OK)
		log_warn("run %s: a refused token was not told to the audit log: %s", box->run, err_code(told));
}

static bool json_type(const struct head *h)
{
	static const char want[] = "application/json";
	const char *v = h->value[HEADER_TYPE];

	if (!v || strncasecmp(v, want, sizeof want - 1) != 0)
		return false;
	v += sizeof want - 1;
	return *v == 0 || *v == ';' || *v == ' ';
}

static enum err check_body_headers(const struct gate_call *call, const struct head *h)
{
	const struct route *route = call->found.route;
	uint64_t length = 0;
	const char *coding = h->value[HEADER_CODING], *transfer = h->value[HEADER_TRANSFER],
		   *declared = h->value[HEADER_LENGTH];

	if (coding && strcasecmp(coding, "identity") != 0)
		return ERR_UNSUPPORTED_ENCODING;
	if (route->body == BODY_JSON && !json_type(h))
		return ERR_JSON_REQUIRED;
	if (transfer && strcasecmp(transfer, "chunked") != 0)
		return ERR_INVALID_REQUEST;
	if (declared && !num_u64(declared, h->size[HEADER_LENGTH], 0, UINT64_MAX, &length))
		return ERR_INVALID_REQUEST;
	if (route->body == BODY_NONE)
		return transfer || length > 0 ? ERR_INVALID_REQUEST : ERR_OK;
	return length > gate_body_max(call) ? ERR_REQUEST_TOO_LARGE : ERR_OK;
}

static enum err check_head(struct gate_call *call, struct MHD_Connection *c, const char *method)
{
	struct head h = {0};

	if (call->path[0] == 0)
		return ERR_INVALID_REQUEST;
	MHD_get_connection_values_n(c, MHD_HEADER_KIND, on_header, &h);
	/* Two ways to tell where the body ends are no way. */
	if (h.twice || (h.value[HEADER_LENGTH] && h.value[HEADER_TRANSFER]))
		return ERR_INVALID_REQUEST;
	char path[sizeof call->path];
	enum err e = take_path(call->path, path, sizeof path);
	if (e != ERR_OK)
		return e;
	route_find(routes_internal, method, path, &call->found);
	if (!call->found.route)
		return call->found.path_known ? ERR_METHOD_NOT_ALLOWED : ERR_NOT_FOUND;
	call->format = format_of_route(call->found.route->name);
	e = authenticate(call, &h);
	if (call->found.route->audience == TOKEN_MODEL)
		gate_rules(call);
	if (e != ERR_OK) {
		note_denied(call, method, path, e);
		return e;
	}
	for (int i = 0; i < ROUTE_ARGS; i++)
		if (call->found.arg[i][0] && !id_valid(call->found.arg[i]))
			return ERR_NOT_FOUND;
	format_version(h.value[HEADER_VERSION], call->version);
	format_beta(h.value[HEADER_BETA], call->beta);
	return check_body_headers(call, &h);
}

/* Called with the raw target before anything else of the request is looked at. */
static void *on_uri(void *arg, const char *uri, struct MHD_Connection *c)
{
	struct box *box = arg;
	struct gate_call *call = calloc(1, sizeof *call);

	(void)c;
	if (!call)
		return NULL;
	call->box = box;
	call->app = box->app;
	call->terms = terms_now(box->app);
	call->before = terms_of_box(box);
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
	buf_free(&call->body);
	buf_free(&call->reply);
	terms_done(call->terms);
	terms_done(call->before);
	free(call);
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
	buf_add(&call->body, data, n);
	return !buf_failed(&call->body);
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *c, const char *url, const char *method,
				  const char *version, const char *data, size_t *n, void **state)
{
	struct gate_call *call = *state;

	(void)arg;
	(void)url;
	(void)version;
	if (!call)
		return MHD_NO;
	if (!call->seen_head) {
		call->seen_head = true;
		enum err e = check_head(call, c, method);
		if (e == ERR_OK) {
			buf_init(&call->body, gate_body_max(call));
			return MHD_YES;
		}
		gate_fail(call, e, NULL);
		return send_reply(call, c, true);
	}
	if (*n > 0) {
		bool ok = take_body(call, data, *n);
		*n = 0;
		return ok ? MHD_YES : MHD_NO;
	}
	if (call->too_large)
		gate_fail(call, ERR_REQUEST_TOO_LARGE, NULL);
	else {
		const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
		call->fd = info ? info->connect_fd : -1;
		call->found.route->gate(call);
	}
	return call->cut ? MHD_NO : send_reply(call, c, false);
}

struct box *box_open(struct app *app, const char *run, const char *tenant, int fd)
{
	struct box *box = calloc(1, sizeof *box);

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
	    MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_ITC, 0, NULL, NULL, on_request, box,
	    MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)GATE_CONNECTIONS,
	    MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)GATE_IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
	    (size_t)MEMORY_PER_CONNECTION, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK,
	    MHD_OPTION_URI_LOG_CALLBACK, on_uri, box, MHD_OPTION_NOTIFY_COMPLETED, on_completed, box, MHD_OPTION_END);
	if (!box->daemon) {
		close(fd);
		terms_done(box->opened_under);
		free(box);
		return NULL;
	}
	return box;
}

static void *closer(void *arg)
{
	struct box *box = arg;

	MHD_stop_daemon(box->daemon);
	terms_done(box->opened_under);
	free(box);
	return NULL;
}

void box_close(struct box *box)
{
	pthread_t thread;

	atomic_store(&box->closing, true);
	flights_end_box(box->app->flights, box);
	if (pthread_create(&thread, NULL, closer, box) == 0)
		pthread_detach(thread);
	else
		closer(box);
}
