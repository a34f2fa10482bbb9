/*
 * What a request's headers say. Trusts no byte of it. Order of checks: form, path, method, token, ids, content type,
 * size; a body is read only after all of these. What only the store can say of a token is asked by a worker, in
 * between.
 */
#include "gateway/gateway.h"
#include "gen/audit.h"
#include "gen/routes.h"
#include "lib/bridged.h"
#include "lib/die.h"
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Headers that decide something: each at most once. */
static const char *const single[] = {
    "host",      "authorization",  "content-length",    "content-type",   "content-encoding", "transfer-encoding",
    "x-api-key", "x-goog-api-key", "anthropic-version", "anthropic-beta", "connection",       "expect"};
enum {
	HEADER_HOST,
	HEADER_AUTHORIZATION,
	HEADER_LENGTH,
	HEADER_TYPE,
	HEADER_CODING,
	HEADER_TRANSFER,
	HEADER_API_KEY,
	HEADER_GOOG_KEY,
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
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:", path[i]))
			return ERR_NOT_FOUND;
	for (const char *s = path; s; s = strchr(s + 1, '/')) {
		size_t part = strcspn(s + 1, "/");
		if (part == 0 || strspn(s + 1, ".") == part)
			return ERR_NOT_FOUND;
	}
	return ERR_OK;
}

/* What is shown as a token: Bearer, or for models as x-api-key or x-goog-api-key; several only where they are equal. */
static bool shown(const struct gate_call *call, const struct head *h, const char **value, size_t *n)
{
	static const char scheme[] = "Bearer ";
	static const int keys[] = {HEADER_API_KEY, HEADER_GOOG_KEY};
	bool model = call->found.route->audience == TOKEN_MODEL;
	const char *bearer = h->value[HEADER_AUTHORIZATION];

	*value = NULL;
	*n = 0;
	if (bearer) {
		if (h->size[HEADER_AUTHORIZATION] < sizeof scheme ||
		    strncasecmp(bearer, scheme, sizeof scheme - 1) != 0)
			return false;
		*value = bearer + sizeof scheme - 1;
		*n = h->size[HEADER_AUTHORIZATION] - (sizeof scheme - 1);
	}
	for (size_t i = 0; model && i < sizeof keys / sizeof *keys; i++) {
		const char *key = h->value[keys[i]];
		if (key && *value && !secret_equal(key, h->size[keys[i]], *value, *n))
			return false;
		if (key && !*value) {
			*value = key;
			*n = h->size[keys[i]];
		}
	}
	return *value != NULL;
}

/* The token has to be of this route's audience and of this connection's run. *old: it is, but its own time is over. */
static enum err by_token(struct gate_call *call, const struct head *h, bool *old)
{
	const char *value;
	size_t n;

	if (!shown(call, h, &value, &n) || n > TOKEN_MAX)
		return ERR_INVALID_RUN_TOKEN;
	enum err e =
	    token_verify(call->terms->token_key, call->terms->token_next, value, n,
			 (enum token_audience)call->found.route->audience, (int64_t)(clock_ms() / 1000), &call->claims);
	bool late = e == ERR_EXPIRED_RUN_TOKEN && call->claims.exp != 0;
	if (e != ERR_OK && !late)
		return e;
	if (strcmp(call->claims.run, call->box->run) != 0 || strcmp(call->claims.tenant, call->box->tenant) != 0)
		return ERR_INVALID_RUN_TOKEN;
	*old = late;
	return e;
}

/*
 * Where no token enters the box, what the listener says is all there is to say: the connection is the run, whatever it
 * sends. Its capability is asked for with each call, as it is with a token.
 */
static void take_wire(struct gate_call *call)
{
	struct token_claims *c = &call->claims;

	*c = (struct token_claims){.audience = (enum token_audience)call->found.route->audience};
	snprintf(c->run, sizeof c->run, "%s", call->box->run);
	snprintf(c->tenant, sizeof c->tenant, "%s", call->box->tenant);
	snprintf(c->model, sizeof c->model, "%s", call->box->model);
}

/* What a box's run is bound to is asked once: it does not change. */
static void take_learnt(struct gate_call *call)
{
	struct box *box = call->box;

	if (*box->agent || !*call->learnt.agent)
		return;
	const struct cf_agent *agent = conf_agent(call->before->conf, call->learnt.agent);
	box->delivery = agent && agent->token_wire ? BOX_WIRE : BOX_FILES;
	box->bridged = agent && bridged_words(agent->argv, agent->argv_n) > 0;
	memcpy(box->agent, call->learnt.agent, sizeof box->agent);
	memcpy(box->profile, call->learnt.profile, sizeof box->profile);
	memcpy(box->model, call->learnt.model, sizeof box->model);
}

/* Is the connection enough to say whose call it is? Behind a bridge, which has tokens that the agent cannot get at,
 * only where the agent asks its model. */
