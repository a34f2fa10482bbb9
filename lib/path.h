/* The lexical rules for paths that callers and agents name (R-19, R-23, D-27, FAULTS C6). */
#ifndef LIB_PATH_H
#define LIB_PATH_H
#include <stdbool.h>
#include <stddef.h>

enum { PATH_MAX_CHARS = 160 };

/* Relative, 1-160 bytes of [A-Za-z0-9._-/], no empty, ".", ".." or ".git" (any case) part, no part that
 * begins with "-". */
bool path_valid(const char *p, size_t n);
/* The extension after the last dot of the last part, with its dot, lower-cased into out; "" if none. */
void path_extension(const char *p, char *out, size_t cap);
/* An allowed path: a path, or a folder's path and slash-star-star. */
bool path_allow_valid(const char *p, size_t n);
/* Does the allowed path cover this file? Exact bytes. */
bool path_allow_covers(const char *allow, const char *file);
/* Do two files' paths conflict (one is a folder of the other, or they differ only by case)? */
bool path_conflict(const char *a, const char *b);
/* An order in which two that conflict, or are the same, have nothing between them but others that conflict with the
 * first, so that it is enough to look at neighbours: without case, "/" before all else; then by bytes. As strcmp. */
int path_order(const char *a, const char *b);
/* Is the path's extension one of these, such as ".py"? "*" is any, and the only one for a path without. */
bool path_extension_in(const char *path, const char *const *extensions, size_t n);
#endif
