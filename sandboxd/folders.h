/* The run-time folders. All functions end the program with one sentence when something is wrong. */
#ifndef SANDBOXD_FOLDERS_H
#define SANDBOXD_FOLDERS_H
#include <sys/types.h>

/*
 * Makes path (parents 0755, root's) with this mode and owner, and returns a descriptor of it. Refuses, naming
 * the element, when an element is a link, is owned by somebody else, or may be written by group or others
 * (a sticky folder of root's, such as /tmp, may stand above).
 */
int folder_make(const char *path, mode_t mode, uid_t uid, gid_t gid);
/* The same checks; makes nothing. -1 when the folder is missing. */
int folder_check(const char *path);
/* An exclusive lock on the folder, held until the descriptor is closed; false when somebody keeps it for 2 s. */
_Bool folder_lock(int fd);
#endif
