/*
 * See unpack.h. The archive is read twice at once: one reader (libarchive's raw format) undoes the compression, and
 * what comes out of it is counted before a second one (its tar format) sees it. So a bomb is stopped by what it has
 * become so far and not by what it says of itself; the rest behind the end of the tar is there to be looked at; and a
 * compressed file within a compressed file is no tar.
 *
 * Accepted are ustar, pax and GNU tar, plain or in gzip or zstd. Of an entry its name, its content and whether it can
 * be executed are used; owner, times, other bits and attributes are not. A folder says nothing but that it may not be
 * in the way of a file. One "./" before a name is taken away, since `tar -C FOLDER -c .` puts it there; nothing else is
 * put right.
 */
#include "unpack/unpack.h"
#include "lib/clock.h"
#include "lib/own.h"
#include "lib/path.h"
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { BLOCK = 65536, RECORD = 512, ENTRY_BYTES = 4096, SPARE_BYTES = 1 << 20, PACKED_MOST = 2 };

struct unpack {
	const struct unpack_limits *most;
	struct unpack_fault *fault;
	struct archive *packed, *tar;
	int into;
	uint64_t came, may_come;           /* of bytes of the tar */
	uint64_t zeros;                    /* how many of the last of them are zeros */
	uint64_t bytes;                    /* of files */
	size_t files, folders, made, room; /* made: folders that no entry need have named */
	char **names;                      /* of both; a folder's ends with a slash */
	uint8_t raw[BLOCK], block[BLOCK];
};

/* The first one stays. Always false. */
static bool refuse(struct unpack *u, enum err code, const char *name)
{
	struct unpack_fault *f = u->fault;
	size_t n = 0;
	if (f->code != ERR_OK)
		return false;
	f->code = code;
	for (; name != NULL && *name != 0 && n + 5 < sizeof f->name; name++)
		n += (size_t)snprintf(f->name + n, sizeof f->name - n, *name > ' ' && *name < 127 ? "%c" : "\\x%02x",
				      (unsigned char)*name);
	return false;
}

static bool lacks(struct unpack *u, const char *name)
{
	bool full = errno == ENOMEM || errno == ENOSPC || errno == EDQUOT || errno == EMFILE;
	return refuse(u, full ? ERR_RESOURCES_EXHAUSTED : ERR_INTERNAL_ERROR, name);
}

/* --- the bytes of the tar -------------------------------------------------------------------------- */

/* The next of them; 0: that was all; -1: refused. */
static ssize_t next_bytes(struct unpack *u)
{
	la_ssize_t n = archive_read_data(u->packed, u->raw, sizeof u->raw);
	if (n < 0) {
		(void)refuse(u, ERR_INVALID_ARCHIVE, NULL);
		return -1;
	}
	u->came += (uint64_t)n;
	if (u->came > u->may_come) {
		(void)refuse(u, ERR_SOURCE_TREE_TOO_LARGE, NULL);
		return -1;
	}
	la_ssize_t at = n;
	while (at > 0 && u->raw[at - 1] == 0)
		at--;
	u->zeros = at == 0 ? u->zeros + (uint64_t)n : (uint64_t)(n - at);
	return n;
}

static la_ssize_t give(struct archive *a, void *arg, const void **to)
{
	struct unpack *u = arg;
	ssize_t n = next_bytes(u);
	*to = u->raw;
	if (n < 0)
		archive_set_error(a, EINVAL, "refused");
	return n;
}

static bool begin(struct unpack *u, int archive)
{
	struct archive_entry *e;
	u->packed = archive_read_new();
	u->tar = archive_read_new();
	/* A filter that libarchive was built without would be another program, which it starts: that is a warning. */
	if (u->packed == NULL || u->tar == NULL || archive_read_support_format_raw(u->packed) != ARCHIVE_OK ||
	    archive_read_support_filter_gzip(u->packed) != ARCHIVE_OK ||
	    archive_read_support_filter_zstd(u->packed) != ARCHIVE_OK ||
	    archive_read_support_format_tar(u->tar) != ARCHIVE_OK)
		return lacks(u, NULL);
	if (archive_read_open_fd(u->packed, archive, BLOCK) != ARCHIVE_OK ||
	    archive_read_next_header(u->packed, &e) != ARCHIVE_OK)
		return refuse(u, ERR_INVALID_ARCHIVE, NULL);
	if (archive_filter_count(u->packed) > PACKED_MOST) /* the file itself is one */
		return refuse(u, ERR_INVALID_ARCHIVE, NULL);
	if (archive_read_open(u->tar, u, NULL, give, NULL) != ARCHIVE_OK)
		return refuse(u, ERR_INVALID_ARCHIVE, NULL);
	return true;
}

