/* What an agent asks a person, as the API shows it, and the person's answer. */
#ifndef CLI_CARD_H
#define CLI_CARD_H
#include "cli/cli.h"

/* {"pending", "decisions"} of a run, in the arena; NULL after saying why (then *status is the exit status). */
const struct json *cards_fetch(const struct cli *cli, const struct secret *token, const char *run, struct arena *a,
			       int *status);
/* The one with this request id of one of the two lists; NULL: it is not there. */
const struct json *card_of(const struct json *list, const char *request);
bool card_whole(const struct json *card); /* it shows all that is asked, as it was sent */
/* All that a person needs to decide. The preview stands behind a margin, so that no line of it can look like ours. */
void card_say(FILE *to, const char *run, const struct json *card);
/* How it was decided: "allow_once at 12:00:01 by first device". */
void decision_say(FILE *to, const struct json *decision);

/* What an answer came to. */
enum answered {
	ANSWERED_DONE,    /* recorded */
	ANSWERED_CONFIRM, /* allow_session: the same again with *confirm */
	ANSWERED_AGAIN,   /* not so; another answer may do */
	ANSWERED_GONE,    /* nothing waits there any more, or something else */
	ANSWERED_NOBODY   /* nobody with this token, from here */
};
enum { CONFIRM_MAX = 128 };
/*
 * Answers for the card that was shown: its digest goes along. confirm: "" or what the first answer gave; gets what this
 * one gives. Says what came of it to standard error, but for ANSWERED_CONFIRM; with cli->json an answer of the server
 * goes to standard output as it is. *status is the exit status.
 */
enum answered card_answer(const struct cli *cli, const struct secret *token, const char *run, const char *request,
			  const char *digest, const char *decision, char confirm[CONFIRM_MAX], int *status);
#endif
