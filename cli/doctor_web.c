/*
 * Doctor: the web server in front, asked as a caller would ask it, with a token made for that, which expires in ten
 * minutes and is revoked at the end. The token goes to the named server alone: no proxy, no redirect.
 */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <string.h>
#include <time.h>

#include "cli/admin.h"
#include "cli/doctor.h"
#include "lib/num.h"

enum { ANSWER_MAX = 4 << 20, TOKEN_MS = 600000, PATIENCE_S = 60, GAP_PART = 2 };

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* A token for us alone. */
static bool make_token(struct doctor *d)
{
	char text[PRINCIPAL_TOKEN_LEN + 1];
	uint8_t hash[32];
	enum principal_kind kind;
	struct st_ok ok;

	if (d->token.n > 0)
		return true;
	if (d->admin == NULL || !d->have_conf || d->conf.ntenants == 0)
		return false;
	/* The one that setup makes, where it is still there. */
	const char *tenant = conf_tenant(&d->conf, "default") != NULL ? "default" : d->conf.tenants[0].t.name;
	enum err e = st_call_tenant_put(d->admin, &(struct st_tenant_put){.tenant = tenant}, NULL, &ok, NULL);
	principal_mint(PRINCIPAL_API, text);
	if (e != ERR_OK || principal_parse(text, PRINCIPAL_TOKEN_LEN, &kind, d->token_id, hash) != ERR_OK)
		return false;
	e = st_call_token_create(d->admin,
				 &(struct st_token_create){.tenant = tenant,
							   .kind = PRINCIPAL_API,
							   .token_id = d->token_id,
							   .hash = {hash, sizeof hash},
							   .label = "pinfold doctor",
							   .expires_at = clock_ms() + TOKEN_MS},
				 NULL, &ok, NULL);
	snprintf(d->token_tenant, sizeof d->token_tenant, "%s", tenant);
	bool made = e == ERR_OK && secret_set(&d->token, text, PRINCIPAL_TOKEN_LEN);
	wipe(text, sizeof text);
	return made;
}

void doctor_web_end(struct doctor *d)
{
	struct st_ok ok;

	if (d->token.n > 0 && d->admin != NULL)
		(void)st_call_token_revoke(
		    d->admin, &(struct st_token_revoke){.tenant = d->token_tenant, .token_id = d->token_id}, NULL, &ok,
		    NULL);
	secret_wipe(&d->token);
}

struct arriving {
	struct buf *to;
	double first, last;
};

static size_t take(char *p, size_t size, size_t n, void *user)
{
	struct arriving *a = user;

	a->last = now_ms();
	if (a->first == 0)
		a->first = a->last;
	buf_add(a->to, p, size * n);
	return buf_failed(a->to) ? 0 : size * n;
}

int doctor_http(struct doctor *d, struct doctor_call *call)
{
	struct curl_slist *headers = curl_slist_append(NULL, "Expect:");
	struct arriving a = {.to = &call->answer};
	char url[2048], bearer[128], accept[128];
	size_t base = strlen(d->cli->server);
	struct curl_header *policy;
	CURL *c = curl_easy_init();

	buf_init(&call->answer, ANSWER_MAX);
	while (base > 0 && d->cli->server[base - 1] == '/')
		base--;
	snprintf(url, sizeof url, "%.*s%s", (int)base, d->cli->server, call->path);
	if (!call->anonymous && d->token.n > 0) {
		snprintf(bearer, sizeof bearer, "Authorization: Bearer %.*s", (int)d->token.n,
			 (const char *)d->token.p);
		headers = curl_slist_append(headers, bearer);
		wipe(bearer, sizeof bearer);
	}
	if (call->body != NULL)
		headers = curl_slist_append(headers, "Content-Type: application/json");
	if (call->accept != NULL) {
		snprintf(accept, sizeof accept, "Accept: %s", call->accept);
		headers = curl_slist_append(headers, accept);
	}
	curl_easy_setopt(c, CURLOPT_URL, url);
	curl_easy_setopt(c, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(c, CURLOPT_PROXY, "");
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, &a);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, 10L);
	curl_easy_setopt(c, CURLOPT_TIMEOUT, (long)PATIENCE_S);
	if (call->body != NULL)
		curl_easy_setopt(c, CURLOPT_POSTFIELDS, call->body);
	if (call->method != NULL)
		curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, call->method);
	CURLcode rc = curl_easy_perform(c);
	curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &call->status);
	call->policy = curl_easy_header(c, "Content-Security-Policy", 0, CURLH_HEADER, -1, &policy) == CURLHE_OK;
	call->gap_ms = a.last - a.first;
	for (struct curl_slist *h = headers; h != NULL; h = h->next)
		wipe(h->data, strlen(h->data));
	curl_slist_free_all(headers);
	curl_easy_cleanup(c);
	return (int)rc;
}

