/* Processes that cannot be killed, for the tests of what happens then. */
#ifndef TESTS_BOX_HELD_H
#define TESTS_BOX_HELD_H
#include <sys/types.h>

/*
 * Makes the first process of the group (a path; waited for) unkillable, as one in an endless system call is: a tracer
 * that does not wait keeps it from being reaped, and so the process 1 above it from ending. The answer is the tracer.
 */
pid_t held_first(const char *group);
/* Ends the tracer, and so its hold. */
void held_no_more(pid_t tracer);
#endif
