/*
 * Takes a token out of its file: not through a link, only a regular file of ours with mode 0600, only
 * text. It is unlinked before it is used, and the folder is flushed, so that nothing run later finds it.
 */
#include "agent/tokenfile.h"
#include "lib/json.h"
#include "lib/own.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { TOKENFILE_MAX = 8192 };

static const char *take(int dir, const char *name, char *text, struct secret *token)
{
	/* O_NONBLOCK: a pipe of that name must not hold us up before it is refused. */
	own_fd int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	if (fd < 0)
		return errno == ELOOP ? "a link" : "cannot be opened";
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return "not a regular file";
	if ((st.st_mode & 07777) != 0600)
		return "its mode is not 0600";
	if (st.st_uid != geteuid())
		return "it belongs to someone else";
	size_t n = 0;
	for (;;) {
		ssize_t got = read(fd, text + n, TOKENFILE_MAX + 1 - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return "cannot be read";
		if (got == 0)
			break;
		n += (size_t)got;
		if (n > TOKENFILE_MAX)
			return "larger than 8,192 bytes";
	}
	if (n == 0)
		return "empty";
	if (!utf8_valid(text, n, &(size_t){0}) || memchr(text, 0, n) != NULL)
		return "not text";
	if (strchr(" \t\r\n\v\f", text[0]) != NULL || strchr(" \t\r\n\v\f", text[n - 1]) != NULL)
		return "white space around it";
	if (unlinkat(dir, name, 0) != 0 || fsync(dir) != 0)
		return "cannot be removed";
	if (!secret_set(token, text, n))
		return "cannot be kept";
	return NULL;
}

const char *tokenfile_take(int dir, const char *name, struct secret *token)
{
	char text[TOKENFILE_MAX + 1];
	const char *why = take(dir, name, text, token);
	wipe(text, sizeof text);
	return why;
}

const char *tokenfiles_take(int workspace, struct tokens *to, const char **file)
{
	const struct {
		const char *name;
		struct secret *token;
	} all[] = {{".pinfold-run-token", &to->model},
		   {".pinfold-event-token", &to->events},
		   {".pinfold-approval-token", &to->approvals}};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		*file = all[i].name;
		if (faccessat(workspace, all[i].name, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
			continue;
		const char *why = tokenfile_take(workspace, all[i].name, all[i].token);
		if (why != NULL)
			return why;
	}
	return NULL;
}

void tokens_wipe(struct tokens *t)
{
	secret_wipe(&t->model);
	secret_wipe(&t->events);
	secret_wipe(&t->approvals);
}
