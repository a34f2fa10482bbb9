/*
 * Writes the upload into /workspace, as the agent's uid, before any program of the agent's has run.
 * Names were checked by upload_next; even so every component is opened from the one before it, without
 * following links, and every file must be new. It never writes outside /workspace and runs nothing.
 */
#include "runner/unpack.h"
#include "lib/num.h"
#include "lib/own.h"
#include "runner/plan.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { OPEN_DIR = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

/* The folder of path's last part, made where it is missing if make; *last is that part. -1 with errno. */
static int open_parent(int root, const char *path, bool make, const char **last)
{
	char part[161];
	int dir = openat(root, ".", OPEN_DIR);
	for (const char *slash; dir >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
		size_t n = (size_t)(slash - path);
		memcpy(part, path, n); /* a path has at most 160 bytes (path_valid) */
		part[n] = 0;
		int next = make && mkdirat(dir, part, 0755) && errno != EEXIST ? -1 : openat(dir, part, OPEN_DIR);
		int kept = errno;
		close(dir);
		errno = kept;
		dir = next;
	}
	*last = path;
	return dir;
}

static bool put_file(int root, const char *path, struct wire_bytes content, mode_t mode)
{
	const char *last;
	own_fd int dir = open_parent(root, path, true, &last);
	if (dir < 0)
		return false;
	own_fd int fd = openat(dir, last, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	return fd >= 0 && write_all(fd, content.p, content.n);
}

/* Removes a file and the folders that are empty without it, as git does. A missing file is fine. */
static bool remove_file(int root, const char *path)
{
	char parent[161];
	const char *last;
	own_fd int dir = open_parent(root, path, false, &last);
	if (dir < 0 || unlinkat(dir, last, 0))
		return errno == ENOENT;
	snprintf(parent, sizeof parent, "%s", path);
	for (char *slash; (slash = strrchr(parent, '/'));) {
		*slash = 0;
		own_fd int above = open_parent(root, parent, false, &last);
		if (above < 0 || unlinkat(above, last, AT_REMOVEDIR))
			break;
	}
	return true;
}

static int failed(const char *what, const char *path)
{
	dprintf(2, "%s %s: %s", what, path, strerror(errno));
	return 1;
}

/* Calls each for every frame. */
static int for_each(int upload, int root, int source, bool (*each)(int root, int source, const struct item *it))
{
	struct upload u;
	struct item it;
	int more = -1;
	if (upload_open(&u, upload)) {
		while ((more = upload_next(&u, &it)) > 0) {
			if (!each(root, source, &it)) {
				/* Only frames with a path can fail, and it is their first field. */
				return failed("cannot write", it.number == BN_REQUEST   ? "request.json"
							      : it.number == BN_ARCHIVE ? UNPACK_ARCHIVE
											: it.source.path);
			}
		}
	}
	if (more < 0)
		dprintf(2, "%s", u.why);
	upload_close(&u);
	return more < 0;
}

static bool base_item(int root, int source, const struct item *it)
{
	switch (it->number) {
	case BN_SOURCE:
		return put_file(source, it->source.path, it->source.content, 0644);
	case BN_PROGRAM:
		return put_file(source, it->program.path, it->program.content, 0755);
	case BN_REQUEST:
		return put_file(root, "request.json", it->request.json, 0444);
	case BN_FILE:
		return put_file(root, it->file.path, it->file.content, 0600);
	case BN_TOKEN:
		return put_file(root, it->token.file, it->token.token, 0600);
	default:
		return true;
	}
}

/* The folder of the sources, made and opened. -1 with a sentence. */
static int make_source(int root)
{
	int source = root < 0 || mkdirat(root, "source", 0755) ? -1 : openat(root, "source", OPEN_DIR);
	if (source < 0)
		failed("cannot make", "/workspace/source");
	return source;
}

static bool removed_item(int root, int source, const struct item *it)
{
	(void)root;
	return it->number != BN_REMOVED || remove_file(source, it->removed.path);
}

static bool changed_item(int root, int source, const struct item *it)
{
	(void)root;
	if (it->number != BN_CHANGED)
		return true;
	return remove_file(source, it->changed.path) &&
	       put_file(source, it->changed.path, it->changed.content, it->changed.executable ? 0755 : 0644);
}

int unpack_base(const void *arg)
{
	const struct unpack *a = arg;
	own_fd int root = open("/workspace", OPEN_DIR);
	own_fd int source = make_source(root);
	return source < 0 || for_each(a->upload, root, source, base_item);
}

static bool part_item(int file, int source, const struct item *it)
{
	(void)source;
	return it->number != BN_ARCHIVE || write_all(file, it->archive.part.p, it->archive.part.n);
}

int unpack_parts(const void *arg)
{
	const struct unpack *a = arg;
	own_fd int root = open("/workspace", OPEN_DIR);
	own_fd int source = make_source(root);
	if (source < 0)
		return 1;
	own_fd int file = open(UNPACK_ARCHIVE, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (file < 0)
		return failed("cannot make", UNPACK_ARCHIVE);
	return for_each(a->upload, file, source, part_item);
}

/*
 * For `git diff --check`: a byte that makes git take a text for binary must not keep it from looking. Nothing
 * uploaded or changed can be named .gitattributes, so there is no word of anyone's to overrule.
 */
static bool put_attributes(int source)
{
	static const char text[] = "*.py diff\n*.toml diff\n*.md diff\n*.txt diff\n*.json diff\n*.yaml diff\n"
				   "*.yml diff\n*.ini diff\n*.cfg diff\n";
	struct wire_bytes all = {(const uint8_t *)text, sizeof text - 1};
	return put_file(source, ".git/info/attributes", all, 0644);
}

int unpack_changes(const void *arg)
{
	const struct unpack *a = arg;
	own_fd int root = open("/workspace", OPEN_DIR);
	own_fd int source = root < 0 ? -1 : openat(root, "source", OPEN_DIR);
	if (source < 0)
		return failed("cannot open", "/workspace/source");
	if (!put_attributes(source))
		return failed("cannot write", ".git/info/attributes");
	/* Removals first: a file may have become a folder, or a folder a file. */
	return for_each(a->upload, root, source, removed_item) || for_each(a->upload, root, source, changed_item);
}
