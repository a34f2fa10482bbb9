/* What a file must be, as "sha512-" and its digest in base64 (Subresource Integrity, W3C, section 3.5). */
#ifndef LIB_INTEGRITY_H
#define LIB_INTEGRITY_H
#include <stdbool.h>
#include <stddef.h>

enum { INTEGRITY_TEXT = 7 + 88 + 1 };

/* Is it such a text, with an algorithm that is known here (sha512)? */
bool integrity_valid(const char *text);
/* Whether the file, read by pread from its beginning, is what the text says. False with errno 0 where it is something
 * else. */
bool integrity_matches(int fd, const char *text);
#endif
