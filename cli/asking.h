/* Asking the person at this terminal what agents of one run ask, a card after the other. */
#ifndef CLI_ASKING_H
#define CLI_ASKING_H
#include "cli/card.h"

enum { ASKING_LATER = 64 };

struct asking {
	const struct cli *cli;
	const struct secret *token;
	const char *run;
	const char *only; /* this question alone; NULL: whatever waits */
	bool patient;     /* a server that is away for a while is asked again */
	bool open;        /* a card is on the screen, and its answer is waited for */
	bool deaf;        /* nobody can answer here (any more) */
	bool whole;       /* the card shows all of it */
	unsigned answered, gone;
	char request[129], digest[129], confirm[CONFIRM_MAX];
	char later[ASKING_LATER][129]; /* put aside */
	unsigned laters;
};

/* Is there a person? Only with a terminal to read from and one to write to. */
bool asking_possible(void);
/*
 * Looks at what waits. If the question on the screen was decided elsewhere, tells how, and nothing is open then; if
 * none is on the screen, shows the next that waits. An exit status where the server did not say; what is on the screen
 * stays then.
 */
int asking_look(struct asking *a);
/* Takes what was typed (poll said there is something) and answers by it. */
void asking_read(struct asking *a);
/* Writes the prompt again, below what was said meanwhile. */
void asking_prompt(const struct asking *a);
#endif
