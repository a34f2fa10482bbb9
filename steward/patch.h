/* A patch that `git apply` takes, made from buffers in memory only: no repository, no file is opened. */
#ifndef STEWARD_PATCH_H
#define STEWARD_PATCH_H
#include "lib/buf.h"
#include "steward/tree.h"

/* libgit2's own start and end; call before the process is confined. */
bool patch_init(void);
void patch_end(void);
/* Appends the patch of one file, without content change too (mode only). Either side may be NULL: the
 * file was added or removed. Both paths are equal and pass path_valid. False: libgit2 could not. */
bool patch_add(struct buf *out, const struct tree_file *before, const struct tree_file *after);
#endif
