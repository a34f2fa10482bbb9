/*
 * What pinfold-stored does by hand, for "pinfold store check" and "pinfold store restore", while no service has the
 * store open: as the store's user, with the places as arguments, its findings on standard output.
 */
#ifndef STORE_OFFLINE_H
#define STORE_OFFLINE_H
#include <stdbool.h>

/* The exit status. Ends the program with a sentence where the store cannot be opened. */
int offline(int argc, char **argv);

/* restore.c: NAME_NEW, which holds the files of a backup, becomes a store that may be used. */
#define NAME_STORE "store"
#define NAME_NEW "store.new"
int restore(const char *state_dir, const char *log_dir, bool keep_tokens);
/* Gives up what the daemon gives up, but for these folders; log_dir NULL: none. Ends the program where it cannot. */
void offline_confine(const char *state_dir, const char *log_dir);
/* Prints what does not fit; the number of findings. */
struct store;
unsigned offline_check(struct store *s, bool contents, bool quiet);
#endif
