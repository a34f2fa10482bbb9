/* Questions of agents and the answers of people, in short forms: tenant "acme", devices as deciding_device() makes
 * them. */
#ifndef TESTS_STORE_ASKING_H
#define TESTS_STORE_ASKING_H
#include "tests/store/steps.h"

/* A digest of its own for each letter. */
struct wire_bytes digest_of(char letter);
/* A run whose agent is at work. */
void run(const char *id);
/* what: a letter, by which it is the identical action; '-': one of which nothing is shown. */
enum err ask_for(const char *id, const char *request, char what, bool shortened);
enum err ask(const char *id, const char *request, char what);
/* What the agent's poll says: "pending", "expired" or the decision; else why there is no answer. */
const char *poll_of(const char *id, const char *request);
/* What was said to the last decision. */
extern struct st_approval_decided last;
/* what: '\0' where the digest is not said. */
enum err decide_as(const char *by, const char *id, const char *request, uint8_t decision, char what,
		   const char *confirm);
enum err decide(const char *id, const char *request, uint8_t decision);
/* The nonce of a first tap; NULL: *e says why there is none. */
const char *tap(const char *by, const char *id, const char *request, enum err *e);
/* How many of a run's wait, and the one of this id (out may be NULL). */
unsigned listed(const char *id, const char *request, struct st_approval *out);
#endif
