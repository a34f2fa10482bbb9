/* Another configuration for a running service: asks for it, waits for the outcome. */
#ifndef CLI_RELOAD_H
#define CLI_RELOAD_H
#include <stdbool.h>
#include <stdint.h>

#include "gen/audit.h"

enum reload_end { RELOAD_APPLIED, RELOAD_REFUSED, RELOAD_NOT_RUNNING };
/* Has sandboxd read the configuration and secrets, and says on standard error why not where they are refused. The same
 * where the service does not answer, unless quiet. */
enum reload_end config_reload(bool quiet);
/* Is there anybody behind the admin socket, however busy? sandboxd (may be NULL) becomes the process that made it, by
 * the kernel's word; 0: it is not of our own user. */
bool service_there(uint32_t *sandboxd);
/* A line of the audit log about a secret of this name, if the service runs. */
void reload_note(enum audit_event event, const char *name);
#endif
