/* Read before every source of a coverage build: _exit() writes the counters first, as exit() does by itself. Not in the
 * judge's child, whose filter of system calls forbids to open a file. */
#ifndef TESTS_COVERAGE_EXIT_H
#define TESTS_COVERAGE_EXIT_H
#define PF_COVERAGE 1 /* see lib/confine.h */
#include <string.h>
#include <unistd.h>

void __gcov_dump(void);

static inline _Noreturn void coverage_exit(const char *file, int status)
{
	if (strstr(file, "judge_child") == NULL)
		__gcov_dump();
	(_exit)(status);
}
#define _exit(status) coverage_exit(__FILE__, status)
#endif
