/* A steward whose clock and timer the test sets (tests/steward/steward-clock), on the stage of course.h. */
#ifndef TESTS_STEWARD_TIMES_H
#define TESTS_STEWARD_TIMES_H

/* Its wall clock is off by so many milliseconds. */
void times_clock(long long offset);
/* So many milliseconds pass by its timer; it is woken by what means nothing to it. */
void times_pass(long long ms);
int times_setup(void **state);
int times_teardown(void **state);
#endif
