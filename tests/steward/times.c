/* See times.h. */
#include "tests/steward/times.h"
#include "tests/steward/course.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char clock_file[] = "/tmp/pinfold-clock-XXXXXX", timer_file[] = "/tmp/pinfold-timer-XXXXXX";

/* In one piece, and never shorter: it is read at any moment, and a timer does not step back. */
static void write_offset(const char *path, long long offset)
{
	char text[32];
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	int n = snprintf(text, sizeof text, "%020lld\n", offset);
	assert_int_equal(pwrite(fd, text, (size_t)n, 0), n);
	close(fd);
}

void times_clock(long long offset)
{
	write_offset(clock_file, offset);
}

void times_pass(long long ms)
{
	static long long passed;
	write_offset(timer_file, passed += ms);
	stage_gone(&course_stage, "nobody", BOX_WORK, true);
}

int times_setup(void **state)
{
	int fd = mkstemp(clock_file), timer = mkstemp(timer_file);
	if (fd < 0 || timer < 0 || fchmod(fd, 0644) != 0 || fchmod(timer, 0644) != 0)
		return -1;
	close(fd);
	close(timer);
	if (setenv("PINFOLD_STEWARD", "./tests/steward/steward-clock", 1) != 0 ||
	    setenv("PINFOLD_TEST_CLOCK", clock_file, 1) != 0 || setenv("PINFOLD_TEST_TIMER", timer_file, 1) != 0)
		return -1;
	return course_setup(state);
}

int times_teardown(void **state)
{
	(void)unlink(clock_file);
	(void)unlink(timer_file);
	return course_teardown(state);
}
