/* What the tests of Web Push in the store share: devices with push, questions, and a process that sends nothing. */
#ifndef TESTS_STORE_PUSHING_H
#define TESTS_STORE_PUSHING_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gen/limits.h"
#include "tests/store/push_steps.h"
#include "tests/store/settable.h"
#include "tests/store/steps.h"

enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE };

/* settable_setup, and the connection of role push; the timer stands a day ahead, so that it may also be set back. */
int pushing_setup(void **state);
/* The same, and one device of acme's with push: "phone". */
int pushing_phone(void **state);
int pushing_teardown(void **state);
/* Time passes, for clock and timer. */
void pass(long long ms);
/* As a clock that was set: the timer goes on as it did. */
void step_clock(long long ms);
/* What time it is there. */
uint64_t there(void);
/* stored is killed and started again; as by a new start of the machine, whose timer begins anew, if anew. */
void restart(bool anew);
/* push_ready, and again after each restart. */
void ready(char key);

void device(const char *tenant, const char *id, uint64_t expires_at);
/* It subscribes, at an endpoint of its own. */
enum err subscribe(const char *tenant, const char *id);
void revoke_device(const char *tenant, const char *label);

/* A run whose agent works; its question. */
void working(const char *tenant, const char *run);
void question(const char *tenant, const char *run, const char *request);
enum err decided(const char *tenant, const char *run, const char *request);
/* How many of a run's questions wait. */
unsigned cards(const char *tenant, const char *run);

/* What is handed out next: its kind; 'n' nothing. */
char next(struct st_push_is *a);
enum err done(const struct st_push_is *a, uint8_t outcome, uint32_t retry_after);
/* Everything that is due is sent; the kinds, 'c' card, 'x' clear, 's' summary, in their order. */
const char *send_all(void);
/* No budget of an earlier test stands in the way any more. */
void past_budgets(void);
/* How many records do not fit together; says which. */
unsigned findings(void);
#endif
