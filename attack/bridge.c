/*
 * An agent against its own bridge (pinfold-bridge(8)), behind which these run: profile attack-bridged. It has another
 * uid of the box, and what it was given lies nowhere here.
 */
#include "attack/talk.h"
#include "attack/tried.h"
#include "gen/attacks_inside.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NUMBERS = 4000 }; /* a box is young: those of its processes are small */

/* Which there are, the kernel says by the error, though /proc shows none of them. Signal 0 does no harm. */
struct tried attack_bridge_signal(void)
{
	unsigned others = 0;
	for (pid_t p = 2; p < NUMBERS; p++) {
		if (p == getpid() || p == getppid())
			continue;
		if (kill(p, 0) == 0)
			return open_("process %d takes signals", (int)p);
		others += errno == EPERM;
	}
	return others > 0 ? held("EPERM") : skipped("no bridge is there");
}

struct tried attack_bridge_tokens(void)
{
	static const char *const files[] = {".pinfold-event-token", ".pinfold-approval-token"};
	char token[TOKEN_MAX];
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if (talk_token(files[i], token))
			return open_("%s is there", files[i]);
	return held("no file");
}

static struct tried answered(int status)
{
	return status == 401 ? held("401") : status < 0 ? skipped("no answer") : open_("answer %d", status);
}

/* By the connection alone, which is enough for the model. */
struct tried attack_bridge_events(void)
{
	const char *run = getenv("PINFOLD_RUN_ID");
	return answered(talk_event("message.text", run != NULL ? run : "", "1", "{\"text\":\"forged\"}"));
}

struct tried attack_bridge_asks(void)
{
	const char *run = getenv("PINFOLD_RUN_ID");
	char path[300];
	snprintf(path, sizeof path, "/internal/v1/runs/%.200s/approvals/a", run != NULL ? run : "");
	return answered(talk("GET", path, NULL, NULL, NULL, 0));
}
