/*
 * The whole pipeline before a handler, for every public route as promised.tab has it: each kind of caller, each
 * method, each content type and size, and the order of refusals. Handlers are witnesses, the store is one function;
 * everything else is the real dispatcher. Then every error that is promised, as it is answered.
 */
#include "gen/routes.h"
#include "gen/store_msg.h"
#include "handlers/dispatch.h"
#include "lib/token.h"
#include "tests/unit/promised.h"
#include "tests/unit/reached.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BIG = 1 << 20 };

static unsigned passed, failed;

/* What is asked, and what came of it. */
static struct {
	unsigned kind, rights; /* of the one token that the store knows now; kind 0: none */
	size_t left;           /* of the body */
	char handler[64], allow[64], code[64], first;
	unsigned status, retry_after, notes;
} now;

static void check(bool ok, const char *route, const char *what)
{
	passed += ok, failed += !ok;
	if (!ok)
		printf("FAIL %s: %s, got %u %s %s\n", route, what, now.status, now.code, now.handler);
}

void reached(const char *handler, struct request *rq, struct reply *rp)
{
	(void)rq;
	snprintf(now.handler, sizeof now.handler, "%s", handler);
	rp->status = 299; /* a witness says nothing, and dispatch() must not say it for it */
}

void reached_inside(const char *handler, struct gate_call *call)
{
	(void)call;
	puts(handler);
	abort();
}

enum err __wrap_st_call_principal(struct ask *a, const struct st_principal *m, const int *fds,
				  struct st_principal_is *answer, int *answer_fds);
enum err __wrap_st_call_principal(struct ask *a, const struct st_principal *m, const int *fds,
				  struct st_principal_is *answer, int *answer_fds)
{
	(void)a, (void)m, (void)fds, (void)answer_fds;
	*answer =
	    (struct st_principal_is){.tenant = "main", .kind = (uint8_t)now.kind, .rights = now.rights, .label = ""};
	return now.kind == 0 ? ERR_UNAUTHORIZED : ERR_OK;
}

enum err __wrap_st_call_audit_note(struct ask *a, const struct st_audit_note *m, const int *fds, struct st_ok *answer,
				   int *answer_fds);
enum err __wrap_st_call_audit_note(struct ask *a, const struct st_audit_note *m, const int *fds, struct st_ok *answer,
				   int *answer_fds)
{
	(void)a, (void)m, (void)fds, (void)answer, (void)answer_fds;
	now.notes++;
	return ERR_OK;
}

static bool head(void *ctx, const struct reply_head *h)
{
	(void)ctx;
	now.status = h->status;
	now.retry_after = h->retry_after;
	snprintf(now.allow, sizeof now.allow, "%s", h->allow != NULL ? h->allow : "");
	return true;
}

static bool body(void *ctx, const void *p, size_t n)
{
	(void)ctx;
	char text[600] = "";
	snprintf(text, sizeof text, "%.*s", (int)n, (const char *)p);
	if (sscanf(text, "{\"error\":\"%63[a-z_]\"", now.code) != 1)
		now.code[0] = '\0';
	return true;
}

/* {"x":"aaa..."} of as many bytes as are wanted. */
static long bytes(void *ctx, void *p, size_t n)
{
	size_t whole = *(size_t *)ctx, at = whole - now.left, i = 0;
	static const char start[] = "{\"x\":\"";
	for (; i < n && now.left > 0; i++, at++, now.left--)
		((char *)p)[i] = at < 6 ? start[at] : at + 2 == whole ? '"' : at + 1 == whole ? '}' : 'a';
	return (long)i;
}

static const struct app app = {.conf = NULL};

struct call {
	const char *method, *path, *type;
	unsigned kind, rights; /* 0: without a token; 9: with one that nobody knows */
	size_t size;
	bool silent; /* no length is announced */
};

static const struct conf *configuration(void)
{
	static struct conf_tenant tenant = {.t = {.name = "main"}};
	static struct conf conf = {.tenants = &tenant, .ntenants = 1};
	return &conf;
}

static void ask(struct call c)
{
	char token[PRINCIPAL_TOKEN_LEN + 1], header[100], length[24];
	struct app with = app;
	struct reply rp;
	memset(&now, 0, sizeof now);
	with.conf = configuration();
	now.kind = c.kind == 9 ? 0 : c.kind;
	now.rights = c.rights;
	now.left = c.size;
	principal_mint(c.kind == PRINCIPAL_DEVICE ? PRINCIPAL_DEVICE : PRINCIPAL_API, token);
	snprintf(header, sizeof header, "Bearer %s", token);
	snprintf(length, sizeof length, "%zu", c.size);
	struct arrival in = {.method = c.method,
			     .mount = "",
			     .path = c.path,
			     .query = "",
			     .authorization = c.kind == 0 ? NULL : header,
			     .content_type = c.type,
			     .content_length = c.silent ? NULL : length,
			     .chunked = c.silent,
			     .body = {bytes, &c.size},
			     .id = "r-1"};
	reply_init(&rp, (struct reply_out){.head = head, .body = body}, in.id);
	dispatch(&with, NULL, &in, &rp);
}

