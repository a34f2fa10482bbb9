/*
 * What should make a reader look twice: ways to make a check say more than is true that stay inside the
 * allowed files, as far as they can be seen from here. A flag decides nothing.
 */
#ifndef STEWARD_FLAGS_H
#define STEWARD_FLAGS_H
#include "lib/json.h"
#include "steward/app.h"

enum flag {
	FLAG_NONE,
	FLAG_TEST_FILE,       /* a file by whose name a test runner finds tests was changed */
	FLAG_CHECK_SETUP,     /* a file that steers what checks do was changed */
	FLAG_FEWER_TESTS,     /* the check ran fewer tests than on the upload */
	FLAG_NOTHING_CHANGED, /* the check looks at changes, and there were none */
	FLAG__COUNT
};
extern const char *const flag_names[FLAG__COUNT];

/* FLAG_TEST_FILE, FLAG_CHECK_SETUP or FLAG_NONE. */
enum flag flags_of_path(const char *path);
/* Is it worth a second box to count the tests of the upload? Asked when check i has passed. */
bool flags_compare(const struct run *r, size_t i);
/* Writes [{"flag","path"}...] about check i; "path" where the flag is about a file. */
void flags_write(struct jw *w, const struct run *r, size_t i);
#endif
