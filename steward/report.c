/* See report.h. Everything foreign in them was cleaned or is written as a JSON string; check output is raw. */
#include "steward/report.h"
#include "gen/bundle_msg.h"
#include "lib/chan.h"
#include "lib/digest.h"
#include "lib/lack.h"
#include "lib/text.h"
#include "steward/flags.h"
#include "steward/tree.h"
#include "steward/verdict.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { SUMMARY_JSON = 16000 };

void report_request(struct buf *out, const struct run *r)
{
	buf_add(out, r->rq.text, r->rq.text_n);
}

void report_patch(struct buf *out, const struct run *r)
{
	buf_add(out, r->patch.p, r->patch.n);
}

static void jw_seconds(struct jw *w, const char *key, uint32_t ms)
{
	char text[32];
	int n = snprintf(text, sizeof text, "%u.%03u", ms / 1000, ms % 1000);
	jw_key(w, key);
	jw_raw(w, text, (size_t)n);
}

static void put_file(struct jw *w, const char *path, uint64_t size, const uint8_t sha[32], bool executable)
{
	char text[SHA256_HEX];
	hex(sha, 32, text);
	jw_open(w, '{');
	jw_kstr(w, "path", path);
	jw_kint(w, "size", (int64_t)size);
	jw_kstr(w, "sha256", text);
	jw_kbool(w, "executable", executable);
	jw_close(w, '}');
}

static const struct run_change *change_of(const struct run *r, const char *path)
{
	for (uint32_t i = 0; i < r->nchanges; i++)
		if (strcmp(r->changes[i].path, path) == 0)
			return &r->changes[i];
	return NULL;
}

/* Has the upload's file of this path a place in the list? Of a source, which has thousands, those alone that were
 * changed, as they came. */
static bool listed(const struct run *r, const char *path, bool result)
{
	bool changed = change_of(r, path) != NULL;
	return r->archive ? changed && !result : !(changed && result);
}

/* The upload's files; with result, those of them that are left as they were. */
static void put_uploaded(struct jw *w, const struct run *r, bool result)
{
	struct bundle b;
	const uint8_t *frame;
	size_t n;
	struct bn_source s;
	uint8_t sha[32];
	bool executable;
	int got = 0;
	if ((r->archive && (result || r->nchanges == 0)) || !bundle_open(&b, r->upload_fd, BN_MAXFRAME))
		return;
	errno = 0;
	while (!buf_failed(w->b) && (got = bundle_next(&b, &frame, &n)) > 0) {
		if (!tree_source(frame, n, &s, &executable) || !listed(r, s.path, result))
			continue;
		if (!sha256(s.content.p, s.content.n, sha))
			buf_fail(w->b, errno);
		else
			put_file(w, s.path, s.content.n, sha, executable);
	}
	/* A list that is short for want of memory must not look whole. */
	if (got < 0 && lack())
		buf_fail(w->b, errno);
	bundle_close(&b);
}

/* What the archive came to, where it was one. */
static void put_source(struct jw *w, const struct run *r)
{
	if (!r->archive)
		return;
	jw_key(w, "source");
	jw_open(w, '{');
	jw_kint(w, "files", r->source_files);
	jw_kint(w, "bytes", (int64_t)r->source_bytes);
	if (r->source_files == 0) {
		jw_key(w, "path");
		jw_buf(w, &r->field);
	}
	jw_close(w, '}');
}

void report_checkpoint(struct buf *out, const struct run *r)
{
	struct jw w;
	jw_init(&w, out);
	jw_open(&w, '{');
	jw_kint(&w, "version", 1);
	jw_kstr(&w, "runId", r->run);
	put_source(&w, r);
	jw_key(&w, "base");
	jw_open(&w, '[');
	put_uploaded(&w, r, false);
	jw_close(&w, ']');
	jw_key(&w, "result");
	if (!r->judged) {
		jw_null(&w);
	} else {
		/* The upload and the allowed changes: what the checks ran on. */
		jw_open(&w, '[');
		put_uploaded(&w, r, true);
		for (uint32_t i = 0; i < r->nchanges; i++)
			if (r->changes[i].how != CHANGE_REMOVED)
				put_file(&w, r->changes[i].path, r->changes[i].size, r->changes[i].sha256,
					 r->changes[i].executable);
		jw_close(&w, ']');
	}
	jw_close(&w, '}');
	buf_addc(out, '\n');
}

void report_transcript(struct buf *out, const struct run *r)
{
	struct bundle b;
	struct bn_ran m;
	if (r->agent == NULL || !r->agent->transcript || r->work_fd < 0)
		return;
	errno = 0;
	if (verdict_ran(r, &b, &m))
		buf_add(out, m.output.p, m.output.n);
	else if (lack())
		buf_fail(out, errno);
	bundle_close(&b);
}

void report_test_log(struct buf *out, const struct run *r)
{
	bool any = false;
	for (size_t i = 0; i < r->rq.nchecks; i++) {
		const struct check_result *c = &r->checks[i];
		if (c->outcome == OUTCOME_NONE)
			continue;
		any = true;
		buf_addf(out, "== %s:", r->rq.checks[i].name);
		for (uint32_t k = 0; k < r->rq.checks[i].argc; k++)
			buf_addf(out, " %s", r->rq.checks[i].argv[k]);
		buf_addc(out, '\n');
		buf_add(out, c->output.p, c->output.n);
		if (c->output.n > 0 && c->output.p[c->output.n - 1] != '\n')
			buf_addc(out, '\n');
		if (c->truncated)
			buf_adds(out, "[more was printed than is kept]\n");
		buf_addf(out, "== %s: %s, exit code %d, %u.%03u s\n\n", r->rq.checks[i].name, outcome_names[c->outcome],
			 c->exit_code, c->duration_ms / 1000, c->duration_ms % 1000);
	}
	if (!any)
		buf_adds(out, "No check was run.\n");
}

