/* What a push service's answer means for the subscription, and when it may be asked again. */
#ifndef PUSH_OUTCOME_H
#define PUSH_OUTCOME_H
#include "lib/names.h"
#include <stddef.h>
#include <stdint.h>

enum { RETRY_AFTER_MOST = 86400 };

/* Of a status of HTTP; 0: there was no answer. */
enum push_outcome outcome_of(unsigned status);
/* The value of Retry-After (RFC 9110 section 10.2.3), a number of seconds or a date, as seconds from now on (seconds
 * since the epoch): at most RETRY_AFTER_MOST. 0: it says nothing that can be read, or a time that has passed. */
uint32_t retry_after(const char *value, size_t n, uint64_t now);
#endif