static bool by_wire(const struct gate_call *call)
{
	return call->box->delivery == BOX_WIRE && (!call->box->bridged || call->found.route->audience == TOKEN_MODEL);
}

/* HEAD_ON, HEAD_REFUSED by call->known, or HEAD_ASK. */
static enum head_next authenticate(struct gate_call *call, const struct head *h, bool knew)
{
	struct box *box = call->box;

	if (!knew) {
		call->renew = false;
		call->known = by_token(call, h, &call->renew);
		/* By what the run is bound to: whether no token enters its box, and what its model calls may say. */
		call->learn = !*box->agent && (call->known != ERR_OK || call->found.route->audience == TOKEN_MODEL);
		/* A run that waited for a person may be older than its tokens, which its agent has read once and for
		 * all. */
		if (call->learn || (call->renew && !by_wire(call)))
			return HEAD_ASK;
	} else
		take_learnt(call);
	if (call->known != ERR_OK && by_wire(call)) {
		const char *given;
		size_t n;
		bool any = shown(call, h, &given, &n);
		take_wire(call);
		/* An agent that was given a key shows it where it asks a model, and is asked for nothing elsewhere. */
		if (call->claims.audience != TOKEN_MODEL || keys_own(call, any ? given : NULL, n))
			call->known = ERR_OK;
	}
	/* Routes with a run in their path name it first. */
	if (call->known == ERR_OK && strstr(call->found.route->path, "{runId}") &&
	    strcmp(call->found.arg[0], call->claims.run) != 0)
		call->known = ERR_INVALID_RUN_TOKEN;
	return call->known == ERR_OK ? HEAD_ON : HEAD_REFUSED;
}

/* A box that tries tokens is told to the audit log, but cannot fill it. */
static enum head_next deny(struct gate_call *call, const char *method, const char *path)
{
	if (!pace_take(&call->box->denied, pace_source, timer_ms(), &call->suppressed))
		return HEAD_REFUSED;
	/* Before it is cut, which could leave most of a key. */
	char whole[600];
	int length = snprintf(whole, sizeof whole, "%.16s %.512s", method, path);
	snprintf(call->denied, sizeof call->denied, "%.*s", (int)keys_hide(call, whole, (size_t)length), whole);
	return HEAD_TELL;
}

void gate_tell_denied(struct gate_call *call)
{
	struct box *box = call->box;
	struct st_ok ok;
	struct st_audit_note m = {.event = AUDIT_AUTH_DENIED,
				  .tenant = box->tenant,
				  .run = box->run,
				  .actor = "sandbox",
				  .request_id = call->request_id,
				  .subject = call->denied,
				  .code = (uint16_t)call->known,
				  .suppressed = call->suppressed};

	if (!call->store)
		return;
	enum err told = st_call_audit_note(call->store, &m, NULL, &ok, NULL);
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

static enum err check_body_headers(struct gate_call *call, const struct head *h)
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
	call->declared = declared ? (size_t)length : gate_body_max(call);
	return length > gate_body_max(call) ? ERR_REQUEST_TOO_LARGE : ERR_OK;
}

enum head_next head_check(struct gate_call *call, const char *method, bool knew, enum err *e)
{
	struct head h = {0};
	char path[sizeof call->path];

	*e = ERR_INVALID_REQUEST;
	if (call->path[0] == 0)
		return HEAD_REFUSED;
	MHD_get_connection_values_n(call->connection, MHD_HEADER_KIND, on_header, &h);
	/* Two ways to tell where the body ends are no way. */
	if (h.twice || (h.value[HEADER_LENGTH] && h.value[HEADER_TRANSFER]))
		return HEAD_REFUSED;
	if ((*e = take_path(call->path, path, sizeof path)) != ERR_OK)
		return HEAD_REFUSED;
	route_find(routes_internal, method, path, &call->found);
	*e = call->found.path_known ? ERR_METHOD_NOT_ALLOWED : ERR_NOT_FOUND;
	if (!call->found.route)
		return HEAD_REFUSED;
	call->format = format_of_route(call->found.route->name);
	enum head_next next = authenticate(call, &h, knew);
	if (call->found.route->audience == TOKEN_MODEL)
		gate_rules(call);
	if (next == HEAD_ASK)
		return next;
	if ((*e = call->known) != ERR_OK)
		return deny(call, method, path);
	for (int i = 0; i < ROUTE_ARGS; i++)
		if (call->found.arg[i][0] && !id_valid(call->found.arg[i])) {
			*e = ERR_NOT_FOUND;
			return HEAD_REFUSED;
		}
	format_version(h.value[HEADER_VERSION], call->version);
	format_beta(h.value[HEADER_BETA], call->beta);
	*e = check_body_headers(call, &h);
	return *e == ERR_OK ? HEAD_ON : HEAD_REFUSED;
}
