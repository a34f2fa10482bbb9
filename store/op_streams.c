/* Open event streams: may who reads them still, and is there more? A stream lives longer than a token's word. */
#include "store/op.h"
#include "store/t_run.h"
#include "store/t_token.h"

enum { STATES_BYTES = 8192 };

static enum err look(struct txn *t, const struct st_stream_item *m, struct rec_run *r)
{
	struct rec_token who;
	bool may = token_get(t, m->token_id, &who) && token_proof(&who, m->token_hash, t->now) == ERR_OK &&
		   strcmp(who.tenant, m->tenant) == 0;
	return may ? run_load(t, m->tenant, m->run, r) : ERR_UNAUTHORIZED;
}

static enum err op_streams_check(struct txn *t, const struct st_streams_check *m, int *fds, struct st_streams_are *a,
				 int *out)
{
	(void)fds;
	(void)out;
	struct wire_list list = {.p = t->page, .cap = STATES_BYTES};
	struct wire_bytes rest = m->items, part;
	bool bad = false;
	while (wire_list_next(&rest, &part, &bad)) {
		struct st_stream_item item;
		struct rec_run r;
		uint8_t *p = wire_list_room(&list, ST_MAX_STREAM_STATE);
		if (!st_get_stream_item(part.p, part.n, &item) || p == NULL)
			return ERR_INVALID_REQUEST;
		enum err e = look(t, &item, &r);
		if (e != ERR_OK && e != ERR_UNAUTHORIZED && e != ERR_RUN_NOT_FOUND)
			return e;
		struct st_stream_state s = {.refused = (uint16_t)e};
		if (e == ERR_OK) {
			s.terminal = run_is_final(&r);
			s.last_sequence = r.last_sequence;
		}
		wire_list_add(&list, st_put_stream_state(p, ST_MAX_STREAM_STATE, &s));
	}
	if (bad)
		return ERR_INVALID_REQUEST;
	a->items = wire_list_done(&list);
	return ERR_OK;
}
ST_OP(streams_check, streams_are, 0, 0)
