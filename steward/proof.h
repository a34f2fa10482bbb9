/*
 * Self-tests of agents that are given real keys (credential_mode = env): whether the one that is installed reads its
 * configuration as its profile means it. Each is run in boxes of its own with keys that are nobody's: its version, keys
 * that are set, not set, empty, and full of quotes, backslashes and line ends.
 */
#ifndef STEWARD_PROOF_H
#define STEWARD_PROOF_H
#include "gen/sandbox_msg.h"
#include "lib/names.h"
#include "steward/app.h"

/* All of them anew: at the start, and when the configuration has changed. */
void proof_begin(struct app *app);
/* PROOF_NONE also for an agent without real keys. */
enum proof_state proof_of(const struct app *app, const char *agent);
/* It was seen to take any text for what it is. */
bool proof_odd(const struct app *app, const char *agent);
/* How many boxes self-tests have now. */
size_t proof_boxes(const struct app *app);
/* The store is another one, or was away. */
void proof_tell_again(struct app *app);
void proof_tick(struct app *app, uint64_t now);
/* When it wants proof_tick next; 0: never. */
uint64_t proof_due(const struct app *app);
/* What sandboxd says. False: the box is no self-test's. */
bool proof_spawned(struct app *app, const char *run);
bool proof_refused(struct app *app, const struct sbx_refused *m);
bool proof_exited(struct app *app, const char *run);
bool proof_gone(struct app *app, const char *run);
#endif
