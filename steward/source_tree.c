/*
 * See source_tree.h. It runs in the judge's place, as confined (judge_child.c). The box is as little believed as an
 * agent's: that pinfold-unpack has looked at all this is a reason for its refusals being clear, and for nothing here.
 * What it says of a fault is taken only where the code is one of those that an archive can have.
 */
#include "steward/source_tree.h"
#include "gen/bundle_msg.h"
#include "lib/chan.h"
#include "lib/lack.h"
#include "lib/path.h"
#include "steward/tree.h"
#include <stdlib.h>
#include <string.h>

/* A page of the workspace is the least that a file takes; git's own folders and files; its list and names of a file. */
enum { PAGE = 4096, GIT_NAMES = 400, GIT_BYTES = 1 << 20, GIT_FILE = 300 };

struct fault {
	enum err code;
	const void *at; /* in the result, or a rule */
	size_t n;
};

static void fault(struct fault *f, enum err code, const void *at, size_t n)
{
	if (f->code == ERR_OK)
		*f = (struct fault){code, at, n};
}

/* What pinfold-unpack may say of an archive. */
static const enum err sayable[] = {ERR_INVALID_ARCHIVE,       ERR_SOURCE_ENTRY_REFUSED,    ERR_INVALID_SOURCE_PATH,
				   ERR_DUPLICATE_SOURCE_PATH, ERR_CONFLICTING_SOURCE_PATH, ERR_SOURCE_FILE_TOO_LARGE,
				   ERR_SOURCE_TREE_TOO_LARGE, ERR_SOURCE_TOO_MANY_FILES};

/* One line: a code and, behind a space, a name. */
static void said(struct fault *f, struct wire_bytes line)
{
	const uint8_t *end = line.n > 0 ? memchr(line.p, '\n', line.n) : NULL;
	size_t n = end != NULL ? (size_t)(end - line.p) : 0;
	for (size_t i = 0; i < sizeof sayable / sizeof *sayable; i++) {
		const char *code = err_code(sayable[i]);
		size_t k = strlen(code);
		if (n < k || memcmp(line.p, code, k) != 0 || (n > k && line.p[k] != ' '))
			continue;
		fault(f, sayable[i], line.p + k + (n > k), n - k - (n > k));
	}
	fault(f, ERR_SANDBOX_SETUP_FAILED, "", 0);
}

/* How pinfold-unpack ended. */
static void ended(struct fault *f, const struct bn_ran *ran)
{
	if (ran->timed_out)
		fault(f, ERR_WALL_TIME_EXCEEDED, "", 0);
	else if ((ran->reached & 4) != 0)
		fault(f, ERR_CPU_TIME_EXCEEDED, "", 0);
	else if (!ran->started || ran->stopped)
		fault(f, ERR_SANDBOX_SETUP_FAILED, "", 0);
	else if (ran->status != 0)
		said(f, ran->output);
}

static enum err of_kind(uint8_t type)
{
	return type == ENTRY_FILE                          ? ERR_OK
	       : type == ENTRY_LINK || type == ENTRY_OTHER ? ERR_SOURCE_ENTRY_REFUSED
	       : type == ENTRY_TOO_LARGE                   ? ERR_SOURCE_FILE_TOO_LARGE
							   : ERR_SANDBOX_RESULT_INVALID;
}

static void look_at(struct fault *f, const struct tree *t, const struct judge_rules *rules)
{
	uint64_t bytes = 0;
	if (t->n == 0)
		fault(f, ERR_INVALID_ARCHIVE, "", 0);
	if (t->n > rules->files)
		fault(f, ERR_SOURCE_TOO_MANY_FILES, t->v[rules->files].path, t->v[rules->files].path_n);
	for (size_t i = 0; i < t->n && f->code == ERR_OK; i++) {
		const struct tree_file *v = &t->v[i];
		enum err e = of_kind(v->type);
		bytes += v->n;
		if (e == ERR_OK && !path_valid(v->path, v->path_n))
			e = ERR_INVALID_SOURCE_PATH;
		if (e == ERR_OK && !path_extension_in(v->path, rules->extensions, rules->nextensions))
			e = ERR_UNSUPPORTED_SOURCE_TYPE;
		if (e == ERR_OK && v->n > rules->file_bytes)
			e = ERR_SOURCE_FILE_TOO_LARGE;
		if (e == ERR_OK && bytes > rules->bytes)
			e = ERR_SOURCE_TREE_TOO_LARGE;
		if (e != ERR_OK)
			fault(f, e, v->path, v->path_n);
	}
}

static int by_order(const void *a, const void *b)
{
	return path_order(((const struct tree_file *)a)->path, ((const struct tree_file *)b)->path);
}

