/* Reads what a backup says of itself. A backup may come from anywhere: nothing in it is believed before it is compared.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/store.h"
#include "lib/digest.h"
#include "lib/num.h"
#include "lib/own.h"

enum { MANIFEST_MAX = 256 << 20 };

int backup_open(const char *path)
{
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		fprintf(stderr, "pinfold: %s: %s\n", path, strerror(errno));
	return dir;
}

static bool all_of(const char *s, size_t n, const char *set)
{
	return strlen(s) == n && strspn(s, set) == n;
}

/* pinfold.db, log.NNNNNNNNNN, blobs/xx/64 digits. */
static bool name_ok(const char *s)
{
	static const char digits[] = "0123456789", hexes[] = "0123456789abcdef";

	if (strcmp(s, "pinfold.db") == 0)
		return true;
	if (strncmp(s, "log.", 4) == 0)
		return all_of(s + 4, 10, digits);
	return strncmp(s, "blobs/", 6) == 0 && strlen(s) == 73 && s[8] == '/' && all_of(s + 9, 64, hexes) &&
	       strncmp(s + 6, s + 9, 2) == 0;
}

static bool take_number(const char *line, const char *word, uint64_t *out)
{
	size_t n = strlen(word);

	return strncmp(line, word, n) == 0 && num_u64(line + n, strlen(line + n), 0, UINT64_MAX, out);
}

/* file SHA256 SIZE NAME */
static bool take_file(char *line, struct manifest *m, manifest_file *row, void *with)
{
	uint64_t size;
	char *sha = line + 5, *number = strchr(sha, ' '), *name = number != NULL ? strchr(number + 1, ' ') : NULL;

	if (name == NULL)
		return false;
	*number++ = *name++ = '\0';
	if (!all_of(sha, 64, "0123456789abcdef") || !num_u64(number, strlen(number), 0, INT64_MAX, &size) ||
	    !name_ok(name))
		return false;
	m->tables = m->tables || strcmp(name, "pinfold.db") == 0;
	m->files++;
	m->bytes += size;
	return row == NULL || row(with, name, size, sha);
}

const char *manifest_parse(char *text, struct manifest *m, manifest_file *row, void *with)
{
	uint64_t schema = 0;
	bool first = true, ended = false;

	*m = (struct manifest){0};
	for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
		*end = '\0';
		bool ok = ended   ? false
			  : first ? strcmp(line, "pinfold-backup 1") == 0
			  : strncmp(line, "file ", 5) == 0
			      ? take_file(line, m, row, with)
			      : strcmp(line, "end") == 0 || take_number(line, "schema ", &schema) ||
				    take_number(line, "generation ", &m->generation) ||
				    take_number(line, "at ", &m->at) || take_number(line, "audit ", &m->audit_seq);
		if (!ok)
			return first ? "the manifest is of another kind" : "the manifest has a bad line";
		ended = strcmp(line, "end") == 0;
		first = false;
	}
	m->schema = (uint32_t)schema;
	return !ended ? "the manifest is cut off" : !m->tables ? "the manifest names no pinfold.db" : NULL;
}

const char *manifest_read(int dir, struct manifest *m, manifest_file *row, void *with)
{
	size_t n;
	own_free char *text = file_read(dir, "manifest", MANIFEST_MAX, &n);

	if (text == NULL)
		return errno == ENOENT ? "there is no manifest: this is no backup, or one that was not finished"
				       : strerror(errno);
	return manifest_parse(text, m, row, with);
}

struct verify {
	int dir;
	const char *path;
	bool ok;
};

static bool verify_one(void *with, const char *name, uint64_t size, const char *sha256_hex)
{
	struct verify *v = with;
	uint8_t is[SHA256_SIZE];
	char is_hex[SHA256_HEX];
	uint64_t found = 0;
	own_fd int fd = openat(v->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	const char *why = NULL;

	if (fd < 0 || fstat(fd, &st) != 0)
		why = strerror(errno);
	else if (!S_ISREG(st.st_mode))
		why = "is not a regular file";
	/* Before it is read: it may be a hole of terabytes. */
	else if ((uint64_t)st.st_size != size)
		why = "has another size than the manifest says";
	else if (!sha256_fd(fd, is, &found))
		why = "cannot be read";
	if (why == NULL) {
		hex(is, sizeof is, is_hex);
		why = found != size                     ? "has another size than the manifest says"
		      : strcmp(is_hex, sha256_hex) != 0 ? "has other contents than the manifest says"
							: NULL;
	}
	if (why != NULL)
		fprintf(stderr, "pinfold: %s/%s: %s\n", v->path, name, why);
	v->ok = v->ok && why == NULL;
	return true;
}

bool manifest_verify(const char *path, int dir, struct manifest *m)
{
	struct verify v = {.dir = dir, .path = path, .ok = true};
	const char *why = manifest_read(dir, m, verify_one, &v);

	if (why != NULL)
		fprintf(stderr, "pinfold: %s: %s\n", path, why);
	return why == NULL && v.ok;
}
