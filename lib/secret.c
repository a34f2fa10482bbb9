/* Wiping and keeping out of dumps: what also root's daemon needs. The rest of lib/secret.h is in secrets.c. */
#include "lib/secret.h"
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

#ifdef __SANITIZE_ADDRESS__
/* The leak sanitizer traces its own process at the end, which one that hides does not let it; it asks here before. */
static bool hidden;
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return hidden;
}
#define HIDDEN() (hidden = true)
#else
#define HIDDEN() ((void)0)
#endif

bool undumpable(void)
{
	HIDDEN();
	/* Where core_pattern is a pipe only exactly 1 means none (core(5)); what was lowered before stays. */
	struct rlimit none = {1, 1}, less = {0, 0};
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 &&
	       (setrlimit(RLIMIT_CORE, &none) == 0 || setrlimit(RLIMIT_CORE, &less) == 0);
}