/* The tar has its own end, behind the last entry at from; after that there are zeros, and behind the compressed data
 * nothing. */
static bool end(struct unpack *u, int archive, uint64_t from)
{
	struct stat st;
	bool marked = (uint64_t)archive_filter_bytes(u->tar, 0) >= from + RECORD;
	ssize_t n;
	while ((n = next_bytes(u)) > 0)
		;
	if (n < 0)
		return false;
	if (!marked || u->zeros < u->came - from || u->came % RECORD != 0)
		return refuse(u, ERR_INVALID_ARCHIVE, NULL);
	if (fstat(archive, &st) != 0)
		return lacks(u, NULL);
	return archive_filter_bytes(u->packed, -1) == st.st_size || refuse(u, ERR_INVALID_ARCHIVE, NULL);
}

/* --- names ------------------------------------------------------------------------------------------ */

static bool keep(struct unpack *u, const char *name, bool folder)
{
	size_t n = u->files + u->folders;
	if ((folder ? u->folders : u->files) == u->most->files)
		return refuse(u, ERR_SOURCE_TOO_MANY_FILES, name);
	if (n == u->room) {
		size_t room = u->room == 0 ? 256 : 2 * u->room;
		char **v = realloc(u->names, room * sizeof *v);
		if (v == NULL)
			return lacks(u, NULL);
		u->names = v;
		u->room = room;
	}
	u->names[n] = malloc(strlen(name) + 2);
	if (u->names[n] == NULL)
		return lacks(u, NULL);
	(void)sprintf(u->names[n], "%s%s", name, folder ? "/" : "");
	u->folders += folder;
	u->files += !folder;
	return true;
}

static int by_order(const void *a, const void *b)
{
	return path_order(*(char *const *)a, *(char *const *)b);
}

static bool is_folder(const char *name)
{
	return name[strlen(name) - 1] == '/';
}

/* That each file has been new says nothing of case, nor of folders that are only named. */
static bool names_agree(struct unpack *u)
{
	size_t n = u->files + u->folders;
	if (n > 1)
		qsort(u->names, n, sizeof *u->names, by_order);
	for (size_t i = 1; i < n; i++) {
		const char *a = u->names[i - 1], *b = u->names[i];
		if (!(is_folder(a) && is_folder(b)) && path_conflict(a, b))
			return refuse(u, ERR_CONFLICTING_SOURCE_PATH, b);
	}
	return true;
}

/* --- entries ---------------------------------------------------------------------------------------- */

