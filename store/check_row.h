/* What the checks of single rows (check.c, check_push.c, check_source.c) share. */
#ifndef STORE_CHECK_ROW_H
#define STORE_CHECK_ROW_H
#include "store/check.h"

/* Something does not fit. */
void check_finding(struct check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A read that failed is said once, as that of what (NULL: not at all); the look goes on. */
void check_settle(struct check *c, const char *what);
bool check_has(struct check *c, enum table which, const struct key *k);

typedef void check_row(struct check *c, struct wire_bytes key, struct wire_bytes value);
/* True: this use of a blob is a source's, and was looked at. */
bool check_source_use(struct check *c, const char *sha, const char *tenant, const char *run, const char *use);
check_row check_source, check_source_by_use, check_subscription, check_push, check_push_due, check_push_budget,
    check_spent;
#endif
