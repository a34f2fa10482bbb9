/*
 * What is wrong with a configuration, all of it: one line each, with the file, the line where it is known, and what was
 * expected. What stands in files is anybody's text: it is cleaned where it is shown.
 */
#ifndef CLI_CONF_NOTE_H
#define CLI_CONF_NOTE_H
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "lib/buf.h"

/* A file, and a line of it; 0: none in particular. */
struct conf_place {
	const char *file;
	unsigned line;
};

struct conf_note {
	struct conf_place at;
	bool error; /* else it is worth knowing, and the service starts with it */
	const char *text;
};

/* Texts are in the arena. n is how many there are, of which the first CONF_NOTES are kept. */
enum { CONF_NOTES = 500 };
struct conf_notes {
	struct arena *arena;
	struct conf_note v[CONF_NOTES];
	size_t n;
	unsigned errors;
};

void conf_wrong(struct conf_notes *n, struct conf_place at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void conf_worth(struct conf_notes *n, struct conf_place at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void conf_vwrong(struct conf_notes *n, struct conf_place at, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));
/* One line each, "FILE:LINE: TEXT". */
void conf_print(const struct conf_notes *n, FILE *to);
/* The name of a few that is most like this one, so that somebody who mistyped it may have meant it; NULL: none is. */
const char *conf_nearest(const char *name, const char *const *names, size_t n);
#endif
