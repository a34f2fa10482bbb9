/* Small reads and writes below an instance's group, and how controllers are handed down. */
#ifndef SANDBOXD_CG_FILE_H
#define SANDBOXD_CG_FILE_H
#include <stdbool.h>
#include <stdint.h>

enum { CG_NAME = 32 };

/* base/group/file; group may be "". Descriptor or -1. */
int cg_open_file(int base, const char *group, const char *file, int flags);
bool cg_put(int base, const char *group, const char *file, const char *text);
/* The whole small file, NUL added; its length or -1. */
int cg_get(int base, const char *group, const char *file, char *out, int size);
/* The number behind key ("" for a file that is one number); 0 when there is none. */
uint64_t cg_number(int base, const char *group, const char *file, const char *key);
/* Enables those of the CG_ bits in the group's subtree that it can; returns them. */
int cg_pass_down(int base, const char *group, int what);
#endif
