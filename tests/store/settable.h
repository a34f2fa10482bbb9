/* A rig whose stored has a clock that a test may set (tests/store/wrap_clock.c). */
#ifndef TESTS_STORE_SETTABLE_H
#define TESTS_STORE_SETTABLE_H
/* Milliseconds beside the machine's own. */
void set_clock(long long offset);
int settable_setup(void **state);
int settable_teardown(void **state);
#endif