/* Neighbours in path_order, for which the tree is sorted anew; afterwards it is by bytes again. */
static void conflicts(struct fault *f, struct tree *t)
{
	if (t->n > 1)
		qsort(t->v, t->n, sizeof *t->v, by_order);
	for (size_t i = 1; i < t->n; i++)
		if (path_conflict(t->v[i - 1].path, t->v[i].path))
			fault(f, ERR_CONFLICTING_SOURCE_PATH, t->v[i].path, t->v[i].path_n);
	(void)tree_sort(t);
}

static void bound(struct fault *f, const struct tree *t, const struct judge_rules *rules)
{
	for (size_t k = 0; k < rules->nallow; k++) {
		size_t i = 0;
		while (i < t->n && !path_allow_covers(rules->allow[k], t->v[i].path))
			i++;
		if (i == t->n)
			fault(f, ERR_UNBOUND_ALLOWED_PATH, rules->allow[k], strlen(rules->allow[k]));
	}
}

/* How many folders there are on the way to b's file that are not on that to a's; in order of bytes what a folder holds
 * is together. */
static uint32_t folders(const char *a, const char *b)
{
	uint32_t n = 0;
	size_t same = 0;
	while (a[same] != '\0' && a[same] == b[same])
		same++;
	for (const char *p = strchr(b, '/'); p != NULL; p = strchr(p + 1, '/'))
		n += (size_t)(p - b) >= same;
	return n;
}

/* The files, and the repository with all of them, as if nothing could be compressed. */
static void fits(struct fault *f, const struct tree *t, const struct judge_rules *rules)
{
	uint64_t bytes = GIT_BYTES, names = GIT_NAMES;
	for (size_t i = 0; i < t->n; i++) {
		uint32_t more = folders(i > 0 ? t->v[i - 1].path : "", t->v[i].path);
		bytes += (t->v[i].n + PAGE - 1) / PAGE * PAGE + t->v[i].n + GIT_FILE + (uint64_t)more * PAGE;
		names += 1 + 2 * (uint64_t)more;
	}
	if (bytes > rules->workspace_bytes || names > rules->workspace_inodes)
		fault(f, ERR_SOURCE_EXCEEDS_WORKSPACE, "", 0);
}

static bool say(int out, const uint8_t *frame, size_t n)
{
	return n > 0 && bundle_add(out, frame, n);
}

static bool say_fault(int out, const struct fault *f)
{
	uint8_t frame[BN_MAX_JUDGED];
	size_t most = 4096;
	struct bn_judged m = {.code = (uint16_t)f->code, .field = {f->at, (uint32_t)(f->n < most ? f->n : most)}};
	return say(out, frame, bn_put_judged(frame, sizeof frame, 0, &m));
}

static bool say_tree(int out, const struct tree *t)
{
	uint8_t end[BN_MAX_SOURCE_END], *frame = malloc(BN_MAX_SOURCE);
	bool ok = frame != NULL;
	for (size_t i = 0; i < t->n && ok; i++) {
		struct wire_bytes content = {t->v[i].content, (uint32_t)t->v[i].n};
		struct bn_source s = {.path = t->v[i].path, .content = content};
		struct bn_program p = {.path = t->v[i].path, .content = content};
		ok = say(out, frame,
			 t->v[i].executable ? bn_put_program(frame, BN_MAX_PROGRAM, 0, &p)
					    : bn_put_source(frame, BN_MAX_SOURCE, 0, &s));
	}
	struct bn_source_end m = {.files = (uint32_t)t->n};
	free(frame);
	return ok && say(out, end, bn_put_source_end(end, sizeof end, 0, &m));
}

enum err source_tree(int upload, int result, const struct judge_rules *rules, int out)
{
	struct tree t = {0};
	struct tree_claim claim = {0};
	struct fault f = {ERR_OK, "", 0};
	(void)upload;
	enum err e = tree_result(&t, &claim, result);
	if (e == ERR_OK && claim.ran == NULL)
		e = ERR_SANDBOX_RESULT_INVALID;
	if (e == ERR_OK) {
		ended(&f, claim.ran);
		if (f.code == ERR_OK)
			look_at(&f, &t, rules);
		if (f.code == ERR_OK)
			conflicts(&f, &t);
	} else if (!err_row(e)->retry) {
		/* More than was to be collected: the box has not kept to what it was told. */
		fault(&f, e == ERR_SANDBOX_OUTPUT_TOO_LARGE ? ERR_SOURCE_TREE_TOO_LARGE : e, "", 0);
		e = ERR_OK;
	}
	if (e == ERR_OK && f.code == ERR_OK) {
		bound(&f, &t, rules);
		fits(&f, &t, rules);
	}
	errno = 0;
	if (e == ERR_OK && !(f.code == ERR_OK ? say_tree(out, &t) : say_fault(out, &f)))
		e = lack_error();
	tree_free(&t);
	tree_claim_free(&claim);
	return e;
}
