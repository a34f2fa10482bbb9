/*
 * The way out: one HTTP call to the provider through libcurl (this file is its sole includer).
 * The address and the key are the operator's; the caller brings only the rebuilt body. TLS is verified,
 * redirects are not followed, proxies and environment are not looked at, nothing is repeated, nothing is
 * decoded, and what comes back is counted while it is read. The provider's headers end here.
 */
#include "gateway/gateway.h"
#include "gen/limits.h"
#include "lib/die.h"
#include "lib/lack.h"
#include "lib/own.h"
#include <arpa/inet.h>
#include <curl/curl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
	BODY_CAP = LIMIT_MODEL_RESPONSE_BYTES,
	HEAD_CAP = 65536,
	CONNECT_MS = 10000,
	IDLE_SECONDS = 30,
	POLL_MS = 1000,
	POOL_MAX = 512,
	WAIT_MAX = 86400 /* seconds that a provider may ask for */
};

/* One call's way out. The multi handle holds the kept connection, and can be woken by another thread. */
struct line {
	CURLM *multi;
	CURL *handle;
	curl_socket_t fd; /* of the connection, or CURL_SOCKET_BAD */
};
/* Idle ones; the last one used is taken first. */
struct upstream_pool {
	pthread_mutex_t lock;
	struct line idle[POOL_MAX];
	unsigned n;
};

/* One call's moving parts, for libcurl's callbacks. */
struct transfer {
	const struct buf *request;
	size_t sent, head;
	struct buf *body;
	bool too_large;
};

struct upstream_pool *upstream_pool_new(void)
{
	struct upstream_pool *p = calloc(1, sizeof *p);
	if (!p || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		fatal("cannot start libcurl");
	pthread_mutex_init(&p->lock, NULL);
	return p;
}

static bool loopback_literal(const char *host)
{
	struct in_addr four;
	return strcmp(host, "[::1]") == 0 ||
	       (inet_pton(AF_INET, host, &four) == 1 && (ntohl(four.s_addr) >> 24) == 127);
}

static const char *url_fault(const struct cf_provider *p, CURLU *u, const char *url)
{
	char *scheme = NULL, *host = NULL, *path = NULL, *port = NULL, *extra = NULL;
	const char *why = NULL;

	if (curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_PATH, &path, 0) != CURLUE_OK)
		why = "is no URL with a host";
	else if (curl_url_get(u, CURLUPART_USER, &extra, 0) == CURLUE_OK ||
		 curl_url_get(u, CURLUPART_PASSWORD, &extra, 0) == CURLUE_OK || strchr(url, '@'))
		why = "must not hold a user name or password";
	else if (strpbrk(url, "?#"))
		why = "must have no query and no fragment";
	else if (strstr(path, "//") || strstr(path, "/../") || strpbrk(path, "%\\ "))
		why = "has a path that is not plain";
	else if (strcmp(scheme, "https") != 0 &&
		 !(strcmp(scheme, "http") == 0 && p->allow_plain_loopback && loopback_literal(host)))
		why = "must be https (http only to a loopback address, with allow_plain_loopback)";
	curl_free(scheme);
	curl_free(host);
	curl_free(path);
	curl_free(port);
	curl_free(extra);
	return why;
}

char *upstream_url(const struct cf_provider *p, const struct format *f)
{
	size_t n = strlen(p->base_url);
	char *url = NULL;
	const char *why = "is empty";

	if (strcmp(p->protocol, f->protocol) != 0)
		return NULL;
	while (n > 0 && p->base_url[n - 1] == '/')
		n--;
	if (n > 0 && asprintf(&url, "%.*s%s", (int)n, p->base_url, f->path) > 0) {
		CURLU *u = curl_url();
		why = u ? url_fault(p, u, url) : "cannot be parsed";
		curl_url_cleanup(u);
	}
	if (!why)
		return url;
	log_error("provider %s: base_url %s; its model calls are refused", p->name, why);
	free(url);
	return NULL;
}

