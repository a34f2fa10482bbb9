/*
 * Files as a tar in zstd, where libarchive has it, or gzip: the same files give the same bytes, so that the server
 * knows them again. In a file without a name, so that no tree is ever in memory.
 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/upload.h"
#include "lib/own.h"

/* Below $TMPDIR; without O_TMPFILE there the name goes at once. */
static int nameless(void)
{
	char path[4096];
	const char *dir = getenv("TMPDIR");
	dir = dir != NULL && dir[0] == '/' ? dir : "/tmp";
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0 || snprintf(path, sizeof path, "%s/pinfold-XXXXXX", dir) >= (int)sizeof path)
		return fd;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		(void)unlink(path);
	return fd;
}

/* NULL, or what is wrong. */
static const char *put_file(struct archive *a, struct archive_entry *e, int dir, const char *path)
{
	char part[65536];
	struct stat st;
	own_fd int fd = collect_open(dir, path);
	if (fd < 0 || fstat(fd, &st) != 0)
		return strerror(errno);
	if (!S_ISREG(st.st_mode))
		return "no plain file any more";
	archive_entry_clear(e);
	archive_entry_set_pathname(e, path);
	archive_entry_set_filetype(e, AE_IFREG);
	archive_entry_set_perm(e, (st.st_mode & 0100) != 0 ? 0755 : 0644);
	archive_entry_set_size(e, st.st_size);
	archive_entry_set_mtime(e, 0, 0);
	if (archive_write_header(a, e) != ARCHIVE_OK)
		return archive_error_string(a);
	for (off_t left = st.st_size; left > 0;) {
		ssize_t n = read(fd, part, left < (off_t)sizeof part ? (size_t)left : sizeof part);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? strerror(errno) : "it became shorter while it was read";
		if (archive_write_data(a, part, (size_t)n) != n)
			return archive_error_string(a);
		left -= n;
	}
	return archive_write_finish_entry(a) == ARCHIVE_OK ? NULL : archive_error_string(a);
}

static bool begin(struct archive *a, int fd, const char **type)
{
	*type = "application/zstd";
	if (archive_write_set_format_pax_restricted(a) != ARCHIVE_OK)
		return false;
	if (archive_write_add_filter_zstd(a) != ARCHIVE_OK) {
		*type = "application/gzip";
		if (archive_write_add_filter_gzip(a) != ARCHIVE_OK ||
		    archive_write_set_filter_option(a, "gzip", "timestamp", NULL) != ARCHIVE_OK)
			return false;
	}
	return archive_write_open_fd(a, fd) == ARCHIVE_OK;
}

int upload_pack(const struct upload *u, const struct collected *files, const char **type, uint64_t *bytes)
{
	struct archive *a = archive_write_new();
	struct archive_entry *e = archive_entry_new();
	own_fd int dir = open(u->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = nameless();
	const char *what = u->dir, *why = NULL;
	struct stat st;
	if (a == NULL || e == NULL || dir < 0 || fd < 0)
		why = strerror(errno);
	else if (!begin(a, fd, type))
		why = archive_error_string(a);
	for (size_t i = 0; why == NULL && i < files->n; i++) {
		why = put_file(a, e, dir, files->path[i]);
		what = why != NULL ? files->path[i] : what;
	}
	if (why == NULL && archive_write_close(a) != ARCHIVE_OK)
		why = archive_error_string(a);
	if (why == NULL && (fstat(fd, &st) != 0 || lseek(fd, 0, SEEK_SET) != 0))
		why = strerror(errno);
	if (why != NULL)
		say_wrong(what, why);
	archive_entry_free(e);
	(void)archive_write_free(a);
	if (why != NULL)
		return -1;
	*bytes = (uint64_t)st.st_size;
	return steal_fd(&fd);
}