static bool refused(unsigned status, const char *code)
{
	return now.status == status && strcmp(now.code, code) == 0 && now.handler[0] == '\0';
}

static const char a_source[] = "00000000000000000000000000000000000000000000000000000000000000af";

/* The path with its names replaced: a source's by the id of one, others by this. NULL: all by "!", which is no id. */
static const char *filled(const char *path, const char *by)
{
	static char out[200];
	size_t n = 0;
	for (const char *p = path; *p != '\0' && n + sizeof a_source + 2 < sizeof out; p++)
		if (*p == '{') {
			const char *name = strncmp(p, "{sourceId}", 10) == 0 ? a_source : by;
			n += (size_t)snprintf(out + n, sizeof out - n, "%s", by != NULL ? name : "!");
			p += strcspn(p, "}");
		} else
			out[n++] = *p;
	out[n] = '\0';
	return out;
}

struct row {
	char method[16], path[100], handler[64], who[64], type[16];
	unsigned rights;
	size_t limit;
};

static bool understand(struct row *r, char *line)
{
	snprintf(r->method, sizeof r->method, "%s", promised_word(&line));
	snprintf(r->path, sizeof r->path, "%s", promised_word(&line));
	snprintf(r->handler, sizeof r->handler, "%s", promised_word(&line));
	(void)promised_word(&line);
	snprintf(r->who, sizeof r->who, "%s", promised_word(&line));
	(void)promised_word(&line);
	snprintf(r->type, sizeof r->type, "%s", promised_word(&line));
	r->limit = strtoul(promised_word(&line), NULL, 10);
	(void)promised_word(&line);
	r->rights = (strstr(line, "approve") != NULL ? RIGHT_APPROVE : 0) |
		    (strstr(line, "metrics") != NULL ? RIGHT_METRICS : 0);
	return r->rights != 0 || strcmp(line, "none") == 0;
}

static void callers(const struct row *r, struct call c)
{
	static const struct {
		const char *name, *as;
		unsigned kind;
	} kinds[] = {{"api", "an API token", PRINCIPAL_API}, {"device", "a device", PRINCIPAL_DEVICE}};
	bool anyone = strcmp(r->who, "anyone") == 0;
	c.kind = 0;
	ask(c);
	check(anyone ? strcmp(now.handler, r->handler) == 0 : refused(401, "unauthorized"), r->path, "nobody");
	c.kind = 9;
	ask(c);
	check(anyone ? strcmp(now.handler, r->handler) == 0 : refused(401, "unauthorized"), r->path,
	      "an unknown token");
	for (size_t i = 0; i < 2; i++)
		for (unsigned rights = 0; rights < 4; rights++) {
			c.kind = kinds[i].kind;
			c.rights = rights;
			bool may = promised_in(r->who, kinds[i].name) &&
				   (c.kind == PRINCIPAL_DEVICE || (r->rights & ~rights) == 0);
			ask(c);
			bool person = c.kind == PRINCIPAL_API &&
				      (strcmp(r->who, "device") == 0 || (r->rights & ~rights & RIGHT_APPROVE) != 0);
			check(anyone || may ? strcmp(now.handler, r->handler) == 0
					    : refused(403, person ? "device_required" : "forbidden"),
			      r->path, kinds[i].as);
		}
}

static void sizes(const struct row *r, struct call c)
{
	bool json = strcmp(r->type, "json") == 0, archive = strcmp(r->type, "archive") == 0;
	const char *refusal = json ? "json_required" : "archive_required";
	const char *large = archive ? "source_archive_too_large" : "request_too_large";
	/* An archive's body is the handler's to read, and only what is announced is looked at before. */
	for (int silent = 0; silent < 2 - archive; silent++) {
		c.silent = silent;
		c.size = r->limit;
		ask(c);
		check(strcmp(now.handler, r->handler) == 0, r->path, "a body of as many bytes as may be");
		c.size = r->limit + 1;
		ask(c);
		check(refused(413, large), r->path, "a body of one byte more");
	}
	static const char *const others[] = {NULL, "", "text/plain", "application/jsonx",
					     "application/json; charset=latin1"};
	c.silent = false;
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
		c.type = others[i];
		c.size = r->limit;
		ask(c);
		check(json || archive ? refused(415, refusal) : strcmp(now.handler, r->handler) == 0, r->path,
		      "another type");
		c.size = r->limit + 1;
		ask(c);
		check(json || archive ? refused(415, refusal) : refused(413, "request_too_large"), r->path,
		      "another type, too large");
		c.kind = 0;
		ask(c);
		/* Where the body is the credential, nobody is like all others. */
		check(strcmp(r->who, "anyone") == 0 ? now.status >= 413 : refused(401, "unauthorized"), r->path,
		      "nobody, whatever is sent");
		c.kind = strcmp(r->who, "device") == 0 ? PRINCIPAL_DEVICE : PRINCIPAL_API;
	}
}

