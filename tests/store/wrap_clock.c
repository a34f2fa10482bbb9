/*
 * Linked into a stored or a gateway of its own with --wrap=clock_ms: the clock plus the milliseconds in the file that
 * PINFOLD_TEST_CLOCK names, so that a test can set the clock of one process.
 */
#include "tests/store/wrap_file.h"
#include <stdint.h>

uint64_t __real_clock_ms(void);
uint64_t __wrap_clock_ms(void);

static int file = -1;
__attribute__((constructor)) static void remember(void)
{
	file = offset_open("PINFOLD_TEST_CLOCK");
}

uint64_t __wrap_clock_ms(void)
{
	return __real_clock_ms() + (uint64_t)offset_read(file);
}
