/*
 * libFuzzer target: any bytes as a push service's Retry-After. A number is itself, up to the most; a date is the time
 * that is left until it, one second less a second later; a date written in each of HTTP's three forms is read as what
 * it was made of.
 */
#include "push/outcome.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void number(const char *s, size_t n)
{
	uint64_t is = 0;
	while (n > 0 && (*s == ' ' || *s == '\t'))
		s++, n--;
	while (n > 0 && memchr(" \t\r\n", s[n - 1], 4) != NULL)
		n--;
	if (n == 0 || n > 60)
		return;
	for (size_t i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return;
		is = is * 10 + (uint64_t)(s[i] - '0');
		is = is > RETRY_AFTER_MOST ? RETRY_AFTER_MOST : is;
	}
	must(retry_after(s, n, 0) == is && retry_after(s, n, UINT64_MAX) == is);
}

static void date(const char *s, size_t n, uint64_t now)
{
	uint32_t is = retry_after(s, n, now);
	must(is <= RETRY_AFTER_MOST);
	uint32_t later = retry_after(s, n, now + 1);
	if (memchr(s, ':', n) == NULL) {
		must(later == is); /* it does not ask what time it is */
		return;
	}
	must(is == RETRY_AFTER_MOST ? later >= is - 1 && later <= is : is == 0 ? later == 0 : later == is - 1);
	must(retry_after(s, n, UINT64_MAX) == 0);
}

static void written(uint64_t now, uint32_t left)
{
	static const char *const forms[] = {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT",
					    "%a %b %e %H:%M:%S %Y"};
	time_t then = (time_t)(now + left);
	struct tm tm;
	char text[64];
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		must(gmtime_r(&then, &tm) != NULL);
		size_t n = strftime(text, sizeof text, forms[i], &tm);
		must(n > 0 && retry_after(text, n, now) == (left > RETRY_AFTER_MOST ? RETRY_AFTER_MOST : left));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t words[2] = {0, 0};
	if (size < sizeof words)
		return 0;
	memcpy(words, data, sizeof words);
	/* Not behind 2068, where two digits of a year are another century. */
	uint64_t now = words[0] % 3000000000u;
	const char *s = (const char *)data + sizeof words;
	size_t n = size - sizeof words;
	written(now, words[1] % (2 * RETRY_AFTER_MOST));
	number(s, n);
	date(s, n, now);
	enum push_outcome is = outcome_of(words[1]);
	must((is == PUSH_SENT) == (words[1] >= 200 && words[1] <= 299));
	must(is != PUSH_GONE || words[1] == 404 || words[1] == 410);
	return 0;
}
