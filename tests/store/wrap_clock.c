/*
 * Linked into a stored or a gateway of its own with --wrap=clock_ms: the clock plus the milliseconds in the file that
 * PINFOLD_TEST_CLOCK names, so that a test can set the clock of one process.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

uint64_t __real_clock_ms(void);
uint64_t __wrap_clock_ms(void);

/* Before main clears its environment. */
static const char *path;
__attribute__((constructor)) static void remember(void)
{
	path = getenv("PINFOLD_TEST_CLOCK");
}

uint64_t __wrap_clock_ms(void)
{
	long long offset = 0;
	FILE *f = path != NULL ? fopen(path, "r") : NULL;
	if (f != NULL) {
		if (fscanf(f, "%lld", &offset) != 1)
			offset = 0;
		fclose(f);
	}
	return __real_clock_ms() + (uint64_t)offset;
}
