/* The table of tokens. */
#include "store/t_token.h"
#include "lib/digest.h"
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

static bool over(uint64_t expires_at, uint64_t now)
{
	return expires_at != 0 && expires_at <= now;
}

enum err token_proof(const struct rec_token *r, struct wire_bytes hash, uint64_t now)
{
	/* Both are always compared, so that time does not tell which of them it was. */
	bool first = secret_equal(r->hash.p, r->hash.n, hash.p, hash.n);
	bool second = secret_equal(r->next_hash.p, r->next_hash.n, hash.p, hash.n);
	if (hash.n != SHA256_SIZE || r->revoked || (!first && !second))
		return ERR_UNAUTHORIZED;
	if ((first && !over(r->expires_at, now)) || (second && !over(r->next_expires_at, now)))
		return ERR_OK;
	/* Only who holds a secret is told which it is. */
	return r->kind == PRINCIPAL_DEVICE ? ERR_DEVICE_EXPIRED : ERR_UNAUTHORIZED;
}

bool token_alive(const struct rec_token *r, uint64_t now)
{
	return !r->revoked && (!over(r->expires_at, now) || (r->next_hash.n > 0 && !over(r->next_expires_at, now)));
}

void token_next_drop(struct rec_token *r)
{
	r->next_hash = (struct wire_bytes){NULL, 0};
	r->next_at = r->next_expires_at = 0;
}

void token_promote(struct rec_token *r)
{
	r->hash = r->next_hash;
	r->secret_at = r->next_at;
	r->expires_at = r->next_expires_at;
	token_next_drop(r);
}

bool token_lose(struct rec_token *r, bool first, bool second, uint64_t now)
{
	if (r->revoked || (!first && !second))
		return false;
	if (second)
		token_next_drop(r);
	if (first && r->next_hash.n > 0) {
		token_promote(r);
	} else if (first) {
		r->revoked = true;
		r->revoked_at = now;
	}
	return true;
}

bool token_settle(struct rec_token *r, uint64_t at, uint64_t now)
{
	return token_lose(r, over(r->expires_at, at), r->next_hash.n > 0 && over(r->next_expires_at, at), now);
}

bool token_vouched(struct txn *t, const char *token_id, struct wire_bytes hash, const char *tenant)
{
	struct rec_token r;
	return token_id[0] == '\0' || (token_get(t, token_id, &r) && r.kind == PRINCIPAL_API &&
				       strcmp(r.tenant, tenant) == 0 && token_proof(&r, hash, t->now) == ERR_OK);
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
	return r->kind == PRINCIPAL_DEVICE && token_alive(r, now);
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