static size_t on_read(char *to, size_t size, size_t count, void *arg)
{
	struct transfer *t = arg;
	size_t left = t->request->n - t->sent, n = size * count < left ? size * count : left;

	memcpy(to, t->request->p + t->sent, n);
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

static size_t on_body(char *from, size_t size, size_t count, void *arg)
{
	struct transfer *t = arg;

	if (size * count > BODY_CAP - t->body->n) {
		t->too_large = true;
		return 0;
	}
	buf_add(t->body, from, size * count);
	return buf_failed(t->body) ? 0 : size * count;
}

static size_t on_head(char *from, size_t size, size_t count, void *arg)
{
	struct transfer *t = arg;

	(void)from;
	t->head += size * count;
	return t->head > HEAD_CAP ? 0 : size * count;
}

/* Bytes that nobody asked for, or the end: an answer read from such a connection could be another call's. */
static bool spoilt(curl_socket_t fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN | POLLRDHUP};
	return fd != CURL_SOCKET_BAD && poll(&p, 1, 0) != 0;
}

static void discard(struct line *l)
{
	/* In this order: what is still going on is cut off with its connection. */
	if (l->handle)
		curl_easy_cleanup(l->handle);
	if (l->multi)
		curl_multi_cleanup(l->multi);
	*l = (struct line){.fd = CURL_SOCKET_BAD};
}

/* False: no memory. */
static bool take(struct upstream_pool *p, struct line *l)
{
	*l = (struct line){.fd = CURL_SOCKET_BAD};
	pthread_mutex_lock(&p->lock);
	if (p->n > 0)
		*l = p->idle[--p->n];
	pthread_mutex_unlock(&p->lock);
	if (l->handle && spoilt(l->fd))
		discard(l);
	if (!l->handle) {
		l->handle = curl_easy_init();
		l->multi = curl_multi_init();
	}
	return l->handle && l->multi;
}

/* A line whose call went wrong in any way is not used again, nor is its connection. */
static void give(struct upstream_pool *p, struct line *l, bool clean)
{
	if (clean && l->fd != CURL_SOCKET_BAD) {
		curl_easy_reset(l->handle); /* keeps sessions; drops headers, body, pointers */
		pthread_mutex_lock(&p->lock);
		if (p->n < POOL_MAX) {
			p->idle[p->n++] = *l;
			l->handle = NULL;
		}
		pthread_mutex_unlock(&p->lock);
	}
	if (l->handle)
		discard(l);
}

static void wake_line(void *multi)
{
	curl_multi_wakeup(multi);
}

/* The transfer, to its end or to the flight's. */
static CURLcode fly(const struct app *app, struct line *l, struct flight *flight)
{
	int running = 1, left;
	CURLcode result = CURLE_ABORTED_BY_CALLBACK;
	CURLMcode m = curl_multi_add_handle(l->multi, l->handle);

	flight_waker(app->flights, flight, wake_line, l->multi);
	/* A wake-up that comes between the look and the poll ends the poll. */
	while (m == CURLM_OK && running && flight_ended(flight) == FLIGHT_ON) {
		m = curl_multi_perform(l->multi, &running);
		if (m == CURLM_OK && running)
			m = curl_multi_poll(l->multi, NULL, 0, POLL_MS, NULL);
	}
	flight_waker(app->flights, flight, NULL, NULL);
	for (const CURLMsg *msg; (msg = curl_multi_info_read(l->multi, &left)) != NULL;)
		if (msg->msg == CURLMSG_DONE)
			result = msg->data.result;
	if (m != CURLM_OK)
		result = m == CURLM_OUT_OF_MEMORY ? CURLE_OUT_OF_MEMORY : CURLE_FAILED_INIT;
	if (result != CURLE_OK || curl_easy_getinfo(l->handle, CURLINFO_ACTIVESOCKET, &l->fd) != CURLE_OK)
		l->fd = CURL_SOCKET_BAD;
	curl_multi_remove_handle(l->multi, l->handle);
	return result;
}

