/* The table of tokens. */
#include "store/t_token.h"

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
