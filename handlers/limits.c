/* GET /v1/limits and GET /v1/model-profiles: what this caller's tenant may do. Shows no address and no key. */
#include "gen/limits.h"
#include "gen/routes.h"
#include "gen/store_msg.h"
#include "handlers/reply.h"
#include "handlers/request.h"
#include "handlers/runs.h"
#include "lib/ask.h"
#include <string.h>

enum { ANSWER_BYTES = 200000 };

/* Ends the group before, if there was one. */
static void group(struct jw *w, bool *any, const char *name)
{
	if (*any)
		jw_close(w, '}');
	*any = true;
	jw_key(w, name);
	jw_open(w, '{');
}

void handle_limits(struct request *rq, struct reply *rp)
{
	if (!run_no_query(rq, rp))
		return;
	const struct conf_tenant *tenant = rq->tenant;
	const struct cf_global *global = &rq->conf->global;
	const struct cf_agent *agent = conf_agent(rq->conf, tenant->t.default_agent);
	own_buf struct buf b;
	struct jw w;
	bool any = false;
	buf_init(&b, ANSWER_BYTES);
	jw_init(&w, &b);
	jw_open(&w, '{');
#define GROUP(name) group(&w, &any, name);
#define NUMBER(name, value) jw_kint(&w, name, value);
#define GLOBAL(name, field) jw_kint(&w, name, global->field);
#define TENANT(name, field) jw_kint(&w, name, (int64_t)tenant->t.field);
#define AGENT(name, field) \
	if (agent != NULL) \
		jw_kint(&w, name, (int64_t)agent->field);
	LIMIT_ROWS(GROUP, NUMBER, GLOBAL, TENANT, AGENT)
	jw_close(&w, '}');
	jw_kstrs(&w, "extensions", tenant->t.extensions, tenant->t.extensions_n);
	jw_key(&w, "checks");
	jw_open(&w, '[');
	for (uint32_t i = 0; i < tenant->nchecks; i++)
		jw_kstrs(&w, NULL, tenant->checks[i].argv, tenant->checks[i].argv_n);
	jw_close(&w, ']');
	jw_close(&w, '}');
	reply_json(rp, 200, &b);
}

/*
 * ready: the gateway is up and says that it has all it needs to ask, the provider's address and its key (or that none
 * is needed), for exactly this profile. Whether the provider answers is not tried.
 */
static bool ready(const struct conf *c, const struct cf_profile *p, struct wire_bytes said)
{
	uint8_t print[32];
	if (!conf_fingerprint(c, p, print))
		return false;
	for (uint32_t i = 0; i + sizeof print <= said.n; i += sizeof print)
		if (memcmp(said.p + i, print, sizeof print) == 0)
			return true;
	return false;
}

void handle_model_profiles(struct request *rq, struct reply *rp)
{
	if (!run_no_query(rq, rp))
		return;
	const struct conf *c = rq->conf;
	struct st_profiles_get question = {0};
	struct st_profiles_are said;
	enum err e = st_call_profiles_get(rq->ask, &question, NULL, &said, NULL);
	if (e != ERR_OK) {
		reply_store_error(rp, e, rq->ask);
		return;
	}
	own_buf struct buf b;
	struct jw w;
	buf_init(&b, ANSWER_BYTES);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_key(&w, "profiles");
	jw_open(&w, '[');
	for (uint32_t i = 0; i < c->nprofiles; i++) {
		const struct cf_profile *p = &c->profiles[i];
		if (!conf_profile_allowed(rq->tenant, p->name))
			continue;
		const struct cf_provider *provider = conf_provider(c, p->provider);
		jw_open(&w, '{');
		jw_kstr(&w, "id", p->name);
		jw_kstr(&w, "provider", p->provider);
		jw_kstr(&w, "protocol", provider != NULL ? provider->protocol : "");
		jw_kstr(&w, "model", p->model);
		jw_kbool(&w, "ready", ready(c, p, said.fingerprints));
		jw_close(&w, '}');
	}
	jw_close(&w, ']');
	jw_close(&w, '}');
	reply_json(rp, 200, &b);
}