static bool set_up(CURL *h, const struct upstream_target *target, const char *url, uint32_t timeout_ms,
		   struct curl_slist *headers, struct transfer *t)
{
	bool plain = strncmp(url, "http:", 5) == 0;
	CURLcode c = CURLE_OK;
#define SET(option, value) c = c != CURLE_OK ? c : curl_easy_setopt(h, option, value)
	SET(CURLOPT_URL, url);
	SET(CURLOPT_PROTOCOLS_STR, plain ? "http" : "https");
	SET(CURLOPT_REDIR_PROTOCOLS_STR, "https");
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(CURLOPT_PROXY, "");
	SET(CURLOPT_NOPROXY, "*");
	SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_TCP_NODELAY, 1L);
	SET(CURLOPT_ACCEPT_ENCODING, NULL);
	SET(CURLOPT_SSL_VERIFYPEER, 1L);
	SET(CURLOPT_SSL_VERIFYHOST, 2L);
	SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	/* The compiled-in directory would disable libcurl's cache of parsed authorities. */
	SET(CURLOPT_CAPATH, NULL);
	if (*target->ca_file)
		SET(CURLOPT_CAINFO, target->ca_file);
	SET(CURLOPT_CONNECTTIMEOUT_MS, (long)(timeout_ms < CONNECT_MS ? timeout_ms : CONNECT_MS));
	SET(CURLOPT_TIMEOUT_MS, (long)timeout_ms);
	SET(CURLOPT_MAXAGE_CONN, (long)IDLE_SECONDS);
	SET(CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)BODY_CAP);
	SET(CURLOPT_HTTPHEADER, headers);
	SET(CURLOPT_POST, 1L);
	SET(CURLOPT_POSTFIELDS, NULL);
	SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->request->n);
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

static bool add_header(struct curl_slist **list, const char *line)
{
	struct curl_slist *more = curl_slist_append(*list, line);
	if (more)
		*list = more;
	return more != NULL;
}

static struct curl_slist *make_headers(const struct upstream_target *target, const struct model_request *rq)
{
	struct curl_slist *list = NULL;
	bool ok = add_header(&list, "Content-Type: application/json") &&
		  add_header(&list, "Accept: application/json") && add_header(&list, "Accept-Encoding: identity") &&
		  add_header(&list, "Expect:") && add_header(&list, "User-Agent: pinfold");
	if (ok && rq->format->api_key_header) {
		char line[FORMAT_BETA_MAX + 32];
		snprintf(line, sizeof line, "anthropic-version: %s", rq->version);
		ok = add_header(&list, line);
		snprintf(line, sizeof line, "anthropic-beta: %s", rq->beta);
		ok = ok && (!*rq->beta || add_header(&list, line));
	}
	if (ok && target->key) {
		struct buf line own_buf = {0};
		buf_init(&line, SECRET_MAX + 64);
		buf_adds(&line, rq->format->api_key_header ? "x-api-key: " : "Authorization: Bearer ");
		buf_add(&line, target->key->p, target->key->n);
		const char *text = buf_cstr(&line);
		ok = text && add_header(&list, text);
	}
	if (ok)
		return list;
	curl_slist_free_all(list);
	return NULL;
}

static void free_headers(struct curl_slist *list)
{
	for (struct curl_slist *s = list; s; s = s->next)
		wipe(s->data, strlen(s->data));
	curl_slist_free_all(list);
}

