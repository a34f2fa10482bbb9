/* Addresses of a run, below the mount that the request came through. */
#ifndef HANDLERS_LINKS_H
#define HANDLERS_LINKS_H
#include "lib/buf.h"
#include "lib/json.h"

enum { LINKS_BYTES = 4096, LINK_BYTES = 512 };
/* "/mount/v1/runs/ID" and tail, in out, which it returns; NULL where it does not fit, as none that comes in does. */
const char *link_to(char out[LINK_BYTES], const char *mount, const char *run, const char *tail);
/* The object with status, events, approvals, cancel and artifacts. */
void links_write(struct jw *w, const char *mount, const char *run);
#endif
