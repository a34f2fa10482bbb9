/*
 * Streams of frames in memfds. The reader takes the size once and trusts no length inside; it never
 * moves the descriptor's own offset, since the descriptor may be shared.
 */
#include "lib/buf.h"
#include "lib/chan.h"
#include "lib/num.h"
#include "lib/own.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* Writes both parts at the given offset, whatever the kernel takes at a time. */
static bool put_at(int fd, off_t at, const void *p, size_t n)
{
	const uint8_t *from = p;
	while (n > 0) {
		ssize_t done = pwrite(fd, from, n, at);
		if (done < 0) {
			if (errno == EINTR)
				continue;
			return false;
		}
		if (done == 0) {
			errno = ENOSPC;
			return false;
		}
		from += done;
		at += done;
		n -= (size_t)done;
	}
	return true;
}

int bundle_of(const char *name, const void *p, size_t n)
{
	own_fd int fd = bundle_new(name);
	if (fd >= 0 && write_all(fd, p, n) && lseek(fd, 0, SEEK_SET) == 0 && bundle_seal(fd))
		return steal_fd(&fd);
	if (errno == ENOSPC)
		errno = ENOMEM; /* an anonymous file has no disk: its room is memory */
	return -1;
}

void bundle_put(struct buf *b, const void *frame, size_t n)
{
	const uint8_t size[4] = {(uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
	if (n == 0 || n > UINT32_MAX)
		buf_fail(b, EINVAL);
	buf_add(b, size, sizeof size);
	buf_add(b, frame, n);
}

bool bundle_add(int fd, const void *frame, size_t n)
{
	struct stat st;
	if (n == 0 || n > UINT32_MAX) {
		errno = EMSGSIZE;
		return false;
	}
	if (fstat(fd, &st) != 0)
		return false;
	uint8_t size[4] = {(uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
	if (put_at(fd, st.st_size, size, sizeof size) && put_at(fd, st.st_size + 4, frame, n))
		return true;
	/* Half a frame would make the whole bundle unreadable. */
	int why = errno;
	if (ftruncate(fd, st.st_size) != 0)
		errno = why;
	errno = why;
	return false;
}

bool bundle_open(struct bundle *b, int fd, size_t max)
{
	struct stat st;
	*b = (struct bundle){.fd = fd, .max = max};
	if (fstat(fd, &st) != 0)
		return false;
	if (!S_ISREG(st.st_mode) || st.st_size < 0) {
		errno = EINVAL;
		return false;
	}
	b->size = (uint64_t)st.st_size;
	return true;
}

static bool get_at(int fd, uint64_t at, uint8_t *p, size_t n)
{
	while (n > 0) {
		ssize_t got = pread(fd, p, n, (off_t)at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got == 0)
			errno = EBADMSG; /* cut since it was opened */
		if (got <= 0)
			return false;
		p += got;
		at += (uint64_t)got;
		n -= (size_t)got;
	}
	return true;
}

/* Its own errno: whoever asks why (lib/lack.h) must not find what failed before. */
static int malformed(void)
{
	errno = EBADMSG;
	return -1;
}

int bundle_next(struct bundle *b, const uint8_t **frame, size_t *n)
{
	uint8_t head[4];
	if (b->at == b->size)
		return 0;
	if (b->size - b->at < sizeof head)
		return malformed();
	if (!get_at(b->fd, b->at, head, sizeof head))
		return -1;
	size_t len = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
	if (len == 0 || len > b->max || len > b->size - b->at - sizeof head)
		return malformed();
	if (len > b->room) {
		free(b->buf);
		b->room = 0;
		b->buf = malloc(len);
		if (b->buf == NULL)
			return -1;
		b->room = len;
	}
	if (!get_at(b->fd, b->at + sizeof head, b->buf, len))
		return -1;
	b->at += sizeof head + len;
	*frame = b->buf;
	*n = len;
	return 1;
}

void bundle_close(struct bundle *b)
{
	free(b->buf);
	*b = (struct bundle){.fd = -1};
}
