/* The approval poll: what became of a question that this run's agent asked. Never spends. */
#include "gateway/gateway.h"
#include "gen/routes.h"
#include "gen/store_msg.h"
#include "lib/digest.h"
#include "lib/names.h"

/* A run that has ended, and one that never was, look the same. */
static enum err poll(struct gate_call *call, struct st_approval_is *is, uint8_t digest[SHA256_SIZE])
{
	struct st_approval_get m = {.tenant = call->box->tenant, .run = call->box->run, .request = call->found.arg[1]};
	enum err e = gate_alive(call);

	if (e == ERR_INACTIVE_RUN_TOKEN)
		return ERR_APPROVAL_NOT_FOUND;
	if (e != ERR_OK)
		return e;
	e = st_call_approval_get(call->store, &m, NULL, is, NULL);
	/* The answer's bytes live in the connection's buffer: taken before it has its next question. */
	for (uint32_t i = 0; e == ERR_OK && i < SHA256_SIZE; i++)
		digest[i] = i < is->digest.n ? is->digest.p[i] : 0;
	return e;
}

void gate_approval_poll(struct gate_call *call)
{
	struct st_approval_is is = {0};
	uint8_t digest[SHA256_SIZE];
	char text[SHA256_HEX];
	struct jw w;
	enum err e = poll(call, &is, digest);

	if (e == ERR_INACTIVE_RUN_TOKEN || e == ERR_RUN_NOT_FOUND || e == ERR_NOT_FOUND)
		e = ERR_APPROVAL_NOT_FOUND;
	if (e != ERR_OK) {
		gate_fail(call, e, NULL);
		return;
	}
	call->status = is.status == APPROVAL_PENDING ? 202 : 200;
	jw_init(&w, &call->reply);
	jw_open(&w, '{');
	if (is.status == APPROVAL_PENDING)
		jw_kstr(&w, "status", "pending");
	else if (is.status == APPROVAL_DECIDED && is.decision < DECISION__COUNT) {
		hex(digest, sizeof digest, text);
		jw_kstr(&w, "status", "decided");
		jw_kstr(&w, "decision", decision_names[is.decision]);
		jw_kint(&w, "decidedAt", (int64_t)is.decided_at);
		jw_kstr(&w, "digest", text);
	} else
		jw_kstr(&w, "status", "expired");
	jw_close(&w, '}');
}
