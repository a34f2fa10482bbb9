/* What the operator does: tenants, tokens, figures. Only root's connection gets here. */
#include "lib/label.h"
#include "lib/num.h"
#include "lib/token.h"
#include "store/op.h"
#include "store/pushes.h"
#include "store/t_tenant.h"
#include "store/t_token.h"
#include <string.h>

static enum err op_tenant_put(struct txn *t, const struct st_tenant_put *m, int *fds, struct st_ok *a, int *out)
{
	(void)fds;
	(void)a;
	(void)out;
	if (tenant_exists(t, m->tenant))
		return ERR_OK;
	tenant_put(t, m->tenant);
	struct audit_line l = {.event = AUDIT_TENANT_CREATE, .tenant = m->tenant, .actor = "operator"};
	txn_audit(t, &l);
	return ERR_OK;
}
ST_OP(tenant_put, ok, 0, 0)

static const char *kind_name(uint8_t kind)
{
	return kind == PRINCIPAL_DEVICE ? "device" : "api";
}

static bool same_token(const struct rec_token *a, const struct rec_token *b)
{
	return strcmp(a->tenant, b->tenant) == 0 && a->kind == b->kind && a->hash.n == b->hash.n &&
	       memcmp(a->hash.p, b->hash.p, a->hash.n) == 0 && strcmp(a->label, b->label) == 0 &&
	       a->rights == b->rights && a->expires_at == b->expires_at && !a->revoked;
}

static enum err op_token_create(struct txn *t, const struct st_token_create *m, int *fds, struct st_ok *a, int *out)
{
	(void)fds;
	(void)a;
	(void)out;
	if (!id_valid(m->token_id) || m->hash.n != 32 || (m->kind != PRINCIPAL_API && m->kind != PRINCIPAL_DEVICE))
		return ERR_INVALID_REQUEST;
	if (!tenant_exists(t, m->tenant))
		return ERR_TENANT_NOT_FOUND;
	struct rec_token r = {.tenant = m->tenant,
			      .kind = m->kind,
			      .hash = m->hash,
			      .label = m->label,
			      .rights = m->rights,
			      .created_at = t->now,
			      .expires_at = m->expires_at};
	struct rec_token old;
	if (token_get(t, m->token_id, &old))
		return same_token(&old, &r) ? ERR_OK : ERR_TOKEN_EXISTS;
	if (m->kind == PRINCIPAL_DEVICE && !label_valid(m->label))
		return ERR_INVALID_DEVICE_LABEL;
	if (m->kind == PRINCIPAL_DEVICE && token_device(t, m->tenant, m->label, NULL, &old))
		return ERR_DEVICE_EXISTS;
	token_put(t, m->token_id, &r);
	struct audit_line l = {.event = AUDIT_TOKEN_ISSUE,
			       .tenant = m->tenant,
			       .actor = "operator",
			       .v = {{AUDIT_F_TOKEN_ID, .text = m->token_id},
				     {AUDIT_F_KIND, .text = kind_name(m->kind)},
				     {AUDIT_F_LABEL, .text = m->label},
				     {AUDIT_F_RIGHTS, .number = m->rights},
				     {AUDIT_F_EXPIRES_AT, .number = m->expires_at}}};
	txn_audit(t, &l);
	return ERR_OK;
}
ST_OP(token_create, ok, 0, 0)

struct listing {
	const char *tenant;
	struct wire_list list;
};

static bool list_token(void *with, const char *token_id, const struct rec_token *r)
{
	struct listing *l = with;
	if (strcmp(r->tenant, l->tenant) != 0)
		return true;
	struct st_token_item item = {.token_id = token_id,
				     .kind = r->kind,
				     .label = r->label,
				     .rights = r->rights,
				     .created_at = r->created_at,
				     .expires_at = r->expires_at,
				     .revoked = r->revoked,
				     .secret_at = r->secret_at != 0 ? r->secret_at : r->created_at,
				     .next = r->next_hash.n > 0,
				     .next_at = r->next_at,
				     .next_expires_at = r->next_expires_at};
	return LIST_PUT(&l->list, token_item, ST_MAX_TOKEN_ITEM, &item);
}

static enum err op_token_list(struct txn *t, const struct st_token_list *m, int *fds, struct st_tokens_are *a, int *out)
{
	(void)fds;
	(void)out;
	struct listing l = {.tenant = m->tenant, .list = {.p = t->page, .cap = STORE_PAGE}};
	if (!tenant_exists(t, m->tenant))
		return ERR_TENANT_NOT_FOUND;
	token_each(t, list_token, &l);
	a->items = wire_list_done(&l.list);
	return ERR_OK;
}
ST_OP(token_list, tokens_are, 0, 0)

