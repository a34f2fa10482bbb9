/* Writes the request of a run. */
#include "cli/upload.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "lib/num.h"
#include "lib/own.h"

enum { FILES_MAX = 32, FILE_BYTES = 64000, TREE_BYTES = 512000 };

static int folder(const struct upload *u)
{
	int dir = open(u->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		say_wrong(u->dir, strerror(errno));
	return dir;
}

bool upload_fits(const struct upload *u, const struct collected *files, uint64_t *bytes)
{
	own_fd int dir = folder(u);
	bool fits = files->n <= FILES_MAX;
	*bytes = 0;
	for (size_t i = 0; dir >= 0 && i < files->n; i++) {
		struct stat st;
		own_fd int fd = collect_open(dir, files->path[i]);
		if (fd < 0 || fstat(fd, &st) != 0)
			continue; /* gone since: whoever reads it says so */
		*bytes += (uint64_t)st.st_size;
		fits = fits && st.st_size <= FILE_BYTES;
	}
	return fits && *bytes <= TREE_BYTES;
}

bool upload_may(const struct upload *u, const struct collected *files, uint64_t count, uint64_t each, uint64_t bytes)
{
	own_fd int dir = folder(u);
	uint64_t sum = 0;

	if (count > 0 && files->n > count) {
		fprintf(stderr,
			"pinfold: %zu files, and a source of the tenant may have %" PRIu64 ": name a smaller folder\n",
			files->n, count);
		return false;
	}
	for (size_t i = 0; dir >= 0 && i < files->n; i++) {
		struct stat st;
		own_fd int fd = collect_open(dir, files->path[i]);
		if (fd < 0 || fstat(fd, &st) != 0)
			continue;
		sum += (uint64_t)st.st_size;
		if (each > 0 && (uint64_t)st.st_size > each) {
			fputs("pinfold: ", stderr);
			say_foreign(stderr, files->path[i], strlen(files->path[i]));
			fprintf(stderr,
				" has %" PRIu64 " bytes, and a file of a source may have %" PRIu64
				": name a folder without it%s\n",
				(uint64_t)st.st_size, each, files->by_git ? ", or have git ignore it" : "");
			return false;
		}
	}
	if (bytes > 0 && sum > bytes) {
		fprintf(stderr,
			"pinfold: %" PRIu64 " bytes, and a source of the tenant may have %" PRIu64
			" unpacked: name a smaller folder\n",
			sum, bytes);
		return false;
	}
	return true;
}

/* A whole file of at most FILE_BYTES; NULL with errno. */
static char *text_of(int dir, const char *path, size_t *n)
{
	own_fd int fd = collect_open(dir, path);
	if (fd < 0)
		return NULL;
	char *text = calloc(1, FILE_BYTES + 2);
	for (*n = 0; text != NULL;) {
		ssize_t got = read(fd, text + *n, FILE_BYTES + 1 - *n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got > 0 && (*n += (size_t)got) <= FILE_BYTES)
			continue;
		if (got == 0)
			return text;
		errno = got < 0 ? errno : EFBIG;
		free(text);
		text = NULL;
	}
	return NULL;
}

/* Files that are no text are left out, and taken from the list. */
static bool write_files(const struct upload *u, struct collected *files, struct jw *w)
{
	own_fd int dir = folder(u);
	size_t kept = 0;
	bool ok = dir >= 0;
	jw_key(w, "files");
	jw_open(w, '[');
	for (size_t i = 0; i < files->n; i++) {
		char *path = files->path[i];
		size_t n = 0;
		own_free char *text = ok ? text_of(dir, path, &n) : NULL;
		if (ok && text == NULL) {
			say_wrong(path, errno == EFBIG ? "larger than 64,000 bytes" : strerror(errno));
			ok = false;
		}
		if (text == NULL || !utf8_valid(text, n, NULL) || memchr(text, '\0', n) != NULL) {
			if (ok)
				collect_leave_out(files, path);
			free(path);
			continue;
		}
		files->path[kept++] = path;
		jw_open(w, '{');
		jw_kstr(w, "path", path);
		jw_key(w, "content");
		jw_strn(w, text, n);
		jw_close(w, '}');
	}
	files->n = kept;
	jw_close(w, ']');
	return ok;
}

/* Each file, or where they are too many what is at the top. */
static bool write_all_allowed(const struct collected *files, struct jw *w)
{
	size_t n = 0, was = 0;
	for (size_t i = 0; i < files->n; i++) {
		const char *path = files->path[i];
		size_t top = strcspn(path, "/");
		if (files->n <= UPLOAD_WORDS || path[top] == '\0') {
			jw_str(w, path);
			n++;
			continue;
		}
		/* All below one folder are together, in whatever order files and folders are. */
		if (i > 0 && was == top && strncmp(files->path[i - 1], path, top + 1) == 0)
			continue;
		char all[PATH_MAX_CHARS + 8];
		snprintf(all, sizeof all, "%.*s/**", (int)top, path);
		jw_str(w, all);
		was = top;
		n++;
	}
	if (n > UPLOAD_WORDS)
		fprintf(stderr,
			"pinfold: more than %d files and folders at the top: say with --allow which may be changed\n",
			UPLOAD_WORDS);
	return n <= UPLOAD_WORDS;
}

/* "python3 -m pytest -q" -> one array; words are separated by single spaces. */
static void write_argv(struct jw *w, const char *line)
{
	jw_open(w, '[');
	for (const char *p = line, *end; *p != '\0'; p = *end == ' ' ? end + 1 : end) {
		end = strchrnul(p, ' ');
		if (end > p)
			jw_strn(w, p, (size_t)(end - p));
	}
	jw_close(w, ']');
}

/* There is nothing: of what there could be. */
static void say_types(const struct upload *u)
{
	fprintf(stderr, "pinfold: %s holds no file that can be uploaded: none is text of the types", u->dir);
	collect_say_types(u->types);
	fputc('\n', stderr);
}

bool upload_write(const struct upload *u, struct collected *files, const char *source, struct buf *body, size_t *n)
{
	struct jw w;
	bool ok = true;

	jw_init(&w, body);
	jw_open(&w, '{');
	jw_kstr(&w, "instruction", u->instruction);
	if (u->agent != NULL)
		jw_kstr(&w, "agent", u->agent);
	if (u->profile != NULL)
		jw_kstr(&w, "modelProfile", u->profile);
	if (source != NULL)
		jw_kstr(&w, "source", source);
	else
		ok = write_files(u, files, &w);
	jw_key(&w, "allowedPaths");
	jw_open(&w, '[');
	for (unsigned i = 0; i < u->nallow; i++)
		jw_str(&w, u->allow[i]);
	if (ok && u->nallow == 0)
		ok = write_all_allowed(files, &w);
	jw_close(&w, ']');
	jw_key(&w, "checks");
	jw_open(&w, '[');
	for (unsigned i = 0; i < u->nchecks; i++)
		write_argv(&w, u->check[i]);
	if (u->nchecks == 0)
		write_argv(&w, UPLOAD_CHECK);
	jw_close(&w, ']');
	if (u->npermits != 0) {
		jw_key(&w, "permissions");
		jw_open(&w, '{');
		for (unsigned i = 0; i < u->npermits; i++)
			jw_kstr(&w, u->permit[i].tool, u->permit[i].word);
		jw_close(&w, '}');
	}
	jw_close(&w, '}');
	*n = files->n;
	if (ok && files->n == 0) {
		say_types(u);
		ok = false;
	}
	return ok && !buf_failed(body);
}
