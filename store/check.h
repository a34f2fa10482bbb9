/* Do the records fit together? Looked at in steps, each row with all that it refers to, in one transaction. */
#ifndef STORE_CHECK_H
#define STORE_CHECK_H
#include "store/txn.h"

/* Called for each thing that does not fit. */
typedef void check_says(void *with, const char *text);

struct check {
	struct txn *t;
	bool contents; /* read every blob, and compare it with its name */
	check_says *says;
	void *with;
	uint32_t rows, findings; /* counted here */
	/* Where it stands: the next row of this table (n 0: its first); T__COUNT is the end. */
	unsigned table;
	struct key next;
	/* internal */
	int64_t left;
};

/* About so many rows more. False: the end was reached, and nothing is left to look at. */
bool check_step(struct check *c, uint32_t rows);
#endif
