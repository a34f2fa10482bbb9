/*
 * Whether an agent may do what it asks for. "always" is never passed on to an agent: what a person allowed for the rest
 * of the run is the control plane's to know, and each use is asked for anew, with all that would be done.
 */
#include "bridge/bridge.h"
#include "lib/die.h"
#include <string.h>

/* The words of ACP's tool kinds, and what they do to the box. */
static const struct {
	const char *kind, *effect;
} kinds[] = {{"read", "read"},       {"search", "read"},   {"think", "read"},
	     {"edit", "modify"},     {"delete", "modify"}, {"move", "modify"},
	     {"execute", "execute"}, {"fetch", "execute"}, {"other", "execute"}};

enum permit permit(struct bridge *b, const char *kind, const char *id, const char *title, const char *preview)
{
	size_t i = 0, last = sizeof kinds / sizeof *kinds - 1;

	while (i < last && strcmp(kinds[i].kind, kind) != 0)
		i++;
	const char *said = b->permissions != NULL ? text_of(b->permissions, kinds[i].kind) : "";
	if (strcmp(said, "allow") == 0)
		return PERMIT_YES;
	if (strcmp(said, "deny") == 0)
		return PERMIT_NO;
	/* Nobody can judge by a title alone, which is the model's own. */
	if (*preview == '\0' || b->mended) {
		log_warn("a question that does not say what would be done, or cannot be shown, is refused");
		return PERMIT_NO;
	}
	uint64_t waited = 0;
	const struct approve_what what = {kinds[i].effect, kinds[i].kind, id, title, preview};
	switch (approve_ask(&b->approve, &what, &waited)) {
	case APPROVED:
		return PERMIT_YES;
	case CALLED_OFF:
		return PERMIT_STOP;
	case REFUSED:
	case UNANSWERED:
	case TOO_LARGE:
	default:
		return PERMIT_NO;
	}
}