void report_changes(struct buf *out, const struct run *r)
{
	struct jw w;
	jw_init(&w, out);
	jw_open(&w, '[');
	for (uint32_t i = 0; i < r->nchanges; i++)
		jw_str(&w, r->changes[i].path);
	jw_close(&w, ']');
}

void report_counts(struct jw *w, const char *key, const struct check_counts *c)
{
	if (!c->known)
		return;
	jw_key(w, key);
	jw_open(w, '{');
	jw_kint(w, "run", c->run);
	jw_kint(w, "failed", c->failed);
	jw_kint(w, "skipped", c->skipped);
	jw_close(w, '}');
}

void report_verification(struct buf *out, const struct run *r)
{
	struct jw w;
	jw_init(&w, out);
	jw_open(&w, '[');
	for (size_t i = 0; i < r->rq.nchecks; i++) {
		const struct check_result *c = &r->checks[i];
		if (c->outcome == OUTCOME_NONE)
			continue;
		jw_open(&w, '{');
		jw_kstr(&w, "name", r->rq.checks[i].name);
		jw_kstrs(&w, "argv", r->rq.checks[i].argv, r->rq.checks[i].argc);
		jw_kbool(&w, "ok", c->outcome == OUTCOME_PASSED);
		jw_kint(&w, "exitCode", c->exit_code);
		jw_seconds(&w, "durationSeconds", c->duration_ms);
		jw_kstr(&w, "outcome", outcome_names[c->outcome]);
		report_counts(&w, "tests", &c->counts);
		report_counts(&w, "uploadTests", &c->upload);
		jw_key(&w, "flags");
		flags_write(&w, r, i);
		jw_close(&w, '}');
	}
	jw_close(&w, ']');
}

/* A JSON string can be longer than its text: it is cut until the string fits. */
void report_summary(struct buf *out, const struct run *r)
{
	if (r->summary.n == 0)
		return;
	for (size_t cap = SUMMARY_JSON - 2; cap > 16; cap /= 2) {
		own_buf struct buf text, quoted;
		struct jw w;
		buf_init(&text, cap + 1);
		buf_init(&quoted, 8 * SUMMARY_JSON);
		/* Valid or it was not cleaned by us: the judge's words are not believed. */
		if (!utf8_valid(r->summary.p, r->summary.n, NULL))
			return;
		text_clean(&text, (const char *)r->summary.p, r->summary.n, TEXT_BODY, cap);
		jw_init(&w, &quoted);
		jw_strn(&w, (const char *)text.p, text.n);
		bool failed = buf_failed(&text) || buf_failed(&quoted);
		if (failed && lack()) {
			buf_fail(out, errno);
			return;
		}
		if (!failed && quoted.n <= SUMMARY_JSON) {
			buf_add(out, quoted.p, quoted.n);
			return;
		}
	}
}

static void put_raw(struct jw *w, const char *key, void (*write)(struct buf *, const struct run *), const struct run *r)
{
	own_buf struct buf b;
	buf_init(&b, 70000);
	write(&b, r);
	jw_key(w, key);
	bool failed = buf_failed(&b);
	if (failed && lack())
		buf_fail(w->b, errno);
	if (failed || b.n == 0)
		jw_null(w);
	else
		jw_raw(w, b.p, b.n);
}

void report_result(struct buf *out, const struct run *r)
{
	uint8_t sum[32];
	char text[SHA256_HEX] = "";
	struct jw w;
	if (sha256(r->patch.p, r->patch.n, sum))
		hex(sum, sizeof sum, text);
	else
		buf_fail(out, errno);
	jw_init(&w, out);
	jw_open(&w, '{');
	jw_kint(&w, "version", 1);
	jw_kstr(&w, "runId", r->run);
	jw_kbool(&w, "ok", r->error == ERR_OK);
	jw_kstr(&w, "terminalReason", reason_name(r->reason));
	jw_kstr(&w, "error", r->error == ERR_OK ? "" : err_code(r->error));
	jw_key(&w, "execution");
	jw_open(&w, '{');
	jw_kbool(&w, "success", r->agent_ok);
	if (r->exited)
		jw_kint(&w, "exitCode", r->exit_code);
	jw_close(&w, '}');
	put_source(&w, r);
	put_raw(&w, "changedFiles", report_changes, r);
	jw_key(&w, "judged");
	jw_open(&w, '{');
	jw_kbool(&w, "accepted", r->judged && r->accepted);
	if (r->judged && !r->accepted) {
		jw_kstr(&w, "error", err_code(r->judged_error));
		jw_key(&w, "path");
		jw_buf(&w, &r->field);
	}
	jw_close(&w, '}');
	put_raw(&w, "verification", report_verification, r);
	jw_key(&w, "patch");
	jw_open(&w, '{');
	jw_kint(&w, "bytes", (int64_t)r->patch.n);
	jw_kstr(&w, "sha256", text);
	jw_kbool(&w, "tooLarge", r->patch_too_large);
	jw_close(&w, '}');
	/* The agent's own words: shown, never used. */
	jw_key(&w, "claim");
	jw_open(&w, '{');
	jw_key(&w, "status");
	jw_buf(&w, &r->claimed);
	put_raw(&w, "summary", report_summary, r);
	jw_close(&w, '}');
	jw_close(&w, '}');
	buf_addc(out, '\n');
}