/* The answer as an object of ours, or NULL. */
static const struct json *object(struct arena *a, const struct doctor_call *call)
{
	const struct json *v = json_parse(a, call->answer.p, call->answer.n, JSON_DEPTH, 10000, NULL);

	return v != NULL && v->type == JSON_OBJECT ? v : NULL;
}

/* Is this how Pinfold itself refuses? Web servers' own pages are not. */
static bool refused_as(const struct doctor_call *call, const char *code)
{
	own_arena struct arena a;
	arena_init(&a, 1 << 20);
	const struct json *v = object(&a, call);

	return v != NULL && strcmp(member(v, "error"), code) == 0 && json_get(v, "requestId") != NULL;
}

/* False, and skipped is said, where there is nobody to ask. */
static bool need_front(struct doctor *d)
{
	if (d->cli->server == NULL)
		found(d, DOCTOR_SKIPPED, "no address: give --server URL before the command, or PINFOLD_URL");
	else if (!d->front)
		found(d, DOCTOR_SKIPPED, "the web server does not answer for Pinfold");
	return d->front;
}

/* And with a token. */
bool doctor_need_token(struct doctor *d)
{
	if (!need_front(d))
		return false;
	if (!make_token(d))
		found(d, DOCTOR_SKIPPED,
		      "no token can be made: the service does not answer, or no tenant is configured");
	return d->token.n > 0;
}

static bool asked(struct doctor *d, struct doctor_call *call)
{
	int rc = doctor_http(d, call);

	if (rc != 0)
		found(d, DOCTOR_ERROR, "%s %s: %s", call->method != NULL ? call->method : "GET", call->path,
		      curl_easy_strerror((CURLcode)rc));
	return rc == 0;
}

static void server(struct doctor *d)
{
	struct doctor_call call = {.path = "/healthz", .anonymous = true};

	if (d->cli->server == NULL) {
		(void)need_front(d);
		return;
	}
	if (asked(d, &call)) {
		own_arena struct arena a;
		arena_init(&a, 1 << 20);
		d->front = call.status == 200 && strcmp(member(object(&a, &call), "service"), "pinfold") == 0;
		if (d->front)
			found(d, DOCTOR_OK, "%s", d->cli->server);
		else
			found(d, DOCTOR_ERROR, "%s/healthz: %ld, and it is not Pinfold that answers", d->cli->server,
			      call.status);
	}
	buf_free(&call.answer);
}

static void ready(struct doctor *d)
{
	struct doctor_call call = {.path = "/readyz", .anonymous = true};

	if (!need_front(d))
		return;
	if (asked(d, &call) && call.status != 200) {
		own_arena struct arena a;
		arena_init(&a, 1 << 20);
		const struct json *v = object(&a, &call), *reasons = v != NULL ? json_get(v, "reasons") : NULL;
		for (const struct json *r = reasons != NULL ? reasons->child : NULL; r != NULL; r = r->next)
			found(d, DOCTOR_ERROR, "%s", r->text != NULL ? r->text : "");
		if (reasons == NULL)
			found(d, DOCTOR_ERROR, "%ld", call.status);
	}
	buf_free(&call.answer);
}

