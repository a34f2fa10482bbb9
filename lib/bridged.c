/* See bridged.h. What comes behind the bridge's name and before "--" is the bridge's to understand. */
#include "lib/bridged.h"
#include <string.h>

uint32_t bridged_words(const char *const *argv, uint32_t n)
{
	for (uint32_t i = 1; i + 1 < n && strcmp(argv[0], BRIDGE_PATH) == 0; i++)
		if (strcmp(argv[i], "--") == 0)
			return i + 1;
	return 0;
}
