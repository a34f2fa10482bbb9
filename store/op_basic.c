/* HELLO, PING, SUBSCRIBE and the gateway's readiness: about the connections, not about records. */
#include "lib/num.h"
#include "store/op.h"
#include <stdio.h>
#include <string.h>

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
	if (from->wire.role == ST_ROLE_FCGI && !store_roomy(from->server->store)) {
		server_answer(from, op, ERR_STORAGE_FULL, 0, NULL, 0);
		return;
	}
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

void st_on_profiles_ready(struct st_from *from, uint64_t op, const struct st_profiles_ready *m, int *fds)
{
	(void)fds;
	struct st_ok a = {0};
	if (m->fingerprints.n % 32 != 0) {
		server_answer(from, op, ERR_INVALID_REQUEST, 0, NULL, 0);
		return;
	}
	memcpy(from->ready, m->fingerprints.p, m->fingerprints.n);
	from->nready = m->fingerprints.n;
	server_answer(from, op, ERR_OK, st_put_ok(from->server->frame, ST_MAXFRAME, op, &a), NULL, 0);
}

void st_on_profiles_get(struct st_from *from, uint64_t op, const struct st_profiles_get *m, int *fds)
{
	(void)fds;
	(void)m;
	struct st_profiles_are a = {0};
	for (const struct st_from *c = from->server->clients; c != NULL && a.fingerprints.n == 0; c = c->next)
		if (!c->closing)
			a.fingerprints = (struct wire_bytes){c->ready, c->nready};
	server_answer(from, op, ERR_OK, st_put_profiles_are(from->server->frame, ST_MAXFRAME, op, &a), NULL, 0);
}
