/*
 * A package's files into a folder of root's. The archive is the locked one; even so nothing in it may lead elsewhere:
 * plain files and folders only, by names that lead down, into files that did not exist.
 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/agent.h"
#include "cli/cli.h"
#include "lib/num.h"
#include "lib/own.h"

enum { BLOCK = 65536, ENTRIES = 200000 };

/* Behind the first part, which every npm package has of its own ("package/"); NULL: there is none, or it leads up. */
static const char *inner(const char *name)
{
	const char *slash = strchr(name, '/');

	if (name[0] == '/' || slash == NULL || slash[1] == '\0')
		return NULL;
	for (const char *p = slash + 1; *p != '\0';) {
		size_t n = strcspn(p, "/");
		/* "." leads nowhere, and some have it. */
		if (n == 0 || (n == 2 && memcmp(p, "..", 2) == 0))
			return NULL;
		p += n + (p[n] == '/');
	}
	return slash + 1;
}

static const char *put_file(struct archive *a, const char *path, bool program, unsigned long long *left)
{
	static char block[BLOCK];
	ssize_t n;

	if (!folders_above(path))
		return strerror(errno);
	own_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0 || fchmod(fd, program ? 0755 : 0644) != 0)
		return strerror(errno);
	while ((n = archive_read_data(a, block, sizeof block)) > 0) {
		if ((unsigned long long)n > *left)
			return "it unpacks to more than an agent may have";
		*left -= (unsigned long long)n;
		if (!write_all(fd, block, (size_t)n))
			return strerror(errno);
	}
	return n < 0 ? "it is no archive of npm" : NULL;
}

static const char *put_all(struct archive *a, const char *place, unsigned long long *left)
{
	struct archive_entry *e;
	char path[PATH_MAX];
	int got;

	for (unsigned n = 0; (got = archive_read_next_header(a, &e)) == ARCHIVE_OK; n++) {
		const char *name = archive_entry_pathname(e), *in = name != NULL ? inner(name) : NULL, *why;
		if (archive_entry_filetype(e) == AE_IFDIR)
			continue;
		if (n >= ENTRIES || in == NULL || archive_entry_filetype(e) != AE_IFREG ||
		    archive_entry_hardlink(e) != NULL)
			return "it holds something else than plain files";
		if ((size_t)snprintf(path, sizeof path, "%s/%s", place, in) >= sizeof path)
			return "it holds a name that is too long";
		if ((why = put_file(a, path, (archive_entry_perm(e) & 0111) != 0, left)) != NULL)
			return why;
	}
	return got == ARCHIVE_EOF ? NULL : "it is no archive of npm";
}

bool agent_unpack(int file, const char *place, unsigned long long *left)
{
	struct archive *a = archive_read_new();
	const char *why = "no memory";

	if (a != NULL && lseek(file, 0, SEEK_SET) == 0 && archive_read_support_filter_gzip(a) == ARCHIVE_OK &&
	    archive_read_support_format_tar(a) == ARCHIVE_OK)
		why = archive_read_open_fd(a, file, BLOCK) == ARCHIVE_OK ? put_all(a, place, left) : "it is no archive";
	if (why != NULL)
		say_wrong(place, why);
	archive_read_free(a);
	return why == NULL;
}
