/*
 * Linked into a second set of the daemons, which only the fault harness starts. It stands before the C library's
 * calls, for the program and for the libraries it uses (the linker exports what they refer to), and makes them fail
 * when the control file says so. The file is found from the program's own name: ROOT/usr/.../pinfold-X uses
 * ROOT/fault/control, and where the environment has PINFOLD_TEST_FAULT=X:FILE (tests of one program alone), it is
 * that FILE; where there is none, nothing happens. Nothing of this is in a program that is installed.
 */
#undef _FORTIFY_SOURCE
#include "tests/fault/shim.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);

enum { WOKEN = 33 /* of spec/store.msg */, UNDO_FD = 250 };

/* A marker by which tests/check/link.sh finds out that a program holds this file. */
__attribute__((used)) const char pinfold_fault_build[] = "pinfold fault build";

/* Of the process, by its nature: it is used within malloc. */
static struct fault_control *control;
static struct fault_slot *mine;
static int undo_fd = -1;

/* Which program this is: by the end of its path or, where a test says so, by its own word. -1: none. */
static int which_program(const char *name, char end)
{
	static const char *const names[FAULT_PROGRAMS] = {"sandboxd", "stored", "gateway", "fcgi", "steward", "push"};
	for (int i = 0; i < FAULT_PROGRAMS; i++)
		if (strncmp(name, names[i], strlen(names[i])) == 0 && name[strlen(names[i])] == end)
			return i;
	return -1;
}

__attribute__((constructor)) static void fault_open(void)
{
	const char *self = (const char *)getauxval(AT_EXECFN), *name = self != NULL ? strrchr(self, '-') : NULL;
	const char *root = NULL, *told = getenv("PINFOLD_TEST_FAULT");
	char path[PATH_MAX];
	int which = told != NULL ? which_program(told, ':') : name != NULL ? which_program(name + 1, '\0') : -1;
	for (const char *p = self; p != NULL && (p = strstr(p, "/usr/")) != NULL; p++)
		root = p;
	if ((root == NULL && told == NULL) || which < 0)
		return;
	if (told != NULL)
		snprintf(path, sizeof path, "%s", strchr(told, ':') + 1);
	else
		snprintf(path, sizeof path, "%.*s/fault/control", (int)(root - self), self);
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		syscall(SYS_close, fd);
	if (p == MAP_FAILED || ((struct fault_control *)p)->magic != FAULT_MAGIC)
		return;
	control = p;
	mine = control->slot[which];
	if (which != FAULT_STORED || told != NULL)
		return;
	snprintf(path, sizeof path, "%.*s/fault/undo", (int)(root - self), self);
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
	if (fd >= 0) {
		undo_fd = (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, UNDO_FD);
		syscall(SYS_close, fd);
	}
}

static void die_here(void)
{
	syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
	syscall(SYS_exit_group, 137); /* as process 1 of a box it cannot be killed by itself */
}

static void stay(struct fault_slot *s)
{
	struct timespec t = {s->delay_ms / 1000, (long)(s->delay_ms % 1000) * 1000000};
	__atomic_add_fetch(&s->inside, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_nanosleep, &t, NULL);
	__atomic_sub_fetch(&s->inside, 1, __ATOMIC_SEQ_CST);
}

/* The fault that this call is to have, or NULL. Deaths before the call and delays are done here. */
static struct fault_slot *fault(enum fault_class class)
{
	if (control == NULL)
		return NULL;
	for (int i = 0; i < FAULT_SLOTS; i++) {
		struct fault_slot *s = &mine[i];
		if (__atomic_load_n(&s->class, __ATOMIC_ACQUIRE) != (uint32_t) class)
			continue;
		int32_t was = __atomic_fetch_sub(&s->countdown, 1, __ATOMIC_SEQ_CST);
		if (was > 1 || was <= 1 - s->times)
			continue;
		__atomic_add_fetch(&s->fired, 1, __ATOMIC_SEQ_CST);
		if (s->action == FAULT_KILL)
			die_here();
		if (s->action != FAULT_DELAY)
			return s;
		stay(s);
	}
	return NULL;
}