static void tls(struct doctor *d)
{
	char host[256] = "";
	struct in_addr four;

	if (d->cli->server == NULL) {
		(void)need_front(d);
		return;
	}
	if (strncmp(d->cli->server, "http://", 7) != 0)
		return;
	snprintf(host, sizeof host, "%.*s", (int)strcspn(d->cli->server + 7, ":/"), d->cli->server + 7);
	bool own = strcmp(host, "localhost") == 0 || strncmp(d->cli->server + 7, "[::1]", 5) == 0 ||
		   (inet_pton(AF_INET, host, &four) == 1 && (ntohl(four.s_addr) >> 24) == 127);
	if (own)
		found(d, DOCTOR_OK, "plain http, to this machine itself");
	else
		found(d, DOCTOR_WARN, "%s is plain http: tokens can be read on the way", d->cli->server);
}

static void authorization(struct doctor *d)
{
	struct doctor_call call = {.path = "/v1/limits"};

	if (!doctor_need_token(d))
		return;
	if (asked(d, &call) && call.status != 200) {
		own_arena struct arena a;
		arena_init(&a, 1 << 20);
		const struct json *v = object(&a, &call);
		const char *say = v != NULL ? member(v, "message") : "";
		if (call.status == 401 && strstr(say, "No Authorization header") != NULL)
			found(d, DOCTOR_ERROR, "the web server drops the Authorization header");
		else if (call.status == 401)
			found(d, DOCTOR_ERROR,
			      "a token of this instance is refused: the web server changes it, or serves "
			      "another instance");
		else
			found(d, DOCTOR_ERROR, "%ld %s", call.status, v != NULL ? member(v, "error") : "");
	}
	buf_free(&call.answer);
}

/* The letter f, written as only a raw request target keeps it. */
static const char encoded[] = "/v1/%66ront";

static void target(struct doctor *d)
{
	struct doctor_call call = {.path = encoded};

	if (!doctor_need_token(d))
		return;
	if (asked(d, &call)) {
		own_arena struct arena a;
		arena_init(&a, 1 << 20);
		const char *got = member(object(&a, &call), "requestTarget");
		size_t n = strlen(got), m = sizeof encoded - 1;
		if (call.status != 200)
			found(d, DOCTOR_ERROR, "%s: %ld", encoded, call.status);
		else if (n < m || strcmp(got + n - m, encoded) != 0)
			found(d, DOCTOR_ERROR, "%s arrives as %s", encoded, got);
	}
	buf_free(&call.answer);
}

static void methods(struct doctor *d)
{
	struct doctor_call call = {.method = "DELETE", .path = "/v1/runs/pinfold-doctor-asks"};

	if (doctor_need_token(d) && asked(d, &call) && !refused_as(&call, "run_not_found"))
		found(d, DOCTOR_ERROR, "DELETE is answered by the web server itself (%ld)", call.status);
	buf_free(&call.answer);
}

/* As long as a body may be: by the service's own word. */
static size_t body_most(struct doctor *d)
{
	struct doctor_call call = {.path = "/v1/limits"};
	own_arena struct arena a;
	int64_t most = 0;

	arena_init(&a, 1 << 20);
	if (doctor_http(d, &call) == 0) {
		const struct json *v = object(&a, &call);
		v = v != NULL ? json_get(v, "request") : NULL;
		v = v != NULL && v->type == JSON_OBJECT ? json_get(v, "bodyBytes") : NULL;
		if (v == NULL || !json_int(v, 1, 64 << 20, &most))
			most = 0;
	}
	buf_free(&call.answer);
	return (size_t)most;
}

