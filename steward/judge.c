/*
 * What the judge decides. Input is hostile throughout: the result bundle was written by a runner that an
 * agent may have attacked. Paths are compared as bytes; nothing is ever opened by name.
 *
 * Rules: every difference between upload and result is a change, but by-products of running Python
 * (*.pyc, what is new in __pycache__/ and .pytest_cache/, as regular files) are not. A change must be a regular file
 * with a plain path and an allowed extension, covered by allowedPaths. Links, sockets and the like are refused wherever
 * they are. The first fault in path order is the one reported.
 */
#include "steward/judge.h"
#include "gen/bundle_msg.h"
#include "lib/chan.h"
#include "lib/json.h"
#include "lib/lack.h"
#include "lib/names.h"
#include "lib/path.h"
#include "lib/text.h"
#include "steward/patch.h"
#include "steward/tree.h"
#include <stdlib.h>
#include <string.h>

enum { CLAIM_NODES = 20000, CLAIM_ARENA = 16000000 };

struct change {
	const struct tree_file *before, *after; /* NULL: was not, is not */
};

struct verdict {
	struct change v[JUDGE_CHANGES]; /* allowed ones only, in path order */
	size_t n;
	uint32_t seen; /* changes of any kind */
	enum err code;
	const char *field;
	size_t field_n;
};

static void fault(struct verdict *d, enum err code, const struct tree_file *f)
{
	if (d->code != ERR_OK)
		return;
	d->code = code;
	d->field = f->path;
	d->field_n = f->path_n;
}

static bool part_is(const char *path, const char *name)
{
	size_t n = strlen(name);
	for (const char *p = path; p != NULL; p = strchr(p, '/')) {
		p += *p == '/';
		if (strncmp(p, name, n) == 0 && p[n] == '/')
			return true;
	}
	return false;
}

/* What was uploaded is no by-product, wherever it lies; compiled files alone are written again whoever made them,
 * and the checks have the uploaded ones. */
static bool by_product(const struct tree_file *f, bool uploaded)
{
	if (f->path_n > 4 && strcmp(f->path + f->path_n - 4, ".pyc") == 0)
		return true;
	return !uploaded && (part_is(f->path, "__pycache__") || part_is(f->path, ".pytest_cache"));
}

static bool covered(const struct judge_rules *rules, const char *path)
{
	for (size_t i = 0; i < rules->nallow; i++)
		if (path_allow_covers(rules->allow[i], path))
			return true;
	return false;
}

static void changed(struct verdict *d, const struct judge_rules *rules, const struct tree_file *before,
		    const struct tree_file *after)
{
	const struct tree_file *any = after != NULL ? after : before;
	d->seen++;
	if (!path_valid(any->path, any->path_n) || !covered(rules, any->path) ||
	    !path_extension_in(any->path, rules->extensions, rules->nextensions)) {
		fault(d, ERR_SANDBOX_CHANGED_FILES_MISMATCH, any);
		return;
	}
	if (d->n < JUDGE_CHANGES)
		d->v[d->n++] = (struct change){before, after};
	else
		fault(d, ERR_SANDBOX_CHANGED_FILES_MISMATCH, any);
}

static bool same(const struct tree_file *a, const struct tree_file *b)
{
	return a->executable == b->executable && a->n == b->n && memcmp(a->content, b->content, b->n) == 0;
}

/* One path, of which at least one side is there. Directories do not travel: they count as absent. */
static void compare(struct verdict *d, const struct judge_rules *rules, const struct tree_file *before,
		    const struct tree_file *after)
{
	if (after != NULL && after->type == ENTRY_DIRECTORY)
		after = NULL;
	if (after != NULL &&
	    after->type == ENTRY_CREDENTIAL) { /* whatever file it is: the key may be known to others */
		d->seen++;
		fault(d, ERR_CREDENTIAL_IN_RESULT, after);
		return;
	}
	if (after != NULL && (after->type == ENTRY_LINK || after->type == ENTRY_OTHER)) {
		d->seen++;
		fault(d, ERR_SANDBOX_CHANGED_FILES_MISMATCH, after);
		return;
	}
	if ((after == NULL && before == NULL) || by_product(after != NULL ? after : before, before != NULL))
		return;
	if (after != NULL && after->type != ENTRY_FILE) { /* too large or unreadable */
		bool ours = path_valid(after->path, after->path_n) && covered(rules, after->path);
		d->seen++;
		fault(d,
		      ours && after->type == ENTRY_TOO_LARGE ? ERR_SANDBOX_OUTPUT_TOO_LARGE
							     : ERR_SANDBOX_CHANGED_FILES_MISMATCH,
		      after);
		return;
	}
	if (before == NULL || after == NULL || !same(before, after))
		changed(d, rules, before, after);
}

static void walk(struct verdict *d, const struct judge_rules *rules, const struct tree *up, const struct tree *left)
{
	size_t i = 0, j = 0;
	while (i < up->n || j < left->n) {
		int order = i == up->n ? 1 : j == left->n ? -1 : strcmp(up->v[i].path, left->v[j].path);
		const struct tree_file *before = order <= 0 ? &up->v[i++] : NULL;
		const struct tree_file *after = order >= 0 ? &left->v[j++] : NULL;
		compare(d, rules, before, after);
	}
}

/* A new file beside one whose name differs only by case could not be checked out everywhere (D-27). A file
 * that became a folder is no conflict: the old one is gone. */
static void conflicts(struct verdict *d, const struct tree *left)
{
	for (size_t i = 0; i < d->n; i++) {
		const struct tree_file *f = d->v[i].after;
		for (size_t j = 0; f != NULL && d->v[i].before == NULL && j < left->n; j++)
			if (left->v[j].type == ENTRY_FILE && strcmp(left->v[j].path, f->path) != 0 &&
			    path_conflict(left->v[j].path, f->path))
				fault(d, ERR_SANDBOX_CHANGED_FILES_MISMATCH, f);
	}
}

