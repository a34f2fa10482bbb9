/* Of lib/secret.h, what also root's daemon needs. */
#ifndef LIB_WIPE_H
#define LIB_WIPE_H
#include <stdbool.h>
#include <stddef.h>

enum { SECRET_MAX = 4096 };
/* Zeroes memory in a way the compiler keeps. */
void wipe(void *p, size_t n);
/* PR_SET_DUMPABLE 0, no core dumps; false with errno if the kernel refuses. */
bool undumpable(void);
#endif
