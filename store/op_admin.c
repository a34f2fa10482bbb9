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
				     .revoked = r->revoked};
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
