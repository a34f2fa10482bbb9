/*
 * Names the files of a folder. Distrusts the folder: a repository's own settings may name programs (fsmonitor, hooks,
 * filters) and other places (worktree), so git is told to run none and gets no variable that says where the repository
 * is; and whatever names come, each is opened part by part from the folder down, links refused.
 */
#include "cli/collect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "lib/buf.h"
#include "lib/own.h"

enum { DEPTH_MAX = 16, NAMES_BYTES = 64 << 20, FILES_MOST = 200000 };

static const char *const usual[] = {".py", ".toml", ".md", ".txt", ".json", ".yaml", ".yml", ".ini", ".cfg"};

struct walk {
	const struct json *types;
	int dir;
	struct collected *out;
};

static bool wanted(const struct walk *k, const char *path)
{
	if (k->types == NULL)
		return path_extension_in(path, usual, sizeof usual / sizeof *usual);
	for (const struct json *t = k->types->child; t != NULL; t = t->next)
		if (t->type == JSON_STRING && path_extension_in(path, (const char *const[]){t->text}, 1))
			return true;
	return false;
}

void collect_leave_out(struct collected *c, const char *path)
{
	if (c->left_out < COLLECT_NAMES)
		snprintf(c->names[c->left_out], sizeof c->names[0], "%s", path);
	c->left_out++;
}

void collect_say_types(const struct json *types)
{
	for (const struct json *t = types != NULL ? types->child : NULL; t != NULL; t = t->next) {
		fputc(' ', stderr);
		if (t->type == JSON_STRING)
			say_foreign(stderr, t->text, t->len);
	}
	for (size_t i = 0; types == NULL && i < sizeof usual / sizeof *usual; i++)
		fprintf(stderr, " %s", usual[i]);
}

int collect_open(int dir, const char *path)
{
	char part[NAME_MAX + 1];
	own_fd int at = fcntl(dir, F_DUPFD_CLOEXEC, 0);
	for (const char *p = path; at >= 0; p++) {
		size_t n = strcspn(p, "/");
		bool last = p[n] == '\0';
		if (n == 0 || n > NAME_MAX || (n <= 2 && strspn(p, ".") >= n)) {
			errno = EINVAL;
			return -1;
		}
		memcpy(part, p, n);
		part[n] = '\0';
		/* Without waiting, should it be a pipe. */
		int next = openat(at, part, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | (last ? O_NONBLOCK : O_DIRECTORY));
		if (last || next < 0)
			return next;
		close(at);
		at = next;
		p += n;
	}
	return -1;
}

static bool add(struct walk *k, const char *path)
{
	struct collected *c = k->out;
	struct stat st;
	if (!path_valid(path, strlen(path)) || !wanted(k, path)) {
		collect_leave_out(c, path);
		return true;
	}
	own_fd int fd = collect_open(k->dir, path);
	if (fd < 0 && errno == ENOENT)
		return true; /* git still tracks it */
	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		collect_leave_out(c, path);
		return true;
	}
	if (c->n == FILES_MOST) {
		fprintf(stderr, "pinfold: more than %d files; name a smaller folder\n", FILES_MOST);
		return false;
	}
	if (c->n == c->room) {
		size_t room = c->room != 0 ? 2 * c->room : 256;
		char **more = realloc(c->path, room * sizeof *more);
		if (more == NULL)
			return false;
		c->path = more;
		c->room = room;
	}
	c->path[c->n] = strdup(path);
	return c->path[c->n++] != NULL;
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
				collect_leave_out(k->out, path);
			} else if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX) {
				own_fd int sub = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
				ok = sub < 0 || walk_dir(k, sub, path, depth + 1);
			} else {
				ok = add(k, path);
			}
		}
		free(list[i]);
	}
	free(list);
	return ok;
}

/* Is there a repository in this folder, or in one above? */
static bool in_repository(const char *dir)
{
	char at[PATH_MAX + 8];
	own_free char *full = realpath(dir, NULL);
	while (full != NULL) {
		snprintf(at, sizeof at, "%s/.git", full);
		if (access(at, F_OK) == 0)
			return true;
		char *slash = strrchr(full, '/');
		if (slash == NULL || full[1] == '\0')
			return false;
		slash[slash == full ? 1 : 0] = '\0';
	}
	return false;
}

