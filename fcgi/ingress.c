/*
 * Walks the whole parameter list once, by exact lengths. Trusts the web server for nothing but these names'
 * values, refuses each of them when it comes twice or holds a control byte, and never copies a parameter
 * into an environment.
 */
#include "fcgi/ingress.h"
#include "gen/routes.h"
#include "lib/num.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum param {
	P_METHOD,
	P_URI,
	P_SCRIPT,
	P_TYPE,
	P_TYPE_SENT,
	P_LENGTH,
	P_AUTH,
	P_ENCODING,
	P_TRANSFER,
	P_ACCEPT,
	P_NONE_MATCH,
	P_IDEMPOTENCY,
	P_LAST_ID,
	P_COOKIE,
	P_HOST,
	P_ORIGIN,
	P_FETCH_SITE,
	P_REMOTE,
	P_TENANT,
	P_REQUEST_ID,
	P__COUNT
};

static const char *const names[P__COUNT] = {
    [P_METHOD] = "REQUEST_METHOD",
    [P_URI] = "REQUEST_URI",
    [P_SCRIPT] = "SCRIPT_NAME",
    [P_TYPE] = "CONTENT_TYPE",
    /* nginx makes the first of several lines CONTENT_TYPE, and passes each as this as well. */
    [P_TYPE_SENT] = "HTTP_CONTENT_TYPE",
    [P_LENGTH] = "CONTENT_LENGTH",
    [P_AUTH] = "HTTP_AUTHORIZATION",
    [P_ENCODING] = "HTTP_CONTENT_ENCODING",
    [P_TRANSFER] = "HTTP_TRANSFER_ENCODING",
    [P_ACCEPT] = "HTTP_ACCEPT",
    [P_NONE_MATCH] = "HTTP_IF_NONE_MATCH",
    [P_IDEMPOTENCY] = "HTTP_IDEMPOTENCY_KEY",
    [P_LAST_ID] = "HTTP_LAST_EVENT_ID",
    [P_COOKIE] = "HTTP_COOKIE",
    [P_HOST] = "HTTP_HOST",
    [P_ORIGIN] = "HTTP_ORIGIN",
    [P_FETCH_SITE] = "HTTP_SEC_FETCH_SITE",
    [P_REMOTE] = "REMOTE_ADDR",
    [P_TENANT] = "PINFOLD_TENANT",
    [P_REQUEST_ID] = "PINFOLD_REQUEST_ID",
};

/* Printable ASCII and tab. REQUEST_URI may hold more: its own parser judges it. SCRIPT_NAME may be the
 * whole path, decoded; what is no mount there is not used. */
static bool value_clean(const struct gate_param *p, bool uri)
{
	for (size_t i = 0; i < p->value_n; i++) {
		unsigned char c = (unsigned char)p->value[i];
		if (uri ? c == 0 : (c < 0x20 && c != '\t') || c >= 0x7f)
			return false;
	}
	return true;
}

static bool name_clean(const struct gate_param *p)
{
	for (size_t i = 0; i < p->name_n; i++) {
		unsigned char c = (unsigned char)p->name[i];
		if (c <= 0x20 || c >= 0x7f || c == '=')
			return false;
	}
	return p->name_n > 0;
}

/* Headers whose lines may be joined by a comma: nginx leaves that to us, the others have done it. */
static const enum param lists[] = {P_ENCODING, P_ACCEPT, P_NONE_MATCH};

/* The joined value, or NULL: k is no list, or too long a one. */
static const char *join(struct ingress *in, enum param k, const char *had, const char *more)
{
	for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
		char *room = in->list[i];
		size_t n = strlen(had), m = strlen(more);
		if (lists[i] != k || n + m + 3 > INGRESS_LIST)
			continue;
		memmove(room, had, n); /* had is room itself from the third line on */
		memcpy(room + n, ", ", 2);
		memcpy(room + n + 2, more, m + 1);
		return room;
	}
	return NULL;
}

/* NULL, or what is wrong with the list. */
static const char *collect(struct ingress *in, const struct gate *g, const char *value[P__COUNT])
{
	for (size_t i = 0; i < g->nparams; i++) {
		const struct gate_param *p = &g->params[i];
		if (!name_clean(p))
			return "A request parameter's name is malformed.";
		if (memchr(p->value, '\0', p->value_n) != NULL)
			return "A request parameter holds a NUL byte.";
		for (enum param k = 0; k < P__COUNT; k++) {
			if (strcmp(p->name, names[k]) != 0)
				continue;
			/* Others may have set cookies, too, as they like: what is not clean, or came twice, is none of
			 * ours. Nor is an id of an event like that any event's. */
			if ((k == P_COOKIE || k == P_LAST_ID) && (value[k] != NULL || !value_clean(p, false))) {
				value[k] = "";
				continue;
			}
			if (k != P_SCRIPT && !value_clean(p, k == P_URI))
				return "A header or request parameter holds bytes that are not printable ASCII.";
			value[k] = value[k] == NULL ? p->value : join(in, k, value[k], p->value);
			if (value[k] == NULL)
				return "A header or request parameter came twice. Send it once.";
		}
	}
	return g->many ? "There are too many headers. Send fewer." : NULL;
}

