/*
 * Doctor: calls to the web server in front, as a caller would make them, with a token made for that, which expires in
 * ten minutes and is revoked at the end. The token goes to the named server alone: no proxy, no redirect.
 */
#include <curl/curl.h>
#include <string.h>
#include <time.h>

#include "cli/admin.h"
#include "cli/doctor.h"
#include "lib/num.h"

enum { ANSWER_MAX = 4 << 20, TOKEN_MS = 600000, PATIENCE_S = 60 };

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

bool doctor_make_token(struct doctor *d, const char *tenant)
{
	char text[PRINCIPAL_TOKEN_LEN + 1];
	uint8_t hash[32];
	enum principal_kind kind;
	struct st_ok ok;

	if (d->admin == NULL)
		return false;
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

const struct json *doctor_object(struct arena *a, const struct doctor_call *call)
{
	const struct json *v = json_parse(a, call->answer.p, call->answer.n, JSON_DEPTH, 10000, NULL);

	return v != NULL && v->type == JSON_OBJECT ? v : NULL;
}

bool doctor_refused_as(const struct doctor_call *call, const char *code)
{
	own_arena struct arena a;
	arena_init(&a, 1 << 20);
	const struct json *v = doctor_object(&a, call);

	return v != NULL && strcmp(member(v, "error"), code) == 0 && json_get(v, "requestId") != NULL;
}

bool doctor_need_front(struct doctor *d)
{
	if (d->cli->server == NULL)
		found(d, DOCTOR_SKIPPED, "no address: give --server URL before the command, or PINFOLD_URL");
	else if (!d->front)
		found(d, DOCTOR_SKIPPED, "the web server does not answer for Pinfold");
	return d->front;
}

bool doctor_need_token(struct doctor *d)
{
	if (!doctor_need_front(d))
		return false;
	/* Of the tenant that setup makes, where it is still there. */
	if (d->token.n == 0 && d->have_conf && d->conf.ntenants > 0)
		(void)doctor_make_token(d, conf_tenant(&d->conf, "default") != NULL ? "default"
										    : d->conf.tenants[0].t.name);
	if (d->token.n == 0)
		found(d, DOCTOR_SKIPPED,
		      "no token can be made: the service does not answer, or no tenant is configured");
	return d->token.n > 0;
}

bool doctor_asked(struct doctor *d, struct doctor_call *call)
{
	int rc = doctor_http(d, call);

	if (rc != 0)
		found(d, DOCTOR_ERROR, "%s %s: %s", call->method != NULL ? call->method : "GET", call->path,
		      curl_easy_strerror((CURLcode)rc));
	return rc == 0;
}
