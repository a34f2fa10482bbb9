/*
 * Archives: they come in parts, each an answer of its own, and are there when the end is answered. Of an upload that
 * does not come to its end nothing stays.
 */
#include "gen/limits.h"
#include "lib/digest.h"
#include "store/op.h"
#include "store/spent.h"
#include "store/t_source.h"
#include "store/t_tenant.h"
#include "store/uploads.h"
#include <errno.h>
#include <string.h>

enum { UPLOAD_SECONDS = 5 /* after which one of the others may be over */ };

/* What this tenant's other uploads have or will have, and how many they are; of all tenants in *all. */
static uint64_t others(const struct st_from *from, const char *tenant, unsigned *n, unsigned *all)
{
	uint64_t bytes = 0;
	*n = *all = 0;
	for (const struct st_from *c = from->server->clients; c != NULL; c = c->next) {
		if (c == from || c->closing || c->upload == NULL)
			continue;
		++*all;
		if (strcmp(upload_tenant(c->upload), tenant) != 0)
			continue;
		++*n;
		bytes += upload_bytes(c->upload);
	}
	return bytes;
}

static void drop(struct st_from *from)
{
	upload_free(from->upload);
	from->upload = NULL;
}

static enum err begin(struct st_from *from, struct txn *t, const struct st_source_begin *m)
{
	unsigned mine, all;
	enum err e;
	drop(from);
	if (!tenant_exists(t, m->tenant))
		return ERR_TENANT_NOT_FOUND;
	if (m->bytes > m->most)
		return ERR_SOURCE_ARCHIVE_TOO_LARGE;
	if (!store_roomy(t->store))
		return ERR_STORAGE_FULL;
	uint64_t coming = others(from, m->tenant, &mine, &all);
	if (mine >= LIMIT_SOURCE_UPLOADS || all >= UPLOADS_MOST) {
		t->retry_after = UPLOAD_SECONDS;
		return ERR_TOO_MANY_SOURCES;
	}
	e = quota_stored(t, m->tenant, coming + m->bytes);
	if (e == ERR_OK)
		from->upload = upload_begin(store_blobs(t->store), m->tenant, m->bytes, m->most, &e);
	return e;
}

/* NULL: there is none of this tenant on this connection: what there was is gone with the one before. */
static struct upload *upload_of(const struct st_from *from, const char *tenant)
{
	return from->upload != NULL && strcmp(upload_tenant(from->upload), tenant) == 0 ? from->upload : NULL;
}

static enum err part(struct st_from *from, struct txn *t, const struct st_source_part *m)
{
	unsigned mine, all;
	struct upload *u = upload_of(from, m->tenant);
	if (u == NULL)
		return ERR_STORE_UNAVAILABLE;
	if (!store_roomy(t->store))
		return ERR_STORAGE_FULL;
	enum err e = upload_add(u, m->offset, m->data);
	if (e != ERR_OK)
		return e;
	return quota_stored(t, m->tenant, others(from, m->tenant, &mine, &all) + upload_bytes(u));
}

/* A question without a record: on it nothing rests. What fails ends the upload. */
static void answer_ok(struct st_from *from, uint64_t op, struct txn *t, enum err e)
{
	struct st_ok a = {0};
	int out[WIRE_MAX_FDS] = {-1, -1, -1, -1};
	e = txn_end(t, e);
	if (e != ERR_OK)
		drop(from);
	t->early = true;
	op_done(from, op, t, e, e == ERR_OK ? st_put_ok(from->server->frame, ST_MAXFRAME, op, &a) : 0, out, 0);
}

void st_on_source_begin(struct st_from *from, uint64_t op, const struct st_source_begin *m, int *fds)
{
	struct txn t;
	(void)fds;
	txn_init(&t, from->server->store, from->server->page);
	answer_ok(from, op, &t, begin(from, &t, m));
}

void st_on_source_part(struct st_from *from, uint64_t op, const struct st_source_part *m, int *fds)
{
	struct txn t;
	(void)fds;
	txn_init(&t, from->server->store, from->server->page);
	answer_ok(from, op, &t, part(from, &t, m));
}

void st_on_source_drop(struct st_from *from, uint64_t op, const struct st_source_drop *m, int *fds)
{
	struct txn t;
	(void)fds;
	txn_init(&t, from->server->store, from->server->page);
	if (upload_of(from, m->tenant) != NULL)
		drop(from);
	answer_ok(from, op, &t, ERR_OK);
}

