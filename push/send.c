/*
 * See send.h. Trusts nothing of the other side: its answer is counted and thrown away, but for the status and
 * Retry-After. The addresses are looked at where they count: before a socket is made for one, and again when it is
 * connected, so that what a name server says in between changes nothing.
 */
#include "push/send.h"
#include "lib/buf.h"
#include "lib/die.h"
#include "lib/num.h"
#include "lib/secret.h"
#include "push/address.h"
#include "push/outcome.h"
#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { BODY_CAP = 4096, HEAD_CAP = 16384, IDLE_SECONDS = 60, AUTH_MAX = 1500 };

struct flight {
	struct sender *sender;
	CURL *handle; /* NULL: the place is free */
	struct curl_slist *headers;
	struct receipt receipt;
	uint8_t body[SEAL_BODY];
	size_t head, answer;
	const char *refused; /* why an address was not connected to */
	unsigned tried;      /* sockets that were made */
	bool over;
};

struct sender {
	CURLM *multi;
	const char *ca_file;
	uint16_t loopback_port;
	struct curl_slist *connect_to;
	struct flight flights[SEND_MOST];
	unsigned busy;
};

struct sender *sender_new(const char *ca_file, uint16_t loopback_port)
{
	struct sender *s = calloc(1, sizeof *s);
	char to[32];
	if (s == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || (s->multi = curl_multi_init()) == NULL ||
	    curl_multi_setopt(s->multi, CURLMOPT_MAXCONNECTS, (long)SEND_MOST) != CURLM_OK)
		fatal("cannot start libcurl");
	s->ca_file = ca_file;
	s->loopback_port = loopback_port;
	(void)snprintf(to, sizeof to, "::127.0.0.1:%u", loopback_port);
	if (loopback_port != 0 && (s->connect_to = curl_slist_append(NULL, to)) == NULL)
		fatal("no memory");
	return s;
}

unsigned sender_busy(const struct sender *s)
{
	return s->busy;
}

/* NULL: it may be connected to. */
static const char *fault(const struct sender *s, const struct sockaddr *sa, socklen_t n)
{
	if (s->loopback_port != 0)
		return address_loopback(sa, n, s->loopback_port) ? NULL : "not the loopback address of the test";
	return address_fault(sa, n);
}

static curl_socket_t on_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
	struct flight *f = arg;
	const char *why = purpose != CURLSOCKTYPE_IPCXN || a->socktype != SOCK_STREAM
			      ? "no connection"
			      : fault(f->sender, &a->addr, a->addrlen);
	if (why != NULL) {
		f->refused = why;
		return CURL_SOCKET_BAD;
	}
	f->tried++;
	return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

/* Before the first byte of the request, with what the socket says it is connected to. */
static int on_connected(void *arg, char *ip, char *local, int port, int local_port)
{
	struct flight *f = arg;
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	const char *why = "no address";
	(void)local, (void)local_port;
	if (inet_pton(AF_INET, ip, &four.sin_addr) == 1)
		why = fault(f->sender, (const struct sockaddr *)&four, sizeof four);
	else if (inet_pton(AF_INET6, ip, &six.sin6_addr) == 1)
		why = fault(f->sender, (const struct sockaddr *)&six, sizeof six);
	if (why == NULL)
		return CURL_PREREQFUNC_OK;
	f->refused = why;
	f->tried = 0;
	return CURL_PREREQFUNC_ABORT;
}

static size_t on_body(char *from, size_t size, size_t count, void *arg)
{
	struct flight *f = arg;
	(void)from;
	f->answer += size * count;
	return f->answer > BODY_CAP ? 0 : size * count;
}

static size_t on_head(char *from, size_t size, size_t count, void *arg)
{
	static const char name[] = "retry-after:", first[] = "HTTP/";
	struct flight *f = arg;
	size_t n = size * count;
	f->head += n;
	if (n >= sizeof first - 1 && memcmp(from, first, sizeof first - 1) == 0)
		f->receipt.retry_after = 0; /* an answer of its own */
	else if (n >= sizeof name - 1 && strncasecmp(from, name, sizeof name - 1) == 0)
		f->receipt.retry_after = retry_after(from + sizeof name - 1, n - (sizeof name - 1), clock_ms() / 1000);
	return f->head > HEAD_CAP ? 0 : n;
}

static bool add_header(struct flight *f, const char *name, const char *value)
{
	char line[AUTH_MAX + 64];
	int n = snprintf(line, sizeof line, "%s: %s", name, value);
	if (n < 0 || (size_t)n >= sizeof line || strpbrk(value, "\r\n") != NULL)
		return false;
	struct curl_slist *more = curl_slist_append(f->headers, *value != '\0' ? line : name);
	if (more != NULL)
		f->headers = more;
	wipe(line, sizeof line);
	return more != NULL;
}

static bool make_headers(struct flight *f, const struct letter *l)
{
	char ttl[16];
	(void)snprintf(ttl, sizeof ttl, "%u", l->ttl);
	/* A name with a colon and no value: libcurl leaves it out. */
	return add_header(f, "Authorization", l->authorization) && add_header(f, "TTL", ttl) &&
	       add_header(f, "Urgency", "high") && (*l->topic == '\0' || add_header(f, "Topic", l->topic)) &&
	       add_header(f, "Content-Encoding", "aes128gcm") &&
	       add_header(f, "Content-Type", "application/octet-stream") && add_header(f, "User-Agent", "pinfold") &&
	       add_header(f, "Expect:", "") && add_header(f, "Accept:", "");
}

