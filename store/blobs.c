/*
 * Blobs, as records and as files. Trusts the store's own directory; distrusts the descriptor it copies from:
 * read once into memory, hashed and written from there, so what is stored is what was hashed. Never follows
 * a link.
 */
#include "store/blobs.h"
#include "gen/records.h"
#include "lib/chan.h"
#include "lib/die.h"
#include "lib/digest.h"
#include "lib/lack.h"
#include "lib/num.h"
#include "lib/own.h"
#include "store/env.h"
#include "store/txn.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_LEN = 3 + 2 * BLOB_SHA };  /* ab/ and 64 hex digits */
static const char temporary[] = "new"; /* one thread, so one name is enough */
static const char incoming[] = "in";   /* where uploads are on their way */

static void name_of(const uint8_t sha[BLOB_SHA], char name[NAME_LEN + 1])
{
	char h[2 * BLOB_SHA + 1];
	hex(sha, BLOB_SHA, h);
	(void)snprintf(name, NAME_LEN + 1, "%.2s/%s", h, h);
}

static struct key key_of(const uint8_t sha[BLOB_SHA])
{
	char h[2 * BLOB_SHA + 1];
	hex(sha, BLOB_SHA, h);
	struct key k;
	k.n = rec_key_blob(k.p, sizeof k.p, h);
	return k;
}

static enum err file_error(const char *doing)
{
	enum err e = store_error(errno);
	if (e != ERR_STORAGE_FULL)
		log_error("blobs: %s: %m", doing);
	return e;
}

/* Reads what is there now. NULL with *e. */
static uint8_t *slurp(int fd, uint64_t max, size_t *n, enum err *e)
{
	struct stat st;
	*e = ERR_INVALID_REQUEST;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return NULL;
	*e = ERR_REQUEST_TOO_LARGE;
	if (st.st_size < 0 || (uint64_t)st.st_size > max)
		return NULL;
	size_t size = (size_t)st.st_size, got = 0;
	own_free uint8_t *p = malloc(size + 1);
	if (p == NULL) {
		*e = file_error("memory");
		return NULL;
	}
	while (got < size) {
		ssize_t r = pread(fd, p + got, size - got, (off_t)got);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0) {
			*e = file_error("reading what came");
			return NULL;
		}
		if (r == 0)
			break;
		got += (size_t)r;
	}
	*n = got; /* shrunk meanwhile: what was read is what counts */
	return steal_ptr(p);
}

