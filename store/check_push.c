/* The rows of Web Push. */
#include "lib/names.h"
#include "store/check_row.h"
#include "store/t_push.h"
#include "store/t_token.h"
#include <string.h>

void check_subscription(struct check *c, struct wire_bytes key, struct wire_bytes value)
{
	struct rec_push_subscription r;
	struct rec_token token;
	const char *tenant = key_part(&key), *id = key_part(&key);
	if (!rec_get_push_subscription(value.p, value.n, &r) || r.p256dh.n == 0 || r.auth.n == 0) {
		check_finding(c, "the push subscription of %s of %s cannot be read", id, tenant);
		return;
	}
	bool there = token_get(c->t, id, &token);
	check_settle(c, NULL);
	if (!there || strcmp(token.tenant, tenant) != 0)
		check_finding(c, "the push subscription of %s of %s, which is no device", id, tenant);
	struct key due = push_due_key(r.due, tenant, id);
	if (r.due != 0 && !check_has(c, T_PUSH_DUE, &due))
		check_finding(c, "the push subscription of %s of %s is not in the index of those due", id, tenant);
}

void check_push(struct check *c, struct wire_bytes key, struct wire_bytes value)
{
	struct rec_push r;
	struct rec_push_subscription s;
	const char *tenant = key_part(&key), *id = key_part(&key);
	if (!rec_get_push(value.p, value.n, &r) || r.kind >= PUSH_KIND__COUNT)
		check_finding(c, "a push to %s of %s cannot be read", id, tenant);
	bool there = subscription_get(c->t, tenant, id, &s);
	check_settle(c, NULL);
	if (!there)
		check_finding(c, "a push to %s of %s, which has no subscription", id, tenant);
	else if (s.due == 0)
		check_finding(c, "a push to %s of %s, which is never due", id, tenant);
}

void check_push_due(struct check *c, struct wire_bytes key, struct wire_bytes value)
{
	struct rec_push_due r;
	struct rec_push_subscription s;
	uint64_t due = key_u64(&key);
	const char *tenant = key_part(&key), *id = key_part(&key);
	bool there = subscription_get(c->t, tenant, id, &s);
	check_settle(c, NULL);
	if (!rec_get_push_due(value.p, value.n, &r) || !there || s.due != due)
		check_finding(c, "the index of pushes due names %s of %s wrongly", id, tenant);
}

void check_push_budget(struct check *c, struct wire_bytes key, struct wire_bytes value)
{
	struct rec_push_budget r;
	if (!rec_get_push_budget(value.p, value.n, &r) || r.log.n % 16 != 0)
		check_finding(c, "the push budget of \"%s\" cannot be read", key_part(&key));
}
