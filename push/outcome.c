/* See outcome.h. The first row that fits decides. */
#include "push/outcome.h"
#include "lib/num.h"
#include <string.h>
#include <time.h>

static const struct {
	unsigned from, to;
	enum push_outcome is;
} rows[] = {
    {200, 299, PUSH_SENT},    {404, 404, PUSH_GONE},
    {410, 410, PUSH_GONE},    {408, 408, PUSH_FAILED}, /* it was slow */
    {425, 425, PUSH_FAILED},  {429, 429, PUSH_TOO_MANY},
    {400, 499, PUSH_REFUSED}, /* 413 among them, and a key that it does not take */
    {0, 599, PUSH_FAILED},    /* silence, somewhere else (3xx, which is not followed), its own trouble */
};

enum push_outcome outcome_of(unsigned status)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (status >= rows[i].from && status <= rows[i].to)
			return rows[i].is;
	return PUSH_FAILED;
}

uint32_t retry_after(const char *value, size_t n, uint64_t now)
{
	/* RFC 9110 section 5.6.7: the one that is written, and two that are read. */
	static const char *const forms[] = {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT",
					    "%a %b %e %H:%M:%S %Y"};
	char text[64];
	uint64_t seconds = 0;
	while (n > 0 && (*value == ' ' || *value == '\t'))
		value++, n--;
	while (n > 0 && memchr(" \t\r\n", value[n - 1], 4) != NULL)
		n--;
	if (n == 0 || n >= sizeof text || memchr(value, '\0', n) != NULL)
		return 0;
	memcpy(text, value, n);
	text[n] = '\0';
	if (strspn(text, "0123456789") == n) {
		while (text[seconds] == '0' && text[seconds + 1] != '\0')
			seconds++; /* zeros in front */
		if (!num_u64(text + seconds, n - seconds, 0, RETRY_AFTER_MOST, &seconds))
			return RETRY_AFTER_MOST;
		return (uint32_t)seconds;
	}
	for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
		struct tm tm = {0};
		const char *end = strptime(text, forms[i], &tm);
		if (end == NULL || *end != '\0')
			continue;
		time_t then = timegm(&tm);
		if (then < 0 || (uint64_t)then <= now)
			return 0;
		uint64_t left = (uint64_t)then - now;
		return left > RETRY_AFTER_MOST ? RETRY_AFTER_MOST : (uint32_t)left;
	}
	return 0;
}
