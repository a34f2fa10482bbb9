/*
 * tests/vectors/promised.tab, for tests that hold the code against it: what others rely on, written down a second
 * time. The file is read from ${srcdir}; a program that cannot read it ends with 1.
 */
#ifndef TESTS_UNIT_PROMISED_H
#define TESTS_UNIT_PROMISED_H
#include <stdbool.h>
#include <stddef.h>

/* The next line after *at (0: the first) that begins with this word, without it and the space behind; NULL: no more.
 * The line is the caller's to cut until the next call. */
char *promised_next(size_t *at, const char *word);
/* Cuts the next word off *rest; "" at the end. */
char *promised_word(char **rest);
/* Is word one of a comma-separated list? */
bool promised_in(const char *list, const char *word);
#endif
