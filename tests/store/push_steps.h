/* Short forms of the operations of Web Push, beside those of steps.h. */
#ifndef TESTS_STORE_PUSH_STEPS_H
#define TESTS_STORE_PUSH_STEPS_H
#include "tests/store/steps.h"

extern struct ask *push;
#define PUSHING(call) RIG_AS(RIG_PUSH, call)

/* Role push connects, where it has not yet, and says its key: 65 bytes that begin with 4 and then this letter. */
void push_ready(char letter);
/* A device subscribes; at an endpoint of its own, where none is given. */
enum err push_put_at(const char *tenant, const char *id, const char *endpoint);
bool push_has(const char *tenant, const char *id);
#endif
