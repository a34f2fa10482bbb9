/* The words for the enums of lib/names.h, as they appear in answers and events. */
#include "lib/names.h"
#include <string.h>

const char *const phase_names[PHASE__COUNT] = {
    [PHASE_WAITING] = "waiting",       [PHASE_STAGING] = "staging",
    [PHASE_EXECUTING] = "executing",   [PHASE_AWAITING_APPROVAL] = "awaiting_approval",
    [PHASE_COLLECTING] = "collecting", [PHASE_VERIFYING] = "verifying",
    [PHASE_CLEANING] = "cleaning",
};

const char *const artifact_names[ART__COUNT] = {
    [ART_REQUEST] = "request",   [ART_EVENTS] = "events", [ART_CHECKPOINT] = "checkpoint", [ART_PATCH] = "patch",
    [ART_TEST_LOG] = "test_log", [ART_RESULT] = "result", [ART_TRANSCRIPT] = "transcript",
};

const char *const decision_names[DECISION__COUNT] = {
    [DECISION_NONE] = "",     [DECISION_ALLOW_ONCE] = "allow_once", [DECISION_ALLOW_SESSION] = "allow_session",
    [DECISION_DENY] = "deny", [DECISION_CANCEL] = "cancel",
};

const char *const push_kind_names[PUSH_KIND__COUNT] = {
    [PUSH_CARD] = "card",
    [PUSH_CLEAR] = "clear",
    [PUSH_SUMMARY] = "summary",
};

const char *const receipt_names[RECEIPT__COUNT] = {
    [RECEIPT_ANSWER] = "answer",
    [RECEIPT_CANCEL] = "cancel",
    [RECEIPT_GRANT_REVOKE] = "grant_revoke",
};

enum artifact artifact_find(const char *name)
{
	int i = 0;
	while (i < ART__COUNT && strcmp(name, artifact_names[i]) != 0)
		i++;
	return (enum artifact)i;
}

bool event_reserved(const char *type)
{
	static const char *const families[] = {"run.", "model.", "approval.", "check.", "events.", "limit."};
	for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
		if (strncmp(type, families[i], strlen(families[i])) == 0)
			return true;
	return false;
}
