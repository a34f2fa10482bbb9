/*
 * pinfold store backup: reads the store part by part from the service, which goes on meanwhile, and writes a folder.
 * It has its name only when all of it is on the disk: before, it is NAME.partial.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/admin.h"
#include "cli/store.h"
#include "gen/store_msg.h"
#include "lib/digest.h"
#include "lib/num.h"
#include "lib/own.h"

struct backup {
	struct ask *a;
	int dir;
	const char *path;
	FILE *manifest;
	uint64_t files, bytes, said;
	enum err e;
	bool progress, failed;
};

static bool fault(struct backup *b, const char *name)
{
	fprintf(stderr, "pinfold: %s/%s: %s\n", b->path, name, strerror(errno));
	b->failed = true;
	return false;
}

static bool refused(struct backup *b, enum err e)
{
	b->e = e;
	b->failed = true;
	return false;
}

static void show(struct backup *b, bool last)
{
	uint64_t at = timer_ms();

	if (!b->progress || (!last && at - b->said < 200))
		return;
	fprintf(stderr, "\r%" PRIu64 " files, %" PRIu64 " kB%s", b->files, b->bytes / 1000, last ? "\n" : "");
	b->said = at;
}

/* What was written is durable and in the manifest. */
static bool written(struct backup *b, int fd, const char *name)
{
	uint8_t sum[SHA256_SIZE];
	char text[SHA256_HEX];
	uint64_t size;

	if (fsync(fd) != 0 || !sha256_fd(fd, sum, &size))
		return fault(b, name);
	hex(sum, sizeof sum, text);
	fprintf(b->manifest, "file %s %" PRIu64 " %s\n", text, size, name);
	b->files++;
	show(b, false);
	return true;
}

