/*
 * Linked into a steward of its own with --wrap=timer_ms: the timer plus the milliseconds in the file that
 * PINFOLD_TEST_TIMER names, so that a test need not wait for what takes long.
 */
#include "tests/store/wrap_file.h"
#include <stdint.h>

uint64_t __real_timer_ms(void);
uint64_t __wrap_timer_ms(void);

static int file = -1;
__attribute__((constructor)) static void remember(void)
{
	file = offset_open("PINFOLD_TEST_TIMER");
}

uint64_t __wrap_timer_ms(void)
{
	return __real_timer_ms() + (uint64_t)offset_read(file);
}
