/* Doctor: the web server in front, asked as a caller would ask it (cli/doctor_call.c). */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <dirent.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>

#include "cli/doctor.h"
#include "cli/doctor_seen.h"
#include "lib/num.h"

enum { GAP_PART = 2 };

static void server(struct doctor *d)
{
	struct doctor_call call = {.path = "/healthz", .anonymous = true};

	if (d->cli->server == NULL) {
		(void)doctor_need_front(d);
		return;
	}
	if (doctor_asked(d, &call)) {
		own_arena struct arena a;
		arena_init(&a, 1 << 20);
		d->front = call.status == 200 && strcmp(member(doctor_object(&a, &call), "service"), "pinfold") == 0;
		if (d->front)
			found(d, DOCTOR_OK, "%s", d->cli->server);
		else
			found(d, DOCTOR_ERROR, "%s/healthz: %ld, and it is not Pinfold that answers", d->cli->server,
			      call.status);
		if (call.status == 404)
			remedy(
			    d,
			    "correct the address, with its prefix (--server, PINFOLD_URL); or include the example of "
			    "/etc/pinfold/web-servers in that host; its user must be in web_group (web.group)");
	}
	buf_free(&call.answer);
}

static void ready(struct doctor *d)
{
	struct doctor_call call = {.path = "/readyz", .anonymous = true};

	if (!doctor_need_front(d))
		return;
	if (doctor_asked(d, &call) && call.status != 200) {
		own_arena struct arena a;
		arena_init(&a, 1 << 20);
		const struct json *v = doctor_object(&a, &call), *reasons = v != NULL ? json_get(v, "reasons") : NULL;
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
		(void)doctor_need_front(d);
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
	if (doctor_asked(d, &call) && call.status != 200) {
		own_arena struct arena a;
		arena_init(&a, 1 << 20);
		const struct json *v = doctor_object(&a, &call);
		const char *say = v != NULL ? member(v, "message") : "";
		if (call.status == 401 && strstr(say, "No Authorization header") != NULL)
			found(d, DOCTOR_ERROR, "the web server drops the Authorization header");
		else if (call.status == 401)
			found(d, DOCTOR_ERROR,
			      "a token of this instance is refused: the web server changes it, or serves "
			      "another instance");
		else if (!doctor_refused_as(&call, "tenant_mismatch")) /* it did arrive */
			found(d, DOCTOR_ERROR, "%ld %s", call.status, v != NULL ? member(v, "error") : "");
	}
	buf_free(&call.answer);
}

enum { REFUSED, TAKEN, OTHERS };

/* What becomes of the token at hand at this address. */
static int token_fares(struct doctor *d)
{
	struct doctor_call call = {.path = "/v1/limits"};
	bool got = doctor_asked(d, &call);
	int is = got && call.status == 200                                                  ? TAKEN
		 : got && call.status == 403 && doctor_refused_as(&call, "tenant_mismatch") ? OTHERS
											    : REFUSED;

	buf_free(&call.answer);
	return is;
}

/* An address may be bound to one tenant; the checks that follow need a token of just that one. */
static void bound(struct doctor *d)
{
	if (!doctor_need_token(d))
		return;
	int is = token_fares(d);
	if (is == REFUSED)
		found(d, DOCTOR_SKIPPED, "no token is taken: see web.authorization");
	else if (is == TAKEN)
		found(d, DOCTOR_OK, "a token of %s is taken", d->token_tenant);
	for (uint32_t i = 0; is == OTHERS && i < d->conf.ntenants; i++) {
		doctor_web_end(d);
		if (doctor_make_token(d, d->conf.tenants[i].t.name) && token_fares(d) == TAKEN) {
			found(d, DOCTOR_OK, "this address is the tenant %s's alone", d->token_tenant);
			return;
		}
	}
	if (is == OTHERS)
		found(d, DOCTOR_ERROR,
		      "PINFOLD_TENANT of this address names no tenant of the configuration: every token is refused");
}

/* Is this group among those of the process? A line of its status: "Groups:\t4 33 ". */
static bool has_group(const char *status, gid_t gid)
{
	static const char *const keys[] = {"\nGid:\t", "\nGroups:\t"};

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		const char *p = strstr(status, keys[i]), *end = p != NULL ? strchr(p + 1, '\n') : NULL;
		unsigned long long one;
		int n;
		for (p = p != NULL ? p + strlen(keys[i]) : NULL; p != NULL && p < end; p += n)
			if (sscanf(p, "%llu%n", &one, &n) != 1)
				break;
			else if (one == gid)
				return true;
	}
	return false;
}

