/*
 * libFuzzer target: any bytes as an archive. An odd first byte means that the sums of the headers behind it are put
 * right first, so that what follows them is reached. What is accepted is plain files below the folder, by names that
 * may be, within the limits, and no two of which conflict; nothing is ever outside of it, whatever is in the archive.
 */
#include "lib/own.h"
#include "lib/path.h"
#include "unpack/unpack.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { FILES = 8, BYTES = 40000, FILE_BYTES = 20000, INPUT = 1 << 20 };

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void put_right(uint8_t *p, size_t n)
{
	for (; n >= 512; p += 512, n -= 512) {
		unsigned sum = 0;
		char text[8];
		if (memcmp(p + 257, "ustar", 5) != 0)
			continue;
		memset(p + 148, ' ', 8);
		for (size_t i = 0; i < 512; i++)
			sum += p[i];
		snprintf(text, sizeof text, "%06o", sum);
		memcpy(p + 148, text, 7);
	}
}

struct seen {
	char paths[2 * FILES][PATH_MAX_CHARS + 1];
	uint32_t files;
	uint64_t bytes;
};

/* Looks at what is there where ok, and takes it away. */
static void sweep(int dir, const char *prefix, struct seen *s, bool ok)
{
	DIR *d = fdopendir(dup(dir));
	must(d != NULL);
	rewinddir(d);
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		char path[4096];
		struct stat st;
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		must(fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0);
		snprintf(path, sizeof path, "%.2000s%.300s", prefix, e->d_name);
		if (S_ISDIR(st.st_mode)) {
			own_fd int in = openat(dir, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
			must(in >= 0);
			strcat(path, "/");
			sweep(in, path, s, ok);
			must(unlinkat(dir, e->d_name, AT_REMOVEDIR) == 0);
			continue;
		}
		must(S_ISREG(st.st_mode) && st.st_nlink == 1 && (st.st_mode & 07022) == 0);
		must(path_valid(path, strlen(path)));
		if (ok) {
			for (uint32_t i = 0; i < s->files; i++)
				must(!path_conflict(s->paths[i], path));
			must(s->files < FILES && st.st_size <= FILE_BYTES);
			strcpy(s->paths[s->files++], path);
			s->bytes += (uint64_t)st.st_size;
		}
		must(unlinkat(dir, e->d_name, 0) == 0);
	}
	closedir(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct unpack_limits most = {FILES, BYTES, FILE_BYTES};
	static char place[] = "/dev/shm/pinfold-fuzz.XXXXXX";
	static int outer = -1, into = -1;
	struct unpack_fault fault;
	static struct seen s;
	if (outer < 0) {
		must(mkdtemp(place) != NULL);
		outer = open(place, O_RDONLY | O_DIRECTORY);
		must(outer >= 0 && mkdirat(outer, "in", 0755) == 0);
		into = openat(outer, "in", O_RDONLY | O_DIRECTORY);
		must(into >= 0);
	}
	if (size == 0 || size > INPUT)
		return 0;
	own_free uint8_t *bytes = malloc(size);
	must(bytes != NULL);
	memcpy(bytes, data + 1, size - 1);
	if ((data[0] & 1) != 0)
		put_right(bytes, size - 1);
	own_fd int archive = memfd_create("archive", MFD_CLOEXEC);
	must(archive >= 0 && write(archive, bytes, size - 1) == (ssize_t)(size - 1) &&
	     lseek(archive, 0, SEEK_SET) == 0);
	unpack_archive(archive, into, &most, &fault);
	for (const char *p = fault.name; *p != 0; p++)
		must(*p > ' ' && *p < 127);
	s.files = 0;
	s.bytes = 0;
	sweep(into, "", &s, fault.code == ERR_OK);
	must(fault.code != ERR_OK || (s.files > 0 && s.bytes <= BYTES));
	/* Beside the folder there is nothing. */
	must(unlinkat(outer, "in", AT_REMOVEDIR) == 0 && unlinkat(AT_FDCWD, place, AT_REMOVEDIR) == 0);
	must(mkdir(place, 0700) == 0);
	close(into);
	close(outer);
	outer = open(place, O_RDONLY | O_DIRECTORY);
	must(outer >= 0 && mkdirat(outer, "in", 0755) == 0);
	into = openat(outer, "in", O_RDONLY | O_DIRECTORY);
	must(into >= 0);
	return 0;
}
