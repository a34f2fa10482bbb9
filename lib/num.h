/* Exact numbers from text, ids, and clocks. */
#ifndef LIB_NUM_H
#define LIB_NUM_H
#include "lib/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Digits only, no sign, no leading zero but "0" itself, within [min, max]. */
bool num_u64(const char *s, size_t n, uint64_t min, uint64_t max, uint64_t *out);
/* The value of one hexadecimal digit, or -1. */
int num_hex(char c);
enum { UUID_LEN = 36 };
void uuid4(char out[UUID_LEN + 1]);
/* Reads a whole regular file of at most max bytes without following a final link; NULL with errno.
 * The caller frees; a NUL is added behind the *n bytes. */
char *file_read(int dirfd, const char *path, size_t max, size_t *n);
#endif
