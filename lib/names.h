/* Words that several processes share; each enum has its table of names in lib/names.c. */
#ifndef LIB_NAMES_H
#define LIB_NAMES_H
#include "gen/approval_fsm.h"
#include "lib/place.h"
#include <stdbool.h>

enum run_phase {
	PHASE_WAITING,
	PHASE_STAGING,
	PHASE_EXECUTING,
	PHASE_AWAITING_APPROVAL,
	PHASE_COLLECTING,
	PHASE_VERIFYING,
	PHASE_CLEANING,
	PHASE__COUNT
};
/* request events checkpoint patch test_log result transcript; the numbers are bits in records */
enum artifact {
	ART_REQUEST,
	ART_EVENTS,
	ART_CHECKPOINT,
	ART_PATCH,
	ART_TEST_LOG,
	ART_RESULT,
	ART_TRANSCRIPT,
	ART__COUNT
};
enum approval_decision {
	DECISION_NONE,
	DECISION_ALLOW_ONCE,
	DECISION_ALLOW_SESSION,
	DECISION_DENY,
	DECISION_CANCEL,
	DECISION__COUNT
};
/* card: a question waits; clear: it does no more; summary: several waited that had no push of their own. */
enum push_kind { PUSH_CARD, PUSH_CLEAR, PUSH_SUMMARY, PUSH_KIND__COUNT };
/* What a push service said: taken; no such subscription (404, 410); not this push (400, 413 and the like); nothing, or
 * a failure of its own; later (429). */
enum push_outcome { PUSH_SENT, PUSH_GONE, PUSH_REFUSED, PUSH_FAILED, PUSH_TOO_MANY, PUSH_OUTCOME__COUNT };
enum receipt_kind { RECEIPT_ANSWER, RECEIPT_CANCEL, RECEIPT_GRANT_REVOKE, RECEIPT__COUNT };
/* What is known of how an agent with real keys reads them: no self_test; under way; as it should; not so. */
enum proof_state { PROOF_NONE, PROOF_ON, PROOF_DONE, PROOF_FAILED, PROOF__COUNT };
enum change_how { CHANGE_ADDED = 1, CHANGE_MODIFIED = 2, CHANGE_REMOVED = 3 };

extern const char *const phase_names[PHASE__COUNT];
extern const char *const artifact_names[ART__COUNT];
extern const char *const decision_names[DECISION__COUNT];
extern const char *const push_kind_names[PUSH_KIND__COUNT];
extern const char *const receipt_names[RECEIPT__COUNT];
/* The artifact of that name, or ART__COUNT. */
enum artifact artifact_find(const char *name);
/* Is an event of this type one that only the control plane may write? An agent's is renamed, agent.TYPE. */
bool event_reserved(const char *type);
#endif
