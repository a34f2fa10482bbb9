/*
 * What a failure is told as that errno explains: want of memory or descriptors passes and is worth another try, and is
 * no fault of the program. To be asked right where it failed.
 */
#ifndef LIB_LACK_H
#define LIB_LACK_H
#include "gen/errors.h"
#include <errno.h>
#include <stdbool.h>

static inline bool lack(void)
{
	return errno == ENOMEM || errno == EMFILE || errno == ENFILE || errno == ENOBUFS;
}

static inline enum err lack_error(void)
{
	return lack() ? ERR_RESOURCES_EXHAUSTED : ERR_INTERNAL_ERROR;
}
#endif