static void methods(const struct row *r, struct call c)
{
	static const char *const all[] = {"GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "get", ""};
	char have[64] = "", *line;
	struct row other;
	size_t at = 0;
	while ((line = promised_next(&at, "route")) != NULL)
		if (understand(&other, line) && strcmp(other.path, r->path) == 0)
			snprintf(have + strlen(have), sizeof have - strlen(have), "%s%s", have[0] ? ", " : "",
				 other.method);
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		bool there = false;
		for (const char *p = have; !there && all[i][0] != '\0' && (p = strstr(p, all[i])) != NULL; p++)
			there = strcspn(p, ",") == strlen(all[i]);
		c.method = all[i];
		c.kind = 0; /* it is told to anybody */
		ask(c);
		check(there ? now.status != 405 : refused(405, "method_not_allowed") && strcmp(now.allow, have) == 0,
		      r->path, all[i]);
	}
}

static void route(const struct row *r)
{
	struct call c = {.method = r->method,
			 .kind = strcmp(r->who, "device") == 0 ? PRINCIPAL_DEVICE : PRINCIPAL_API,
			 .rights = RIGHT_APPROVE | RIGHT_METRICS,
			 .type = strcmp(r->type, "none") == 0      ? NULL
				 : strcmp(r->type, "archive") == 0 ? "application/zstd"
								   : "application/json",
			 .size = strcmp(r->type, "none") == 0 ? 0 : 10};
	c.path = filled(r->path, "run-1");
	callers(r, c);
	if (strcmp(r->type, "none") != 0)
		sizes(r, c);
	methods(r, c);
	if (strstr(r->path, "{runId}") != NULL) {
		c.path = filled(r->path, NULL);
		ask(c);
		check(refused(404, "run_not_found"), r->path, "no id");
	}
	if (strstr(r->path, "{sourceId}") != NULL) {
		const char *const none[] = {"!", "af",
					    "00000000000000000000000000000000000000000000000000000000000000AF",
					    "00000000000000000000000000000000000000000000000000000000000000af0"};
		for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
			char path[220];
			snprintf(path, sizeof path, "/v1/sources/%s", none[i]);
			c.path = path;
			ask(c);
			check(refused(404, "source_not_found"), r->path, "no id");
		}
	}
	char longer[220];
	snprintf(longer, sizeof longer, "%s/x/y", filled(r->path, "run-1"));
	c.path = longer;
	ask(c);
	check(refused(404, "not_found"), r->path, "a longer path");
}

/* "NUMBER CODE STATUS [retry]": as it is answered. */
static void error(char *line)
{
	struct reply rp;
	enum err e = (enum err)strtoul(promised_word(&line), NULL, 10);
	char code[64];
	snprintf(code, sizeof code, "%s", promised_word(&line));
	unsigned status = (unsigned)strtoul(promised_word(&line), NULL, 10);
	bool later = strcmp(line, "retry") == 0 && (status == 429 || status == 503);
	memset(&now, 0, sizeof now);
	reply_init(&rp, (struct reply_out){.head = head, .body = body}, "r-1");
	reply_error(&rp, e, NULL, NULL);
	check(now.status == status && strcmp(now.code, code) == 0, code, "is answered otherwise");
	check((now.retry_after > 0) == later, code, "with Retry-After exactly where later may be better");
	check(err_row(e)->retry == (strcmp(line, "retry") == 0) && err_find(code) == e, code, "again, or not");
}

int main(void)
{
	struct row r;
	char *line;
	size_t at = 0, routes = 0, errors = 0;
	while ((line = promised_next(&at, "route")) != NULL && ++routes > 0) {
		if (understand(&r, line))
			route(&r);
		else
			check(false, r.path, "a line that cannot be read");
	}
	at = 0;
	while ((line = promised_next(&at, "error")) != NULL && ++errors > 0)
		error(line);
	if (routes == 0 || errors == 0)
		failed++;
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
