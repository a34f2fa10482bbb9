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

static char clock_file[] = "/tmp/pinfold-clock-XXXXXX", timer_file[] = "/tmp/pinfold-timer-XXXXXX";

static void set(const char *file, long long offset)
{
	/* In one piece: stored may look at any moment. */
	char text[32];
	int fd = open(file, O_WRONLY);
	int n = snprintf(text, sizeof text, "%-24lld\n", offset);
	assert_true(fd >= 0 && write(fd, text, (size_t)n) == n);
	close(fd);
}

void set_clock(long long offset)
{
	set(clock_file, offset);
}

void set_timer(long long offset)
{
	set(timer_file, offset);
}

static bool make(char *file)
{
	int fd = mkstemp(file);
	bool made = fd >= 0 && fchmod(fd, 0644) == 0;
	if (fd >= 0)
		close(fd);
	return made;
}

int settable_setup(void **state)
{
	return make(clock_file) && make(timer_file) && setenv("PINFOLD_STORED", "./tests/store/stored-clock", 1) == 0 &&
		       setenv("PINFOLD_TEST_CLOCK", clock_file, 1) == 0 &&
		       setenv("PINFOLD_TEST_TIMER", timer_file, 1) == 0
		   ? steps_setup(state)
		   : -1;
}

int settable_teardown(void **state)
{
	(void)unlink(clock_file);
	(void)unlink(timer_file);
	return steps_teardown(state);
}
