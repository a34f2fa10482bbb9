/*
 * The model route: token (already verified) -> body -> one unit of budget -> forward, in that order
 * . What was consumed is never given back. A refusal of any kind contacts nobody.
 */
#include "gateway/gateway.h"
#include "gateway/stream_out.h"
#include "gen/limits.h"
#include "gen/routes.h"
#include "gen/store_msg.h"
#include "lib/die.h"
#include "lib/lack.h"
#include <stdio.h>
#include <string.h>

/* Every way of not being active looks the same from a box. */
static enum err verdict(enum err e)
{
	switch ((int)e) {
	case ERR_EXPIRED_RUN_TOKEN:
	case ERR_RUN_NOT_FOUND:
	case ERR_NOT_FOUND:
		return ERR_INACTIVE_RUN_TOKEN;
	default:
		return e;
	}
}

static enum err look(struct ask *store, const char *tenant, const char *run, bool *renewed)
{
	struct st_cap_check m = {.tenant = tenant, .run = run};
	struct st_cap_is is = {0};
	enum err e = store ? st_call_cap_check(store, &m, NULL, &is, NULL) : ERR_STORE_UNAVAILABLE;

	*renewed = is.renewed;
	return e == ERR_MODEL_REQUEST_BUDGET_EXHAUSTED ? ERR_OK : verdict(e);
}

enum err gate_alive_run(struct ask *store, const char *tenant, const char *run)
{
	bool renewed;
	return look(store, tenant, run, &renewed);
}

enum err gate_alive(struct gate_call *call)
{
	return gate_alive_run(call->store, call->box->tenant, call->box->run);
}

/* Is a token good whose own time is over, as its run's capability was given a further life? */
static enum err look_renewed(struct gate_call *call)
{
	bool renewed = false;
	enum err e = look(call->store, call->box->tenant, call->box->run, &renewed);

	return (e == ERR_OK && !renewed) || e == ERR_INACTIVE_RUN_TOKEN ? ERR_EXPIRED_RUN_TOKEN : e;
}

/* What the box's run is bound to. Nothing: the run is over or the store would not say. */
static void learn(struct gate_call *call)
{
	struct st_cap_check m = {.tenant = call->box->tenant, .run = call->box->run};
	struct st_cap_is is;

	if (!call->store || st_call_cap_check(call->store, &m, NULL, &is, NULL) != ERR_OK)
		return;
	snprintf(call->learnt.model, sizeof call->learnt.model, "%s", is.model);
	snprintf(call->learnt.agent, sizeof call->learnt.agent, "%s", is.agent);
	snprintf(call->learnt.profile, sizeof call->learnt.profile, "%s", is.profile);
}

void gate_know(struct gate_call *call)
{
	if (call->renew)
		call->known = look_renewed(call);
	if (call->learn)
		learn(call);
}

/* The i-th that this call may be meant for, or NULL behind the last: of the terms in force, and then what only those
 * of its box have. */
static const struct upstream_target *choice(const struct gate_call *call, uint32_t i, bool *skip)
{
	uint32_t n = call->terms->ntargets;
	const struct upstream_target *t = i < n                            ? &call->terms->targets[i]
					  : i - n < call->before->ntargets ? &call->before->targets[i - n]
									   : NULL;

	*skip = t && (!t->url[call->format->id] || strcmp(t->profile->model, call->claims.model) != 0 ||
		      (i >= n && (call->before == call->terms || terms_offer(call->terms, t))));
	return t;
}

/* What the agent's profile says, as far as the model profile's provider speaks it. */
static void rules_of(struct policy_rules *r, const struct cf_agent *agent, const struct cf_provider *provider)
{
	unsigned asked = agent->model_format > 0 ? 1U << (agent->model_format - 1) : POLICY_FORMATS;

	r->formats = 0;
	for (int f = 0; provider && f < FORMAT__COUNT; f++) {
		const struct format *format = format_get((enum format_id)f);
		if (strcmp(format->protocol, provider->protocol) == 0 && asked & 1U << format->with)
			r->formats |= 1U << f;
	}
	r->max_output_tokens = agent->max_output_tokens;
	r->effort = (enum effort)agent->reasoning_effort_max;
	r->body_max = agent->request_bytes;
	r->chat_cap = provider && *provider->output_cap ? provider->output_cap : NULL;
	r->stream = agent->model_stream != 2;
	r->buffered = agent->model_stream == 1;
}

