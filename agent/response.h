/* What an agent claims at its end. */
#ifndef AGENT_RESPONSE_H
#define AGENT_RESPONSE_H
#include "lib/buf.h"
#include <stdbool.h>

/* Leaves this JSON text, and a line feed, as response.json: written beside its name and then put in place, so that it
 * is never half there. False with errno, or where the text has failed. */
bool response_leave(int workspace, struct buf *text);
#endif
