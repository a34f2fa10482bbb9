/*
 * Makes and checks the folders of an instance, element by element from the root and by descriptor, so that
 * no name can be exchanged between the look and the use. Follows no link.
 */
#include "sandboxd/folders.h"
#include "lib/die.h"
#include "lib/own_fd.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPEN = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

static void check(int fd, const char *so_far, uid_t also)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		fatal("%s: %m", so_far);
	if (st.st_uid != 0 && st.st_uid != also)
		unfit("%s is owned by uid %u; it must be uid %u's (chown %s%u %s)", so_far, st.st_uid, also,
		      also != 0 ? "-R " : "", also, so_far);
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0 && ((st.st_mode & S_ISVTX) == 0 || st.st_uid != 0))
		unfit("%s may be written by others (mode %04o); run chmod go-w %s", so_far, st.st_mode & 07777u,
		      so_far);
}

static int walk(const char *path, bool make, uid_t uid)
{
	own_fd int at = open("/", OPEN);
	char part[256];
	size_t end = 0;
	while (path[end] == '/') {
		size_t n = strcspn(path + end + 1, "/");
		if (n == 0 || n >= sizeof part)
			unfit("%s: not a path", path);
		memcpy(part, path + end + 1, n);
		part[n] = '\0';
		end += n + 1;
		bool last = path[end] == '\0';
		char so_far[1024];
		snprintf(so_far, sizeof so_far, "%.*s", (int)end, path);
		int next = openat(at, part, OPEN);
		if (next < 0 && errno == ENOENT && !make)
			return -1;
		if (next < 0 && errno == ENOENT) {
			if (mkdirat(at, part, 0700) != 0 && errno != EEXIST)
				fatal("cannot make %s: %m", so_far);
			next = openat(at, part, OPEN);
			if (next >= 0 && !last && fchmod(next, 0755) != 0)
				fatal("%s: %m", so_far);
		}
		if (next < 0 && (errno == ELOOP || errno == ENOTDIR))
			unfit("%s is a link or no folder; move it away", so_far);
		if (next < 0)
			fatal("%s: %m", so_far);
		check(next, so_far, last ? uid : 0);
		close(at);
		at = next;
	}
	return steal_fd(&at);
}

int folder_make(const char *path, mode_t mode, uid_t uid, gid_t gid)
{
	int fd = walk(path, true, uid);
	if (fchown(fd, uid, gid) != 0 || fchmod(fd, mode) != 0)
		fatal("%s: cannot set its owner: %m", path);
	return fd;
}

int folder_check(const char *path)
{
	return walk(path, false, 0);
}

bool folder_lock(int fd)
{
	/* Children of a life that just ended may hold it until they are dead. */
	for (int tries = 0; tries < 200; tries++, usleep(10000))
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return true;
	return false;
}
