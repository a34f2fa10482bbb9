/*
 * Numbers from foreign text, new ids, and reading whole files. Accepts one spelling of each value, so that a value has
 * one name everywhere.
 */
#include "lib/num.h"
#include "lib/own.h"
#include "lib/secret.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

bool num_u64(const char *s, size_t n, uint64_t min, uint64_t max, uint64_t *out)
{
	if (n == 0 || (n > 1 && s[0] == '0'))
		return false;
	uint64_t v = 0;
	for (size_t i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		if (__builtin_mul_overflow(v, UINT64_C(10), &v) ||
		    __builtin_add_overflow(v, (uint64_t)(s[i] - '0'), &v))
			return false;
	}
	if (v < min || v > max)
		return false;
	*out = v;
	return true;
}

void uuid4(char out[UUID_LEN + 1])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t b[16];
	random_bytes(b, sizeof b);
	b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
	b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
	size_t at = 0;
	for (size_t i = 0; i < sizeof b; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			out[at++] = '-';
		out[at++] = digits[b[i] >> 4];
		out[at++] = digits[b[i] & 15];
	}
	out[at] = 0;
}

char *file_read(int dirfd, const char *path, size_t max, size_t *n)
{
	/* O_NONBLOCK: a fifo in the place of the file must not hang us; it is refused below. */
	own_fd int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return NULL;
	struct stat st;
	if (fstat(fd, &st) != 0)
		return NULL;
	if (!S_ISREG(st.st_mode)) {
		errno = EINVAL;
		return NULL;
	}
	if (st.st_size < 0 || (uint64_t)st.st_size > max) {
		errno = EFBIG;
		return NULL;
	}
	/* One byte more than announced, to notice a file that grew, and the NUL. */
	size_t room = (size_t)st.st_size + 1, at = 0;
	own_free char *p = malloc(room + 1);
	if (p == NULL)
		return NULL;
	for (;;) {
		ssize_t got = read(fd, p + at, room - at);
		if (got < 0) {
			if (errno == EINTR)
				continue;
			return NULL;
		}
		if (got == 0)
			break;
		at += (size_t)got;
		if (at > max || at == room) {
			errno = EFBIG;
			return NULL;
		}
	}
	p[at] = 0;
	*n = at;
	return steal_ptr(p);
}

int num_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}
