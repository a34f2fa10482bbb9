/*
 * The configuration files, read with libconfuse by the rows of spec/conf.tab and turned into the typed messages of
 * conf.msg. Runs unprivileged (as a short-lived child of sandboxd) or for `pinfold config check`.
 */
#ifndef CLI_CONF_READ_H
#define CLI_CONF_READ_H
#include <stdbool.h>

#include "cli/conf_parse.h"

/* All files as they stand. */
struct conf_files {
	struct conf_notes notes;
	struct conf_block *blocks;
	bool whole; /* every file could be read to its end */
	struct arena arena;
};

/* Reads pinfold.conf, providers.d, profiles.d and tenants.d of the folder of lib/place.h; or this file (NULL: none) in
 * place of pinfold.conf, with the folders beside it where there are such. What is wrong is in the notes. The caller
 * frees, whatever comes of it. */
void conf_files_read(struct conf_files *f, const char *file);
void conf_files_free(struct conf_files *f);
/* Looks at every value and at what refers to what, and writes the frames to fd (-1: nowhere). False where anything is
 * wrong. */
bool conf_files_write(struct conf_files *f, int fd);
/* All of this for the installation's own folder; what is wrong is said on standard error, one line each, with file,
 * line where known, and what was expected. False when there was any. */
bool conf_read(int fd);
/* Comments become blanks, in place; every line stays where it was. */
void conf_plain(char *text);
#endif
