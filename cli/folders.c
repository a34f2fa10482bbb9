/* Folders that may be there already. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"

bool folders_above(const char *path)
{
	char part[PATH_MAX];

	for (const char *p = strchr(path + 1, '/'); p != NULL; p = strchr(p + 1, '/')) {
		snprintf(part, sizeof part, "%.*s", (int)(p - path), path);
		if (mkdir(part, 0755) != 0 && errno != EEXIST)
			return false;
	}
	return true;
}

bool folders_make(const char *path, mode_t mode)
{
	return folders_above(path) && (mkdir(path, mode) == 0 || errno == EEXIST);
}