void gate_rules(struct gate_call *call)
{
	struct policy_rules *r = &call->rules;
	const struct conf *conf = call->before->conf;

	const struct cf_agent *agent = *call->box->agent ? conf_agent(conf, call->box->agent) : NULL;

	call->agent = agent;
	*r = (struct policy_rules){.formats = 1 << FORMAT_CHAT,
				   .max_output_tokens = LIMIT_MODEL_MAX_TOKENS,
				   .body_max = LIMIT_MODEL_REQUEST_BYTES,
				   .model = call->claims.model,
				   .upstream_model = call->claims.model,
				   .tenant = call->box->tenant,
				   .cache_key = call->terms->token_key};
	/* Nobody knows whose it is any more: it will be refused, in the words that its route stands for. */
	if (!agent && call->format && call->format->id != FORMAT_CHAT)
		*r = (struct policy_rules){.kind = POLICY_AGENT, .body_max = LIMIT_MODEL_REQUEST_BYTES};
	if (!agent || !policy_kind_named(agent->policy, &r->kind))
		return;
	const struct cf_profile *p = conf_profile(conf, call->box->profile);
	const struct cf_provider *provider = p ? conf_provider(conf, p->provider) : NULL;
	if (r->kind != POLICY_STRICT)
		rules_of(r, agent, provider);
	else if (provider && strcmp(provider->protocol, format_get(FORMAT_CHAT)->protocol) != 0)
		r->formats = 0; /* chats alone, and its provider speaks none */
}

size_t gate_body_max(const struct gate_call *call)
{
	size_t most = call->found.route->body_limit;
	return call->format && call->rules.body_max < most ? call->rules.body_max : most;
}

/* What the run's capability is bound to, if t is what it means: the way there and what its agent may ask. */
static bool capability(const struct gate_call *call, const struct upstream_target *t, uint8_t print[32])
{
	memcpy(print, t->fingerprint, 32);
	return !call->agent || conf_capability(call->agent, t->fingerprint, print);
}

/*
 * What a call can cost at most: no token of what is sent is shorter than a byte, and the provider's own words around it
 * (a chat's frame, how tools are explained) are fewer than the margin; its answer is capped. Counting is for nothing.
 */
static uint64_t worst(const struct gate_call *call)
{
	return call->format->cap ? call->request.body.n + call->request.cap + GATE_MARGIN : 0;
}

/*
 * Does nobody know what it cost? Known: the answer said so; the provider refused; it was not asked, or was gone before
 * its first byte. Whoever was cut off or kept us waiting may have worked.
 */
static bool unsure(const struct gate_call *call)
{
	const struct upstream_answer *a = &call->answer;

	if (!a->asked || a->status >= 300)
		return false;
	if (a->e == ERR_OK && a->prompt_tokens + a->completion_tokens > 0)
		return false;
	return a->status > 0 || a->e != ERR_MODEL_UNREACHABLE || flight_ended(&call->flight) != FLIGHT_ON;
}

/*
 * Spends one unit at the profile that the run is bound to. Profiles may share a model; the capability's
 * fingerprint says which one is meant, and a profile that is not it spends nothing.
 */
static enum err consume(struct gate_call *call)
{
	const struct upstream_target *t;
	struct st_cap_is is;
	enum err e = ERR_PROVIDER_NOT_CONFIGURED;
	struct ask *a = call->store;
	bool skip;

	if (!a)
		return ERR_STORE_UNAVAILABLE;
	for (uint32_t i = 0; (t = choice(call, i, &skip)) != NULL; i++) {
		if (skip)
			continue;
		uint8_t print[32];
		if (!capability(call, t, print)) {
			e = lack_error();
			break;
		}
		struct st_cap_consume m = {.tenant = call->box->tenant,
					   .run = call->box->run,
					   .model = call->claims.model,
					   .fingerprint = {print, sizeof print},
					   .tokens = worst(call)};
		e = verdict(st_call_cap_consume(a, &m, NULL, &is, NULL));
		call->target = t;
		if (call->key) {
			call->own = *t;
			call->own.key = call->key;
			call->target = &call->own;
		}
		call->reserved = m.tokens;
		call->reserved_at = is.reserved_at;
		call->retry_after = ask_retry_after(a);
		if (e != ERR_INACTIVE_RUN_TOKEN)
			break;
	}
	return e;
}

