/* HELLO, PING and SUBSCRIBE: about the connection, not about records. */
#include "lib/num.h"
#include "store/op.h"
#include <stdio.h>

void st_on_hello(struct st_from *from, uint64_t op, const struct st_hello *m, int *fds)
{
	(void)fds;
	struct st_welcome a = {.version = ST_VERSION};
	if (m->version != ST_VERSION) {
		server_answer(from, op, ERR_INVALID_REQUEST, 0, NULL, 0);
		client_close(from, "it speaks another version: all of Pinfold's programs must be of one installation");
		return;
	}
	from->client = m->client;
	server_answer(from, op, ERR_OK, st_put_welcome(from->server->frame, ST_MAXFRAME, op, &a), NULL, 0);
}

void st_on_ping(struct st_from *from, uint64_t op, const struct st_ping *m, int *fds)
{
	(void)fds;
	(void)m;
	struct st_ok a = {0};
	server_answer(from, op, ERR_OK, st_put_ok(from->server->frame, ST_MAXFRAME, op, &a), NULL, 0);
}

void st_on_subscribe(struct st_from *from, uint64_t op, const struct st_subscribe *m, int *fds)
{
	(void)fds;
	struct st_ok a = {0};
	bool all = m->tenant[0] == '\0', whole = m->run[0] == '\0';
	/* A run is never named without its tenant. */
	if ((!all && !id_valid(m->tenant)) || (!whole && (all || !id_valid(m->run)))) {
		server_answer(from, op, ERR_INVALID_REQUEST, 0, NULL, 0);
		return;
	}
	(void)snprintf(from->tenant, sizeof from->tenant, "%s", m->tenant);
	(void)snprintf(from->run, sizeof from->run, "%s", m->run);
	from->subscribed = true;
	server_answer(from, op, ERR_OK, st_put_ok(from->server->frame, ST_MAXFRAME, op, &a), NULL, 0);
}
