/* Short forms of operations, for the tests of the store: one rig, one connection a role, tenant "acme". */
#ifndef TESTS_STORE_STEPS_H
#define TESTS_STORE_STEPS_H
#include "gen/run_fsm.h"
#include "lib/names.h"
#include "lib/num.h"
#include "tests/store/harness.h"

extern struct rig rig;
extern struct ask *fcgi, *gateway, *steward, *admin;

#define FCGI(call) RIG_AS(RIG_FCGI, call)
#define GATEWAY(call) RIG_AS(RIG_GATEWAY, call)
#define STEWARD(call) RIG_AS(RIG_STEWARD, call)
#define BYTES(s) ((struct wire_bytes){(const uint8_t *)(s), sizeof(s) - 1})

int steps_setup(void **state);
/* The part of it behind rig_start: tenants and connections. */
int steps_connect(void);
int steps_teardown(void **state);
/* The event types of a run in one string, each with a space behind; checks that they are dense from 1. */
const char *events_of(const char *run, bool *terminal);
/* The data of the run's last event. */
const char *last_data(const char *run);
struct st_run_is run_is(const char *run);
enum err finish(const char *run, enum run_event ev, bool success, const char *error, struct st_run_state *a);
enum err cancel(const char *run, struct st_run_state *a);
enum err consume(const char *run, struct st_cap_is *a);
/* times events of this type with data of size bytes. */
enum err append(const char *run, const char *type, size_t size, unsigned times, struct st_events_taken *a);
/* One question of an agent, over that connection of the gateway's. */
enum err ask_person(struct ask *a, const char *run, const struct st_agent_event *q);
/* How many of a run's questions wait, and the one of this id (out may be NULL). */
unsigned questions_of(const char *tenant, const char *run, const char *request, struct st_approval *out);
/* A device of tenant acme whose token has this public id. */
void deciding_device(const char *token_id);
/* A figure of METRICS, named with its labels; 0 where there is none. */
uint64_t figure(const char *name);
#endif