/* Writes down what the call came to. ERR_OK only where the run's capability is still there: the last look. */
static enum err record(struct gate_call *call, const char *outcome)
{
	const struct upstream_answer *answer = &call->answer;
	struct st_model_called m = {.tenant = call->box->tenant,
				    .run = call->box->run,
				    .status = (uint16_t)answer->status,
				    .outcome = outcome,
				    .prompt_tokens = answer->prompt_tokens,
				    .completion_tokens = answer->completion_tokens,
				    .duration_ms = answer->duration_ms,
				    .reserved = call->reserved,
				    .reserved_at = call->reserved_at,
				    .keep = unsure(call)};
	struct st_called_is is = {0};
	enum err e = call->store ? st_call_model_called(call->store, &m, NULL, &is, NULL) : ERR_STORE_UNAVAILABLE;

	if (e == ERR_RUN_SESSION_EVENTS_REJECTED)
		e = ERR_INACTIVE_RUN_TOKEN; /* the run has ended */
	else if (e != ERR_OK)
		log_warn("run %s: model.called was not recorded: %s", call->box->run, err_code(e));
	return e == ERR_OK && !is.deliver ? ERR_INACTIVE_RUN_TOKEN : verdict(e);
}

/*
 * What the provider said reaches the box only where, after it was written down, the run may still ask, the box is there
 * and somebody waits.
 */
static enum err settle(struct gate_call *call)
{
	struct upstream_answer *answer = &call->answer;
	enum flight_end end = flight_ended(&call->flight);

	bool streamed = call->relay && call->relay->streams;
	if (end == FLIGHT_ON && answer->e == ERR_OK && !streamed)
		answer->e = answer_judge(call->target, call->format, answer, call->request.usage,
					 call->relay ? &call->relay->last : NULL);
	enum err e = answer->e;
	bool fine = answer->status >= 200 && answer->status < 300;
	end = flight_ended(&call->flight);
	const char *outcome = end == FLIGHT_CLIENT_LEFT ? "client_left"
			      : end != FLIGHT_ON        ? err_code(ERR_INACTIVE_RUN_TOKEN)
			      : e != ERR_OK             ? err_code(e)
			      : fine                    ? "ok"
							: "provider_refused";
	if (e != ERR_OK && end == FLIGHT_ON)
		log_warn("run %s: model call failed: %s (provider status %u)", call->box->run, outcome, answer->status);
	if (answer->says_key)
		keys_said(call);
	enum err may = record(call, outcome);
	end = flight_ended(&call->flight);
	call->cut = end == FLIGHT_BOX_GONE || end == FLIGHT_CLIENT_LEFT;
	if (end != FLIGHT_ON)
		return ERR_INACTIVE_RUN_TOKEN;
	return may != ERR_OK ? may : e;
}

/* The answer of the provider, as the call's client may have it. */
static void deliver(struct gate_call *call)
{
	struct upstream_answer *answer = &call->answer;
	struct refusal r;

	if (call->rules.kind != POLICY_STRICT) {
		if (!format_upstream(call->format, answer->status, answer->retry_after, &r)) {
			gate_refuse(call, &r, NULL);
			return;
		}
		call->stop = r.stop;
		call->retry = r.retry_after > 0;
		call->retry_after = r.retry_after;
	} else
		r.status = answer->status;
	call->status = r.status;
	/* It is the reply, not a copy of it. */
	struct buf said = answer->body;
	answer->body = call->reply;
	call->reply = said;
}

void gate_settle(struct gate_call *call)
{
	enum err e = settle(call);
	struct relay *r = call->relay;
	bool whole = r && e == ERR_OK && !r->streams && call->answer.status < 300;

	if (r && (r->streams || whole)) {
		/* One that came whole is not said before here. */
		r->begun = true;
		call->status = whole ? call->answer.status : call->status;
		r->clean = e == ERR_OK;
		/* The provider broke off: the box has what came before that. Everybody else ends it where it is. */
		r->drop = e != call->answer.e;
		return;
	}
	if (e != ERR_OK)
		gate_fail(call, e, NULL);
	else
		deliver(call);
	if (!r)
		return;
	buf_reset(&r->last);
	/* A box that was told that there is a stream has it as its event, and then the connection breaks off. */
	if (r->begun) {
		/* By a status of these, which it does not see, its client would not ask again. */
		bool stop = call->stop || (!call->retry && call->status >= 400 && call->status < 500);
		stream_out_error(call->format, &call->reply, stop, call->retry ? call->retry_after : 0,
				 call->request_id, &r->last);
		r->clean = call->format->fails && flight_ended(&call->flight) == FLIGHT_ON;
	}
}

static bool model_known(const struct terms *terms, const char *model)
{
	for (uint32_t i = 0; i < terms->ntargets; i++)
		if (strcmp(terms->targets[i].profile->model, model) == 0)
			return true;
	return false;
}