/* Of calls that can only fail or go on. True: it fails. */
static bool fails(struct fault_slot *s)
{
	if (s == NULL || s->action != FAULT_ERRNO)
		return false;
	errno = (int)s->err;
	return true;
}

static long after(struct fault_slot *s, long r)
{
	if (s != NULL && s->action == FAULT_KILL_AFTER)
		die_here();
	return r;
}

/* --- what a power cut would take away ------------------------------------------------------------- */

static void note(int fd, bool synced, uint64_t offset, size_t n)
{
	char path[PATH_MAX], link[48];
	struct stat st;
	if (undo_fd < 0 || control->undo == 0)
		return;
	int was = errno;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	long len = syscall(SYS_readlink, link, path, sizeof path - 1);
	if (len > 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		path[len] = '\0';
		struct fault_note h = {.magic = FAULT_MAGIC,
				       .synced = synced,
				       .inode = st.st_ino,
				       .offset = offset,
				       .size = (uint64_t)st.st_size,
				       .path_len = (uint32_t)len + 1};
		if (strstr(path, "/var/l") != NULL) {
			char *old = NULL;
			if (!synced && offset < h.size) {
				h.old_len = (uint32_t)(h.size - offset < n ? h.size - offset : n);
				old = __libc_malloc(h.old_len);
				snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
				/* The file may be open for writing only. */
				int again = (int)syscall(SYS_openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC, 0);
				if (old == NULL || again < 0 ||
				    syscall(SYS_pread64, again, old, h.old_len, offset) != (long)h.old_len)
					h.old_len = 0;
				if (again >= 0)
					syscall(SYS_close, again);
			}
			size_t size = sizeof h + h.path_len + h.old_len + sizeof h.magic;
			char *whole = __libc_malloc(size);
			if (whole != NULL) {
				memcpy(whole, &h, sizeof h);
				memcpy(whole + sizeof h, path, h.path_len);
				if (h.old_len > 0)
					memcpy(whole + sizeof h + h.path_len, old, h.old_len);
				memcpy(whole + size - sizeof h.magic, &h.magic, sizeof h.magic);
				syscall(SYS_write, undo_fd, whole, size);
				free(whole);
			}
			free(old);
		}
	}
	errno = was;
}

static uint64_t place(int fd)
{
	struct stat st;
	long flags = syscall(SYS_fcntl, fd, F_GETFL), at = syscall(SYS_lseek, fd, 0L, SEEK_CUR);
	if (flags >= 0 && (flags & O_APPEND) != 0 && fstat(fd, &st) == 0)
		at = st.st_size;
	return at < 0 ? 0 : (uint64_t)at;
}

/* --- files ------------------------------------------------------------------------------------------ */

ssize_t write(int fd, const void *p, size_t n)
{
	struct fault_slot *s = fd > STDERR_FILENO ? fault(FAULT_WRITE) : NULL;
	if (fails(s))
		return -1;
	if (undo_fd >= 0 && fd > STDERR_FILENO)
		note(fd, false, place(fd), n);
	return after(s, syscall(SYS_write, fd, p, n));
}

ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at)
{
	struct fault_slot *s = fault(FAULT_WRITE);
	if (fails(s))
		return -1;
	note(fd, false, (uint64_t)at, n);
	return after(s, syscall(SYS_pwrite64, fd, p, n, at));
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
	return pwrite64(fd, p, n, at);
}

int ftruncate64(int fd, off64_t n)
{
	struct fault_slot *s = fault(FAULT_WRITE);
	if (fails(s))
		return -1;
	note(fd, false, (uint64_t)n, SIZE_MAX);
	return (int)after(s, syscall(SYS_ftruncate, fd, n));
}

int ftruncate(int fd, off_t n)
{
	return ftruncate64(fd, n);
}

int posix_fallocate64(int fd, off64_t at, off64_t n)
{
	struct fault_slot *s = fault(FAULT_WRITE);
	if (fails(s))
		return (int)s->err;
	return syscall(SYS_fallocate, fd, 0, at, n) == 0 ? 0 : errno;
}

