/* Web Push: what devices subscribed, and what the process that sends is handed out. */
#include "store/op.h"
#include <string.h>

void st_on_push_ready(struct st_from *from, uint64_t op, const struct st_push_ready *m, int *fds)
{
	struct st_ok a = {0};
	(void)fds;
	if (m->public_key.n != sizeof from->push_key || m->public_key.p[0] != 4) {
		server_answer(from, op, ERR_INVALID_REQUEST, 0, NULL, 0);
		return;
	}
	memcpy(from->push_key, m->public_key.p, sizeof from->push_key);
	server_answer(from, op, ERR_OK, st_put_ok(from->server->frame, ST_MAXFRAME, op, &a), NULL, 0);
}

/* As it was said last by one that is still there; empty: it was not. */
static struct wire_bytes push_key(const struct server *sv)
{
	for (const struct st_from *c = sv->clients; c != NULL; c = c->next)
		if (!c->closing && c->push_key[0] != 0)
			return (struct wire_bytes){c->push_key, sizeof c->push_key};
	return (struct wire_bytes){NULL, 0};
}

#define NOT_YET(name)                                                                             \
	void st_on_##name(struct st_from *from, uint64_t op, const struct st_##name *m, int *fds) \
	{                                                                                         \
		(void)m;                                                                          \
		(void)fds;                                                                        \
		server_answer(from, op, ERR_PUSH_NOT_READY, 0, NULL, 0);                          \
	}
NOT_YET(push_next)
NOT_YET(push_done)
NOT_YET(push_put)
NOT_YET(push_delete)

void st_on_push_state(struct st_from *from, uint64_t op, const struct st_push_state *m, int *fds)
{
	struct st_push_state_is a = {.public_key = push_key(from->server)};
	(void)m;
	(void)fds;
	server_answer(from, op, ERR_OK, st_put_push_state_is(from->server->frame, ST_MAXFRAME, op, &a), NULL, 0);
}
