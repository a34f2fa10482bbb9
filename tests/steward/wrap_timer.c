/*
 * Linked into a steward of its own with --wrap=timer_ms: the timer plus the milliseconds in the file that
 * PINFOLD_TEST_TIMER names, so that a test need not wait for what takes long.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

uint64_t __real_timer_ms(void);
uint64_t __wrap_timer_ms(void);

uint64_t __wrap_timer_ms(void)
{
	long long offset = 0;
	const char *path = getenv("PINFOLD_TEST_TIMER");
	FILE *f = path != NULL ? fopen(path, "r") : NULL;
	if (f != NULL) {
		if (fscanf(f, "%lld", &offset) != 1)
			offset = 0;
		fclose(f);
	}
	return __real_timer_ms() + (uint64_t)offset;
}
