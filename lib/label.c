/* See label.h. */
#include "lib/label.h"
#include "gen/limits.h"
#include "lib/json.h"
#include <string.h>

bool label_valid(const char *s)
{
	size_t n = strnlen(s, LABEL_BYTES + 1);
	if (n == 0 || n > LABEL_BYTES || !utf8_valid(s, n, NULL) || utf8_count(s, n) > LIMIT_PAIRING_LABEL_CHARACTERS ||
	    strspn(s, " ") == n || strpbrk(s, "/\\\x7f") != NULL || strcmp(s, ".") == 0 || strcmp(s, "..") == 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] < 0x20)
			return false;
	return true;
}