int posix_fallocate(int fd, off_t at, off_t n)
{
	return posix_fallocate64(fd, at, n);
}

static int sync_by(long call, int fd)
{
	struct fault_slot *s = fault(FAULT_SYNC);
	if (fails(s))
		return -1;
	int r = (int)syscall(call, fd);
	if (r == 0)
		note(fd, true, 0, 0);
	return (int)after(s, r);
}

int fsync(int fd)
{
	return sync_by(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	return sync_by(SYS_fdatasync, fd);
}

static ssize_t read_at(int fd, void *p, size_t n, off64_t at)
{
	struct fault_slot *s = fault(FAULT_READ);
	return fails(s) ? -1 : (ssize_t)after(s, syscall(SYS_pread64, fd, p, n, at));
}

ssize_t pread64(int fd, void *p, size_t n, off64_t at)
{
	return read_at(fd, p, n, at);
}

ssize_t pread(int fd, void *p, size_t n, off_t at)
{
	return read_at(fd, p, n, at);
}

/* What the compiler makes of them where it knows the buffer's size. */
ssize_t __pread_chk(int fd, void *p, size_t n, off_t at, size_t room);
ssize_t __pread_chk(int fd, void *p, size_t n, off_t at, size_t room)
{
	return n > room ? abort(), -1 : read_at(fd, p, n, at);
}

ssize_t __pread64_chk(int fd, void *p, size_t n, off64_t at, size_t room);
ssize_t __pread64_chk(int fd, void *p, size_t n, off64_t at, size_t room)
{
	return n > room ? abort(), -1 : read_at(fd, p, n, at);
}

/* --- descriptors -------------------------------------------------------------------------------------- */

static int open_at(int dir, const char *path, int flags, mode_t mode)
{
	struct fault_slot *s = fault(FAULT_FD);
	return fails(s) ? -1 : (int)after(s, syscall(SYS_openat, dir, path, flags, mode));
}

#define MODE_OF(flags)                                                    \
	mode_t mode = 0;                                                  \
	if (((flags)&O_CREAT) != 0 || ((flags)&O_TMPFILE) == O_TMPFILE) { \
		va_list ap;                                               \
		va_start(ap, flags);                                      \
		mode = va_arg(ap, mode_t);                                \
		va_end(ap);                                               \
	}

int open(const char *path, int flags, ...)
{
	MODE_OF(flags)
	return open_at(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	MODE_OF(flags)
	return open_at(AT_FDCWD, path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
	MODE_OF(flags)
	return open_at(dir, path, flags, mode);
}

int openat64(int dir, const char *path, int flags, ...)
{
	MODE_OF(flags)
	return open_at(dir, path, flags, mode);
}

int socket(int family, int type, int protocol)
{
	struct fault_slot *s = fault(FAULT_FD);
	return fails(s) ? -1 : (int)after(s, syscall(SYS_socket, family, type, protocol));
}

int socketpair(int family, int type, int protocol, int fds[2])
{
	struct fault_slot *s = fault(FAULT_FD);
	return fails(s) ? -1 : (int)after(s, syscall(SYS_socketpair, family, type, protocol, fds));
}

int pipe2(int fds[2], int flags)
{
	struct fault_slot *s = fault(FAULT_FD);
	return fails(s) ? -1 : (int)after(s, syscall(SYS_pipe2, fds, flags));
}

int memfd_create(const char *name, unsigned flags)
{
	struct fault_slot *s = fault(FAULT_FD);
	return fails(s) ? -1 : (int)after(s, syscall(SYS_memfd_create, name, flags));
}

int accept4(int fd, __SOCKADDR_ARG addr, socklen_t *n, int flags)
{
	struct fault_slot *s = fault(FAULT_FD);
	return fails(s) ? -1 : (int)after(s, syscall(SYS_accept4, fd, addr.__sockaddr__, n, flags));
}

int accept(int fd, __SOCKADDR_ARG addr, socklen_t *n)
{
	struct fault_slot *s = fault(FAULT_FD);
	return fails(s) ? -1 : (int)after(s, syscall(SYS_accept4, fd, addr.__sockaddr__, n, 0));
}

/* --- packets -------------------------------------------------------------------------------------------- */

static bool wakes(const struct msghdr *m)
{
	const uint8_t *p = m->msg_iovlen > 0 ? m->msg_iov[0].iov_base : NULL;
	return p != NULL && m->msg_iov[0].iov_len >= 2 && p[0] == 0 && p[1] == WOKEN && undo_fd >= 0;
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	struct fault_slot *s = control != NULL && wakes(m) ? fault(FAULT_WAKE) : NULL;
	if (s != NULL && s->action == FAULT_DROP)
		return (ssize_t)m->msg_iov[0].iov_len;
	s = fault(FAULT_SEND);
	if (fails(s))
		return -1;
	if (s != NULL && s->action == FAULT_HALF && m->msg_iovlen > 0) {
		syscall(SYS_sendto, fd, m->msg_iov[0].iov_base, (m->msg_iov[0].iov_len + 1) / 2, flags, NULL, 0);
		die_here();
	}
	return after(s, syscall(SYS_sendmsg, fd, m, flags));
}

ssize_t send(int fd, const void *p, size_t n, int flags)
{
	struct fault_slot *s = fault(FAULT_SEND);
	if (fails(s))
		return -1;
	if (s != NULL && s->action == FAULT_HALF) {
		syscall(SYS_sendto, fd, p, (n + 1) / 2, flags, NULL, 0);
		die_here();
	}
	return after(s, syscall(SYS_sendto, fd, p, n, flags, NULL, 0));
}

/* At the limit of descriptors the kernel delivers the bytes without them, and says so. */
static void cut_off(struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
			int one;
			memcpy(&one, CMSG_DATA(c) + i * sizeof one, sizeof one);
			syscall(SYS_close, one);
		}
		m->msg_flags |= MSG_CTRUNC;
		m->msg_controllen = 0;
		return;
	}
}

ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	ssize_t n = syscall(SYS_recvmsg, fd, m, flags);
	if (n <= 0)
		return n;
	struct fault_slot *s = fault(FAULT_RECV);
	if (s != NULL && s->action == FAULT_ERRNO)
		cut_off(m);
	return after(s, n);
}