static enum err enter(struct st_from *from, struct txn *t, const struct st_source_end *m, const struct blob *blob,
		      struct st_source_stored *a)
{
	struct rec_source old, now = {.size = blob->size, .created_at = t->now};
	char sha[SHA256_HEX];
	unsigned mine, all;
	hex(blob->sha, BLOB_SHA, sha);
	a->made = !source_get(t, m->tenant, sha, &old);
	a->expires_at = t->now + store_source_ms(t->store);
	if (!a->made) {
		now = old;
		source_put(t, m->tenant, sha, &old, &now);
		return ERR_OK;
	}
	if (sources_reach(t, m->tenant, LIMIT_SOURCE_PER_TENANT))
		return ERR_TOO_MANY_SOURCES;
	enum err e = quota_stored(t, m->tenant, others(from, m->tenant, &mine, &all) + blob->size);
	if (e != ERR_OK)
		return e;
	blob_name(t, blob, m->tenant, "", source_use);
	source_put(t, m->tenant, sha, NULL, &now);
	struct audit_line l = {.event = AUDIT_SOURCE_CREATE,
			       .tenant = m->tenant,
			       .actor = m->by,
			       .request_id = m->request_id,
			       .v = {{AUDIT_F_DIGEST, .text = arena_dup(&t->arena, sha, strlen(sha))},
				     {AUDIT_F_BYTES, .number = blob->size}}};
	txn_audit(t, &l);
	return ERR_OK;
}

void st_on_source_end(struct st_from *from, uint64_t op, const struct st_source_end *m, int *fds)
{
	struct st_source_stored a = {.made = false};
	struct blob blob = {.fresh = false};
	int out[WIRE_MAX_FDS] = {-1, -1, -1, -1};
	struct txn t;
	size_t n = 0;
	(void)fds;
	txn_init(&t, from->server->store, from->server->page);
	enum err e = op_again(from, op, &t, &n);
	if (e == ERR_OK && n == 0) {
		struct upload *u = upload_of(from, m->tenant);
		e = u != NULL ? upload_end(&t, u, m->bytes, &blob) : ERR_STORE_UNAVAILABLE;
		if (e == ERR_OK)
			e = enter(from, &t, m, &blob, &a);
		a.sha256 = (struct wire_bytes){blob.sha, BLOB_SHA};
		if (e == ERR_OK)
			n = st_put_source_stored(from->server->frame, ST_MAXFRAME, op, &a);
		if (e == ERR_OK)
			op_keep(from, op, &t, n);
		drop(from);
	}
	e = txn_end(&t, e);
	if (e != ERR_OK)
		blob_undo(&t, &blob);
	op_done(from, op, &t, e, e == ERR_OK ? n : 0, out, 0);
}

/* The source of this digest. */
static enum err find(struct txn *t, const char *tenant, struct wire_bytes sha256, char sha[SHA256_HEX],
		     struct rec_source *r)
{
	if (sha256.n != BLOB_SHA)
		return ERR_SOURCE_NOT_FOUND;
	hex(sha256.p, BLOB_SHA, sha);
	if (source_get(t, tenant, sha, r))
		return ERR_OK;
	return t->failed != ERR_OK ? t->failed : ERR_SOURCE_NOT_FOUND;
}

static enum err op_source_get(struct txn *t, const struct st_source_get *m, int *fds, struct st_source_is *a, int *out)
{
	(void)fds;
	(void)out;
	struct rec_source r;
	char sha[SHA256_HEX];
	enum err e = find(t, m->tenant, m->sha256, sha, &r);
	if (e == ERR_OK)
		*a = (struct st_source_is){
		    .bytes = r.size, .created_at = r.created_at, .expires_at = r.used_at + store_source_ms(t->store)};
	return e;
}
ST_OP(source_get, source_is, 0, 0)

static enum err op_source_delete(struct txn *t, const struct st_source_delete *m, int *fds, struct st_ok *a, int *out)
{
	(void)fds;
	(void)a;
	(void)out;
	struct rec_source r;
	char sha[SHA256_HEX];
	enum err e = find(t, m->tenant, m->sha256, sha, &r);
	if (e != ERR_OK)
		return e;
	const char *kept = arena_dup(&t->arena, sha, strlen(sha));
	if (kept == NULL)
		return store_error(errno);
	source_remove(t, m->tenant, kept, &r, m->by, m->request_id);
	return ERR_OK;
}
ST_OP_ONCE(source_delete, ok)
