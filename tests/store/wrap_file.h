/*
 * An offset that a test keeps in a file, for a process that must not open files once it works: the file that the
 * environment names is opened before main, and read from its beginning each time. Tests write it in place.
 */
#ifndef TESTS_STORE_WRAP_FILE_H
#define TESTS_STORE_WRAP_FILE_H
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* -1: the environment names none. Above all numbers that mean something to a process. */
static inline int offset_open(const char *variable)
{
	const char *path = getenv(variable);
	int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	int high = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 200) : -1;
	if (fd >= 0)
		close(fd);
	return high;
}

static inline long long offset_read(int fd)
{
	char text[32] = "";
	ssize_t n = fd >= 0 ? pread(fd, text, sizeof text - 1, 0) : 0;
	return n > 0 ? strtoll(text, NULL, 10) : 0;
}
#endif
