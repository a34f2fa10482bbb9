/*
 * Ownership in scopes: a variable marked own_* is released when its scope ends; steal_* hands it on.
 */
#ifndef LIB_OWN_H
#define LIB_OWN_H
#include <stdlib.h>
#include <unistd.h>

static inline void own_free_(void *p)
{
	free(*(void **)p);
}

static inline void own_close_(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

#define own_free __attribute__((cleanup(own_free_)))
#define own_fd __attribute__((cleanup(own_close_)))

/* Hands a pointer out of its scope. */
#define steal_ptr(p)                         \
	({                                   \
		__typeof__(p) stolen_ = (p); \
		(p) = NULL;                  \
		stolen_;                     \
	})

/* Hands a descriptor out of its scope. */
static inline int steal_fd(int *fd)
{
	int stolen = *fd;
	*fd = -1;
	return stolen;
}
#endif
