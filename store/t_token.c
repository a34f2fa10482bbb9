/* The table of tokens. */
#include "store/t_token.h"
#include "lib/secret.h"
#include "lib/token.h"
#include <stdio.h>
#include <string.h>

static struct key key_of(const char *token_id)
{
	struct key k;
	k.n = rec_key_token(k.p, sizeof k.p, token_id);
	return k;
}

bool token_get(struct txn *t, const char *token_id, struct rec_token *out)
{
	struct key k = key_of(token_id);
	struct wire_bytes v;
	if (!table_get(t, T_TOKEN, &k, &v))
		return false;
	if (rec_get_token(v.p, v.n, out))
		return true;
	txn_fail(t, ERR_INTERNAL_ERROR);
	return false;
}

bool token_vouched(struct txn *t, const char *token_id, struct wire_bytes hash, const char *tenant)
{
	struct rec_token r;
	return token_id[0] == '\0' ||
	       (token_get(t, token_id, &r) && r.kind == PRINCIPAL_API && strcmp(r.tenant, tenant) == 0 &&
		secret_equal(r.hash.p, r.hash.n, hash.p, hash.n) && !r.revoked &&
		(r.expires_at == 0 || r.expires_at > t->now));
}

void token_put(struct txn *t, const char *token_id, const struct rec_token *r)
{
	struct key k = key_of(token_id);
	uint8_t *p = txn_scratch(t);
	table_put(t, T_TOKEN, &k, p, rec_put_token(p, STORE_SCRATCH, r));
}

struct each {
	token_row *row;
	void *with;
};

static bool one(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct each *e = with;
	struct rec_token r;
	return !rec_get_token(value.p, value.n, &r) || e->row(e->with, key_part(&key), &r);
}

void token_each(struct txn *t, token_row *row, void *with)
{
	struct each e = {row, with};
	struct key all = {.n = 0};
	table_scan(t, T_TOKEN, &all, NULL, one, &e);
}

bool token_is_device(const struct rec_token *r, uint64_t now)
{
	return r->kind == PRINCIPAL_DEVICE && !r->revoked && (r->expires_at == 0 || r->expires_at > now);
}

struct wanted {
	const char *tenant, *label;
	uint64_t now;
	bool found;
	char id[STORE_ID];
};

static bool has_label(void *with, const char *token_id, const struct rec_token *r)
{
	struct wanted *w = with;
	if (!token_is_device(r, w->now) || strcmp(r->tenant, w->tenant) != 0 || strcmp(r->label, w->label) != 0)
		return true;
	(void)snprintf(w->id, sizeof w->id, "%s", token_id);
	w->found = true;
	return false;
}

bool token_device(struct txn *t, const char *tenant, const char *label, char *id, struct rec_token *out)
{
	struct wanted w = {.tenant = tenant, .label = label, .now = t->now};
	token_each(t, has_label, &w);
	if (!w.found || !token_get(t, w.id, out))
		return false;
	if (id != NULL)
		(void)snprintf(id, STORE_ID, "%s", w.id);
	return true;
}
