/* Trusts nothing below the root: what the checks and the model left there may be links, pipes or huge. */
#include "agent/tree.h"
#include "lib/own.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { PATH_BYTES = 4096, ARENA_BYTES = 8000000 };

static int open_inside(int root, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
	    .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK),
	    .mode = mode,
	    .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

bool tree_confined(int root)
{
	own_fd int fd = open_inside(root, ".", O_RDONLY | O_DIRECTORY, 0);
	return fd >= 0;
}

static const char *reason(void)
{
	switch (errno) {
	case ENOENT:
		return "there is no such file";
	case ENOTDIR:
		return "a part of the path is not a folder";
	case EISDIR:
		return "that is a folder";
	case ELOOP:
		return "the path leads through a link";
	case EXDEV:
		return "the path leads out of the project";
	case ENOSPC:
	case EDQUOT:
		return "the workspace is full";
	default:
		return "the file cannot be opened";
	}
}

static const char *read_fd(int fd, struct buf *out)
{
	struct stat st;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? "that is a folder" : "that is not a regular file";
	if (st.st_size > TREE_FILE_MAX)
		return "the file is too large to be read";
	char block[16384];
	size_t total = 0;
	for (;;) {
		ssize_t got = read(fd, block, sizeof block);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return "the file cannot be read";
		if (got == 0)
			return buf_failed(out) ? "the file is too large to be read" : NULL;
		total += (size_t)got;
		if (total > TREE_FILE_MAX)
			return "the file is too large to be read";
		buf_add(out, block, (size_t)got);
	}
}

const char *tree_read(int root, const char *path, struct buf *out)
{
	own_fd int fd = open_inside(root, path, O_RDONLY, 0);
	return fd < 0 ? reason() : read_fd(fd, out);
}

static const char *make_folders(int root, const char *path)
{
	char part[PATH_BYTES];
	if (strlen(path) >= sizeof part)
		return "the path is too long";
	own_fd int at = open_inside(root, ".", O_RDONLY | O_DIRECTORY, 0);
	const char *p = path;
	for (const char *slash; at >= 0 && (slash = strchr(p, '/')) != NULL; p = slash + 1) {
		memcpy(part, p, (size_t)(slash - p));
		part[slash - p] = 0;
		if (mkdirat(at, part, 0777) != 0 && errno != EEXIST)
			return reason();
		int next = open_inside(at, part, O_RDONLY | O_DIRECTORY, 0);
		close(at);
		at = next;
	}
	return at < 0 ? reason() : NULL;
}

const char *tree_write(int root, const char *path, const void *p, size_t n)
{
	const char *why = make_folders(root, path);
	if (why != NULL)
		return why;
	own_fd int fd = open_inside(root, path, O_WRONLY | O_CREAT, 0666);
	struct stat st;
	if (fd < 0)
		return reason();
	/* Looked at before it is emptied: what is not a file of its own is left as it is. */
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1)
		return "that is not a regular file";
	if (ftruncate(fd, 0) != 0)
		return reason();
	for (size_t done = 0; done < n;) {
		ssize_t put = write(fd, (const char *)p + done, n - done);
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return reason();
		done += (size_t)put;
	}
	return NULL;
}

struct walk {
	tree_visit *visit;
	void *arg;
	struct arena names;
	size_t seen;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* fd is taken. */
static bool walk_folder(struct walk *w, int fd, const char *path, unsigned depth)
{
	DIR *dir = fdopendir(fd);
	if (dir == NULL) {
		close(fd);
		return false;
	}
	own_free const char **names = NULL;
	size_t n = 0, room = 0;
	bool whole = true;
	for (struct dirent *e; (e = readdir(dir)) != NULL;) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || strcmp(e->d_name, ".git") == 0)
			continue;
		if (w->seen++ >= TREE_ENTRIES) {
			whole = false;
			break;
		}
		if (n == room) {
			room = room ? room * 2 : 32;
			const char **more = reallocarray(names, room, sizeof *more);
			if (more == NULL) {
				whole = false;
				break;
			}
			names = more;
		}
		if ((names[n] = arena_dup(&w->names, e->d_name, strlen(e->d_name))) == NULL) {
			whole = false;
			break;
		}
		n++;
	}
	if (n > 0)
		qsort(names, n, sizeof *names, by_name);
	for (size_t i = 0; i < n && whole; i++) {
		char below[PATH_BYTES];
		int len = snprintf(below, sizeof below, "%s%s%s", path, path[0] ? "/" : "", names[i]);
		struct stat st;
		if (len < 0 || (size_t)len >= sizeof below || fstatat(fd, names[i], &st, AT_SYMLINK_NOFOLLOW) != 0)
			continue;
		if (S_ISREG(st.st_mode)) {
			whole = w->visit(w->arg, fd, names[i], below, (uint64_t)st.st_size);
		} else if (S_ISDIR(st.st_mode)) {
			int sub = depth < TREE_DEPTH ? open_inside(fd, names[i], O_RDONLY | O_DIRECTORY, 0) : -1;
			if (sub >= 0)
				whole = walk_folder(w, sub, below, depth + 1);
		}
	}
	closedir(dir);
	return whole;
}

bool tree_walk(int root, tree_visit *visit, void *arg)
{
	struct walk w = {.visit = visit, .arg = arg};
	arena_init(&w.names, ARENA_BYTES);
	int fd = open_inside(root, ".", O_RDONLY | O_DIRECTORY, 0);
	bool whole = fd >= 0 && walk_folder(&w, fd, "", 0);
	arena_free(&w.names);
	return whole;
}
