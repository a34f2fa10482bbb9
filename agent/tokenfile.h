/* The one-time token files of the workspace. */
#ifndef AGENT_TOKENFILE_H
#define AGENT_TOKENFILE_H
#include "lib/secret.h"
#include <stdbool.h>

/*
 * Reads a token and removes its file. NULL, or why it is not acceptable (a static phrase); the caller
 * must then end: the file may still be there, and whoever put it there is not who should have.
 */
const char *tokenfile_take(int dir, const char *name, struct secret *token);
/* The three of a run; those that it does not have stay empty (token_delivery wire: the connection says whose calls
 * they are). As tokenfile_take, *file being the one at fault. */
struct tokens {
	struct secret model, events, approvals;
};
const char *tokenfiles_take(int workspace, struct tokens *to, const char **file);
void tokens_wipe(struct tokens *t);
#define own_tokens __attribute__((cleanup(tokens_wipe)))
#endif
