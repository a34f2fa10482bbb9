/* Any bytes as a path: what is accepted keeps the rules. */
#include "lib/path.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_path(const char *p, size_t size)
{
	char copy[PATH_MAX_CHARS + 1], slashed[PATH_MAX_CHARS + 3], ext[16];
	if (!path_valid(p, size))
		return;
	if (size == 0 || size > PATH_MAX_CHARS || p[0] == '/' || p[size - 1] == '/')
		abort();
	memcpy(copy, p, size);
	copy[size] = 0;
	if (strlen(copy) != size || !path_allow_valid(p, size) || !path_allow_covers(copy, copy) ||
	    path_conflict(copy, copy))
		abort();
	slashed[0] = '/';
	memcpy(slashed + 1, copy, size);
	slashed[size + 1] = '/';
	slashed[size + 2] = 0;
	if (strstr(slashed, "//") != NULL || strstr(slashed, "/../") != NULL || strstr(slashed, "/./") != NULL ||
	    strcasestr(slashed, "/.git/") != NULL || strstr(slashed, "/-") != NULL)
		abort();
	path_extension(copy, ext, sizeof ext);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_path((const char *)data, size);
	return 0;
}
