/*
 * Renders changes in git's own form. The headers are written here, because libgit2 knows neither modes nor
 * names of bare buffers; the hunks and binary parts are libgit2's. Trusts that paths were checked
 * (no quoting is done), nothing about the contents.
 */
#include "steward/patch.h"
#include <git2.h>
#include <string.h>

bool patch_init(void)
{
	return git_libgit2_init() > 0;
}

void patch_end(void)
{
	git_libgit2_shutdown();
}

static const char *mode(const struct tree_file *f)
{
	return f->executable ? "100755" : "100644";
}

/* The full object name: `git apply` takes binary parts only with both in full. */
static bool object_name(const struct tree_file *f, char out[GIT_OID_HEXSZ + 1])
{
	git_oid oid = {{0}};
	if (f != NULL && git_odb_hash(&oid, f->content, f->n, GIT_OBJECT_BLOB) != 0)
		return false;
	git_oid_tostr(out, GIT_OID_HEXSZ + 1, &oid);
	return true;
}

static int line(const git_diff_delta *delta, const git_diff_hunk *hunk, const git_diff_line *l, void *payload)
{
	struct buf *out = payload;
	(void)delta;
	(void)hunk;
	if (l->origin == GIT_DIFF_LINE_FILE_HDR)
		return 0;
	if (l->origin == GIT_DIFF_LINE_CONTEXT || l->origin == GIT_DIFF_LINE_ADDITION ||
	    l->origin == GIT_DIFF_LINE_DELETION)
		buf_addc(out, l->origin);
	buf_add(out, l->content, l->content_len);
	return buf_failed(out) ? -1 : 0;
}

static bool hunks(struct buf *out, const struct tree_file *before, const struct tree_file *after, const char *path)
{
	git_diff_options options;
	git_patch *patch = NULL;
	if (git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION) != 0)
		return false;
	options.flags = GIT_DIFF_SHOW_BINARY;
	options.context_lines = 3;
	/* A missing side is a NULL buffer; an empty file is not (its copy ends in a NUL, so it is never NULL). */
	int rc = git_patch_from_buffers(&patch, before != NULL ? before->content : NULL, before != NULL ? before->n : 0,
					path, after != NULL ? after->content : NULL, after != NULL ? after->n : 0, path,
					&options);
	if (rc != 0)
		return false;
	bool binary = (git_patch_get_delta(patch)->flags & GIT_DIFF_FLAG_BINARY) != 0;
	if (!binary) {
		buf_addf(out, before != NULL ? "--- a/%s\n" : "--- /dev/null\n", path);
		buf_addf(out, after != NULL ? "+++ b/%s\n" : "+++ /dev/null\n", path);
	}
	rc = git_patch_print(patch, line, out);
	git_patch_free(patch);
	return rc == 0 || buf_failed(out);
}

bool patch_add(struct buf *out, const struct tree_file *before, const struct tree_file *after)
{
	const struct tree_file *any = after != NULL ? after : before;
	char old_name[GIT_OID_HEXSZ + 1], new_name[GIT_OID_HEXSZ + 1];
	if (!object_name(before, old_name) || !object_name(after, new_name))
		return false;
	bool same_mode = before != NULL && after != NULL && before->executable == after->executable;
	bool same_bytes = before != NULL && after != NULL && before->n == after->n &&
			  memcmp(before->content, after->content, after->n) == 0;
	buf_addf(out, "diff --git a/%s b/%s\n", any->path, any->path);
	if (before == NULL)
		buf_addf(out, "new file mode %s\n", mode(after));
	else if (after == NULL)
		buf_addf(out, "deleted file mode %s\n", mode(before));
	else if (!same_mode)
		buf_addf(out, "old mode %s\nnew mode %s\n", mode(before), mode(after));
	if (same_bytes)
		return true;
	buf_addf(out, "index %s..%s", old_name, new_name);
	if (same_mode)
		buf_addf(out, " %s", mode(after));
	buf_addc(out, '\n');
	if ((before == NULL || before->n == 0) && (after == NULL || after->n == 0))
		return true; /* an empty file came or went: there are no lines to show */
	return hunks(out, before, after, any->path);
}