static enum err transfer_error(CURLcode c, const struct transfer *t)
{
	if (t->too_large)
		return ERR_MODEL_RESPONSE_TOO_LARGE;
	if (buf_failed(t->body))
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

static bool holds(const void *p, size_t n, const struct secret *key)
{
	return memmem(p, n, key->p, key->n) != NULL;
}

/* The key as it would be read, however it is spelt: a provider may escape what it quotes. Depth is the parser's. */
static bool says_key(const struct json *v, const struct secret *key)
{
	if ((v->key && holds(v->key, strlen(v->key), key)) || (v->text && holds(v->text, v->len, key)))
		return true;
	for (const struct json *e = v->child; e; e = e->next)
		if (says_key(e, key))
			return true;
	return false;
}

/* Content type, strict JSON, and no trace of the key. */
static enum err judge(CURL *h, const struct upstream_target *target, const struct format *f,
		      struct upstream_answer *answer)
{
	static const char
	    want[] = "application/json",
	    refused[] =
		"{\"error\":{\"message\":\"The model provider refused the call.\",\"type\":\"provider_refused\"}}";
	struct arena arena own_arena = {0};
	char *type = NULL;

	if (answer->status >= 300 && answer->status < 400)
		return ERR_MODEL_REDIRECT_REFUSED;
	if (curl_easy_getinfo(h, CURLINFO_CONTENT_TYPE, &type) != CURLE_OK || !type ||
	    strncasecmp(type, want, sizeof want - 1) != 0)
		return ERR_INVALID_MODEL_RESPONSE;
	arena_init(&arena, 16 * BODY_CAP);
	const struct json *body =
	    json_parse(&arena, answer->body.p, answer->body.n, JSON_DEPTH_MODEL, BODY_CAP / 10, NULL);
	if (!body)
		return lack_or(ERR_INVALID_MODEL_RESPONSE);
	if (answer->status < 200)
		return ERR_INVALID_MODEL_RESPONSE;
	format_usage(f, body, &answer->prompt_tokens, &answer->completion_tokens);
	/* Providers quote (parts of) the key they refuse. */
	if (answer->status == 401 || answer->status == 403) {
		buf_reset(&answer->body);
		buf_adds(&answer->body, refused);
	} else if (target->key && (holds(answer->body.p, answer->body.n, target->key) || says_key(body, target->key)))
		return ERR_INVALID_MODEL_RESPONSE;
	return ERR_OK;
}

enum err upstream_call(const struct app *app, const struct upstream_target *target, uint32_t timeout_ms,
		       const struct model_request *request, struct flight *flight, struct upstream_answer *answer)
{
	struct transfer t = {.request = &request->body, .body = &answer->body};
	const char *url = target->url[request->format->id];
	curl_off_t wait = 0;
	uint64_t began = timer_ms();
	long status = 0;
	struct line line;
	struct curl_slist *headers = make_headers(target, request);
	enum err e = ERR_RESOURCES_EXHAUSTED; /* the one reason for which these fail */

	if (take(app->upstream, &line) && headers && set_up(line.handle, target, url, timeout_ms, headers, &t)) {
		CURLcode c = fly(app, &line, flight);
		e = transfer_error(c, &t);
		if (curl_easy_getinfo(line.handle, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK && status >= 100 &&
		    status <= 599)
			answer->status = (unsigned)status;
		/* libcurl's fixed phrase for the code: no address, no header, no body. */
		if (c != CURLE_OK && flight_ended(flight) == FLIGHT_ON)
			log_warn("provider %s: %s", target->profile->provider, curl_easy_strerror(c));
		if (answer->status >= 300 && answer->status < 400)
			e = ERR_MODEL_REDIRECT_REFUSED;
		if (e == ERR_OK)
			e = judge(line.handle, target, request->format, answer);
		if (curl_easy_getinfo(line.handle, CURLINFO_RETRY_AFTER, &wait) == CURLE_OK && wait > 0)
			answer->retry_after = wait < WAIT_MAX ? (unsigned)wait : WAIT_MAX;
	}
	give(app->upstream, &line, e == ERR_OK);
	free_headers(headers);
	answer->duration_ms = (uint32_t)(timer_ms() - began);
	return e;
}
