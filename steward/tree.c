/*
 * Reads file trees out of bundles, which stay where they are: two large trees are compared without a copy of either.
 * Trusts nothing in them: every count, length and order is checked, and memory is bounded by TREE_FILES and TREE_PATHS.
 * Never opens a path.
 */
#include "steward/tree.h"
#include "gen/bundle_msg.h"
#include "lib/lack.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

void tree_free(struct tree *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->v[i].path);
	free(t->v);
	if (t->bundle != NULL)
		(void)munmap(t->bundle, t->bundle_n);
	*t = (struct tree){0};
}

void tree_claim_free(struct tree_claim *c)
{
	free(c->p);
	free(c->ran);
	*c = (struct tree_claim){0};
}

static void *copy(const void *p, size_t n)
{
	char *q = malloc(n + 1);
	if (q != NULL) {
		if (n > 0)
			memcpy(q, p, n);
		q[n] = '\0';
	}
	return q;
}

static enum err tree_add(struct tree *t, const void *path, size_t path_n, uint8_t type, bool executable,
			 struct wire_bytes content)
{
	if (path_n == 0 || memchr(path, '\0', path_n) != NULL)
		return ERR_SANDBOX_RESULT_INVALID;
	if (t->n >= TREE_FILES || t->paths + path_n > TREE_PATHS)
		return ERR_SANDBOX_OUTPUT_TOO_LARGE;
	if (t->n == t->room) {
		size_t room = t->room == 0 ? 64 : t->room * 2;
		struct tree_file *v = realloc(t->v, room * sizeof *v);
		if (v == NULL)
			return ERR_RESOURCES_EXHAUSTED;
		t->v = v;
		t->room = room;
	}
	struct tree_file *f = &t->v[t->n];
	*f = (struct tree_file){.path = copy(path, path_n),
				.path_n = path_n,
				.type = type,
				.executable = executable,
				.content = content.p,
				.n = content.n};
	t->n++;
	t->paths += path_n;
	return f->path != NULL ? ERR_OK : ERR_RESOURCES_EXHAUSTED;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct tree_file *)a)->path, ((const struct tree_file *)b)->path);
}

enum err tree_sort(struct tree *t)
{
	if (t->n > 1)
		qsort(t->v, t->n, sizeof *t->v, by_path);
	for (size_t i = 1; i < t->n; i++)
		if (strcmp(t->v[i - 1].path, t->v[i].path) == 0)
			return ERR_SANDBOX_RESULT_INVALID;
	return ERR_OK;
}

const struct tree_file *tree_find(const struct tree *t, const char *path)
{
	struct tree_file key = {.path = (char *)(uintptr_t)path};
	return t->n == 0 ? NULL : bsearch(&key, t->v, t->n, sizeof *t->v, by_path);
}

/* --- frames where they are ------------------------------------------------------------------------ */

/* ERR_OK also where there is nothing in it. */
static enum err map(struct tree *t, int fd)
{
	struct stat st;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < 0)
		return ERR_SANDBOX_RESULT_INVALID;
	if (st.st_size == 0)
		return ERR_OK;
	void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return lack_or(ERR_SANDBOX_RESULT_INVALID);
	t->bundle = p;
	t->bundle_n = (size_t)st.st_size;
	return ERR_OK;
}

/* As bundle_next: 1 a frame, 0 the end, -1 malformed. */
static int next_frame(const struct tree *t, size_t *at, const uint8_t **frame, size_t *n)
{
	size_t left = t->bundle_n - *at;
	if (left == 0)
		return 0;
	const uint8_t *p = (const uint8_t *)t->bundle + *at;
	if (left < 4)
		return -1;
	*n = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
	if (*n == 0 || *n > BN_MAXFRAME || *n > left - 4)
		return -1;
	*frame = p + 4;
	*at += 4 + *n;
	return 1;
}

bool tree_source(const uint8_t *frame, size_t n, struct bn_source *s, bool *executable)
{
	uint16_t number;
	uint64_t op;
	struct bn_program p;
	if (!wire_peek(frame, n, &number, &op))
		return false;
	*executable = number == BN_PROGRAM;
	if (!*executable)
		return number == BN_SOURCE && bn_get_source(frame, n, s);
	if (!bn_get_program(frame, n, &p))
		return false;
	*s = (struct bn_source){.path = p.path, .content = p.content};
	return true;
}