/* No JSON, so that nothing comes of it: Pinfold must be the one who says so. */
static void body(struct doctor *d)
{
	struct doctor_call call = {.method = "POST", .path = "/v1/runs"};
	struct buf b;

	if (!doctor_need_token(d))
		return;
	size_t most = body_most(d);
	if (most == 0) {
		found(d, DOCTOR_SKIPPED, "the service does not say how large a body may be");
		return;
	}
	buf_init(&b, most + 1);
	for (size_t i = 0; i < most; i++)
		buf_addc(&b, ' ');
	call.body = buf_cstr(&b);
	if (call.body != NULL && asked(d, &call) && !refused_as(&call, "invalid_json"))
		found(d, DOCTOR_ERROR, "a body of %zu bytes does not get through (%ld)", most, call.status);
	buf_free(&call.answer);
	buf_free(&b);
}

static void kept(struct doctor *d)
{
	struct doctor_call call = {.path = "/v1/front"};

	if (!doctor_need_token(d))
		return;
	if (asked(d, &call)) {
		own_arena struct arena a;
		arena_init(&a, 1 << 20);
		const struct json *v = object(&a, &call), *keep = v != NULL ? json_get(v, "backendKept") : NULL;
		if (keep == NULL || keep->type != JSON_BOOL)
			found(d, DOCTOR_SKIPPED, "%ld, without a word about it", call.status);
		else if (keep->truth)
			found(d, DOCTOR_WARN,
			      "the web server keeps its connections to Pinfold open: each holds a thread");
	}
	buf_free(&call.answer);
}

/* How far apart two parts arrive that left the service pause ms apart. */
static void judge_gap(struct doctor *d, const struct doctor_call *call, int64_t pause)
{
	if (call->gap_ms < (double)pause / GAP_PART)
		found(d, DOCTOR_ERROR,
		      "what leaves Pinfold is held until the answer is complete: %.0f ms between two parts that left "
		      "%lld ms apart",
		      call->gap_ms, (long long)pause);
	else
		found(d, DOCTOR_OK, "%.0f ms between two parts that left %lld ms apart", call->gap_ms,
		      (long long)pause);
}

static void buffering(struct doctor *d)
{
	struct doctor_call call = {.path = "/v1/front"};
	int64_t pause = 0;

	if (!doctor_need_token(d))
		return;
	if (asked(d, &call)) {
		own_arena struct arena a;
		arena_init(&a, 1 << 20);
		const struct json *v = object(&a, &call), *p = v != NULL ? json_get(v, "pauseMs") : NULL;
		if (p == NULL || !json_int(p, 1, 60000, &pause))
			found(d, DOCTOR_SKIPPED, "%ld: no answer in two parts; try again", call.status);
		else
			judge_gap(d, &call, pause);
	}
	buf_free(&call.answer);
}

/* The same two parts as a stream, with the head that streams have. */
static void events(struct doctor *d)
{
	struct doctor_call call = {.path = "/v1/front", .accept = "text/event-stream"};
	uint64_t pause;

	if (!doctor_need_token(d))
		return;
	if (asked(d, &call)) {
		const char *text = buf_cstr(&call.answer), *p = text != NULL ? strstr(text, "\"pauseMs\":") : NULL;
		if (p != NULL)
			p += strlen("\"pauseMs\":");
		if (p == NULL || strstr(text, "\"last\":true") == NULL ||
		    !num_u64(p, strspn(p, "0123456789"), 1, 60000, &pause))
			found(d, DOCTOR_SKIPPED, "%ld: no stream of two events; try again", call.status);
		else
			judge_gap(d, &call, (int64_t)pause);
	}
	buf_free(&call.answer);
}

/* The files beside the API. Not that each is there: that they are served at all, and guarded. */
static void page(struct doctor *d)
{
	struct doctor_call call = {.path = "/page/app.js", .anonymous = true};

	if (!need_front(d))
		return;
	if (asked(d, &call)) {
		if (call.status != 200)
			found(d, DOCTOR_WARN, "it is not served (%ld); the API works without", call.status);
		else if (!call.policy)
			found(d, DOCTOR_WARN, "it is served without its Content-Security-Policy");
	}
	buf_free(&call.answer);
}