static bool set_up(struct flight *f, const struct letter *l)
{
	const struct sender *s = f->sender;
	CURL *h = f->handle;
	CURLcode c = CURLE_OK;
#define SET(option, value) c = c != CURLE_OK ? c : curl_easy_setopt(h, option, value)
	SET(CURLOPT_PRIVATE, f);
	SET(CURLOPT_URL, l->endpoint);
	SET(CURLOPT_PROTOCOLS_STR, "https");
	SET(CURLOPT_REDIR_PROTOCOLS_STR, "https");
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(CURLOPT_PROXY, "");
	SET(CURLOPT_NOPROXY, "*");
	SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_SSL_VERIFYPEER, 1L);
	SET(CURLOPT_SSL_VERIFYHOST, 2L);
	SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	/* The compiled-in directory would disable libcurl's cache of parsed authorities. */
	SET(CURLOPT_CAPATH, NULL);
	if (*s->ca_file != '\0')
		SET(CURLOPT_CAINFO, s->ca_file);
	if (s->connect_to != NULL)
		SET(CURLOPT_CONNECT_TO, s->connect_to);
	SET(CURLOPT_OPENSOCKETFUNCTION, on_socket);
	SET(CURLOPT_OPENSOCKETDATA, f);
	SET(CURLOPT_PREREQFUNCTION, on_connected);
	SET(CURLOPT_PREREQDATA, f);
	SET(CURLOPT_CONNECTTIMEOUT_MS, (long)SEND_CONNECT_MS);
	SET(CURLOPT_TIMEOUT_MS, (long)SEND_TOTAL_MS);
	SET(CURLOPT_MAXAGE_CONN, (long)IDLE_SECONDS);
	SET(CURLOPT_HTTPHEADER, f->headers);
	SET(CURLOPT_POST, 1L);
	SET(CURLOPT_POSTFIELDS, (char *)f->body);
	SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)sizeof f->body);
	SET(CURLOPT_WRITEFUNCTION, on_body);
	SET(CURLOPT_WRITEDATA, f);
	SET(CURLOPT_HEADERFUNCTION, on_head);
	SET(CURLOPT_HEADERDATA, f);
	SET(CURLOPT_QUICK_EXIT, 1L);
#undef SET
	return c == CURLE_OK;
}

static void clear(struct flight *f)
{
	for (struct curl_slist *h = f->headers; h != NULL; h = h->next)
		wipe(h->data, strlen(h->data));
	curl_slist_free_all(f->headers);
	if (f->handle != NULL)
		curl_easy_cleanup(f->handle);
	*f = (struct flight){.sender = f->sender};
}

bool sender_begin(struct sender *s, const struct letter *l)
{
	struct flight *f = NULL;
	for (size_t i = 0; i < SEND_MOST && f == NULL; i++)
		if (s->flights[i].handle == NULL)
			f = &s->flights[i];
	if (f == NULL)
		return false;
	*f = (struct flight){.sender = s, .receipt = {.id = l->id}, .handle = curl_easy_init()};
	memcpy(f->receipt.tenant, l->tenant, sizeof f->receipt.tenant);
	memcpy(f->body, l->body, sizeof f->body);
	if (f->handle == NULL || !make_headers(f, l) || !set_up(f, l) ||
	    curl_multi_add_handle(s->multi, f->handle) != CURLM_OK) {
		clear(f);
		return false;
	}
	s->busy++;
	return true;
}

/* What is known of one that is over. Headers that came count, whatever happened to the connection behind them. */
static void settle(struct flight *f, CURLcode code)
{
	struct receipt *r = &f->receipt;
	long status = 0;
	if (curl_easy_getinfo(f->handle, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK && status >= 200 && status <= 599)
		r->status = (unsigned)status;
	r->outcome = outcome_of(r->status);
	if (r->status != 0)
		return;
	r->retry_after = 0;
	r->why = curl_easy_strerror(code); /* a fixed phrase, without the address */
	if (f->refused != NULL && f->tried == 0) {
		r->outcome = PUSH_REFUSED;
		r->why = f->refused;
	}
}

void sender_turn(struct sender *s, int timeout_ms, struct pollfd *others, unsigned n)
{
	struct curl_waitfd fds[4] = {0};
	int running = 0, left;
	CURLMcode m = curl_multi_perform(s->multi, &running);
	if (n > sizeof fds / sizeof fds[0])
		panic("too many descriptors");
	for (unsigned i = 0; i < n; i++)
		fds[i] = (struct curl_waitfd){.fd = others[i].fd, .events = CURL_WAIT_POLLIN};
	bool over = false;
	for (const CURLMsg *msg; (msg = curl_multi_info_read(s->multi, &left)) != NULL;) {
		struct flight *f = NULL;
		if (msg->msg != CURLMSG_DONE || curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &f) != CURLE_OK)
			continue;
		settle(f, msg->data.result);
		curl_multi_remove_handle(s->multi, f->handle);
		f->over = over = true;
	}
	if (m == CURLM_OK)
		m = curl_multi_poll(s->multi, fds, n, over ? 0 : timeout_ms, NULL);
	if (m != CURLM_OK)
		fatal("libcurl: %s", curl_multi_strerror(m));
	for (unsigned i = 0; i < n; i++)
		others[i].revents = fds[i].revents;
}

bool sender_take(struct sender *s, struct receipt *out)
{
	for (size_t i = 0; i < SEND_MOST; i++) {
		struct flight *f = &s->flights[i];
		if (!f->over)
			continue;
		*out = f->receipt;
		clear(f);
		s->busy--;
		return true;
	}
	return false;
}
