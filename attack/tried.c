/* See tried.h. */
#include "attack/tried.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SAY(result, value, fmt)                                       \
	va_list ap;                                                   \
	va_start(ap, fmt);                                            \
	vsnprintf((result).detail, sizeof(result).detail, (fmt), ap); \
	va_end(ap);                                                   \
	(result).outcome = (value)

struct tried held(const char *fmt, ...)
{
	struct tried t;
	SAY(t, TRIED_HELD, fmt);
	return t;
}

struct tried open_(const char *fmt, ...)
{
	struct tried t;
	SAY(t, TRIED_OPEN, fmt);
	return t;
}

struct tried skipped(const char *fmt, ...)
{
	struct tried t;
	SAY(t, TRIED_SKIPPED, fmt);
	return t;
}

static const char *name(int error)
{
	const char *n = strerrorname_np(error);
	return n != NULL ? n : "an error";
}

struct tried refused(long rc)
{
	return rc < 0 ? held("%s", name(errno)) : open_("it worked (%ld)", rc);
}

struct tried absent(long rc)
{
	return filtered(rc, ENOSYS);
}

struct tried filtered(long rc, int error)
{
	if (rc < 0 && errno == error)
		return held("%s", name(errno));
	return rc < 0 ? open_("the kernel itself answers: %s", name(errno)) : open_("it worked (%ld)", rc);
}

struct tried denied(int fd)
{
	struct tried t = refused(fd);
	if (fd >= 0)
		close(fd);
	return t;
}

struct tried differs(const char *what, const char *a, const char *b)
{
	if (a[0] == '\0' || b[0] == '\0')
		return skipped("%s: nothing to compare with", what);
	return strcmp(a, b) == 0 ? open_("%s: %s is the same", what, a) : held("%s", a);
}

struct tried cannot_open(const char *path, int flags)
{
	if (path[0] == '\0')
		return skipped("no path to try");
	return denied(open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600));
}

struct tried cannot_list(const char *path)
{
	if (path[0] == '\0')
		return skipped("no path to try");
	DIR *d = opendir(path);
	if (d == NULL)
		return held("%s", name(errno));
	closedir(d);
	return open_("%s can be listed", path);
}

long read_text(const char *path, char *to, unsigned long size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	unsigned long n = 0;
	ssize_t got = -1;
	while (fd >= 0 && n + 1 < size && (got = read(fd, to + n, size - 1 - n)) > 0)
		n += (unsigned long)got;
	to[n] = '\0';
	if (fd >= 0)
		close(fd);
	return fd < 0 || got < 0 ? -1 : (long)n;
}