static void profiles(struct doctor *d)
{
	struct doctor_call call = {.path = "/v1/model-profiles"};

	if (!doctor_need_token(d))
		return;
	if (asked(d, &call)) {
		own_arena struct arena a;
		arena_init(&a, 1 << 20);
		const struct json *v = object(&a, &call), *list = v != NULL ? json_get(v, "profiles") : NULL;
		for (const struct json *p = list != NULL ? list->child : NULL; p != NULL; p = p->next) {
			const struct json *is = json_get(p, "ready");
			if (is == NULL || !is->truth)
				found(d, DOCTOR_WARN, "the gateway has no key or no usable address for %s",
				      member(p, "id"));
		}
	}
	buf_free(&call.answer);
}

/* Connects, and TLS; nothing is asked, so nothing is spent. */
static void reachable(struct doctor *d)
{
	if (!d->online) {
		found(d, DOCTOR_SKIPPED, "only with --online");
		return;
	}
	for (uint32_t i = 0; need_conf(d) && i < d->conf.nproviders; i++) {
		const struct cf_provider *p = &d->conf.providers[i];
		CURL *c = curl_easy_init();
		curl_easy_setopt(c, CURLOPT_URL, p->base_url);
		curl_easy_setopt(c, CURLOPT_CONNECT_ONLY, 1L);
		curl_easy_setopt(c, CURLOPT_PROXY, "");
		curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
		curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, 10L);
		if (p->ca_file[0] != '\0')
			curl_easy_setopt(c, CURLOPT_CAINFO, p->ca_file);
		CURLcode rc = curl_easy_perform(c);
		if (rc != CURLE_OK)
			found(d, DOCTOR_ERROR, "provider %s: %s", p->name, curl_easy_strerror(rc));
		curl_easy_cleanup(c);
	}
}

const struct doctor_check doctor_web[] = {
    {"web.server", "the web server answers, and Pinfold is behind it",
     "start it, with the example of etc/web-servers that fits; its user must be in web_group", server},
    {"web.ready", "a run would be taken", "do what the reasons say", ready},
    {"web.tls", "tokens travel by https", "serve Pinfold by https", tls},
    {"web.authorization", "the Authorization header arrives",
     "Apache: \"CGIPassAuth On\" in the <Location>; nginx: pass HTTP_AUTHORIZATION as all headers are", authorization},
    {"web.target", "the request target arrives as it was sent",
     "pass REQUEST_URI as it came (nginx: fastcgi_param REQUEST_URI $request_uri), and rewrite nothing", target},
    {"web.methods", "DELETE gets through", "allow GET, POST and DELETE; remove <Limit> and dav settings", methods},
    {"web.body", "a body of the largest size gets through",
     "nginx: client_max_body_size 2m; lighttpd: server.max-request-size = 2048; Apache: LimitRequestBody 2097152",
     body},
    {"web.keep-alive", "connections to Pinfold are not kept",
     "Apache: remove enablereuse=on; nginx: fastcgi_keep_conn off, and no keepalive in the upstream block", kept},
    {"web.buffering", "what leaves Pinfold arrives at once",
     "lighttpd: server.stream-response-body = 1; Apache: flushpackets=on; nginx: fastcgi_buffering off", buffering},
    {"web.events", "streams of events arrive at once",
     "as for web.buffering; whatever else is between the service and its callers must not hold them either", events},
    {"web.page", "the page for paired devices is served",
     "take the page's part of the example over, with its folder and headers (docs/page.md)", page},
    {"provider.ready", "the gateway has address and key for each model profile",
     "write the key's file (secrets.present, secrets.length), correct base_url, restart the service", profiles},
    {"provider.reachable", "providers can be connected to (--online; nothing is asked or spent)",
     "look at name service, firewall and ca_file", reachable},
    {0}};