static enum err op_token_revoke(struct txn *t, const struct st_token_revoke *m, int *fds, struct st_ok *a, int *out)
{
	(void)fds;
	(void)a;
	(void)out;
	struct rec_token r;
	if (!token_get(t, m->token_id, &r) || strcmp(r.tenant, m->tenant) != 0)
		return ERR_TOKEN_NOT_FOUND;
	if (r.revoked)
		return ERR_OK;
	r.revoked = true;
	r.revoked_at = t->now;
	token_next_drop(&r);
	token_put(t, m->token_id, &r);
	(void)push_gone(t, m->tenant, m->token_id);
	struct audit_line l = {
	    .event = AUDIT_TOKEN_REVOKE,
	    .tenant = m->tenant,
	    .actor = "operator",
	    .v = {{AUDIT_F_TOKEN_ID, .text = m->token_id}, {AUDIT_F_KIND, .text = kind_name(r.kind)}}};
	txn_audit(t, &l);
	return ERR_OK;
}
ST_OP(token_revoke, ok, 0, 0)

/* --- a second secret -------------------------------------------------------------------------------- */

static enum err living(struct txn *t, const char *tenant, const char *token_id, struct rec_token *r)
{
	if (!token_get(t, token_id, r) || strcmp(r->tenant, tenant) != 0)
		return ERR_TOKEN_NOT_FOUND;
	return token_alive(r, t->now) ? ERR_OK : ERR_TOKEN_OVER;
}

/* Secrets come and go; what the principal is and owns does not change, push and open streams included. */
static void keep(struct txn *t, const char *tenant, const char *token_id, const struct rec_token *r,
		 struct audit_line *l)
{
	token_put(t, token_id, r);
	l->tenant = tenant;
	l->actor = "operator";
	l->v[0] = (struct audit_value){AUDIT_F_TOKEN_ID, .text = token_id};
	l->v[1] = (struct audit_value){AUDIT_F_KIND, .text = kind_name(r->kind)};
	txn_audit(t, l);
}

static enum err op_token_rotate(struct txn *t, const struct st_token_rotate *m, int *fds, struct st_ok *a, int *out)
{
	(void)fds;
	(void)a;
	(void)out;
	struct rec_token r;
	enum err e = living(t, m->tenant, m->token_id, &r);
	if (e != ERR_OK)
		return e;
	if (r.kind != m->kind)
		return ERR_TOKEN_NOT_FOUND;
	if (m->hash.n != 32 || (m->expires_at != 0 && m->expires_at <= t->now))
		return ERR_INVALID_REQUEST;
	bool done = r.next_hash.n == m->hash.n && memcmp(r.next_hash.p, m->hash.p, m->hash.n) == 0;
	if (r.next_hash.n > 0 || memcmp(r.hash.p, m->hash.p, m->hash.n) == 0)
		return done ? ERR_OK : ERR_TOKEN_NEXT_EXISTS;
	r.next_hash = m->hash;
	r.next_at = t->now;
	r.next_expires_at = m->expires_at != 0 ? m->expires_at : r.expires_at;
	struct audit_line l = {.event = AUDIT_TOKEN_ROTATE,
			       .v = {[2] = {AUDIT_F_EXPIRES_AT, .number = r.next_expires_at}}};
	keep(t, m->tenant, m->token_id, &r, &l);
	return ERR_OK;
}
ST_OP(token_rotate, ok, 0, 0)

static enum err op_token_promote(struct txn *t, const struct st_token_promote *m, int *fds, struct st_ok *a, int *out)
{
	(void)fds;
	(void)a;
	(void)out;
	struct rec_token r;
	enum err e = living(t, m->tenant, m->token_id, &r);
	if (e == ERR_OK && r.next_hash.n == 0)
		e = ERR_TOKEN_NEXT_MISSING;
	/* It would end the token in the name of making it new. */
	if (e == ERR_OK && r.next_expires_at != 0 && r.next_expires_at <= t->now)
		e = ERR_TOKEN_OVER;
	if (e != ERR_OK)
		return e;
	token_promote(&r);
	struct audit_line l = {.event = AUDIT_TOKEN_PROMOTE};
	keep(t, m->tenant, m->token_id, &r, &l);
	return ERR_OK;
}
ST_OP_ONCE(token_promote, ok)

static enum err op_token_drop(struct txn *t, const struct st_token_drop *m, int *fds, struct st_ok *a, int *out)
{
	(void)fds;
	(void)a;
	(void)out;
	struct rec_token r;
	enum err e = living(t, m->tenant, m->token_id, &r);
	if (e == ERR_OK && r.next_hash.n == 0)
		e = ERR_TOKEN_NEXT_MISSING;
	if (e != ERR_OK)
		return e;
	token_next_drop(&r);
	struct audit_line l = {.event = AUDIT_TOKEN_DROP};
	keep(t, m->tenant, m->token_id, &r, &l);
	return ERR_OK;
}
ST_OP_ONCE(token_drop, ok)
