/*
 * POST, GET and DELETE of /v1/sources. An archive is handed to stored as it comes, a part at a time, so that neither
 * process ever holds it; it is there when stored has said so. Nothing of it is unpacked here.
 */
#include "gen/routes.h"
#include "gen/store_msg.h"
#include "handlers/archive.h"
#include "handlers/body.h"
#include "handlers/reply.h"
#include "handlers/request.h"
#include "handlers/runs.h"
#include "lib/ask.h"
#include "lib/digest.h"
#include "lib/lack.h"
#include "lib/own.h"
#include <stdio.h>

enum {
	PART = 128 * 1024,
	SOURCE_BYTES = 64 * 1000 * 1000, /* where the configuration says nothing */
	LEAST_RATE = 64,                 /* bytes a millisecond: who sends slower meets the deadline */
	ANSWER = 1024
};

struct coming {
	struct request *rq;
	uint8_t *part;
	uint64_t most, came;
};

static enum err begin(struct coming *c)
{
	int64_t bytes = body_announced(c->rq->in);
	struct st_source_begin m = {
	    .tenant = c->rq->who->tenant, .bytes = bytes > 0 ? (uint64_t)bytes : 0, .most = c->most};
	struct st_ok ok;
	return st_call_source_begin(c->rq->ask, &m, NULL, &ok, NULL);
}

/* Reads until the part is full or the body at its end. */
static enum err read_part(const struct coming *c, size_t *n)
{
	const struct body_source *body = &c->rq->in->body;
	for (*n = 0; *n < PART;) {
		long got = body->read(body->ctx, c->part + *n, PART - *n);
		if (got < 0)
			return body_broke(got);
		if (got == 0)
			break;
		*n += (size_t)got;
	}
	return ERR_OK;
}

static enum err give_part(struct coming *c, size_t n)
{
	const struct body_source *body = &c->rq->in->body;
	struct st_source_part m = {.tenant = c->rq->who->tenant, .offset = c->came, .data = {c->part, (uint32_t)n}};
	struct st_ok ok;
	enum err e = st_call_source_part(c->rq->ask, &m, NULL, &ok, NULL);
	c->came += n;
	if (e == ERR_OK && body->more_time != NULL)
		body->more_time(body->ctx, (unsigned)(n / LEAST_RATE));
	return e;
}

/* The whole body. *store: it was stored that refused. */
static enum err take(struct coming *c, bool *store)
{
	size_t n;
	bool first = true;
	do {
		*store = false;
		enum err e = read_part(c, &n);
		if (e == ERR_OK && n > c->most - c->came)
			e = ERR_SOURCE_ARCHIVE_TOO_LARGE;
		if (e == ERR_OK && first && archive_look(c->part, n) != archive_type(c->rq->in->content_type))
			e = body_whole(c->rq->in, n) || n >= ARCHIVE_BEGIN ? ERR_INVALID_ARCHIVE : ERR_LENGTH_MISMATCH;
		if (e != ERR_OK)
			return e;
		*store = true;
		if (first)
			e = begin(c);
		if (e == ERR_OK && n > 0)
			e = give_part(c, n);
		if (e != ERR_OK)
			return e;
		first = false;
	} while (n == PART);
	*store = false;
	return body_whole(c->rq->in, c->came) ? ERR_OK : ERR_LENGTH_MISMATCH;
}

/* What was begun is of no use: stored need not keep it until this connection begins another. */
static void drop(struct request *rq)
{
	struct st_source_drop m = {.tenant = rq->who->tenant};
	struct st_ok ok;
	(void)st_call_source_drop(rq->ask, &m, NULL, &ok, NULL);
}

static void answer_stored(struct request *rq, struct reply *rp, struct buf *b, const struct st_source_stored *s,
			  uint64_t bytes)
{
	char id[SHA256_HEX] = "", at[SHA256_HEX + 512];
	struct jw w;
	if (s->sha256.n == SHA256_SIZE)
		hex(s->sha256.p, SHA256_SIZE, id);
	(void)snprintf(at, sizeof at, "%s/v1/sources/%s", rq->in->mount, id);
	jw_init(&w, b);
	jw_open(&w, '{');
	jw_kstr(&w, "sourceId", id);
	jw_kint(&w, "bytes", (int64_t)bytes);
	jw_kint(&w, "expiresAt", (int64_t)s->expires_at);
	jw_close(&w, '}');
	reply_json_at(rp, s->made ? 201 : 200, at, NULL, b);
}

void handle_source_create(struct request *rq, struct reply *rp)
{
	uint64_t most = rq->tenant->t.max_source_bytes;
	struct coming c = {.rq = rq, .most = most != 0 ? most : SOURCE_BYTES};
	struct st_source_stored stored;
	bool store = false;
	own_buf struct buf b;
	buf_init(&b, ANSWER);
	if (!run_no_query(rq, rp))
		return;
	if (body_announced(rq->in) > (int64_t)c.most) {
		reply_error(rp, ERR_SOURCE_ARCHIVE_TOO_LARGE, NULL, NULL);
		return;
	}
	c.part = arena_get(rq->arena, PART);
	if (c.part == NULL) {
		reply_error(rp, lack_error(), NULL, NULL);
		return;
	}
	if (!reply_ready(rp, &b))
		return;
	enum err e = take(&c, &store);
	if (e != ERR_OK && !store) {
		if (c.came > 0)
			drop(rq);
		reply_error(rp, e, NULL, NULL);
		return;
	}
	struct st_source_end end = {
	    .tenant = rq->who->tenant, .bytes = c.came, .by = rq->who->by, .request_id = rq->in->id};
	if (e == ERR_OK)
		e = st_call_source_end(rq->ask, &end, NULL, &stored, NULL);
	if (e != ERR_OK)
		reply_store_error(rp, e, rq->ask);
	else
		answer_stored(rq, rp, &b, &stored, c.came);
}

void handle_source_show(struct request *rq, struct reply *rp)
{
	uint8_t sha[SHA256_SIZE];
	struct st_source_is s;
	struct jw w;
	own_buf struct buf b;
	buf_init(&b, ANSWER);
	if (!run_no_query(rq, rp))
		return;
	(void)archive_id(rq->arg[0], sha);
	struct st_source_get m = {.tenant = rq->who->tenant, .sha256 = {sha, sizeof sha}};
	enum err e = st_call_source_get(rq->ask, &m, NULL, &s, NULL);
	if (e != ERR_OK) {
		reply_store_error(rp, e, rq->ask);
		return;
	}
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "sourceId", rq->arg[0]);
	jw_kint(&w, "bytes", (int64_t)s.bytes);
	jw_kint(&w, "createdAt", (int64_t)s.created_at);
	jw_kint(&w, "expiresAt", (int64_t)s.expires_at);
	jw_close(&w, '}');
	reply_json(rp, 200, &b);
}

void handle_source_delete(struct request *rq, struct reply *rp)
{
	uint8_t sha[SHA256_SIZE];
	struct st_ok done;
	if (!run_no_query(rq, rp))
		return;
	(void)archive_id(rq->arg[0], sha);
	struct st_source_delete m = {
	    .tenant = rq->who->tenant, .sha256 = {sha, sizeof sha}, .by = rq->who->by, .request_id = rq->in->id};
	enum err e = st_call_source_delete(rq->ask, &m, NULL, &done, NULL);
	if (e != ERR_OK)
		reply_store_error(rp, e, rq->ask);
	else
		reply_head(rp, (struct reply_head){.status = 204, .length = -1});
}