static enum err upload_frame(struct tree *t, const uint8_t *frame, size_t n, bool *end)
{
	uint16_t number;
	uint64_t op;
	bool executable;
	struct bn_source s;
	struct bn_source_end e;
	if (*end || !wire_peek(frame, n, &number, &op))
		return ERR_SANDBOX_RESULT_INVALID;
	if (tree_source(frame, n, &s, &executable))
		return tree_add(t, s.path, strlen(s.path), ENTRY_FILE, executable, s.content);
	if (number == BN_SOURCE_END && bn_get_source_end(frame, n, &e) && e.files == t->n) {
		*end = true;
		return ERR_OK;
	}
	return ERR_SANDBOX_RESULT_INVALID;
}

enum err tree_upload(struct tree *t, int fd)
{
	const uint8_t *frame;
	size_t n, at = 0;
	int got = -1;
	bool end = false;
	enum err e = map(t, fd);
	while (e == ERR_OK && (got = next_frame(t, &at, &frame, &n)) > 0)
		e = upload_frame(t, frame, n, &end);
	if (e == ERR_OK && (got < 0 || !end))
		e = ERR_SANDBOX_RESULT_INVALID;
	return e == ERR_OK ? tree_sort(t) : e;
}

struct result_state {
	struct tree *tree;
	struct tree_claim *claim;
	uint32_t entries;
	bool collected;
};

static enum err result_frame(struct result_state *st, const uint8_t *frame, size_t n)
{
	uint16_t number;
	uint64_t op;
	struct bn_entry entry;
	struct bn_claim claim;
	struct bn_collected collected;
	struct bn_ran ran;
	if (st->collected || !wire_peek(frame, n, &number, &op))
		return ERR_SANDBOX_RESULT_INVALID;
	switch (number) {
	case BN_RAN:
		if (st->claim->ran != NULL || !bn_get_ran(frame, n, &ran))
			return ERR_SANDBOX_RESULT_INVALID;
		st->claim->ran = malloc(sizeof ran);
		if (st->claim->ran == NULL)
			return ERR_RESOURCES_EXHAUSTED;
		*st->claim->ran = ran;
		return ERR_OK;
	case BN_ENTRY:
		if (!bn_get_entry(frame, n, &entry) || entry.type < ENTRY_FILE || entry.type > ENTRY_CREDENTIAL)
			return ERR_SANDBOX_RESULT_INVALID;
		/* A file that was not read whole must not pass as a shorter one. */
		if (entry.type == ENTRY_FILE && entry.size != entry.content.n)
			return ERR_SANDBOX_RESULT_INVALID;
		st->entries++;
		return tree_add(st->tree, entry.path.p, entry.path.n, entry.type, entry.executable, entry.content);
	case BN_CLAIM:
		if (st->claim->p != NULL || !bn_get_claim(frame, n, &claim))
			return ERR_SANDBOX_RESULT_INVALID;
		st->claim->p = copy(claim.response.p, claim.response.n);
		st->claim->n = claim.response.n;
		return st->claim->p != NULL ? ERR_OK : ERR_RESOURCES_EXHAUSTED;
	case BN_COLLECTED:
		if (!bn_get_collected(frame, n, &collected))
			return ERR_SANDBOX_RESULT_INVALID;
		st->collected = true;
		if (!collected.complete)
			return ERR_SANDBOX_OUTPUT_TOO_LARGE;
		return collected.entries == st->entries ? ERR_OK : ERR_SANDBOX_RESULT_INVALID;
	default:
		return ERR_SANDBOX_RESULT_INVALID;
	}
}

enum err tree_result(struct tree *t, struct tree_claim *claim, int fd)
{
	struct result_state st = {.tree = t, .claim = claim};
	const uint8_t *frame;
	size_t n, at = 0;
	int got = -1;
	enum err e = map(t, fd);
	while (e == ERR_OK && (got = next_frame(t, &at, &frame, &n)) > 0)
		e = result_frame(&st, frame, n);
	if (e == ERR_OK && (got < 0 || !st.collected))
		e = ERR_SANDBOX_RESULT_INVALID;
	return e == ERR_OK ? tree_sort(t) : e;
}
