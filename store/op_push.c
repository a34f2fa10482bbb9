/*
 * Web Push: what devices subscribed, and what the process that sends is handed out. An endpoint is a secret between a
 * browser and its push service: it goes to that process and nowhere else, into no log and no answer to anybody.
 */
#include "lib/endpoint.h"
#include "lib/secret.h"
#include "store/op.h"
#include "store/pushes.h"
#include "store/t_token.h"
#include <string.h>

enum { KEY = 65, AUTH = 16, UNCOMPRESSED = 4 };

void st_on_push_ready(struct st_from *from, uint64_t op, const struct st_push_ready *m, int *fds)
{
	struct st_ok a = {0};
	(void)fds;
	if (m->public_key.n != KEY || m->public_key.p[0] != UNCOMPRESSED) {
		server_answer(from, op, ERR_INVALID_REQUEST, 0, NULL, 0);
		return;
	}
	memcpy(from->push_key, m->public_key.p, KEY);
	server_answer(from, op, ERR_OK, st_put_ok(from->server->frame, ST_MAXFRAME, op, &a), NULL, 0);
}

/* As it was said last by one that is still there; empty: it was not. */
static struct wire_bytes key_of(const struct server *sv)
{
	for (const struct st_from *c = sv->clients; c != NULL; c = c->next)
		if (!c->closing && c->push_key[0] == UNCOMPRESSED)
			return (struct wire_bytes){c->push_key, KEY};
	return (struct wire_bytes){NULL, 0};
}

static bool same(struct wire_bytes a, struct wire_bytes b)
{
	return secret_equal(a.p, a.n, b.p, b.n);
}

static void audit(struct txn *t, enum audit_event event, const char *tenant, const char *by, const char *request_id,
		  const char *token_id, const char *label)
{
	struct audit_line l = {.event = event,
			       .tenant = tenant,
			       .actor = by,
			       .request_id = request_id,
			       .v = {{AUDIT_F_TOKEN_ID, .text = token_id}, {AUDIT_F_LABEL, .text = label}}};
	txn_audit(t, &l);
}

/*
 * Is there room for one more device? A browser has one endpoint, so another device with this one was the same browser
 * before it was paired anew, and would show everything twice.
 */
static bool make_room(struct txn *t, const struct st_push_put *m)
{
	struct push_devices d;
	unsigned others = 0;
	push_devices_of(t, m->tenant, &d);
	for (unsigned i = 0; i < d.n; i++) {
		struct rec_push_subscription s;
		struct rec_token token;
		if (strcmp(d.id[i], m->token_id) == 0)
			continue;
		if (!token_get(t, d.id[i], &token) || !token_is_device(&token, t->now) ||
		    !subscription_get(t, m->tenant, d.id[i], &s) || strcmp(s.endpoint, m->endpoint) == 0)
			(void)push_gone(t, m->tenant, d.id[i]);
		else
			others++;
	}
	return others < LIMIT_PUSH_DEVICES;
}

static enum err put(struct txn *t, const struct st_push_put *m, struct wire_bytes key)
{
	char host[ENDPOINT_HOST];
	struct rec_token token;
	struct rec_push_subscription was,
	    s = {
		.endpoint = m->endpoint, .p256dh = m->p256dh, .auth = m->auth, .server_key = key, .created_at = t->now};
	if (m->p256dh.n != KEY || m->p256dh.p[0] != UNCOMPRESSED || m->auth.n != AUTH)
		return ERR_INVALID_PUSH_SUBSCRIPTION;
	if (!endpoint_host(m->endpoint, host))
		return ERR_INVALID_PUSH_ENDPOINT;
	if (key.n == 0)
		return ERR_PUSH_NOT_READY;
	if (!token_get(t, m->token_id, &token) || strcmp(token.tenant, m->tenant) != 0 ||
	    !token_is_device(&token, t->now))
		return ERR_UNAUTHORIZED;
	bool there = subscription_get(t, m->tenant, m->token_id, &was);
	if (there && strcmp(was.endpoint, m->endpoint) == 0 && same(was.p256dh, m->p256dh) && same(was.auth, m->auth) &&
	    same(was.server_key, key) && was.failures == 0)
		return ERR_OK;
	if (!store_roomy(t->store))
		return ERR_STORAGE_FULL;
	if (!make_room(t, m))
		return ERR_TOO_MANY_PUSH_DEVICES;
	/* What waits for the device goes to its new address; what is out to the old one counts no more. */
	s.due = there ? was.due : 0;
	subscription_put(t, m->tenant, m->token_id, &s, push_when(t, m->tenant, m->token_id, &s), !there);
	audit(t, AUDIT_PUSH_SUBSCRIBE, m->tenant, m->by, m->request_id, m->token_id, token.label);
	return ERR_OK;
}

void st_on_push_put(struct st_from *from, uint64_t op, const struct st_push_put *m, int *fds)
{
	struct server *sv = from->server;
	struct st_ok a = {0};
	struct txn t;
	(void)fds;
	txn_init(&t, sv->store, sv->page);
	enum err e = txn_end(&t, put(&t, m, key_of(sv)));
	op_done(from, op, &t, e, e == ERR_OK ? st_put_ok(sv->frame, ST_MAXFRAME, op, &a) : 0, NULL, 0);
}

static enum err op_push_delete(struct txn *t, const struct st_push_delete *m, int *fds, struct st_ok *a, int *out)
{
	struct rec_token token;
	(void)fds;
	(void)a;
	(void)out;
	if (!token_get(t, m->token_id, &token) || strcmp(token.tenant, m->tenant) != 0)
		return ERR_OK;
	if (push_gone(t, m->tenant, m->token_id))
		audit(t, AUDIT_PUSH_UNSUBSCRIBE, m->tenant, m->by, m->request_id, m->token_id, token.label);
	return ERR_OK;
}
ST_OP(push_delete, ok, 0, 0)

void st_on_push_state(struct st_from *from, uint64_t op, const struct st_push_state *m, int *fds)
{
	struct server *sv = from->server;
	struct st_push_state_is a = {.public_key = key_of(sv)};
	struct rec_push_subscription s;
	struct txn t;
	(void)fds;
	txn_init(&t, sv->store, sv->page);
	a.subscribed =
	    a.public_key.n > 0 && subscription_get(&t, m->tenant, m->token_id, &s) && same(s.server_key, a.public_key);
	enum err e = txn_end(&t, ERR_OK);
	op_done(from, op, &t, e, e == ERR_OK ? st_put_push_state_is(sv->frame, ST_MAXFRAME, op, &a) : 0, NULL, 0);
}

void st_on_push_next(struct st_from *from, uint64_t op, const struct st_push_next *m, int *fds)
{
	struct server *sv = from->server;
	struct wire_bytes key = key_of(sv);
	struct st_push_is a = {.id = 0};
	struct txn t;
	(void)m;
	(void)fds;
	txn_init(&t, sv->store, sv->page);
	if (key.n > 0)
		push_next(&t, key, &a);
	enum err e = txn_end(&t, key.n > 0 ? ERR_OK : ERR_PUSH_NOT_READY);
	op_done(from, op, &t, e, e == ERR_OK ? st_put_push_is(sv->frame, ST_MAXFRAME, op, &a) : 0, NULL, 0);
}

static enum err op_push_done(struct txn *t, const struct st_push_done *m, int *fds, struct st_ok *a, int *out)
{
	(void)fds;
	(void)a;
	(void)out;
	return push_done(t, m);
}
ST_OP(push_done, ok, 0, 0)