/* Gives a file that is written the name of its digest. */
static enum err give_name(int dir, int from, const char *had, const char *name)
{
	char folder[3] = {name[0], name[1], 0};
	bool made = mkdirat(dir, folder, 0700) == 0;
	if (!made && errno != EEXIST)
		return file_error("making a folder");
	if (made && fsync(dir) != 0)
		return file_error("writing a folder");
	if (renameat(from, had, dir, name) != 0)
		return file_error("naming a file");
	own_fd int sub = openat(dir, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (sub < 0 || fsync(sub) != 0)
		return file_error("writing a folder");
	return ERR_OK;
}

static enum err write_new(int dir, const uint8_t *p, size_t n, const char *name)
{
	own_fd int fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return file_error("making a file");
	if (!write_all(fd, p, n) || fsync(fd) != 0)
		return file_error("writing a file");
	return give_name(dir, dir, temporary, name);
}

/* Is its file there? Somebody's then, and durable since it was named. */
static bool has_file(const struct blobs *b, const char *name, uint64_t size)
{
	struct stat st;
	return fstatat(b->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	       (uint64_t)st.st_size == size;
}

enum err blob_adopt(struct txn *t, int from, const char *had, struct blob *blob)
{
	struct blobs *b = store_blobs(t->store);
	char name[NAME_LEN + 1];
	name_of(blob->sha, name);
	if (has_file(b, name, blob->size))
		return ERR_OK;
	enum err e = give_name(b->dir, from, had, name);
	/* It may have the name, and its folder not be written. */
	blob->fresh = e == ERR_OK || faccessat(from, had, F_OK, AT_SYMLINK_NOFOLLOW) != 0;
	return e;
}

enum err blob_take(struct txn *t, int fd, uint64_t max, struct blob *out)
{
	struct blobs *b = store_blobs(t->store);
	enum err e;
	size_t n = 0;
	memset(out, 0, sizeof *out);
	own_free uint8_t *p = slurp(fd, max, &n, &e);
	if (p == NULL)
		return e;
	if (!sha256(p, n, out->sha))
		return file_error("a digest");
	out->size = n;
	if (n <= BLOB_SMALL) {
		/* One byte more, so that the bytes of an empty one are not NULL. */
		uint8_t *small = arena_get(&t->arena, n + 1);
		if (small != NULL)
			memcpy(small, p, n);
		out->small = small;
		return small != NULL ? ERR_OK : file_error("memory");
	}
	char name[NAME_LEN + 1];
	name_of(out->sha, name);
	if (has_file(b, name, n))
		return ERR_OK;
	e = write_new(b->dir, p, n, name);
	if (e != ERR_OK)
		(void)unlinkat(b->dir, temporary, 0);
	out->fresh = e == ERR_OK;
	return e;
}

enum err blob_small(struct wire_bytes bytes, struct blob *out)
{
	*out = (struct blob){.size = bytes.n, .small = bytes.p};
	if (bytes.n > BLOB_SMALL)
		return ERR_REQUEST_TOO_LARGE;
	return sha256(bytes.p, bytes.n, out->sha) ? ERR_OK : file_error("a digest");
}

static struct key use_of(const uint8_t sha[BLOB_SHA], const char *tenant, const char *run, const char *name)
{
	char h[2 * BLOB_SHA + 1];
	hex(sha, BLOB_SHA, h);
	struct key k;
	k.n = rec_key_blob_use(k.p, sizeof k.p, h, tenant, run, name);
	return k;
}

void blob_name(struct txn *t, const struct blob *b, const char *tenant, const char *run, const char *name)
{
	struct key k = key_of(b->sha), use = use_of(b->sha, tenant, run, name);
	struct rec_blob_use u = {.since = t->now};
	uint8_t *p = txn_scratch(t);
	txn_tenant(t, tenant);
	t->stored += table_has(t, T_BLOB_USE, &use) ? 0 : (int64_t)b->size;
	table_put(t, T_BLOB_USE, &use, p, rec_put_blob_use(p, STORE_SCRATCH, &u));
	if (table_has(t, T_BLOB, &k))
		return;
	struct rec_blob r = {.size = b->size, .created_at = t->now};
	table_put(t, T_BLOB, &k, p, rec_put_blob(p, STORE_SCRATCH, &r));
	if (b->small == NULL)
		return;
	struct rec_blob_content c = {.content = {b->small, (uint32_t)b->size}};
	table_put(t, T_BLOB_CONTENT, &k, p, rec_put_blob_content(p, STORE_SCRATCH, &c));
}

static bool one_use(void *with, struct wire_bytes key, struct wire_bytes value)
{
	(void)key;
	(void)value;
	*(bool *)with = true;
	return false;
}

bool blob_used(struct txn *t, const uint8_t sha[BLOB_SHA])
{
	struct key k = key_of(sha);
	bool used = false;
	/* A blob's key is its digest's text with the NUL behind it: the beginning of every use's key. */
	table_scan(t, T_BLOB_USE, &k, NULL, one_use, &used);
	return used;
}

void blob_unname(struct txn *t, struct wire_bytes sha, const char *tenant, const char *run, const char *name)
{
	if (sha.n != BLOB_SHA)
		return;
	struct key use = use_of(sha.p, tenant, run, name), k = key_of(sha.p);
	struct wire_bytes v;
	struct rec_blob r;
	bool known = table_get(t, T_BLOB, &k, &v) && rec_get_blob(v.p, v.n, &r);
	txn_tenant(t, tenant);
	if (table_del(t, T_BLOB_USE, &use) && known)
		t->stored -= (int64_t)r.size;
	bool used = blob_used(t, sha.p);
	if (used || t->failed != ERR_OK)
		return;
	(void)table_del(t, T_BLOB, &k);
	if (!table_del(t, T_BLOB_CONTENT, &k) && t->nunused < TXN_UNUSED)
		memcpy(t->unused[t->nunused++], sha.p, BLOB_SHA);
}

void blob_remove(struct txn *t, const uint8_t sha[BLOB_SHA])
{
	char name[NAME_LEN + 1];
	struct key k = key_of(sha);
	if (table_has(t, T_BLOB, &k) || t->failed != ERR_OK)
		return;
	name_of(sha, name);
	(void)unlinkat(store_blobs(t->store)->dir, name, 0);
}

void blob_undo(struct txn *t, const struct blob *b)
{
	char name[NAME_LEN + 1];
	if (!b->fresh)
		return;
	name_of(b->sha, name);
	(void)unlinkat(store_blobs(t->store)->dir, name, 0);
}

/* A descriptor of its own for each reader: nobody can change what is sealed. */
static int show(struct wire_bytes record, enum err *e)
{
	struct rec_blob_content c;
	if (!rec_get_blob_content(record.p, record.n, &c))
		return -1;
	int fd = bundle_of("blob", c.content.p, c.content.n);
	if (fd < 0)
		*e = file_error("showing one");
	return fd;
}

int blob_read(struct txn *t, struct wire_bytes sha)
{
	int fd = -1;
	enum err e = ERR_INTERNAL_ERROR;
	struct wire_bytes record;
	struct key k = {.n = 0};
	if (sha.n == BLOB_SHA)
		k = key_of(sha.p);
	if (table_get(t, T_BLOB_CONTENT, &k, &record)) {
		fd = show(record, &e);
	} else if (sha.n == BLOB_SHA && t->failed == ERR_OK) {
		char name[NAME_LEN + 1];
		name_of(sha.p, name);
		fd = openat(store_blobs(t->store)->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0)
			e = file_error(name);
	}
	if (fd < 0)
		txn_fail(t, e);
	return fd;
}

int blob_tell(struct txn *t, struct wire_bytes sha, struct wire_bytes *bytes)
{
	struct wire_bytes record;
	struct rec_blob_content c;
	struct key k = {.n = 0};
	if (sha.n == BLOB_SHA)
		k = key_of(sha.p);
	*bytes = (struct wire_bytes){NULL, 0};
	if (!table_get(t, T_BLOB_CONTENT, &k, &record) || !rec_get_blob_content(record.p, record.n, &c) ||
	    c.content.n == 0)
		return blob_read(t, sha);
	*bytes = c.content;
	int fd = fcntl(store_blobs(t->store)->empty, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		txn_fail(t, file_error("a descriptor"));
	return fd;
}

static bool named(struct txn *t, const char *file)
{
	struct key k;
	if (strlen(file) != 2 * BLOB_SHA)
		return false;
	k.n = rec_key_blob(k.p, sizeof k.p, file);
	return table_has(t, T_BLOB, &k) && !table_has(t, T_BLOB_CONTENT, &k);
}

static unsigned sweep_folder(struct blobs *b, const char *folder, struct txn *t)
{
	int fd = openat(b->dir, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	unsigned removed = 0;
	if (d == NULL) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	for (struct dirent *f; (f = readdir(d)) != NULL;) {
		if (strcmp(f->d_name, ".") == 0 || strcmp(f->d_name, "..") == 0 || named(t, f->d_name))
			continue;
		/* A read that failed must not look like "nobody's". */
		if (t->failed == ERR_OK && unlinkat(dirfd(d), f->d_name, 0) == 0)
			removed++;
	}
	closedir(d);
	return removed;
}

void blobs_open(struct blobs *b, int store_dir, struct txn *t)
{
	if (mkdirat(store_dir, "blobs", 0700) != 0 && errno != EEXIST)
		fatal("cannot make the folder of the blobs: %m");
	b->dir = openat(store_dir, "blobs", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (b->dir < 0 || fsync(store_dir) != 0)
		fatal("cannot open the folder of the blobs: %m");
	b->empty = bundle_new("empty");
	if (b->empty < 0 || !bundle_seal(b->empty))
		fatal("cannot make a descriptor: %m");
	if (mkdirat(b->dir, incoming, 0700) != 0 && errno != EEXIST)
		fatal("cannot make the folder of uploads: %m");
	b->in = openat(b->dir, incoming, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (b->in < 0)
		fatal("cannot open the folder of uploads: %m");
	unsigned removed = unlinkat(b->dir, temporary, 0) == 0 ? 1 : 0;
	removed += sweep_folder(b, incoming, t);
	for (unsigned i = 0; i < 256; i++) {
		char folder[3];
		(void)snprintf(folder, sizeof folder, "%02x", i);
		removed += sweep_folder(b, folder, t);
	}
	if (removed > 0)
		log_info("%u files that no record names were removed", removed);
}

void blobs_close(struct blobs *b)
{
	close(b->dir);
	close(b->in);
	close(b->empty);
}
