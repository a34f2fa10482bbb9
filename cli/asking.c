/*
 * See asking.h. What was typed before a card was on the screen answers nothing; no answer is the default; what an agent
 * says cannot look like the prompt, since it stands behind a margin (card_say).
 */
#include "cli/asking.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <termios.h>
#include <unistd.h>

#include "lib/num.h"

bool asking_possible(void)
{
	return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

static const struct {
	char letter;
	const char *word;
	const char *decision; /* NULL: put aside */
} words[] = {{'o', "once", "allow_once"},
	     {'s', "session", "allow_session"},
	     {'d', "deny", "deny"},
	     {'c', "cancel", "cancel"},
	     {'l', "later", NULL}};

void asking_prompt(const struct asking *a)
{
	if (a->confirm[0] != '\0')
		fputs("This also allows the identical action (effect and preview, byte for byte) for the rest of the "
		      "run.\n[s] again to allow it, anything else not to: ",
		      stderr);
	else
		fprintf(stderr, "[o] allow once%s  [d] deny  [c] cancel: the agent shall stop  [l] later: ",
			a->whole ? "  [s] allow for the session" : "");
	fflush(stderr);
}

static bool put_aside(const struct asking *a, const char *request)
{
	for (unsigned i = 0; i < a->laters && i < ASKING_LATER; i++)
		if (strcmp(a->later[i], request) == 0)
			return true;
	return false;
}

static void show(struct asking *a, const struct json *card)
{
	snprintf(a->request, sizeof a->request, "%s", member(card, "requestId"));
	snprintf(a->digest, sizeof a->digest, "%s", member(card, "digest"));
	a->confirm[0] = '\0';
	a->whole = card_whole(card);
	a->open = true;
	/* Nobody answers a card that he has not seen. */
	tcflush(STDIN_FILENO, TCIFLUSH);

	card_say(stderr, a->run, card);
	asking_prompt(a);
}

int asking_look(struct asking *a)
{
	own_arena struct arena arena = {0};
	int status;

	if (a->deaf)
		return 0;
	arena_init(&arena, 16 << 20);
	struct cli cli = *a->cli;
	cli.quiet = a->patient;
	const struct json *all = cards_fetch(&cli, a->token, a->run, &arena, &status);
	if (all == NULL) {
		a->deaf = status != EXIT_UNREACHABLE;
		a->open = a->open && !a->deaf;
		return a->deaf ? 0 : status;
	}
	const struct json *pending = json_get(all, "pending");
	if (a->open && card_of(pending, a->request) == NULL) {
		const struct json *was = card_of(json_get(all, "decisions"), a->request);
		a->open = false;
		a->gone++;
		fputs("\nquestion ", stderr);
		say_foreign(stderr, a->request, strlen(a->request));
		if (was != NULL) {
			fputs(" was decided meanwhile: ", stderr);
			decision_say(stderr, was);
			fputc('\n', stderr);
		} else {
			fputs(" does not wait any more\n", stderr);
		}
		return 0;
	}
	for (const struct json *c = pending != NULL ? pending->child : NULL; c != NULL && !a->open; c = c->next) {
		const char *request = member(c, "requestId");
		if (id_valid(request) && !put_aside(a, request) && (a->only == NULL || strcmp(a->only, request) == 0))
			show(a, c);
	}
	return 0;
}

static void answer(struct asking *a, const char *decision)
{
	int status;

	switch (card_answer(a->cli, a->token, a->run, a->request, a->digest, decision, a->confirm, &status)) {
	case ANSWERED_DONE:
		a->open = false;
		a->answered++;
		return;
	case ANSWERED_GONE:
		a->open = false;
		a->gone++;
		return;
	case ANSWERED_NOBODY:
		a->open = false;
		a->deaf = true;
		return;
	case ANSWERED_CONFIRM:
	case ANSWERED_AGAIN:
		asking_prompt(a);
		return;
	}
}

static void take_word(struct asking *a, const char *word)
{
	size_t i = 0;

	while (i < sizeof words / sizeof *words && strcasecmp(word, words[i].word) != 0 &&
	       (word[0] != words[i].letter || word[1] != '\0') &&
	       (words[i].decision == NULL || strcmp(word, words[i].decision) != 0))
		i++;
	bool known = i < sizeof words / sizeof *words;
	if (a->confirm[0] != '\0' && (!known || words[i].letter != 's')) {
		a->confirm[0] = '\0';
		fputs("nothing is decided\n", stderr);
		asking_prompt(a);
	} else if (!known) {
		asking_prompt(a);
	} else if (words[i].decision != NULL) {
		answer(a, words[i].decision);
	} else {
		snprintf(a->later[a->laters++ % ASKING_LATER], sizeof *a->later, "%s", a->request);
		a->open = false;
		fprintf(stderr, "it still waits: pinfold approve %s %s\n", a->run, a->request);
	}
}

void asking_read(struct asking *a)
{
	char line[256];
	ssize_t n = read(STDIN_FILENO, line, sizeof line);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		fputs("\nnothing is decided\n", stderr);
		a->open = false;
		a->deaf = true;
		return;
	}
	if (!a->open)
		return;
	/* A terminal gives a line at a time; whatever is longer than one is no word of ours. */
	while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r' || line[n - 1] == ' '))
		n--;
	line[n < (ssize_t)sizeof line ? n : 0] = '\0';
	take_word(a, memchr(line, '\0', (size_t)n) == NULL ? line : "");
}
