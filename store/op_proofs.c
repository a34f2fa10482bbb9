/*
 * What the steward has found out about agents that get real keys (steward/proof.c), for whoever looks: kept in memory,
 * since it is found out anew at each start. It decides nothing here.
 */
#include "lib/names.h"
#include "store/op.h"
#include <errno.h>
#include <stdlib.h>

void st_on_proofs(struct st_from *from, uint64_t op, const struct st_proofs *m, int *fds)
{
	struct server *sv = from->server;
	struct wire_bytes rest = m->items, part;
	struct st_proof p;
	bool bad = false, fits = true;
	(void)fds;
	while (fits && wire_list_next(&rest, &part, &bad))
		fits = st_get_proof(part.p, part.n, &p) && p.state < PROOF__COUNT;
	uint8_t *room = bad || !fits || m->items.n == 0 ? NULL : malloc(m->items.n);
	if (bad || !fits || (room == NULL && m->items.n > 0)) {
		server_answer(from, op, bad || !fits ? ERR_INVALID_REQUEST : store_error(errno), 0, NULL, 0);
		return;
	}
	if (m->items.n > 0)
		memcpy(room, m->items.p, m->items.n);
	free(sv->proofs.p);
	sv->proofs = (struct told){.p = room, .n = m->items.n};
	struct st_ok a = {0};
	server_answer(from, op, ERR_OK, st_put_ok(sv->frame, ST_MAXFRAME, op, &a), NULL, 0);
}

void st_on_proofs_get(struct st_from *from, uint64_t op, const struct st_proofs_get *m, int *fds)
{
	struct server *sv = from->server;
	struct st_proofs_are a = {.items = {sv->proofs.p, sv->proofs.n}};
	(void)fds;
	(void)m;
	server_answer(from, op, ERR_OK, st_put_proofs_are(sv->frame, ST_MAXFRAME, op, &a), NULL, 0);
}