static bool say(int out, const uint8_t *frame, size_t n)
{
	return n > 0 && bundle_add(out, frame, n);
}

static bool say_judged(int out, const struct verdict *d)
{
	uint8_t frame[BN_MAX_JUDGED];
	struct bn_judged m = {.accepted = d->code == ERR_OK,
			      .code = (uint16_t)d->code,
			      .field = {(const uint8_t *)d->field, (uint32_t)d->field_n},
			      .changed = d->seen};
	return say(out, frame, bn_put_judged(frame, sizeof frame, 0, &m));
}

static bool say_change(int out, const struct change *c)
{
	const struct tree_file *f = c->after != NULL ? c->after : c->before;
	size_t room = 1000 + (c->after != NULL ? c->after->n : 0);
	uint8_t *frame = malloc(room);
	if (frame == NULL)
		return false;
	struct bn_change m = {.path = f->path,
			      .how = c->before == NULL  ? CHANGE_ADDED
				     : c->after == NULL ? CHANGE_REMOVED
							: CHANGE_MODIFIED,
			      .executable = c->after != NULL && c->after->executable};
	if (c->after != NULL)
		m.content = (struct wire_bytes){c->after->content, (uint32_t)c->after->n};
	bool ok = say(out, frame, bn_put_change(frame, room, 0, &m));
	free(frame);
	return ok;
}

static bool say_patch(int out, struct buf *text, bool truncated)
{
	size_t room = text->n + 100;
	uint8_t *frame = malloc(room);
	if (frame == NULL)
		return false;
	struct bn_patch m = {.text = {text->p, (uint32_t)text->n}, .truncated = truncated};
	bool ok = say(out, frame, bn_put_patch(frame, room, 0, &m));
	free(frame);
	return ok;
}

static const struct json *claim_part(const struct json *root, const char *key)
{
	const struct json *v = json_get(root, key);
	const struct json *result = json_get(root, "result");
	if (v == NULL && result != NULL && result->type == JSON_OBJECT)
		v = json_get(result, key);
	return v != NULL && v->type == JSON_STRING ? v : NULL;
}

/* The claim is only ever shown: whatever it says, it decides nothing. */
static bool say_claim(int out, const struct tree_claim *claim)
{
	own_buf struct buf text, status;
	own_arena struct arena arena;
	uint8_t frame[BN_MAX_SUMMARY];
	buf_init(&text, TEXT_CAP_SUMMARY + 1);
	buf_init(&status, TEXT_CAP_STATUS + 1);
	arena_init(&arena, CLAIM_ARENA);
	if (claim->p != NULL) {
		const struct json *root = json_parse(&arena, claim->p, claim->n, JSON_DEPTH, CLAIM_NODES, NULL);
		bool object = root != NULL && root->type == JSON_OBJECT;
		const struct json *v = object ? claim_part(root, "summary") : NULL;
		if (v != NULL)
			text_field(&text, TEXT_F_SUMMARY, v->text, v->len);
		v = object ? claim_part(root, "status") : NULL;
		if (v != NULL)
			text_field(&status, TEXT_F_STATUS, v->text, v->len);
		else if (!object)
			buf_adds(&status, "unreadable");
	}
	const char *word = buf_cstr(&status);
	struct bn_summary m = {.text = {text.p, buf_failed(&text) ? 0 : (uint32_t)text.n},
			       .claimed_status = word != NULL ? word : ""};
	return say(out, frame, bn_put_summary(frame, sizeof frame, 0, &m));
}

static enum err answer(int out, struct verdict *d, const struct tree_claim *claim)
{
	own_buf struct buf text;
	bool large = false;
	buf_init(&text, JUDGE_PATCH_BYTES + 1);
	if (d->seen > JUDGE_CHANGES)
		d->n = 0; /* a part of the changes must not be taken for all of them */
	errno = 0;
	for (size_t i = 0; i < d->n && !large; i++) {
		if (!patch_add(&text, d->v[i].before, d->v[i].after))
			return lack_or(ERR_SANDBOX_RESULT_INVALID);
		large = buf_failed(&text) || text.n > JUDGE_PATCH_BYTES;
	}
	/* Without memory nothing is known of its size. */
	if (buf_failed(&text) && lack())
		return lack_error();
	if (large) {
		buf_free(&text);
		buf_init(&text, JUDGE_PATCH_BYTES + 1);
		if (d->code == ERR_OK)
			d->code = ERR_PATCH_TOO_LARGE;
	}
	bool ok = say_judged(out, d);
	for (size_t i = 0; i < d->n; i++)
		ok = ok && say_change(out, &d->v[i]);
	ok = ok && say_patch(out, &text, large) && say_claim(out, claim);
	return ok ? ERR_OK : lack_error();
}

enum err judge_decide(int upload, int result, const struct judge_rules *rules, int out)
{
	struct tree up = {0}, left = {0};
	struct tree_claim claim = {0};
	struct verdict d = {.code = ERR_OK, .field = ""};
	enum err e = tree_upload(&up, upload);
	if (e == ERR_OK) {
		d.code = tree_result(&left, &claim, result);
		e = err_row(d.code)->retry ? d.code : ERR_OK; /* what passes says nothing of the result */
	}
	if (e == ERR_OK) {
		/* A result that makes no sense is judged as such; nothing of it is compared. */
		if (d.code == ERR_OK) {
			walk(&d, rules, &up, &left);
			conflicts(&d, &left);
		}
		e = answer(out, &d, &claim);
	}
	tree_free(&up);
	tree_free(&left);
	tree_claim_free(&claim);
	return e;
}