/* --- memory and time --------------------------------------------------------------------------------------- */

void *malloc(size_t n)
{
	return fails(fault(FAULT_MEM)) ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	return fails(fault(FAULT_MEM)) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	return fails(fault(FAULT_MEM)) ? NULL : __libc_realloc(p, n);
}

static int64_t wrong_by(void)
{
	return control == NULL ? 0 : __atomic_load_n(&control->clock_ms, __ATOMIC_RELAXED);
}

int clock_gettime(clockid_t id, struct timespec *t)
{
	int r = (int)syscall(SYS_clock_gettime, id, t);
	if (r == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		t->tv_sec += wrong_by() / 1000;
	return r;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
	int r = (int)syscall(SYS_gettimeofday, t, zone);
	if (r == 0)
		t->tv_sec += wrong_by() / 1000;
	return r;
}

/* What the kernel refuses when it has no memory; a box is made of these. */
int mount(const char *what, const char *where, const char *type, unsigned long flags, const void *data)
{
	return fails(fault(FAULT_MEM)) ? -1 : (int)syscall(SYS_mount, what, where, type, flags, data);
}

int unshare(int flags)
{
	return fails(fault(FAULT_MEM)) ? -1 : (int)syscall(SYS_unshare, flags);
}

int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
	/* To take one out needs no memory. */
	return op != EPOLL_CTL_DEL && fails(fault(FAULT_MEM)) ? -1 : (int)syscall(SYS_epoll_ctl, epoll, op, fd, event);
}

time_t time(time_t *out)
{
	struct timespec t = {0};
	clock_gettime(CLOCK_REALTIME, &t);
	if (out != NULL)
		*out = t.tv_sec;
	return t.tv_sec;
}
