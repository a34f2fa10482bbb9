/* Ids, clocks and writing: what also root's daemon needs. The rest of lib/num.h is in num_text.c. */
#include "lib/clock.h"
#include "lib/die.h"
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static bool alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

bool id_valid_n(const char *s, size_t n)
{
	if (n < 1 || n > 128 || !alnum(s[0]))
		return false;
	for (size_t i = 1; i < n; i++)
		if (!alnum(s[i]) && s[i] != '.' && s[i] != '_' && s[i] != '-')
			return false;
	return true;
}

bool id_valid(const char *s)
{
	return id_valid_n(s, strnlen(s, 129));
}

static uint64_t clock_of(clockid_t id)
{
	struct timespec t;
	if (clock_gettime(id, &t) != 0)
		panic("clock_gettime: %m");
	return t.tv_sec < 0 ? 0 : (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

uint64_t clock_ms(void)
{
	return clock_of(CLOCK_REALTIME);
}

uint64_t timer_ms(void)
{
	return clock_of(CLOCK_BOOTTIME);
}

bool write_all(int fd, const void *p, size_t n)
{
	const char *at = p;
	while (n > 0) {
		ssize_t done = write(fd, at, n);
		if (done < 0) {
			if (errno == EINTR)
				continue;
			return false;
		}
		at += done;
		n -= (size_t)done;
	}
	return true;
}
