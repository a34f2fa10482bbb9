/* What other processes may have written into the audit log: each role its own events, and not too often. */
#include "lib/num.h"
#include "store/op.h"

static const uint8_t by_role[ST_ROLE__COUNT] = {[ST_ROLE_FCGI] = AUDIT_BY_FCGI,
						[ST_ROLE_GATEWAY] = AUDIT_BY_GATEWAY,
						[ST_ROLE_STEWARD] = AUDIT_BY_STEWARD,
						[ST_ROLE_ADMIN] = AUDIT_BY_ADMIN};

static void take(struct server *sv, const struct audit_row *row, const struct st_audit_note *m, uint32_t held)
{
	struct audit_line l = {.event = (enum audit_event)m->event,
			       .tenant = m->tenant,
			       .run = m->run,
			       .actor = m->actor,
			       .request_id = m->request_id,
			       .v = {{(enum audit_field)row->subject, .text = m->subject}}};
	size_t n = 1;
	uint64_t suppressed = (uint64_t)m->suppressed + held;
	if ((row->fields >> AUDIT_F_CODE & 1) != 0)
		l.v[n++] = (struct audit_value){AUDIT_F_CODE, .text = err_code((enum err)m->code)};
	if (suppressed > 0)
		l.v[n++] = (struct audit_value){AUDIT_F_SUPPRESSED, .number = suppressed};
	audit_note(sv->audit, store_now(sv->store), &l);
}

void st_on_audit_note(struct st_from *from, uint64_t op, const struct st_audit_note *m, int *fds)
{
	(void)fds;
	struct server *sv = from->server;
	struct st_ok a = {0};
	const struct audit_row *row = audit_row(m->event);
	uint32_t held = 0;
	if (row == NULL || (row->by & by_role[from->wire.role]) == 0) {
		server_answer(from, op, ERR_INVALID_REQUEST, 0, NULL, 0);
		return;
	}
	/* What the steward does is bounded by the boxes there are. */
	if (from->wire.role == ST_ROLE_STEWARD || pace_take(&sv->notes[from->wire.role], pace_role, timer_ms(), &held))
		take(sv, row, m, held);
	server_answer(from, op, ERR_OK, st_put_ok(from->server->frame, ST_MAXFRAME, op, &a), NULL, 0);
}