char **git_environment(char *more)
{
	/* None of the protocols by which a repository may fetch what it lacks, and start programs of its choice: this
	 * overrules what its settings say of each (protocol.file.allow), and older gits know only this one. */
	static char locks[] = "GIT_OPTIONAL_LOCKS=0", lazy[] = "GIT_NO_LAZY_FETCH=1",
		    prompt[] = "GIT_TERMINAL_PROMPT=0", protocols[] = "GIT_ALLOW_PROTOCOL=";
	size_t n = 0;
	while (environ[n] != NULL)
		n++;
	char **env = calloc(n + 6, sizeof *env);
	if (env == NULL)
		return NULL;
	size_t k = 0;
	for (size_t i = 0; i < n; i++)
		if (strncmp(environ[i], "GIT_", 4) != 0)
			env[k++] = environ[i];
	env[k++] = locks;
	env[k++] = lazy;
	env[k++] = protocols;
	env[k++] = prompt;
	env[k] = more;
	return env;
}

/* Starts git in dir, with *from to read what it says. */
static bool start_git(const char *dir, pid_t *pid, int *from)
{
	static const char *const argv[] = {"git",
					   "-c",
					   "core.fsmonitor=false",
					   "-c",
					   "core.hooksPath=/dev/null",
					   "-c",
					   "protocol.allow=never",
					   "ls-files",
					   "-z",
					   "--cached",
					   "--others",
					   "--exclude-standard",
					   "--deduplicate",
					   NULL};
	posix_spawn_file_actions_t acts;
	own_free char **env = git_environment(NULL);
	int ends[2];
	if (env == NULL || pipe2(ends, O_CLOEXEC) != 0)
		return false;
	bool ok = posix_spawn_file_actions_init(&acts) == 0;
	int why = ENOMEM;
	if (ok && posix_spawn_file_actions_addopen(&acts, 0, "/dev/null", O_RDONLY, 0) == 0 &&
	    posix_spawn_file_actions_adddup2(&acts, ends[1], 1) == 0 &&
	    posix_spawn_file_actions_addchdir_np(&acts, dir) == 0)
		why = posix_spawnp(pid, "git", &acts, NULL, (char *const *)(uintptr_t)argv, env);
	if (ok)
		posix_spawn_file_actions_destroy(&acts);
	close(ends[1]);
	if (why != 0)
		close(ends[0]);
	else
		*from = ends[0];
	errno = why;
	return why == 0;
}

/* False after saying so: git is there, and cannot say. */
static bool ask_git(const char *dir, struct buf *names)
{
	pid_t pid;
	own_fd int from = -1;
	int status = -1;
	ssize_t n;
	char part[16384];
	if (!start_git(dir, &pid, &from)) {
		say_wrong("git", strerror(errno));
		return false;
	}
	while ((n = read(from, part, sizeof part)) > 0 || (n < 0 && errno == EINTR))
		buf_add(names, part, n > 0 ? (size_t)n : 0);
	close(steal_fd(&from));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
	}
	if (n == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 && !buf_failed(names))
		return true;
	fprintf(stderr,
		"pinfold: git cannot name the files of %s (see above); mend that, or copy what is wanted to a folder "
		"outside of the repository\n",
		dir);
	return false;
}

static bool by_git(struct walk *k, const char *dir)
{
	own_buf struct buf names;
	buf_init(&names, NAMES_BYTES);
	if (!ask_git(dir, &names))
		return false;
	k->out->by_git = true;
	for (size_t at = 0; at < names.n;) {
		const char *name = (const char *)names.p + at;
		size_t n = strnlen(name, names.n - at);
		if (n == names.n - at)
			return false; /* each ends with a NUL */
		if (!add(k, name))
			return false;
		at += n + 1;
	}
	return true;
}

static int in_order(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;
	return path_order(*x, *y);
}

bool collect(const char *dir, const struct json *types, struct collected *out)
{
	*out = (struct collected){0};
	own_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		say_wrong(dir, strerror(errno));
		return false;
	}
	struct walk k = {types, fd, out};
	if (!(in_repository(dir) ? by_git(&k, dir) : walk_dir(&k, fd, "", 0)))
		return false;
	if (out->n > 0)
		qsort(out->path, out->n, sizeof *out->path, in_order);
	return true;
}

void collect_free(struct collected *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->path[i]);
	free(c->path);
	*c = (struct collected){0};
}
