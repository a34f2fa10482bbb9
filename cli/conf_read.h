/*
 * The configuration files, read with libconfuse and turned into the typed messages of conf.msg.
 * Runs unprivileged (as a short-lived child of sandboxd) or for `pinfold config check`.
 */
#ifndef CLI_CONF_READ_H
#define CLI_CONF_READ_H
#include <stdbool.h>

/*
 * Reads pinfold.conf, providers.d, profiles.d and tenants.d below the configuration directory of
 * lib/place.h and writes the frames to fd. Every problem is one line on standard error with file,
 * line where known, and what was expected; false when there was any.
 */
bool conf_read(int fd);
/* Comments become blanks, in place; every line stays where it was. */
void conf_plain(char *text);
#endif
