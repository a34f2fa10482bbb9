/*
 * The source tree, reached only downwards from its root: no link is followed and no name leads out,
 * which the kernel sees to (openat2). Paths are those of lib/path.h.
 */
#ifndef AGENT_TREE_H
#define AGENT_TREE_H
#include "lib/buf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TREE_FILE_MAX = 4000000, TREE_ENTRIES = 5000, TREE_DEPTH = 32 };

/* Whether the kernel can keep us inside; without that nothing is opened. */
bool tree_confined(int root);
/* Appends the whole file. NULL, or why not (a static phrase for the model). */
const char *tree_read(int root, const char *path, struct buf *out);
/* Replaces or makes the file, with the folders above it. NULL, or why not. */
const char *tree_write(int root, const char *path, const void *p, size_t n);
/* Calls visit for every regular file, in order of names, without .git, until it says false. False: cut off. */
typedef bool tree_visit(void *arg, int folder, const char *name, const char *path, uint64_t size);
bool tree_walk(int root, tree_visit *visit, void *arg);
#endif
