/* The configuration: parsed by an unprivileged child, checked here. Ends the program when it is not acceptable. */
#ifndef SANDBOXD_SETTINGS_H
#define SANDBOXD_SETTINGS_H
#include "lib/conf.h"

/* Fills c and returns the sealed memfd that every child gets too. */
int settings_load(struct conf *c);
/* A pipe, full and closed for writing, with the secrets of this role as lib/secret.h says. -1 after logging. */
int settings_secrets(const struct conf *c, const char *role);
#endif