static bool is_web_server(const char *status)
{
	static const char *const names[] = {"apache2\n", "httpd\n", "lighttpd\n", "nginx\n"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strncmp(status, "Name:\t", 6) == 0 && strncmp(status + 6, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* Where none of the web servers of this machine may connect to Pinfold, that is why none does. */
static void group(struct doctor *d)
{
	char status[4096], where[900];
	uid_t uid, outside = 0;
	unsigned in = 0;

	if (!need_conf(d))
		return;
	if (d->front) {
		found(d, DOCTOR_OK, "the web server reaches the socket");
		return;
	}
	const gid_t gid = d->conf.global.web_gid;
	DIR *dir = opendir("/proc");
	for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
		uint64_t pid;
		if (!num_u64(e->d_name, strlen(e->d_name), 1, INT32_MAX, &pid) ||
		    seen_text((pid_t)pid, "status", status, sizeof status) <= 0 || !is_web_server(status) ||
		    !seen_uid((pid_t)pid, &uid) || uid == 0)
			continue;
		if (has_group(status, gid))
			in++;
		else
			outside = uid;
	}
	if (dir != NULL)
		closedir(dir);
	const struct group *g = getgrgid(gid);
	char group_name[80];
	snprintf(group_name, sizeof group_name, "%s", g != NULL ? g->gr_name : "");
	const struct passwd *u = outside != 0 ? getpwuid(outside) : NULL;
	if (in > 0) {
		found(d, DOCTOR_OK, "web_group is that of a web server that runs");
	} else if (outside == 0) {
		found(d, DOCTOR_SKIPPED, "no Apache, lighttpd or nginx runs here");
	} else {
		found(d, d->cli->server != NULL ? DOCTOR_ERROR : DOCTOR_WARN,
		      "web_group is %u (%s), and no web server that runs here is in it: none reaches the socket", gid,
		      group_name);
		remedy(d,
		       "usermod -a -G %s %s, and restart the web server; or name its group as web_group in %s and "
		       "systemctl restart pinfold",
		       group_name, u != NULL ? u->pw_name : "ITS-USER", doctor_where(where, NULL, "", "web_group"));
	}
}

/* The letter f, written as only a raw request target keeps it. */
static const char encoded[] = "/v1/%66ront";

static void target(struct doctor *d)
{
	struct doctor_call call = {.path = encoded};

	if (!doctor_need_token(d))
		return;
	if (doctor_asked(d, &call)) {
		own_arena struct arena a;
		arena_init(&a, 1 << 20);
		const char *got = member(doctor_object(&a, &call), "requestTarget");
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

	if (doctor_need_token(d) && doctor_asked(d, &call) && !doctor_refused_as(&call, "run_not_found"))
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
		const struct json *v = doctor_object(&a, &call);
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
	if (call.body != NULL && doctor_asked(d, &call) && !doctor_refused_as(&call, "invalid_json"))
		found(d, DOCTOR_ERROR, "a body of %zu bytes does not get through (%ld)", most, call.status);
	buf_free(&call.answer);
	buf_free(&b);
}

static void kept(struct doctor *d)
{
	struct doctor_call call = {.path = "/v1/front"};

	if (!doctor_need_token(d))
		return;
	if (doctor_asked(d, &call)) {
		own_arena struct arena a;
		arena_init(&a, 1 << 20);
		const struct json *v = doctor_object(&a, &call), *keep = v != NULL ? json_get(v, "backendKept") : NULL;
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
	if (doctor_asked(d, &call)) {
		own_arena struct arena a;
		arena_init(&a, 1 << 20);
		const struct json *v = doctor_object(&a, &call), *p = v != NULL ? json_get(v, "pauseMs") : NULL;
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
	if (doctor_asked(d, &call)) {
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

	if (!doctor_need_front(d))
		return;
	if (doctor_asked(d, &call)) {
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
	if (doctor_asked(d, &call)) {
		own_arena struct arena a;
		arena_init(&a, 1 << 20);
		const struct json *v = doctor_object(&a, &call), *list = v != NULL ? json_get(v, "profiles") : NULL;
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
     "start it (systemctl status apache2, lighttpd or nginx), with its example of /etc/pinfold/web-servers included; "
     "its user "
     "must be in web_group (web.group)",
     server},
    {"web.group", "the web server's user is in web_group", "name its group as web_group in pinfold.conf", group},
    {"web.ready", "a run would be taken",
     "read journalctl -u pinfold for the process that is named; make room (disk.space) where it is storage", ready},
    {"web.tls", "tokens travel by https",
     "serve Pinfold by https: SSLCertificateFile, ssl.pemfile or ssl_certificate of the web server, as docs/install.md "
     "shows",
     tls},
    {"web.authorization", "the Authorization header arrives",
     "Apache: \"CGIPassAuth On\" in the <Location>; nginx: pass HTTP_AUTHORIZATION as all headers are", authorization},
    {"web.tenant", "the tenant to which this address is bound is one of the configuration",
     "correct PINFOLD_TENANT in the web server's configuration of this address, or write the tenant to "
     "tenants.d/NAME.conf "
     "and systemctl restart pinfold",
     bound},
    {"web.target", "the request target arrives as it was sent",
     "pass REQUEST_URI as it came (nginx: fastcgi_param REQUEST_URI $request_uri), and rewrite nothing", target},
    {"web.methods", "DELETE gets through",
     "Apache: remove <Limit>, <LimitExcept> and Dav; nginx: limit_except and dav_methods; lighttpd: url.access-deny of "
     "methods",
     methods},
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
     "take the page's part of the example in /etc/pinfold/web-servers over, with its folder and headers (docs/page.md)",
     page},
    {"provider.ready", "the gateway has address and key for each model profile",
     "write the key's file (secrets.present, secrets.length), correct base_url (config.providers), then systemctl "
     "restart pinfold",
     profiles},
    {"provider.reachable", "providers can be connected to (--online; nothing is asked or spent)",
     "as the gateway's user: curl -v the base_url of providers.d/*.conf; then look at name service, firewall and "
     "ca_file",
     reachable},
    {0}};
