/* Who presents this token? */
#include "lib/token.h"
#include "store/op.h"
#include "store/t_token.h"

enum { SEEN_MS = 60000 /* how exactly it is known when a device was seen */ };

static enum err op_principal(struct txn *t, const struct st_principal *m, int *fds, struct st_principal_is *a, int *out)
{
	(void)fds;
	(void)out;
	struct rec_token r;
	enum err e = token_get(t, m->token_id, &r) ? token_proof(&r, m->hash, t->now) : ERR_UNAUTHORIZED;
	if (e != ERR_OK)
		return e;
	/*
	 * Nothing rests on it, so nobody need wait for the batch's flush. Where it saw what is not durable yet, nobody
	 * was answered: a token that is being made is known to nobody, and one that is being revoked is refused too
	 * early.
	 */
	t->early = true;
	/* Of the record as it is now, so it cannot undo a revocation; nothing rests on it, least of all on a full disk.
	 */
	if (r.kind == PRINCIPAL_DEVICE && t->now >= r.last_seen_at + SEEN_MS && store_roomy(t->store)) {
		r.last_seen_at = t->now;
		token_put(t, m->token_id, &r);
	}
	*a = (struct st_principal_is){.tenant = r.tenant, .kind = r.kind, .rights = r.rights, .label = r.label};
	return ERR_OK;
}
ST_OP(principal, principal_is, 0, 0)
