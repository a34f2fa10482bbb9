/*
 * The pipeline on one page. The order of checks is the contract's: malformed (400) -> unknown path (404) ->
 * method (405) -> authentication (401) -> id shape (404) -> authority (403) -> content type (415) -> size
 * (413) -> JSON (400) -> schema (400) -> state (409). The last two are the handlers'.
 * Nothing is read of the body, and nothing asked of the store but whose token it is, before the fourth;
 * a caller who is refused there is told to the audit log. Whose credentials are wrong too often hears 429 instead of
 * 401: they are still looked at, so that nobody can have others of the same address shut out. On the two routes that
 * are asked most, a token that stored has vouched for before is taken at its word until the handler's one question,
 * which carries it: stored looks at it first, in the same transaction. Whatever would be said before that is held back
 * until stored was asked by itself.
 */
#include "handlers/dispatch.h"
#include "gen/routes.h"
#include "handlers/archive.h"
#include "handlers/authority.h"
#include "handlers/body.h"
#include "handlers/denied.h"
#include "handlers/runs.h"
#include "handlers/source.h"
#include "lib/num.h"
#include <stdio.h>
#include <string.h>

enum { REQUEST_ARENA = 16 << 20 };

/* The body stages of a request whose caller is known. True: rq->json is set where the route takes JSON. */
static bool take_body(struct request *rq, struct reply *rp)
{
	const char *why = NULL;
	own_buf struct buf body;
	buf_init(&body, (size_t)rq->route->body_limit + 1);
	if (rq->route->body == BODY_NONE)
		return true;
	enum err e = body_admit(rq->in, rq->route);
	if (e == ERR_OK && rq->route->body != BODY_ARCHIVE)
		e = body_read(rq->in, rq->route, &body);
	if (e == ERR_OK && rq->route->body == BODY_JSON)
		e = body_json(rq->arena, &body, &rq->json, &why);
	if (e == ERR_OK)
		return true;
	char say[200];
	snprintf(say, sizeof say, "The body is not valid JSON: %s. Send it again, corrected.", why != NULL ? why : "");
	reply_error(rp, e, NULL, e == ERR_INVALID_JSON && why != NULL ? say : NULL);
	return false;
}

/* ERR_OK: an argument whose name is runId or sourceId has the shape of such an id. */
static enum err ids_shaped(const struct route *route, const struct route_found *found)
{
	size_t i = 0;
	for (const char *p = strchr(route->path, '{'); p != NULL && i < ROUTE_ARGS; p = strchr(p + 1, '{'), i++) {
		if (strncmp(p, "{runId}", 7) == 0 && !id_valid(found->arg[i]))
			return ERR_RUN_NOT_FOUND;
		if (strncmp(p, "{sourceId}", 10) == 0 && !archive_id(found->arg[i], NULL))
			return ERR_SOURCE_NOT_FOUND;
	}
	return ERR_OK;
}

/* Does this route's handler ask stored with the proof, before it does anything? */
static bool proves(const struct route *route)
{
	return route->handle == handle_run_show || route->handle == handle_run_create;
}

/* Says so to the caller and to the audit log. Where no credential came, say says that, and nobody was wrong. */
static void turn_away(const struct request *rq, const struct principal *who, enum err e, const char *say,
		      struct reply *rp)
{
	struct source_verdict v = {0};
	if (e == ERR_UNAUTHORIZED && say == NULL)
		v = sources_failed(rq->app->sources, rq->in->source, timer_ms());
	if (!v.over || v.first)
		denied_note(rq->ask, rq->in, who, v.over ? ERR_TOO_MANY_FAILURES : e);
	if (v.over)
		reply_error_after(rp, ERR_TOO_MANY_FAILURES, v.seconds);
	else
		reply_error(rp, e, NULL, say);
}

/* Instead of an answer to somebody who was only guessed. */
static bool prove(void *ctx, struct reply *rp)
{
	const struct request *rq = ctx;
	struct principal who = {0};
	const char *say;
	enum err e = authority_check(rq->app, rq->conf, rq->ask, rq->in, &who, &say);
	if (e == ERR_OK)
		return true;
	turn_away(rq, &who, e, say, rp);
	return false;
}

/* May who do this? Sets the tenant. */
static enum err admit(struct request *rq, const struct route_found *found, const struct principal *who,
		      const char **say)
{
	enum err e = ids_shaped(found->route, found);
	if (e == ERR_OK)
		e = authority_permit(who, found->route, rq->in->vhost_tenant);
	if (e != ERR_OK)
		return e;
	rq->who = who;
	rq->tenant = conf_tenant(rq->conf, who->tenant);
	if (rq->tenant != NULL)
		return ERR_OK;
	*say = "This token's tenant is not in the configuration; the administrator adds it, or gives another token.";
	return ERR_FORBIDDEN;
}

static void dispatch_under(const struct app *app, const struct conf *conf, struct ask *ask, const struct arrival *in,
			   struct reply *rp)
{
	if (in->refused != ERR_OK) {
		reply_error(rp, in->refused, NULL, in->why);
		return;
	}
	struct route_found found;
	route_find(routes_public, in->method, in->path, &found);
	if (!found.path_known || (in->odd && !found.labelled)) {
		reply_error(rp, ERR_NOT_FOUND, NULL, NULL);
		return;
	}
	if (found.route == NULL) {
		reply_not_allowed(rp, found.allow);
		return;
	}
	rp->route = found.route; /* of a static table */
	own_arena struct arena arena;
	arena_init(&arena, REQUEST_ARENA);
	struct principal who = {0};
	struct request rq = {.app = app, .conf = conf, .in = in, .route = found.route, .ask = ask, .arena = &arena};
	for (size_t i = 0; i < ROUTE_ARGS; i++)
		rq.arg[i] = found.arg[i];
	struct proof proof;
	if ((found.route->principals & ROUTE_NONE) == 0) {
		const char *say = NULL;
		enum err e = ERR_UNAUTHORIZED;
		if (proves(found.route) && authority_guess(app, in, &who, &proof))
			e = admit(&rq, &found, &who, &say);
		if (e == ERR_OK) {
			rq.proof = &proof;
			rp->prove = prove;
			/* cppcheck-suppress autoVariables ; the answer's head is written before this returns */
			rp->prove_ctx = &rq;
		} else {
			e = authority_check(app, conf, ask, in, &who, &say);
			if (e == ERR_OK)
				e = admit(&rq, &found, &who, &say);
		}
		if (e != ERR_OK) {
			turn_away(&rq, &who, e, say, rp);
			return;
		}
	}
	if (take_body(&rq, rp))
		found.route->handle(&rq, rp);
	if (rp->status == 0)
		reply_error(rp, rp->lacked ? rp->error : ERR_INTERNAL_ERROR, NULL, NULL);
}

void dispatch(const struct app *app, struct ask *ask, const struct arrival *in, struct reply *rp)
{
	struct held *h = app->place != NULL ? held_now(app->place) : NULL;
	dispatch_under(app, h != NULL ? &h->conf : app->conf, ask, in, rp);
	held_done(h);
}
