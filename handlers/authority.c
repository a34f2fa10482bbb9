/*
 * Reads the Authorization value, or a device's cookie in a request of our own page, asks stored whose token it is, and
 * holds the principal against the route's row. Trusts nothing the web server says about users; only PINFOLD_TENANT, and
 * that only to narrow. Never keeps a token: the only thing that leaves this file is its public id and its hash, to
 * stored and to known.c.
 */
#include "handlers/authority.h"
#include "gen/store_msg.h"
#include "handlers/cookie.h"
#include "handlers/known.h"
#include "lib/ask.h"
#include "lib/num.h"
#include "lib/secret.h"
#include "lib/token.h"
#include <stdio.h>
#include <string.h>

static const char scheme[] = "Bearer ";
static const char absent[] = "No Authorization header arrived. Send the token as \"Authorization: Bearer ...\"; if you "
			     "did, the web server drops it (Apache needs \"CGIPassAuth On\").";

enum err authority_check(const struct app *app, const struct conf *conf, struct ask *a, const struct arrival *in,
			 struct principal *who, const char **say)
{
	char cookie[PRINCIPAL_TOKEN_LEN + 1];
	const char *token = cookie;
	*say = NULL;
	if (in->authorization != NULL && in->authorization[0] != '\0') {
		if (strncmp(in->authorization, scheme, sizeof scheme - 1) != 0)
			return ERR_UNAUTHORIZED;
		token = in->authorization + sizeof scheme - 1;
	} else if (!cookie_find(in, cookie)) {
		*say = absent;
		return ERR_UNAUTHORIZED;
	} else if (!origin_ours(conf, in)) {
		wipe(cookie, sizeof cookie);
		return ERR_CROSS_ORIGIN_REFUSED;
	}
	enum principal_kind kind;
	struct proof proof;
	/* The form has no comma and no blank, so two joined headers never pass. */
	enum err e = principal_parse(token, strlen(token), &kind, proof.id, proof.hash);
	wipe(cookie, sizeof cookie);
	if (e != ERR_OK)
		return e;
	/* The only thing that was ever set as a cookie. */
	if (token == cookie && kind != PRINCIPAL_DEVICE)
		return ERR_UNAUTHORIZED;
	/* What it claims to be; only a later line makes it so. */
	snprintf(who->by, sizeof who->by, "unproven %s:%s", kind == PRINCIPAL_API ? "api" : "device", proof.id);
	struct st_principal question = {.token_id = proof.id, .hash = {proof.hash, sizeof proof.hash}};
	struct st_principal_is answer;
	e = st_call_principal(a, &question, NULL, &answer, NULL);
	/* Whatever else went wrong says nothing about the token. */
	if (e == ERR_DEVICE_EXPIRED)
		return e;
	if (e != ERR_OK && e != ERR_UNAUTHORIZED)
		return err_row(e)->status >= 500 ? e : ERR_INTERNAL_ERROR;
	if (e != ERR_OK || answer.kind != kind) {
		known_drop(app->known, &proof);
		return ERR_UNAUTHORIZED;
	}
	*who = (struct principal){.kind = answer.kind, .rights = answer.rights};
	snprintf(who->tenant, sizeof who->tenant, "%s", answer.tenant);
	snprintf(who->id, sizeof who->id, "%s", proof.id);
	memcpy(who->hash, proof.hash, sizeof who->hash);
	snprintf(who->label, sizeof who->label, "%s", answer.label);
	/* created_by takes 64 bytes; the public id is always short, a label may not be. */
	snprintf(who->by, sizeof who->by, "%s:%s", kind == PRINCIPAL_API ? "api" : "device", proof.id);
	if (kind == PRINCIPAL_API)
		known_keep(app->known, &proof, who);
	return ERR_OK;
}

bool authority_guess(const struct app *app, const struct arrival *in, struct principal *who, struct proof *proof)
{
	enum principal_kind kind;
	const char *token = in->authorization;
	if (app->known == NULL || token == NULL || strncmp(token, scheme, sizeof scheme - 1) != 0)
		return false;
	token += sizeof scheme - 1;
	return principal_parse(token, strlen(token), &kind, proof->id, proof->hash) == ERR_OK &&
	       kind == PRINCIPAL_API && known_find(app->known, proof, who);
}

enum err authority_permit(const struct principal *who, const struct route *route, const char *vhost_tenant)
{
	unsigned bit = who->kind == PRINCIPAL_API ? ROUTE_API : who->kind == PRINCIPAL_DEVICE ? ROUTE_DEVICE : 0;
	if (vhost_tenant != NULL && strcmp(vhost_tenant, who->tenant) != 0)
		return ERR_TENANT_MISMATCH;
	unsigned lacks = bit == ROUTE_API ? route->rights & ~who->rights : 0;
	/* Automation does not answer for a person. */
	if (bit == ROUTE_API && (route->principals == ROUTE_DEVICE || (lacks & RIGHT_APPROVE) != 0))
		return ERR_DEVICE_REQUIRED;
	if ((route->principals & bit) == 0 || lacks != 0)
		return ERR_FORBIDDEN;
	return ERR_OK;
}
