/*
 * Follows no link, opens nothing that another could have prepared, and never changes a byte that was
 * written whole: only what a failed write left behind is cut off again.
 */
#include "store/audit_file.h"
#include "lib/audit_chain.h"
#include "lib/die.h"
#include "lib/num.h"
#include "lib/own.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEXT AUDIT_FILE ".new"
enum { OPEN = O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC };

static void generation(char name[32], unsigned k)
{
	(void)snprintf(name, 32, k == 0 ? "%s" : "%s.%u", AUDIT_FILE, k);
}

static int open_dir(const char *path)
{
	struct stat st;
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || fstat(dir, &st) != 0)
		fatal("cannot open the folder of the audit log, %s: %m", path);
	if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		fatal("the folder of the audit log, %s, must belong to uid %u and be writable by no other", path,
		      (unsigned)geteuid());
	return dir;
}

/* A regular file of ours under one name, 0600. */
static int open_log(int dir, const char *name, int more)
{
	struct stat st;
	int fd = openat(dir, name, OPEN | more, 0600);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1 || st.st_uid != geteuid() ||
	    ((st.st_mode & 07777) != 0600 && fchmod(fd, 0600) != 0)) {
		close(fd);
		errno = EEXIST;
		return -1;
	}
	return fd;
}

void audit_file_open(struct audit_file *f, const char *log_dir, uint32_t generations)
{
	struct stat st;
	*f = (struct audit_file){.dir = open_dir(log_dir), .generations = generations};
	(void)unlinkat(f->dir, NEXT, 0); /* of a rotation that was cut short */
	f->fd = open_log(f->dir, AUDIT_FILE, O_CREAT);
	if (f->fd < 0)
		fatal("%s/%s cannot be used as the audit log (%m): it must be a regular file of uid %u with one name; "
		      "move it away",
		      log_dir, AUDIT_FILE, (unsigned)geteuid());
	if (fstat(f->fd, &st) != 0)
		fatal("%s/%s: %m", log_dir, AUDIT_FILE);
	f->size = (uint64_t)st.st_size;
}

void audit_file_close(struct audit_file *f)
{
	close(f->fd);
	close(f->dir);
}

bool audit_file_add(struct audit_file *f, const void *p, size_t n, bool durable)
{
	ssize_t got;
	do
		got = write(f->fd, p, n);
	while (got < 0 && errno == EINTR);
	if (got == (ssize_t)n && (!durable || fdatasync(f->fd) == 0)) {
		f->size += n;
		return true;
	}
	int why = got < 0 || got == (ssize_t)n ? errno : ENOSPC;
	if (got > 0 && ftruncate(f->fd, (off_t)f->size) != 0)
		fatal("a part of an audit line was written and cannot be taken back: %m");
	errno = why;
	return false;
}

static void shift(const struct audit_file *f)
{
	char from[32], to[32];
	unsigned hole = 1;
	for (; hole < f->generations; hole++) {
		generation(to, hole);
		if (faccessat(f->dir, to, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
			break;
	}
	for (unsigned k = hole; k > 1; k--) {
		generation(from, k - 1);
		generation(to, k);
		if (renameat(f->dir, from, f->dir, to) != 0)
			log_warn("the audit log's generation %u cannot be renamed: %m", k - 1);
	}
	/* Left over from a larger setting. */
	for (unsigned k = f->generations + 1; k <= AUDIT_GENERATIONS_MAX; k++) {
		generation(to, k);
		(void)unlinkat(f->dir, to, 0);
	}
}

bool audit_file_rotate(struct audit_file *f)
{
	char first[32];
	generation(first, 1);
	(void)unlinkat(f->dir, NEXT, 0);
	int fd = open_log(f->dir, NEXT, O_CREAT | O_EXCL);
	bool moved = false;
	if (fd >= 0) {
		shift(f);
		moved = renameat(f->dir, AUDIT_FILE, f->dir, first) == 0;
		if (moved && renameat(f->dir, NEXT, f->dir, AUDIT_FILE) != 0) {
			(void)renameat(f->dir, first, f->dir, AUDIT_FILE);
			moved = false;
		}
	}
	if (!moved) {
		if (!f->complained)
			log_error("the audit log cannot be rotated: %m; it goes on in the same file");
		f->complained = true;
		if (fd >= 0)
			close(fd);
		return false;
	}
	(void)fdatasync(f->fd);
	(void)fsync(f->dir);
	close(f->fd);
	f->fd = fd;
	f->size = 0;
	f->complained = false;
	return true;
}

char *audit_file_tail(struct audit_file *f, size_t *n, bool *current)
{
	char name[32];
	struct stat st;
	for (unsigned k = 0; k <= AUDIT_GENERATIONS_MAX; k++) {
		generation(name, k);
		own_fd int fd = open_log(f->dir, name, 0);
		if (fd < 0 || fstat(fd, &st) != 0 || st.st_size == 0)
			continue;
		off_t from = st.st_size > AUDIT_TAIL ? st.st_size - AUDIT_TAIL : 0;
		char *p = malloc(AUDIT_TAIL);
		ssize_t got = p == NULL ? -1 : pread(fd, p, AUDIT_TAIL, from);
		if (got <= 0)
			fatal("the audit log cannot be read: %m");
		*n = (size_t)got;
		*current = k == 0;
		return p;
	}
	return NULL;
}
