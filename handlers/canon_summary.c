/* Writes the request summary of a canonical run. */
#include "handlers/canon_run.h"
#include "lib/buf.h"
#include "lib/digest.h"
#include "lib/text.h"
#include <errno.h>
#include <string.h>

static void put_files(struct jw *w, const struct canon_run *run)
{
	jw_key(w, "files");
	jw_open(w, '[');
	for (uint32_t i = 0; i < run->nfiles; i++) {
		uint8_t sum[SHA256_SIZE];
		char text[SHA256_HEX];
		if (!sha256(run->files[i].content, run->files[i].n, sum))
			buf_fail(w->b, errno);
		hex(sum, sizeof sum, text);
		jw_open(w, '{');
		jw_kstr(w, "path", run->files[i].path);
		jw_kint(w, "size", (int64_t)run->files[i].n);
		jw_kstr(w, "sha256", text);
		jw_close(w, '}');
	}
	jw_close(w, ']');
}

void canon_run_summary(const struct canon_run *run, struct buf *out)
{
	struct jw w;
	jw_init(&w, out);
	jw_open(&w, '{');
	jw_key(&w, "instruction");
	jw_strn(&w, run->instruction, run->instruction_n);
	jw_kstr(&w, "agent", run->agent->name);
	jw_kstr(&w, "modelProfile", run->profile->name);
	jw_kstr(&w, "provider", run->profile->provider);
	jw_kstr(&w, "model", run->profile->model);
	jw_kstrs(&w, "allowedPaths", run->allowed, run->nallowed);
	jw_key(&w, "checks");
	jw_open(&w, '[');
	for (uint32_t i = 0; i < run->nchecks; i++)
		jw_kstrs(&w, NULL, run->checks[i]->argv, run->checks[i]->argv_n);
	jw_close(&w, ']');
	if (run->source != NULL) {
		jw_kstr(&w, "source", run->source);
	} else {
		jw_kint(&w, "fileCount", run->nfiles);
		put_files(&w, run);
	}
	jw_key(&w, "limits");
	jw_open(&w, '{');
	jw_kint(&w, "maxSteps", run->max_steps);
	jw_kint(&w, "wallTimeSeconds", run->wall_seconds);
	jw_kint(&w, "approvalWaitSeconds", run->approval_wait_seconds);
	jw_close(&w, '}');
	jw_key(&w, "permissions");
	jw_open(&w, '{');
	for (uint32_t i = 0; i < run->npermissions; i++)
		jw_kstr(&w, run->permissions[i].tool, run->permissions[i].value);
	jw_close(&w, '}');
	jw_close(&w, '}');
}

void canon_run_title(const struct canon_run *run, struct buf *out)
{
	const char *p = run->instruction, *end = p + run->instruction_n;
	while (p < end && !buf_failed(out)) {
		const char *stop = p;
		while (stop < end && *stop != '\n' && *stop != '\r')
			stop++;
		(void)text_field(out, TEXT_F_RUN_TITLE, p, (size_t)(stop - p));
		if (buf_failed(out) || text_words((const char *)out->p, out->n))
			return;
		buf_reset(out);
		p = stop + (stop < end);
	}
}
