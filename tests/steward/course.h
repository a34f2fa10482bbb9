/*
 * Parts of a run's course, for the tests of the steward: each plays sandboxd for one stretch and fails the
 * test when the steward does not do what it must. The run is one of tenant acme.
 */
#ifndef TESTS_STEWARD_COURSE_H
#define TESTS_STEWARD_COURSE_H
#include "gen/run_fsm.h"
#include "tests/steward/bundles.h"
#include "tests/steward/stage.h"

#define GOOD_TESTS "..\nRan 2 tests in 0.001s\n\nOK\n"

extern struct stage course_stage;
extern const struct given course_repaired[3]; /* what a good agent leaves */

int course_setup(void **state);
int course_teardown(void **state);

/* Results as the runner would write them. */
void course_leave_work(int fd, int status);

const char *course_begin(void);
/* Up to the work box's life; to its end and GONE; to the check box's life after a good work box. */
struct order course_to_work(const char *run);
void course_end_work(const char *run, struct order *o);
struct order course_to_check(const char *run);
/* The end of the first check's box; *o becomes the order for the second's, which is alive. */
void course_next_check(const char *run, struct order *o);
/* Both checks: the first in its box, the second written but not ended. */
void course_leave_checks(const char *run, struct order *o, int first, int second, const char *output);
const struct st_run_is *course_end_check(const char *run, struct order *o);

void course_expect_end(const struct st_run_is *is, enum run_state state, const char *reason, const char *error);
/* Exactly one terminal event, and it is the last (J1). */
void course_expect_one_end(const char *run, const char *type);
void course_expect_artifact(const char *run, enum artifact name, const char *text);
bool course_holds(struct wire_bytes b, const char *text);
#endif
