/*
 * Ownership in scopes: a variable marked own_* is released when its scope ends; steal_* hands it on.
 */
#ifndef LIB_OWN_H
#define LIB_OWN_H
#include "lib/own_fd.h"
#include <stdlib.h>

static inline void own_free_(void *p)
{
	free(*(void **)p);
}

#define own_free __attribute__((cleanup(own_free_)))

/* Hands a pointer out of its scope. */
#define steal_ptr(p)                         \
	({                                   \
		__typeof__(p) stolen_ = (p); \
		(p) = NULL;                  \
		stolen_;                     \
	})
#endif
