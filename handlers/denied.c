/*
 * Tells stored of a refused caller. Anybody may cause this, so it is bounded here, before the store is asked.
 * Never holds a token: the public id that it named is all that is told.
 */
#include "handlers/denied.h"
#include "gen/audit.h"
#include "gen/store_msg.h"
#include "handlers/counts.h"
#include "handlers/source.h"
#include "lib/ask.h"
#include "lib/num.h"
#include "lib/pace.h"
#include <pthread.h>
#include <stdio.h>

/* Of the whole process, since a caller that was not let in is nobody: hence static. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pace denials, bursts, decisions; /* each of its own: who shouts at one does not hide the other */

static bool may_say(struct pace *pace, uint32_t *suppressed)
{
	(void)pthread_mutex_lock(&lock);
	bool yes = pace_take(pace, pace_source, timer_ms(), suppressed);
	(void)pthread_mutex_unlock(&lock);
	return yes;
}

void denied_note(struct ask *ask, const struct arrival *in, const struct principal *who, enum err e)
{
	char subject[300];
	struct st_ok ok;
	struct st_audit_note m = {.event = AUDIT_AUTH_DENIED,
				  .tenant = who->tenant,
				  .run = "",
				  .actor = who->by,
				  .request_id = in->id,
				  .subject = subject,
				  .code = (uint16_t)e};
	bool burst = e == ERR_TOO_MANY_FAILURES;
	if (!counts_denial(e) || !may_say(burst ? &bursts : &denials, &m.suppressed))
		return;
	/* Who it was is what the administrator can do something about then. */
	char from[SOURCE_TEXT];
	source_text(in->source, from);
	(void)snprintf(subject, sizeof subject, "%s %.200s%s%s", in->method, in->path, burst ? " from " : "",
		       burst ? from : "");
	(void)st_call_audit_note(ask, &m, NULL, &ok, NULL);
}

void caller_note(struct ask *ask, const struct arrival *in, const struct principal *who, uid_t uid, pid_t pid)
{
	char subject[300];
	struct st_ok ok;
	struct st_audit_note m = {.event = AUDIT_DECISION_REFUSED,
				  .tenant = who != NULL ? who->tenant : "",
				  .run = "",
				  .actor = who != NULL ? who->by : "",
				  .request_id = in->id,
				  .subject = subject};
	if (!may_say(&decisions, &m.suppressed))
		return;
	(void)snprintf(subject, sizeof subject, "%s %.200s by uid %lu, pid %ld", in->method, in->path,
		       (unsigned long)uid, (long)pid);
	(void)st_call_audit_note(ask, &m, NULL, &ok, NULL);
}
