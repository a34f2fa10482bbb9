/*
 * The one place that says what a failure is told as that errno explains (a return of Berkeley DB is one, or negative).
 * What passes is worth another try and is no fault of the program: want of memory or descriptors, of room on a disk,
 * and a disk that does not read or write, which is the store's. Everything else is ours. To be asked right where it
 * failed. stored tells all but a full disk as "not available" (store_error), for which its callers know to wait.
 */
#ifndef LIB_LACK_H
#define LIB_LACK_H
#include "gen/errors.h"
#include <errno.h>
#include <stdbool.h>

static inline enum err lack_told(int why)
{
	switch (why) {
	case ENOMEM:
	case ENOBUFS:
	case EMFILE:
	case ENFILE:
	case EAGAIN: /* of threads and processes */
		return ERR_RESOURCES_EXHAUSTED;
	case ENOSPC:
	case EDQUOT:
		return ERR_STORAGE_FULL;
	case EIO:
		return ERR_STORE_UNAVAILABLE;
	default:
		return ERR_INTERNAL_ERROR;
	}
}

static inline enum err lack_error(void)
{
	return lack_told(errno);
}

/* Does it pass? */
static inline bool lack(void)
{
	return lack_error() != ERR_INTERNAL_ERROR;
}

/* What it is told as if it passes, else what the caller says that it is. */
static inline enum err lack_or(enum err otherwise)
{
	return lack() ? lack_error() : otherwise;
}
#endif
