/*
 * What a box is told where it gets nothing: our own shape, or that of the call's wire format, by which its client knows
 * whether to ask again. Under policy strict, and where no format is meant, it is our own.
 */
#include "gateway/gateway.h"

static void plain(struct gate_call *call, const struct err_row *row, const char *field)
{
	struct jw w;

	call->status = row->status;
	call->retry = row->retry && (row->status == 429 || row->status == 503);
	jw_init(&w, &call->reply);
	jw_open(&w, '{');
	jw_kstr(&w, "error", row->code);
	jw_kstr(&w, "message", row->sentence);
	if (field && *field)
		jw_kstr(&w, "field", field);
	jw_kstr(&w, "requestId", call->request_id);
	jw_close(&w, '}');
}

void gate_fail(struct gate_call *call, enum err e, const char *field)
{
	buf_reset(&call->reply);
	if (!call->format || call->rules.kind == POLICY_STRICT) {
		plain(call, err_row(e), field);
		return;
	}
	struct refusal r = format_refusal(call->format, e, call->retry_after);
	gate_refuse(call, &r, field);
}

void gate_refuse(struct gate_call *call, const struct refusal *r, const char *field)
{
	buf_reset(&call->reply);
	call->status = r->status;
	call->stop = r->stop;
	call->retry = r->retry_after > 0;
	call->retry_after = r->retry_after;
	format_error(call->format, r, field, call->request_id, &call->reply);
}
