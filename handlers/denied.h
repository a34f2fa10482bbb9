/* Callers that were not let in, for the audit log. */
#ifndef HANDLERS_DENIED_H
#define HANDLERS_DENIED_H
#include "handlers/request.h"

/* who: as far as it is known. Says nothing when e is no refusal of authority, or when too many came lately: those
 * are counted in the next one. Best effort. */
void denied_note(struct ask *ask, const struct arrival *in, const struct principal *who, enum err e);
/* A caller that is, or may be, a process in a sandbox (handlers/caller.c). who may be NULL. */
void caller_note(struct ask *ask, const struct arrival *in, const struct principal *who, uid_t uid, pid_t pid);
#endif
