/* Wiping and keeping out of dumps: what also root's daemon needs. The rest of lib/secret.h is in secrets.c. */
#include "lib/wipe.h"
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

void wipe(void *p, size_t n)
{
	if (n == 0)
		return;
	memset(p, 0, n);
	/* Tells the compiler that somebody looks at the zeroes. */
	__asm__ __volatile__("" : : "r"(p) : "memory");
}

bool undumpable(void)
{
	/* Where core_pattern is a pipe only exactly 1 means none (core(5)); what was lowered before stays. */
	struct rlimit none = {1, 1}, less = {0, 0};
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 &&
	       (setrlimit(RLIMIT_CORE, &none) == 0 || setrlimit(RLIMIT_CORE, &less) == 0);
}
