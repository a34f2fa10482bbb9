/* A rig whose stored has a clock and a timer that a test may set (tests/store/wrap_clock.c,
 * tests/steward/wrap_timer.c). */
#ifndef TESTS_STORE_SETTABLE_H
#define TESTS_STORE_SETTABLE_H
/* Milliseconds beside the machine's own. */
void set_clock(long long offset);
/* The same of the timer, which goes back only where the machine was started again. */
void set_timer(long long offset);
int settable_setup(void **state);
int settable_teardown(void **state);
#endif
