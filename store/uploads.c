/* See uploads.h. Trusts no length: what was announced only refuses early, what came counts. */
#include "store/uploads.h"
#include "lib/die.h"
#include "lib/digest.h"
#include "lib/own.h"
#include "store/env.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 1 << 20 /* bytes that may be unwritten, so that a turn waits for no more */ };

struct upload {
	struct blobs *blobs;
	struct sha256_run *sum;
	int fd;
	char tenant[STORE_ID], name[32];
	uint64_t announced, most, size, written;
};

static enum err failed(const char *doing)
{
	enum err e = store_error(errno);
	if (e != ERR_STORAGE_FULL)
		log_error("an upload: %s: %m", doing);
	return e;
}

struct upload *upload_begin(struct blobs *b, const char *tenant, uint64_t bytes, uint64_t most, enum err *e)
{
	struct upload *u = calloc(1, sizeof *u);
	if (u == NULL) {
		*e = failed("memory");
		return NULL;
	}
	*u = (struct upload){.blobs = b, .fd = -1, .announced = bytes, .most = most};
	(void)snprintf(u->tenant, sizeof u->tenant, "%s", tenant);
	u->sum = sha256_begin();
	if (u->sum == NULL) {
		*e = failed("memory");
		upload_free(u);
		return NULL;
	}
	(void)snprintf(u->name, sizeof u->name, "%" PRIu64, ++b->uploads);
	u->fd = openat(b->in, u->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (u->fd < 0) {
		*e = failed("making a file");
		u->name[0] = '\0';
		upload_free(u);
		return NULL;
	}
	*e = ERR_OK;
	return u;
}

void upload_free(struct upload *u)
{
	if (u == NULL)
		return;
	if (u->fd >= 0)
		close(u->fd);
	if (u->name[0] != '\0')
		(void)unlinkat(u->blobs->in, u->name, 0);
	sha256_free(u->sum);
	free(u);
}

const char *upload_tenant(const struct upload *u)
{
	return u->tenant;
}

uint64_t upload_bytes(const struct upload *u)
{
	return u->size > u->announced ? u->size : u->announced;
}

static bool write_at(int fd, const uint8_t *p, size_t n, uint64_t at)
{
	while (n > 0) {
		ssize_t w = pwrite(fd, p, n, (off_t)at);
		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return false;
		p += w, n -= (size_t)w, at += (uint64_t)w;
	}
	return true;
}

enum err upload_add(struct upload *u, uint64_t offset, struct wire_bytes data)
{
	if (offset < u->size && data.n <= u->size - offset)
		return ERR_OK;
	if (offset != u->size)
		return ERR_INVALID_REQUEST;
	if (data.n > u->most - u->size)
		return ERR_SOURCE_ARCHIVE_TOO_LARGE;
	if (!write_at(u->fd, data.p, data.n, u->size))
		return failed("writing a file");
	if (!sha256_add(u->sum, data.p, data.n))
		return failed("a digest");
	u->size += data.n;
	if (u->size - u->written < PIECE)
		return ERR_OK;
	if (fdatasync(u->fd) != 0)
		return failed("writing a file");
	u->written = u->size;
	return ERR_OK;
}

/* Its bytes, where they are few. */
static enum err small(struct txn *t, const struct upload *u, struct blob *out)
{
	size_t n = (size_t)u->size, got = 0;
	uint8_t *p = arena_get(&t->arena, n + 1);
	if (p == NULL)
		return failed("memory");
	while (got < n) {
		ssize_t r = pread(u->fd, p + got, n - got, (off_t)got);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return failed("reading a file");
		got += (size_t)r;
	}
	out->small = p;
	return ERR_OK;
}

enum err upload_end(struct txn *t, struct upload *u, uint64_t bytes, struct blob *out)
{
	*out = (struct blob){.size = u->size};
	if (bytes != u->size || (u->announced != 0 && u->announced != u->size) || u->size == 0)
		return ERR_INVALID_REQUEST;
	if (!sha256_end(u->sum, out->sha))
		return failed("a digest");
	if (u->size <= BLOB_SMALL)
		return small(t, u, out);
	if (fsync(u->fd) != 0)
		return failed("writing a file");
	enum err e = blob_adopt(t, u->blobs->in, u->name, out);
	if (e == ERR_OK && out->fresh)
		u->name[0] = '\0'; /* it has another one now */
	return e;
}
