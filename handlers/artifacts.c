/*
 * GET /v1/runs/{runId}/artifacts and .../{name}. The name is looked up in a table and becomes a number;
 * no path is ever made from it. What is served is inert: text/plain, attachment, nosniff.
 */
#include "gen/routes.h"
#include "handlers/runs.h"
#include "lib/ask.h"
#include "lib/digest.h"
#include "lib/lack.h"
#include "lib/names.h"
#include "lib/own.h"
#include <string.h>

enum { COMPOSED_BYTES = 16 << 20, COPY_BYTES = 32768, LIST_BYTES = 16384 };
static const char text_type[] = "text/plain; charset=utf-8";

static void add_line(void *ctx, const void *line, size_t n)
{
	buf_add(ctx, line, n);
}

/* The events of a run that has ended, as they are stored. */
static enum err compose_events(struct request *rq, struct buf *b)
{
	enum err e = events_each(rq, 0, add_line, b);
	return e != ERR_OK ? e : buf_failed(b) ? lack_error() : ERR_OK;
}

static bool ended_or_refuse(struct request *rq, struct reply *rp, uint32_t *artifacts)
{
	struct st_run_is run;
	if (!run_no_query(rq, rp) || !run_fetch(rq, rp, &run, NULL))
		return false;
	if (!run_terminal(run.state)) {
		reply_error(rp, ERR_RUN_NOT_TERMINAL, NULL, NULL);
		return false;
	}
	*artifacts = run.artifacts;
	return true;
}

static enum err size_up(struct request *rq, unsigned name, bool stored, uint64_t *size, uint8_t sum[SHA256_SIZE])
{
	if (stored) {
		struct st_artifact_get q = {.tenant = rq->who->tenant, .run = rq->arg[0], .name = (uint8_t)name};
		struct st_artifact_is is;
		enum err e = st_call_artifact_get(rq->ask, &q, NULL, &is, NULL);
		if (e != ERR_OK)
			return e;
		if (is.sha256.n != SHA256_SIZE)
			return ERR_INTERNAL_ERROR;
		*size = is.size;
		memcpy(sum, is.sha256.p, SHA256_SIZE);
		return ERR_OK;
	}
	own_buf struct buf b;
	buf_init(&b, COMPOSED_BYTES);
	enum err e = compose_events(rq, &b);
	*size = b.n;
	return e != ERR_OK ? e : sha256(b.n > 0 ? (const void *)b.p : "", b.n, sum) ? ERR_OK : lack_error();
}

void handle_artifact_list(struct request *rq, struct reply *rp)
{
	uint32_t stored;
	if (!ended_or_refuse(rq, rp, &stored))
		return;
	own_buf struct buf b;
	struct jw w;
	buf_init(&b, LIST_BYTES);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "runId", rq->arg[0]);
	jw_key(&w, "artifacts");
	jw_open(&w, '[');
	for (unsigned i = 0; i < ART__COUNT; i++) {
		bool have = (stored & (1u << i)) != 0;
		uint64_t size;
		uint8_t sum[SHA256_SIZE];
		char text[SHA256_HEX];
		if (!have && i != ART_EVENTS)
			continue;
		enum err e = size_up(rq, i, have, &size, sum);
		if (e != ERR_OK) {
			reply_store_error(rp, e, rq->ask);
			return;
		}
		hex(sum, sizeof sum, text);
		jw_open(&w, '{');
		jw_kstr(&w, "name", artifact_names[i]);
		jw_kint(&w, "size", (int64_t)size);
		jw_kstr(&w, "sha256", text);
		jw_close(&w, '}');
	}
	jw_close(&w, ']');
	jw_close(&w, '}');
	reply_json(rp, 200, &b);
}

/* The next bytes of size that are there. */
static ssize_t read_some(int fd, char chunk[COPY_BYTES], uint64_t at, uint64_t size)
{
	errno = 0; /* a file that is shorter than its record is a fault of ours */
	return pread(fd, chunk, size - at < COPY_BYTES ? (size_t)(size - at) : COPY_BYTES, (off_t)at);
}

static void send_blob(struct reply *rp, int fd, uint64_t size, const char *filename)
{
	char chunk[COPY_BYTES];
	ssize_t got = size > 0 ? read_some(fd, chunk, 0, size) : 0;
	if (size > 0 && got <= 0) {
		reply_error(rp, lack_error(), NULL, NULL);
		return;
	}
	reply_head(
	    rp, (struct reply_head){.status = 200, .type = text_type, .filename = filename, .length = (int64_t)size});
	for (uint64_t at = 0; at < size && !rp->failed;) {
		reply_body(rp, chunk, (size_t)got);
		at += (uint64_t)got;
		got = at < size ? read_some(fd, chunk, at, size) : 0;
		if (at < size && got <= 0)
			rp->failed = true; /* shorter than announced: the web server sees the answer break off */
	}
}

void handle_artifact_get(struct request *rq, struct reply *rp)
{
	static const char *const filenames[ART__COUNT] = {
	    [ART_REQUEST] = "request.txt",       [ART_EVENTS] = "events.txt",     [ART_CHECKPOINT] = "checkpoint.txt",
	    [ART_PATCH] = "patch.txt",           [ART_TEST_LOG] = "test_log.txt", [ART_RESULT] = "result.txt",
	    [ART_TRANSCRIPT] = "transcript.txt",
	};
	uint32_t stored;
	if (!ended_or_refuse(rq, rp, &stored))
		return;
	enum artifact name = artifact_find(rq->arg[1]);
	bool have = name != ART__COUNT && (stored & (1u << name)) != 0;
	if (!have && name != ART_EVENTS) {
		reply_error(rp, ERR_ARTIFACT_NOT_FOUND, NULL, NULL);
		return;
	}
	if (have) {
		struct st_artifact_get q = {.tenant = rq->who->tenant, .run = rq->arg[0], .name = (uint8_t)name};
		struct st_artifact_is is;
		own_fd int fd = -1;
		enum err e = st_call_artifact_get(rq->ask, &q, NULL, &is, &fd);
		if (e != ERR_OK)
			reply_store_error(rp, e, rq->ask);
		else
			send_blob(rp, fd, is.size, filenames[name]);
		return;
	}
	own_buf struct buf b;
	buf_init(&b, COMPOSED_BYTES);
	enum err e = compose_events(rq, &b);
	if (e != ERR_OK) {
		reply_store_error(rp, e, rq->ask);
		return;
	}
	reply_head(rp, (struct reply_head){
			   .status = 200, .type = text_type, .filename = filenames[name], .length = (int64_t)b.n});
	reply_body(rp, b.p, b.n);
}