/* One unit. ERR_OK: the call has a target, and the provider is asked. */
static enum err spend(struct gate_call *call)
{
	const struct conf_tenant *tenant = conf_tenant(call->terms->conf, call->box->tenant);
	enum err e = tenant ? flight_room(call->app->flights, &call->flight, tenant->t.max_model_calls_run,
					  tenant->t.max_model_calls)
			    : ERR_OK;

	if (e != ERR_OK) { /* a dead run hears that it is dead, whatever others do */
		enum err alive = gate_alive(call);
		call->retry_after = 1;
		return alive == ERR_OK ? e : alive;
	}
	e = consume(call);
	if (e == ERR_PROVIDER_NOT_CONFIGURED) {
		/* Nothing was spent; a dead run still hears that it is dead. */
		enum err alive = gate_alive(call);
		e = alive == ERR_OK ? e : alive;
	}
	if (e != ERR_OK)
		call->target = NULL;
	return e;
}

void gate_model_call(struct gate_call *call)
{
	struct arena arena own_arena = {0};
	struct model_request *request = &call->request;
	char field[SCHEMA_FIELD] = "";
	request->format = call->format;
	bool large = call->rules.kind != POLICY_STRICT;

	if (!(call->rules.formats & 1U << call->format->id)) {
		enum err alive = gate_alive(call);
		gate_fail(call, alive == ERR_OK ? ERR_MODEL_FORMAT_NOT_SERVED : alive, NULL);
		return;
	}
	/* The address that is asked is the operator's, and no part of it a caller's. */
	if (call->format->verb && strcmp(call->found.arg[0], call->claims.model) != 0) {
		gate_fail(call, ERR_MODEL_NOT_ALLOWED, "model");
		return;
	}
	if (call->format->always && !gemini_as_events(call->path)) {
		gate_fail(call, ERR_MODEL_STREAM_NOT_SSE, NULL);
		return;
	}
	arena_init(&arena, large ? GATE_ARENA_LARGE : GATE_ARENA);
	const struct json *body = json_parse(&arena, call->body.p, call->body.n, JSON_DEPTH_MODEL,
					     large ? GATE_NODES_LARGE : GATE_NODES, NULL);
	if (!body) {
		gate_fail(call, lack_or(ERR_INVALID_JSON), NULL);
		return;
	}
	enum err e = policy_apply(&call->rules, call->format, body, request, field);
	if (e == ERR_OK && !model_known(call->terms, call->claims.model) &&
	    !model_known(call->before, call->claims.model)) {
		e = ERR_MODEL_NOT_ALLOWED;
		snprintf(field, sizeof field, "model");
	}
	if (e == ERR_OK) {
		memcpy(request->version, call->version, sizeof request->version);
		memcpy(request->beta, call->beta, sizeof request->beta);
		*field = 0;
		gate_drift(call, request);
		e = spend(call);
	}
	if (e != ERR_OK)
		gate_fail(call, e, field);
}

void gate_chat(struct gate_call *call)
{
	gate_model_call(call);
}

void gate_responses(struct gate_call *call)
{
	gate_model_call(call);
}

void gate_messages(struct gate_call *call)
{
	gate_model_call(call);
}

void gate_count_tokens(struct gate_call *call)
{
	gate_model_call(call);
}

void gate_models(struct gate_call *call)
{
	struct jw w;
	enum err e = gate_alive(call);

	if (e != ERR_OK) {
		gate_fail(call, e, NULL);
		return;
	}
	call->status = 200;
	jw_init(&w, &call->reply);
	jw_open(&w, '{');
	jw_kstr(&w, "object", "list");
	jw_key(&w, "data");
	jw_open(&w, '[');
	jw_open(&w, '{');
	jw_kstr(&w, "id", call->claims.model);
	jw_kstr(&w, "object", "model");
	jw_kstr(&w, "owned_by", "pinfold");
	bool others = call->rules.kind != POLICY_STRICT; /* what clients of messages look for as well */
	if (others) {
		jw_kint(&w, "created", 0);
		jw_kstr(&w, "type", "model");
		jw_kstr(&w, "display_name", call->claims.model);
		jw_kstr(&w, "created_at", "1970-01-01T00:00:00Z");
	}
	jw_close(&w, '}');
	jw_close(&w, ']');
	if (others) {
		jw_kbool(&w, "has_more", false);
		jw_kstr(&w, "first_id", call->claims.model);
		jw_kstr(&w, "last_id", call->claims.model);
	}
	jw_close(&w, '}');
}