/* No component of it is a link: none is ever made here, and the folder was empty. */
static int open_new(struct unpack *u, const char *path, mode_t mode)
{
	char folder[PATH_MAX_CHARS + 1];
	struct stat st;
	for (const char *p = strchr(path, '/'); p != NULL; p = strchr(p + 1, '/')) {
		size_t n = (size_t)(p - path);
		memcpy(folder, path, n); /* a path that is valid is not longer */
		folder[n] = 0;
		if (mkdirat(u->into, folder, 0755) == 0)
			u->made++;
		else if (errno != EEXIST)
			break;
		if (u->made > u->most->files) {
			(void)refuse(u, ERR_SOURCE_TOO_MANY_FILES, path);
			return -1;
		}
	}
	int fd = openat(u->into, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd >= 0)
		return fd;
	if (errno == ENOTDIR)
		(void)refuse(u, ERR_CONFLICTING_SOURCE_PATH, path);
	else if (errno == EEXIST && fstatat(u->into, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
		(void)refuse(u, S_ISDIR(st.st_mode) ? ERR_CONFLICTING_SOURCE_PATH : ERR_DUPLICATE_SOURCE_PATH, path);
	else
		(void)lacks(u, path);
	return -1;
}

static bool file(struct unpack *u, struct archive_entry *e, const char *path)
{
	uint64_t bytes = 0;
	la_ssize_t n;
	if (archive_entry_size(e) < 0 || (uint64_t)archive_entry_size(e) > u->most->file_bytes)
		return refuse(u, ERR_SOURCE_FILE_TOO_LARGE, path);
	if (!keep(u, path, false))
		return false;
	own_fd int fd = open_new(u, path, (archive_entry_perm(e) & 0111) != 0 ? 0755 : 0644);
	if (fd < 0)
		return false;
	while ((n = archive_read_data(u->tar, u->block, sizeof u->block)) > 0) {
		bytes += (uint64_t)n;
		u->bytes += (uint64_t)n;
		if (bytes > u->most->file_bytes)
			return refuse(u, ERR_SOURCE_FILE_TOO_LARGE, path);
		if (u->bytes > u->most->bytes)
			return refuse(u, ERR_SOURCE_TREE_TOO_LARGE, path);
		if (!write_all(fd, u->block, (size_t)n))
			return lacks(u, path);
	}
	return n == 0 || refuse(u, ERR_INVALID_ARCHIVE, path);
}

static bool entry(struct unpack *u, struct archive_entry *e)
{
	char path[PATH_MAX_CHARS + 3];
	const char *name = archive_entry_pathname(e);
	bool folder = archive_entry_filetype(e) == AE_IFDIR;
	bool plain = (folder || archive_entry_filetype(e) == AE_IFREG) && archive_entry_hardlink(e) == NULL &&
		     archive_entry_symlink(e) == NULL && archive_entry_sparse_count(e) == 0;
	if (!plain)
		return refuse(u, ERR_SOURCE_ENTRY_REFUSED, name);
	if (name == NULL)
		return refuse(u, ERR_INVALID_SOURCE_PATH, NULL);
	if (strncmp(name, "./", 2) == 0)
		name += 2;
	if (folder && (*name == 0 || strcmp(name, ".") == 0))
		return true;
	size_t n = strlen(name);
	if (folder && name[n - 1] == '/')
		n--;
	if (!path_valid(name, n))
		return refuse(u, ERR_INVALID_SOURCE_PATH, name);
	memcpy(path, name, n);
	path[n] = 0;
	return folder ? keep(u, path, true) : file(u, e, path);
}

static bool entries(struct unpack *u, uint64_t *from)
{
	struct archive_entry *e;
	int got;
	while ((got = archive_read_next_header(u->tar, &e)) == ARCHIVE_OK || got == ARCHIVE_WARN) {
		/* What warns is what we do not use, or a name that is none here. */
		if (!entry(u, e))
			return false;
		if (archive_read_data_skip(u->tar) != ARCHIVE_OK)
			return refuse(u, ERR_INVALID_ARCHIVE, archive_entry_pathname(e));
		*from = (uint64_t)archive_filter_bytes(u->tar, 0);
	}
	return got == ARCHIVE_EOF || refuse(u, ERR_INVALID_ARCHIVE, NULL);
}

void unpack_archive(int archive, int into, const struct unpack_limits *most, struct unpack_fault *fault)
{
	struct unpack *u = calloc(1, sizeof *u);
	uint64_t from = 0;
	*fault = (struct unpack_fault){.code = u == NULL ? ERR_RESOURCES_EXHAUSTED : ERR_OK};
	if (u == NULL)
		return;
	/* Names in other letters are to arrive here as such, to be refused by name. */
	(void)setlocale(LC_CTYPE, "C.UTF-8");
	u->most = most;
	u->fault = fault;
	u->into = into;
	u->may_come = most->bytes + (uint64_t)ENTRY_BYTES * most->files + SPARE_BYTES;
	if (begin(u, archive) && entries(u, &from) && end(u, archive, from) && names_agree(u) && u->files == 0)
		(void)refuse(u, ERR_INVALID_ARCHIVE, NULL);
	archive_read_free(u->tar);
	archive_read_free(u->packed);
	for (size_t i = 0; i < u->files + u->folders; i++)
		free(u->names[i]);
	free(u->names);
	free(u);
}
