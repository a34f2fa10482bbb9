/* The files of a folder that a run is made of: by name, in one order. */
#ifndef CLI_COLLECT_H
#define CLI_COLLECT_H
#include <stdbool.h>
#include <stddef.h>

#include "lib/json.h"
#include "lib/path.h"

enum { COLLECT_NAMES = 3 };

struct collected {
	char **path; /* in the order of path_order(), each once */
	size_t n, room;
	unsigned left_out; /* how many of what is there, and the first names */
	char names[COLLECT_NAMES][PATH_MAX_CHARS * 2];
	bool by_git; /* what git ls-files names; else all but hidden files and folders */
};

/*
 * Plain files by a path that may be sent, of these types (an array of extensions; NULL: the usual ones), below dir. In
 * a repository what git tracks and what it neither tracks nor ignores, asked of git with nothing of that repository's
 * settings that could run a program; elsewhere all, without hidden ones. Links are not followed, nowhere. False after
 * saying what is wrong.
 */
bool collect(const char *dir, const struct json *types, struct collected *out);
void collect_free(struct collected *c);
void collect_leave_out(struct collected *c, const char *path);
/* A file of it, for reading; -1 with errno. dir: of the folder. No part of the path may be a link. */
int collect_open(int dir, const char *path);
/* Ours without any variable that tells git where things are or gives it settings, and with those that keep it from
 * fetching and asking; more: one besides, or NULL. To be freed, without what it names; NULL with errno. */
char **git_environment(char *more);
/* The types, each behind a space. */
void collect_say_types(const struct json *types);
#endif