static int make(struct backup *b, const char *name)
{
	int fd = openat(b->dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		(void)fault(b, name);
	return fd;
}

static bool copy_store_file(struct backup *b, const char *name)
{
	own_fd int fd = make(b, name);
	struct st_backup_read m = {.name = name};
	struct st_backup_part part;

	do {
		enum err e = fd < 0 ? ERR_OK : st_call_backup_read(b->a, &m, NULL, &part, NULL);
		if (fd < 0)
			return false;
		if (e != ERR_OK)
			return refused(b, e);
		if (!write_all(fd, part.data.p, part.data.n))
			return fault(b, name);
		m.offset += part.data.n;
		b->bytes += part.data.n;
		show(b, false);
	} while (part.data.n == 196608);
	return written(b, fd, name);
}

static bool copy_logs(struct backup *b)
{
	static char names[4096][16];
	struct st_backup_names got;
	struct wire_bytes part;
	struct st_text text;
	size_t n = 0;
	bool bad = false;
	enum err e = st_call_backup_logs(b->a, &(struct st_backup_logs){0}, NULL, &got, NULL);

	if (e != ERR_OK)
		return refused(b, e);
	if (got.more)
		return refused(b, ERR_STORAGE_FULL);
	while (n < 4096 && wire_list_next(&got.names, &part, &bad) && st_get_text(part.p, part.n, &text))
		snprintf(names[n++], sizeof names[0], "%s", text.text);
	for (size_t i = 0; i < n; i++)
		if (!copy_store_file(b, names[i]))
			return false;
	return n > 0 ? true : refused(b, ERR_INTERNAL_ERROR);
}

static bool copy_blob(struct backup *b, const char *folder, const char *hash)
{
	char name[MANIFEST_NAME], block[65536];
	struct st_backup_file got;
	int from = -1;
	enum err e = st_call_backup_blob(b->a, &(struct st_backup_blob){.name = hash}, NULL, &got, &from);

	if (e != ERR_OK)
		return refused(b, e);
	snprintf(name, sizeof name, "blobs/%s/%s", folder, hash);
	own_fd int source = from;
	own_fd int fd = make(b, name);
	ssize_t n = fd < 0 ? -1 : 0;
	while (fd >= 0 && (n = read(source, block, sizeof block)) > 0) {
		if (!write_all(fd, block, (size_t)n))
			return fault(b, name);
		b->bytes += (uint64_t)n;
	}
	if (n < 0)
		return fd < 0 ? false : fault(b, name);
	return written(b, fd, name);
}

/* Appends the names of one folder's files. */
static bool list_folder(struct backup *b, const char *folder, struct buf *names)
{
	char after[65] = "";
	struct st_backup_names got = {.more = true};

	while (got.more) {
		struct wire_bytes part;
		struct st_text text;
		bool bad = false, any = false;
		enum err e = st_call_backup_blobs(b->a, &(struct st_backup_blobs){.folder = folder, .after = after},
						  NULL, &got, NULL);
		if (e != ERR_OK)
			return refused(b, e);
		for (; wire_list_next(&got.names, &part, &bad) && st_get_text(part.p, part.n, &text); any = true) {
			snprintf(after, sizeof after, "%s", text.text);
			buf_add(names, after, sizeof after);
		}
		if (!any)
			break;
	}
	return buf_failed(names) ? refused(b, ERR_INTERNAL_ERROR) : true;
}

static bool sync_folder(struct backup *b, const char *path)
{
	own_fd int dir = openat(b->dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return dir >= 0 && fsync(dir) == 0 ? true : fault(b, path);
}

/* All names first: what comes into being while the files are copied belongs to no moment of this backup. */
static bool copy_blobs(struct backup *b)
{
	own_buf struct buf names;
	char folder[3], path[16], last[16] = "";

	buf_init(&names, 1u << 30);
	for (unsigned i = 0; i < 256; i++) {
		snprintf(folder, sizeof folder, "%02x", i);
		if (!list_folder(b, folder, &names))
			return false;
	}
	if (mkdirat(b->dir, "blobs", 0700) != 0)
		return fault(b, "blobs");
	for (size_t at = 0; at < names.n; at += 65) {
		const char *hash = (const char *)names.p + at;
		snprintf(folder, sizeof folder, "%.2s", hash);
		snprintf(path, sizeof path, "blobs/%s", folder);
		if (strcmp(path, last) != 0 && mkdirat(b->dir, path, 0700) != 0)
			return fault(b, path);
		if (last[0] != '\0' && strcmp(path, last) != 0 && !sync_folder(b, last))
			return false;
		snprintf(last, sizeof last, "%s", path);
		if (!copy_blob(b, folder, hash))
			return false;
	}
	return (last[0] == '\0' || sync_folder(b, last)) && sync_folder(b, "blobs");
}

/* First the tables, then the logs, which lead them to one moment, then the files that this moment may name. */
static bool copy_all(struct backup *b, const struct st_backup_is *is)
{
	fprintf(b->manifest, "pinfold-backup 1\nschema %u\ngeneration %" PRIu64 "\nat %" PRIu64 "\naudit %" PRIu64 "\n",
		(unsigned)is->schema, is->generation, is->at, is->audit_seq);
	if (!copy_store_file(b, "pinfold.db") || !copy_logs(b) || !copy_blobs(b))
		return false;
	fputs("end\n", b->manifest);
	if (fflush(b->manifest) != 0 || fsync(fileno(b->manifest)) != 0 || fsync(b->dir) != 0)
		return fault(b, "manifest");
	return true;
}

/* The folder that holds it, so that its name is durable too. */
static bool sync_parent(const char *path)
{
	char copy[512];

	snprintf(copy, sizeof copy, "%s", path);
	char *slash = strrchr(copy, '/');
	if (slash != NULL)
		slash[slash == copy ? 1 : 0] = '\0';
	own_fd int dir = open(slash != NULL ? copy : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir >= 0 && fsync(dir) == 0;
}

static int finish(struct backup *b, const char *partial, const char *dir, const struct cli *cli)
{
	struct st_ok ok;
	struct stat st;

	/* What was copied is whole only if nothing was taken away meanwhile. */
	if (!b->failed) {
		enum err e = st_call_backup_end(b->a, &(struct st_backup_end){0}, NULL, &ok, NULL);
		if (e != ERR_OK)
			(void)refused(b, e);
	}
	if (!b->failed && lstat(dir, &st) == 0) {
		errno = EEXIST;
		(void)fault(b, "");
	}
	if (!b->failed && (rename(partial, dir) != 0 || !sync_parent(dir)))
		(void)fault(b, "");
	show(b, true);
	if (b->failed) {
		fprintf(stderr, "pinfold: the backup was not finished; remove %s\n", partial);
		return b->e != ERR_OK ? admin_failed(b->a, b->e) : (ask_free(b->a), EXIT_FAILED);
	}
	ask_free(b->a);
	if (cli->json)
		printf("{\"ok\":true,\"files\":%" PRIu64 ",\"bytes\":%" PRIu64 "}\n", b->files, b->bytes);
	else
		printf("%s: %" PRIu64 " files, %" PRIu64 " bytes\n", dir, b->files, b->bytes);
	return 0;
}

int store_backup(const struct cli *cli, const char *dir)
{
	char partial[512];
	struct stat st;
	struct st_backup_is is;
	struct backup b = {.path = partial, .progress = isatty(2) && !cli->json};

	if ((size_t)snprintf(partial, sizeof partial, "%s.partial", dir) >= sizeof partial)
		return usage("the folder's name is too long");
	if (lstat(dir, &st) == 0) {
		fprintf(stderr, "pinfold: %s is there already; a backup makes a new folder\n", dir);
		return EXIT_FAILED;
	}
	b.a = admin_open();
	enum err e = st_call_backup_begin(b.a, &(struct st_backup_begin){0}, NULL, &is, NULL);
	if (e != ERR_OK)
		return admin_failed(b.a, e);
	b.dir = mkdir(partial, 0700) == 0 ? open(partial, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) : -1;
	if (b.dir < 0) {
		fprintf(stderr, "pinfold: %s: %s%s\n", partial, strerror(errno),
			errno == EEXIST ? ": left by a backup that was not finished; remove it" : "");
		ask_free(b.a);
		return EXIT_FAILED;
	}
	int fd = make(&b, "manifest");
	b.manifest = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (b.manifest != NULL) {
		(void)copy_all(&b, &is);
		if (fclose(b.manifest) != 0 && !b.failed)
			(void)fault(&b, "manifest");
	}
	int status = finish(&b, partial, dir, cli);
	close(b.dir);
	return status;
}
