/* Walks a folder and writes the request. Links are not followed; .git and hidden folders are left out. */
#include "cli/upload.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "lib/json.h"
#include "lib/num.h"
#include "lib/own.h"
#include "lib/path.h"

enum { FILES_MAX = 32, FILE_BYTES = 64000, DEPTH_MAX = 16 };

struct walk {
	struct jw *w;
	const struct json *types;
	char paths[FILES_MAX][PATH_MAX_CHARS + 1];
	unsigned n;
	struct uploaded *told;
};

static const char *const usual[] = {".py", ".toml", ".md", ".txt", ".json", ".yaml", ".yml", ".ini", ".cfg"};

static bool wanted(const struct walk *k, const char *path)
{
	char ext[32];

	path_extension(path, ext, sizeof ext);
	for (const struct json *t = k->types != NULL ? k->types->child : NULL; t != NULL; t = t->next)
		if (t->type == JSON_STRING && strcmp(t->text, ext) == 0)
			return true;
	for (size_t i = 0; k->types == NULL && i < sizeof usual / sizeof *usual; i++)
		if (strcmp(usual[i], ext) == 0)
			return true;
	return false;
}

static void leave_out(struct walk *k, const char *path)
{
	if (k->told->left_out < UPLOAD_NAMES)
		snprintf(k->told->names[k->told->left_out], sizeof k->told->names[0], "%s", path);
	k->told->left_out++;
}

/* There is nothing: of what there could be. */
static void say_types(const struct upload *u)
{
	fprintf(stderr, "pinfold: %s holds no file that can be uploaded: none is text of the types", u->dir);
	for (const struct json *t = u->types != NULL ? u->types->child : NULL; t != NULL; t = t->next) {
		fputc(' ', stderr);
		if (t->type == JSON_STRING)
			say_foreign(stderr, t->text, t->len);
	}
	for (size_t i = 0; u->types == NULL && i < sizeof usual / sizeof *usual; i++)
		fprintf(stderr, " %s", usual[i]);
	fputc('\n', stderr);
}

static bool add_file(struct walk *k, int dirfd, const char *name, const char *path)
{
	size_t n;

	if (!path_valid(path, strlen(path)) || !wanted(k, path)) {
		leave_out(k, path);
		return true;
	}
	if (k->n == FILES_MAX) {
		fprintf(stderr, "pinfold: more than %d source files; name a smaller folder\n", FILES_MAX);
		return false;
	}
	own_free char *text = file_read(dirfd, name, FILE_BYTES, &n);
	if (text == NULL) {
		say_wrong(path, errno == EFBIG ? "larger than 64,000 bytes" : strerror(errno));
		return false;
	}
	if (!utf8_valid(text, n, NULL) || memchr(text, '\0', n) != NULL) {
		leave_out(k, path);
		return true;
	}
	snprintf(k->paths[k->n++], sizeof k->paths[0], "%s", path);
	jw_open(k->w, '{');
	jw_kstr(k->w, "path", path);
	jw_key(k->w, "content");
	jw_strn(k->w, text, n);
	jw_close(k->w, '}');
	return true;
}

static bool walk_dir(struct walk *k, int dirfd, const char *prefix, unsigned depth)
{
	struct dirent **list;
	char path[PATH_MAX_CHARS * 2];
	bool ok = true;
	own_fd int again = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int n = again < 0 ? -1 : scandirat(again, ".", &list, NULL, alphasort);

	if (n < 0) {
		say_wrong(prefix[0] != '\0' ? prefix : "the folder", strerror(errno));
		return false;
	}
	for (int i = 0; i < n; i++) {
		const char *name = list[i]->d_name;
		struct stat st;
		if (ok && name[0] != '.' && strcmp(name, "__pycache__") != 0 &&
		    fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
			int len = snprintf(path, sizeof path, "%s%s%s", prefix, prefix[0] != '\0' ? "/" : "", name);
			if (len < 0 || (size_t)len >= sizeof path) {
				leave_out(k, path);
			} else if (S_ISREG(st.st_mode)) {
				ok = add_file(k, dirfd, name, path);
			} else if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX) {
				own_fd int sub = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
				ok = sub < 0 || walk_dir(k, sub, path, depth + 1);
			} else {
				leave_out(k, path);
			}
		}
		free(list[i]);
	}
	free(list);
	return ok;
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

bool upload_write(const struct upload *u, struct buf *body, struct uploaded *told)
{
	struct jw w;
	struct walk *k = calloc(1, sizeof *k);
	own_fd int dir = open(u->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool ok;

	if (k == NULL || dir < 0) {
		fprintf(stderr, "pinfold: %s: %s\n", u->dir, strerror(errno));
		free(k);
		return false;
	}
	jw_init(&w, body);
	*told = (struct uploaded){0};
	k->w = &w;
	k->types = u->types;
	k->told = told;
	jw_open(&w, '{');
	jw_kstr(&w, "instruction", u->instruction);
	if (u->agent != NULL)
		jw_kstr(&w, "agent", u->agent);
	if (u->profile != NULL)
		jw_kstr(&w, "modelProfile", u->profile);
	jw_key(&w, "files");
	jw_open(&w, '[');
	ok = walk_dir(k, dir, "", 0);
	jw_close(&w, ']');
	jw_key(&w, "allowedPaths");
	jw_open(&w, '[');
	for (unsigned i = 0; i < u->nallow; i++)
		jw_str(&w, u->allow[i]);
	for (unsigned i = 0; u->nallow == 0 && i < k->n; i++)
		jw_str(&w, k->paths[i]);
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
	told->files = k->n;
	if (ok && k->n == 0) {
		say_types(u);
		ok = false;
	}
	free(k);
	return ok && !buf_failed(body);
}
