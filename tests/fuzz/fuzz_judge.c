/*
 * libFuzzer target: a work result against a fixed upload. An even first byte means that the rest are the
 * result's own bytes; an odd one that they say which entries a well-formed result has. The same result is then that of
 * a box that unpacked an archive, of which a run's upload is made.
 */
#include "lib/own.h"
#include "lib/path.h"
#include "steward/judge.h"
#include "steward/patch.h"
#include "steward/source_tree.h"
#include "steward/tree.h"
#include "tests/steward/bundles.h"
#include <unistd.h>

static const char *const allow[] = {"d/**", "a.py"}, *const extensions[] = {".py", ".txt"};

static const uint8_t *take(const uint8_t **at, size_t *left, size_t n)
{
	const uint8_t *p = *at;
	n = n < *left ? n : *left;
	*at += n;
	*left -= n;
	return p;
}

/* Repeated: a byte for the name, a byte for type and mode, a byte for the length, so many bytes. */
static void well_formed(int fd, const uint8_t *data, size_t size)
{
	static const char *const names[] = {
	    "a.py", "b.py", "d/c.txt", "d/c.txt/e.py", "d/.git/x.py", "__pycache__/a.pyc", "d/C.txt"};
	uint32_t entries = 0;
	while (size >= 3) {
		const uint8_t *head = take(&data, &size, 3);
		size_t n = head[2] < size ? head[2] : size;
		const char *content = (const char *)take(&data, &size, n);
		char own[8] = {'d', '/', (char)(head[2] | 1), '.', 'p', 'y'};
		struct given g = {.path = head[0] % 8 == 7 ? own : names[head[0] % 8],
				  .text = n > 0 ? content : "",
				  .n = n,
				  .type = head[1] % 16 > 9 ? 1 + head[1] % 6 : 1,
				  .exec = (head[1] & 16) != 0};
		bundles_entries(fd, &g, 1);
		entries++;
	}
	bundles_collected(fd, entries, true);
}

/* Whatever came in: what is accepted is inside allowedPaths and within the bounds. */
static void check(int out)
{
	struct bundle b;
	const uint8_t *frame;
	size_t n;
	struct bn_change c;
	struct bn_patch p;
	uint32_t changes = 0;
	if (!bundle_open(&b, out, BN_MAXFRAME))
		abort();
	while (bundle_next(&b, &frame, &n) > 0) {
		if (bn_get_change(frame, n, &c)) {
			if (++changes > JUDGE_CHANGES || !path_valid(c.path, strlen(c.path)) ||
			    !(path_allow_covers(allow[0], c.path) || path_allow_covers(allow[1], c.path)))
				abort();
		} else if (bn_get_patch(frame, n, &p) && p.text.n > JUDGE_PATCH_BYTES) {
			abort();
		}
	}
	bundle_close(&b);
}

enum { FILES = 20, BYTES = 3000, FILE_BYTES = 200 };

/* What becomes an upload: each file by the rules of files[], no two in each other's way. */
static void check_tree(int out)
{
	static char paths[FILES][161];
	struct bundle b;
	const uint8_t *frame;
	size_t n, bytes = 0;
	struct bn_source s;
	struct bn_judged fault;
	struct bn_source_end end;
	bool executable, over = false;
	uint32_t files = 0;
	if (!bundle_open(&b, out, BN_MAXFRAME))
		abort();
	while (bundle_next(&b, &frame, &n) > 0) {
		if (over)
			abort();
		if (bn_get_judged(frame, n, &fault) || bn_get_source_end(frame, n, &end)) {
			over = true;
			continue;
		}
		if (!tree_source(frame, n, &s, &executable) || files == FILES || s.content.n > FILE_BYTES ||
		    (bytes += s.content.n) > BYTES || !path_valid(s.path, strlen(s.path)) ||
		    !path_extension_in(s.path, extensions, 2))
			abort();
		for (uint32_t i = 0; i < files; i++)
			if (strcmp(paths[i], s.path) == 0 || path_conflict(paths[i], s.path))
				abort();
		strcpy(paths[files++], s.path);
	}
	if (!over || (files > 0 && end.files != files))
		abort();
	bundle_close(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int upload = -1;
	static const struct given files[] = {{"a.py", "one\ntwo\n"}, {"b.py", "x"}, {"d/c.txt", "1\n2\n3\n4\n5\n6\n7"}};
	struct judge_rules rules = {.allow = allow,
				    .nallow = 2,
				    .extensions = extensions,
				    .nextensions = 2,
				    .files = FILES,
				    .bytes = BYTES,
				    .file_bytes = FILE_BYTES,
				    .workspace_bytes = 64 << 20,
				    .workspace_inodes = 1000};
	if (upload < 0) {
		upload = bundle_new("upload");
		bundles_sources(upload, files, 3);
		if (!patch_init())
			abort();
	}
	own_fd int result = bundle_new("result"), out = bundle_new("out");
	if (size == 0)
		return 0;
	if (data[0] % 2 == 0) {
		if (write(result, data + 1, size - 1) != (ssize_t)(size - 1))
			abort();
	} else {
		if ((data[0] & 2) != 0)
			bundles_ran(result, true, 0, false, false);
		well_formed(result, data + 1, size - 1);
	}
	(void)judge_decide(upload, result, &rules, out);
	check(out);
	own_fd int tree = bundle_new("tree");
	if (source_tree(result, result, &rules, tree) == ERR_OK)
		check_tree(tree);
	return 0;
}
