/* See asking.h. */
#include "tests/store/asking.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct wire_bytes digest_of(char letter)
{
	static uint8_t all[256][32];
	memset(all[(uint8_t)letter], letter, 32);
	return (struct wire_bytes){all[(uint8_t)letter], 32};
}

void run(const char *id)
{
	struct st_run_phase m = {.tenant = "acme", .run = id, .phase = PHASE_EXECUTING};
	struct st_run_state a;
	assert_int_equal(rig_running(fcgi, steward, "acme", id, 5), ERR_OK);
	assert_int_equal(STEWARD(st_call_run_phase(steward, &m, NULL, &a, NULL)), ERR_OK);
}

enum err ask_for(const char *id, const char *request, char what, bool shortened)
{
	struct st_agent_event m = {.request = request,
				   .digest = digest_of(what),
				   .data = BYTES("{\"request_id\":\"q\"}"),
				   .action_id = "call-1",
				   .effect = "execute",
				   .reason = "model_tool",
				   .policy_reason = "ask",
				   .preview = what == '-' ? "" : "make test",
				   .shortened = shortened};
	return ask_person(gateway, id, &m);
}

enum err ask(const char *id, const char *request, char what)
{
	return ask_for(id, request, what, false);
}

const char *poll_of(const char *id, const char *request)
{
	struct st_approval_get m = {.tenant = "acme", .run = id, .request = request};
	struct st_approval_is a;
	enum err e = GATEWAY(st_call_approval_get(gateway, &m, NULL, &a, NULL));
	if (e != ERR_OK)
		return err_code(e);
	return a.status == APPROVAL_PENDING   ? "pending"
	       : a.status == APPROVAL_EXPIRED ? "expired"
					      : decision_names[a.decision];
}

struct st_approval_decided last;

enum err decide_as(const char *by, const char *id, const char *request, uint8_t decision, char what,
		   const char *confirm)
{
	char actor[64];
	struct st_approval_decide m = {.tenant = "acme",
				       .run = id,
				       .request = request,
				       .decision = decision,
				       .confirm = confirm,
				       .device = "phone",
				       .by = by,
				       .actor = actor,
				       .request_id = "rq"};
	(void)snprintf(actor, sizeof actor, "device:%s", by);
	if (what != '\0')
		m.digest = digest_of(what);
	return FCGI(st_call_approval_decide(fcgi, &m, NULL, &last, NULL));
}

enum err decide(const char *id, const char *request, uint8_t decision)
{
	return decide_as("dev-1", id, request, decision, '\0', "");
}

const char *tap(const char *by, const char *id, const char *request, enum err *e)
{
	static char nonce[4][65];
	static unsigned at;
	struct st_approval_confirm m = {.tenant = "acme", .run = id, .request = request, .by = by, .request_id = "rq"};
	struct st_approval_nonce a = {.nonce = ""};
	*e = FCGI(st_call_approval_confirm(fcgi, &m, NULL, &a, NULL));
	if (*e != ERR_OK)
		return NULL;
	char *text = nonce[at++ % 4];
	(void)snprintf(text, 65, "%s", a.nonce);
	return text;
}

unsigned listed(const char *id, const char *request, struct st_approval *out)
{
	return questions_of("acme", id, request, out);
}
