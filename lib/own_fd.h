/* Of lib/own.h, what also root's daemon needs: descriptors. */
#ifndef LIB_OWN_FD_H
#define LIB_OWN_FD_H
#include <unistd.h>

static inline void own_close_(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

#define own_fd __attribute__((cleanup(own_close_)))

/* Hands a descriptor out of its scope. */
static inline int steal_fd(int *fd)
{
	int stolen = *fd;
	*fd = -1;
	return stolen;
}
#endif
