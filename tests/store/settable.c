/* See settable.h. */
#include "tests/store/settable.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/store/steps.h"

static char clock_file[] = "/tmp/pinfold-clock-XXXXXX";

void set_clock(long long offset)
{
	/* In one piece: stored may look at any moment. */
	char text[32];
	int fd = open(clock_file, O_WRONLY);
	int n = snprintf(text, sizeof text, "%-24lld\n", offset);
	assert_true(fd >= 0 && write(fd, text, (size_t)n) == n);
	close(fd);
}

int settable_setup(void **state)
{
	int fd = mkstemp(clock_file);
	if (fd < 0 || fchmod(fd, 0644) != 0)
		return -1;
	close(fd);
	return setenv("PINFOLD_STORED", "./tests/store/stored-clock", 1) == 0 &&
		       setenv("PINFOLD_TEST_CLOCK", clock_file, 1) == 0
		   ? steps_setup(state)
		   : -1;
}

int settable_teardown(void **state)
{
	(void)unlink(clock_file);
	return steps_teardown(state);
}
