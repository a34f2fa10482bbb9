/*
 * Secrets in memory: whole pages, locked and kept out of core dumps where the system allows, wiped at
 * the end. Also the kernel's random bytes. Never prints, never logs what it holds.
 */
#include "lib/die.h"
#include "lib/secret.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

static size_t whole_pages(size_t n)
{
	long page = sysconf(_SC_PAGESIZE);
	size_t unit = page > 0 ? (size_t)page : 4096;
	return n == 0 ? unit : (n + unit - 1) / unit * unit;
}

bool secret_set(struct secret *s, const void *p, size_t n)
{
	if (n > SECRET_MAX)
		return false;
	size_t size = whole_pages(n);
	uint8_t *copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED)
		return false;
	/* Best effort: limits may forbid the lock, and a secret in swap is no reason to stop working. */
	(void)madvise(copy, size, MADV_DONTDUMP);
	(void)mlock(copy, size);
	if (n > 0)
		memcpy(copy, p, n);
	secret_wipe(s);
	*s = (struct secret){.p = copy, .n = n};
	return true;
}

void secret_wipe(struct secret *s)
{
	if (s->p != NULL) {
		size_t size = whole_pages(s->n);
		wipe(s->p, size);
		munmap(s->p, size);
	}
	*s = (struct secret){0};
}

bool secret_equal(const void *a, size_t an, const void *b, size_t bn)
{
	if (an != bn)
		return false;
	const volatile uint8_t *x = a, *y = b;
	volatile uint8_t diff = 0;
	for (size_t i = 0; i < an; i++)
		diff = (uint8_t)(diff | (x[i] ^ y[i]));
	return diff == 0;
}

void random_bytes(void *p, size_t n)
{
	uint8_t *at = p;
	while (n > 0) {
		ssize_t got = getrandom(at, n, 0);
		if (got < 0) {
			if (errno == EINTR)
				continue;
			fatal("no random bytes from the kernel: %m");
		}
		at += got;
		n -= (size_t)got;
	}
}

/* 1: all n bytes; 0: the end before the first; -1: the end or an error in between. */
static int read_exactly(int fd, void *p, size_t n)
{
	uint8_t *at = p;
	size_t done = 0;
	while (done < n) {
		ssize_t got = read(fd, at + done, n - done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			return done == 0 ? 0 : -1;
		done += (size_t)got;
	}
	return 1;
}

/* A secret file usually ends with a line end that nobody means. */
static size_t without_line_end(const uint8_t *p, size_t n)
{
	if (n > 0 && p[n - 1] == '\n')
		n--;
	if (n > 0 && p[n - 1] == '\r')
		n--;
	return n;
}

/* 1 one secret, 0 the end, -1 malformed. */
static int read_one(struct secrets *s, int fd, uint8_t *value)
{
	uint8_t len;
	int r = read_exactly(fd, &len, 1);
	if (r <= 0)
		return r;
	char name[65] = {0};
	uint8_t size[2];
	if (len == 0 || len > 64 || s->n == sizeof s->v / sizeof s->v[0] || read_exactly(fd, name, len) != 1 ||
	    strlen(name) != len || secrets_find(s, name) != NULL || read_exactly(fd, size, 2) != 1)
		return -1;
	size_t n = (size_t)size[0] << 8 | size[1];
	if (n > SECRET_MAX || (n > 0 && read_exactly(fd, value, n) != 1))
		return -1;
	memcpy(s->v[s->n].name, name, sizeof name);
	s->v[s->n].value = (struct secret){0};
	if (!secret_set(&s->v[s->n].value, value, without_line_end(value, n)))
		return -1;
	s->n++;
	return 1;
}

bool secrets_read(struct secrets *s, int fd)
{
	uint8_t value[SECRET_MAX];
	memset(s, 0, sizeof *s);
	/* What is given again is read again; a pipe has no beginning. */
	(void)lseek(fd, 0, SEEK_SET);
	int r;
	do
		r = read_one(s, fd, value);
	while (r == 1);
	wipe(value, sizeof value);
	if (r != 0)
		secrets_wipe(s);
	return r == 0;
}

const struct secret *secrets_find(const struct secrets *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->v[i].name, name) == 0)
			return &s->v[i].value;
	return NULL;
}

void secrets_wipe(struct secrets *s)
{
	for (size_t i = 0; i < s->n; i++)
		secret_wipe(&s->v[i].value);
	wipe(s, sizeof *s);
}