/* A mount is what links begin with, so it is held to the characters that need no escaping. */
static bool mount_plain(const char *s)
{
	size_t n = strlen(s);
	static const char ok[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
	return n > 1 && n < INGRESS_MOUNT && s[0] == '/' && s[n - 1] != '/' && strspn(s, ok) == n &&
	       strstr(s, "//") == NULL && strstr(s, "/.") == NULL;
}

/*
 * SCRIPT_NAME is the mount where stripping it leaves a path of ours. Web servers that put the whole path
 * there (nginx's and Apache's defaults) or a part of it (a lighttpd prefix such as /v1) leave none, and the
 * path then counts from the root.
 */
static enum uri_verdict locate(struct ingress *in, const char *uri, const char *script, const char **query)
{
	in->mount[0] = '\0';
	uri = uri_origin(uri);
	if (script != NULL && mount_plain(script)) {
		size_t n = strlen(script);
		struct route_found found = {0};
		bool below = strncmp(uri, script, n) == 0 && uri[n] == '/';
		enum uri_verdict v = below ? uri_parse(uri + n, in->path, query) : URI_UNKNOWN;
		if (v == URI_OK || v == URI_ODD) {
			route_find(routes_public, "GET", in->path, &found);
			if (found.path_known) {
				memcpy(in->mount, script, n + 1);
				return v;
			}
		}
	}
	return uri_parse(uri, in->path, query);
}

static void refuse(struct arrival *out, enum err e, const char *why)
{
	if (out->refused == ERR_OK) {
		out->refused = e;
		out->why = why;
	}
}

void ingress_read(struct ingress *in, const struct gate *g, struct arrival *out)
{
	const char *v[P__COUNT] = {NULL};
	*out = (struct arrival){.refused = ERR_OK, .mount = in->mount, .path = in->path};
	uuid4(out->id);
	const char *wrong = collect(in, g, v);
	/*
	 * Only the web server's own configuration can set this parameter: what a client sends is called HTTP_... here,
	 * and its X-Request-Id is ignored. A value that is no id is as good as none.
	 */
	const char *given = v[P_REQUEST_ID];
	if (wrong == NULL && given != NULL && id_valid(given) && strlen(given) < sizeof out->id)
		(void)snprintf(out->id, sizeof out->id, "%s", given);
	out->method = v[P_METHOD] != NULL ? v[P_METHOD] : "";
	out->target = v[P_URI];
	out->kept = g->keep;
	if (wrong != NULL)
		refuse(out, ERR_INVALID_REQUEST, wrong);
	else if (g->role != GATE_RESPONDER)
		refuse(out, ERR_INVALID_REQUEST, "Only the FastCGI role responder is served.");
	else if (*out->method == '\0' || v[P_URI] == NULL)
		refuse(out, ERR_INVALID_REQUEST, "The web server passed no REQUEST_METHOD or no REQUEST_URI.");
	if (out->refused != ERR_OK)
		return;
	switch (locate(in, v[P_URI], v[P_SCRIPT], &out->query)) {
	case URI_OK:
		break;
	case URI_ODD:
		out->odd = true;
		break;
	case URI_UNKNOWN:
		refuse(out, ERR_NOT_FOUND, NULL);
		break;
	case URI_MALFORMED:
		refuse(out, ERR_INVALID_REQUEST,
		       "The request target is malformed. Send a plain path without empty or dot "
		       "segments, encoded slashes or control bytes.");
		break;
	}
	out->content_type = v[P_TYPE];
	out->content_length = v[P_LENGTH];
	out->authorization = v[P_AUTH];
	out->content_encoding = v[P_ENCODING];
	out->accept = v[P_ACCEPT];
	out->chunked = v[P_TRANSFER] != NULL && strcasecmp(v[P_TRANSFER], "chunked") == 0;
	out->if_none_match = v[P_NONE_MATCH];
	out->idempotency_key = v[P_IDEMPOTENCY];
	out->last_event_id = v[P_LAST_ID];
	out->cookie = v[P_COOKIE];
	out->host = v[P_HOST];
	out->origin = v[P_ORIGIN];
	out->fetch_site = v[P_FETCH_SITE];
	out->source = v[P_REMOTE];
	out->vhost_tenant = v[P_TENANT];
}
