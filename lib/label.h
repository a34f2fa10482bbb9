/* What a device may be called: it names the device among its tenant's, and is a segment of a path. */
#ifndef LIB_LABEL_H
#define LIB_LABEL_H
#include <stdbool.h>

enum { LABEL_BYTES = 160 };
/* 1 to LIMIT_PAIRING_LABEL_CHARACTERS characters of valid UTF-8, at most LABEL_BYTES bytes; no control character, no
 * slash or backslash, not only blanks, and no "." or "..". Whether it shows as what it is, is lib/text.h's to say. */
bool label_valid(const char *s);
#endif
