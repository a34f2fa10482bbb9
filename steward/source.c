/*
 * See source.h. The archive goes into the box as it came, and comes out as a result like an agent's: a confined child
 * (source_tree.c) makes the upload of it, by the rules of every upload. How the box ended is in that result as well, so
 * the parent reads nothing of what was made from foreign bytes but the child's typed word.
 */
#include "steward/source.h"
#include "gen/bundle_msg.h"
#include "lib/chan.h"
#include "lib/die.h"
#include "lib/json.h"
#include "lib/lack.h"
#include "lib/own.h"
#include "lib/text.h"
#include "steward/launch.h"
#include "steward/pack.h"
#include "steward/run.h"
#include "steward/source_tree.h"
#include "steward/tell.h"
#include "steward/tree.h"
#include <string.h>
#include <sys/stat.h>

enum { PART = 1000000, PAGE = 4096, SPARE = 16 << 20, SPARE_MEMORY = 128 << 20, PIDS = 16, PER_MS = 1 << 13 };

static uint64_t size_of(int fd)
{
	struct stat st;
	return fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

uint64_t source_slow(int upload, int result)
{
	return (size_of(upload) + size_of(result)) / PER_MS;
}

/* What the archive may come to. */
static struct bn_go most(const struct run *r)
{
	const struct cf_tenant *t = &r->conf_tenant->t;
	return (struct bn_go){.kind = PACK_UNPACK,
			      .max_files = t->max_source_files != 0 ? t->max_source_files : SOURCE_FILES,
			      .max_bytes = t->max_unpacked_bytes != 0 ? t->max_unpacked_bytes : SOURCE_BYTES,
			      .max_file_bytes = SOURCE_FILE_BYTES};
}

int source_bundle(const struct run *r)
{
	own_fd int fd = bundle_new("archive");
	own_free uint8_t *part = malloc(PART), *frame = malloc(PART + 100);
	uint64_t size = size_of(r->upload_fd), at = 0;
	if (fd < 0 || part == NULL || frame == NULL)
		return -1;
	while (at < size) {
		ssize_t n = pread(r->upload_fd, part, PART, (off_t)at);
		if (n <= 0)
			return -1;
		struct bn_archive m = {.part = {part, (uint32_t)n}};
		if (!bundle_add(fd, frame, bn_put_archive(frame, PART + 100, 0, &m)))
			return -1;
		at += (uint64_t)n;
	}
	struct bn_unpack how = {.seconds = SOURCE_SECONDS, .cpu_seconds = SOURCE_SECONDS};
	struct bn_go go = most(r);
	return bundle_add(fd, frame, bn_put_unpack(frame, PART, 0, &how)) &&
		       bundle_add(fd, frame, bn_put_go(frame, PART, 0, &go)) && bundle_seal(fd)
		   ? steal_fd(&fd)
		   : -1;
}

void source_box(const struct run *r, struct sbx_spawn *m)
{
	struct bn_go go = most(r);
	uint64_t archive = size_of(r->upload_fd), tree = go.max_bytes + (uint64_t)PAGE * go.max_files;
	/* Of /tmp, where the archive is, and of /workspace alike. */
	m->workspace_bytes = (tree > archive ? tree : archive) + SPARE;
	m->memory_bytes = tree + archive + SPARE_MEMORY;
	m->workspace_inodes = 2 * go.max_files + 1000;
	m->pids = PIDS;
}

bool source_judge(struct app *app, struct run *r)
{
	struct bn_go go = most(r);
	struct judge_rules rules = {.allow = r->rq.allow,
				    .nallow = r->rq.nallow,
				    .extensions = r->conf_tenant->t.extensions,
				    .nextensions = r->conf_tenant->t.extensions_n,
				    .files = go.max_files,
				    .bytes = go.max_bytes,
				    .file_bytes = go.max_file_bytes,
				    .workspace_bytes = r->agent->workspace_bytes,
				    .workspace_inodes = r->agent->workspace_inodes};
	return judge_start(&r->judge, source_tree, r->check_fd, r->check_fd, &rules, launch_forget, app);
}

/* The child's word: a fault, or the upload, of which each frame is looked at once more where it is packed. */
static enum err take(struct run *r)
{
	struct bundle b;
	const uint8_t *frame;
	size_t n;
	uint16_t number = 0;
	uint64_t op;
	struct bn_judged fault;
	struct bn_source_end end;
	struct bn_source s;
	bool executable;
	int got = -1;
	errno = 0;
	bool ok = bundle_open(&b, r->judge.out, BN_MAXFRAME);
	enum err e = ERR_OK;
	r->source_files = 0;
	r->source_bytes = 0;
	while (ok && e == ERR_OK && number != BN_SOURCE_END && (got = bundle_next(&b, &frame, &n)) > 0) {
		ok = wire_peek(frame, n, &number, &op);
		if (ok && number == BN_JUDGED && r->source_files == 0) {
			ok = bn_get_judged(frame, n, &fault) && fault.code != ERR_OK;
			e = ok ? err_find(err_code((enum err)fault.code)) : ERR_SANDBOX_RESULT_INVALID;
			if (ok)
				text_log(&r->field, (const char *)fault.field.p, fault.field.n, 512);
		} else if (ok && number == BN_SOURCE_END) {
			ok = bn_get_source_end(frame, n, &end) && end.files == r->source_files;
		} else if (ok) {
			ok = tree_source(frame, n, &s, &executable);
			r->source_bytes += ok ? s.content.n : 0;
			r->source_files++;
		}
	}
	ok = ok && (e != ERR_OK || (number == BN_SOURCE_END && b.at == b.size));
	bundle_close(&b);
	return !ok && e == ERR_OK ? (got < 0 ? lack_or(ERR_SANDBOX_RESULT_INVALID) : ERR_SANDBOX_RESULT_INVALID) : e;
}

static void tell(struct app *app, const struct run *r, enum err e)
{
	own_buf struct buf b;
	struct jw w;
	buf_init(&b, 5000);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kbool(&w, "accepted", e == ERR_OK);
	if (e == ERR_OK) {
		jw_kint(&w, "files", r->source_files);
		jw_kint(&w, "bytes", (int64_t)r->source_bytes);
	} else {
		jw_kstr(&w, "error", err_code(e));
		jw_key(&w, "path");
		jw_buf(&w, &r->field);
	}
	jw_close(&w, '}');
	tell_event(app, r, "run.source_unpacked", &b);
}

/* The archive's own fault, rather than that of whoever had to unpack it. */
static enum reason reason_of(enum err e)
{
	return err_row(e)->status < 500          ? REASON_SOURCE_REFUSED
	       : e == ERR_SANDBOX_RESULT_INVALID ? REASON_SANDBOX_RESULT_INVALID
	       : err_row(e)->retry               ? REASON_JUDGE_FAILED
						 : REASON_SANDBOX_SETUP_FAILED;
}

void source_judged(struct app *app, struct run *r)
{
	enum err e = judge_end(&r->judge);
	if (e == ERR_OK)
		e = take(r);
	if (e == ERR_OK) {
		close(r->upload_fd);
		r->upload_fd = steal_fd(&r->judge.out);
		log_info("run %s of %s: %u files of %llu bytes were unpacked", r->run, r->tenant, r->source_files,
			 (unsigned long long)r->source_bytes);
	} else {
		close(steal_fd(&r->judge.out));
		/* Cut off because it was cancelled: nobody's fault. */
		if (!r->cancelled)
			run_fail(r, e, reason_of(e));
	}
	close(steal_fd(&r->check_fd)); /* the next box has another */
	if (!r->cancelled)
		tell(app, r, e);
}
