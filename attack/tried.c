/* See tried.h. */
#include "attack/tried.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
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

/* The fifth field of a line is where it is mounted. What hangs below the programs' folders belongs to them. */
bool foreign_mount(char at[200])
{
	static const char *const known[] = {"/",    "/proc",      "/dev",         "/dev/shm",
					    "/tmp", "/workspace", "/opt/pinfold", NULL};
	static const char *const below[] = {"/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc/", NULL};
	static char text[64000];
	if (read_text("/proc/self/mountinfo", text, sizeof text) < 0)
		return false;
	for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
		bool fine = sscanf(line, "%*s %*s %*s %*s %199s", at) != 1;
		for (const char *const *k = known; *k != NULL; k++)
			fine = fine || strcmp(*k, at) == 0;
		for (const char *const *k = below; *k != NULL; k++)
			fine = fine || strncmp(*k, at, strlen(*k)) == 0;
		if (!fine)
			return true;
	}
	return false;
}

const char *past_root(const char *path, char above[600])
{
	char at[200];
	snprintf(above, 600, "%s%.390s", foreign_mount(at) ? at : "/..", path);
	return above;
}

struct tried cannot_open(const char *path, int flags)
{
	if (path[0] == '\0')
		return skipped("no path to try");
	int fd = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
	if (fd < 0 && flags == O_RDONLY) {
		char above[600];
		fd = open(past_root(path, above), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	}
	if (fd >= 0 && (flags & O_EXCL) != 0)
		unlink(path); /* it was not there before */
	return denied(fd);
}

struct tried cannot_list(const char *path)
{
	if (path[0] == '\0')
		return skipped("no path to try");
	char above[600];
	DIR *d = opendir(path);
	if (d == NULL)
		d = opendir(past_root(path, above));
	if (d == NULL)
		return held("%s", name(errno));
	closedir(d);
	return open_("%s can be listed", path);
}

int landlock_abi(void)
{
	return (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
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
